"""The files come out of the package whole, and never over somebody's changes."""

from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from hdguard.observe.dashboards.export import FILES, export, shipped
from tests.observe.dashboards.shipped import BOARDS, PROMETHEUS, read

BOARD = Path("grafana/dashboards/watching.json")
ALERTS = Path("prometheus/rules/alerts.yml")


def test_everything_is_handed_out_and_a_second_time_nothing_changes(tmp_path: Path) -> None:
    done = export(tmp_path / "new" / "folder", force=False)
    assert done.written == list(shipped())
    for name in done.written:
        assert (tmp_path / "new" / "folder" / name).read_bytes() == (FILES / name).read_bytes()
    again = export(tmp_path / "new" / "folder", force=False)
    assert (again.written, again.same, again.kept) == ([], done.written, [])


def test_a_changed_file_is_kept_and_the_others_come(tmp_path: Path) -> None:
    export(tmp_path, force=False)
    (tmp_path / ALERTS).write_text("groups: []  # ours\n")
    (tmp_path / BOARD).unlink()
    done = export(tmp_path, force=False)
    assert (done.written, done.kept) == ([BOARD], [ALERTS])
    assert "# ours" in (tmp_path / ALERTS).read_text()


def test_force_overwrites_it(tmp_path: Path) -> None:
    export(tmp_path, force=False)
    (tmp_path / ALERTS).write_text("groups: []  # ours\n")
    done = export(tmp_path, force=True)
    assert (done.written, done.kept) == ([ALERTS], [])
    assert "# ours" not in (tmp_path / ALERTS).read_text()


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ALERTS).mkdir(parents=True)
    with pytest.raises(OSError, match=r"alerts\.yml"):
        export(tmp_path, force=False)


def test_grafana_is_told_of_the_source_at_the_pace_at_which_it_is_filled() -> None:
    (source,) = provisioned("datasources")["datasources"]
    assert (source["type"], source["access"]) == ("prometheus", "proxy")
    interval = yaml.safe_load(PROMETHEUS.read_text())["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == interval


def test_grafana_is_told_where_the_dashboards_lie() -> None:
    (provider,) = provisioned("dashboards")["providers"]
    assert provider["type"] == "file"
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards/hdguard"
    assert {read(path)["uid"] for path in BOARDS}  # else there is nothing to show


def provisioned(kind: str) -> dict[str, list[dict[str, Any]]]:
    file = FILES / "grafana" / "provisioning" / kind / "hdguard.yaml"
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(file.read_text())
    return found
