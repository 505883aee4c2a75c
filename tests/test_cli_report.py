"""`hdguard report` as a person types it."""

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.replay.made import make_dataset
from tests.test_cli import call, replay, says


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    names = ("red.mp4", "quiet.mp4")
    result = replay(make_dataset(folder / "data", names), folder / "run")
    assert result.exit_code == 0, result.output
    return folder / "run"


def test_the_page_is_put_beside_the_results_with_progress_and_its_size(run: Path) -> None:
    result = call("report", run)
    assert result.exit_code == 0, result.output
    page = run / "report.html"
    assert result.stdout == f"{page}: {page.stat().st_size / 1e6:.1f} MB\n"
    assert "1/2 red.mp4" in result.stderr
    assert "2/2 quiet.mp4" in result.stderr
    assert page.read_text(encoding="utf-8").count("data:image/jpeg") == 4
    assert list(run.glob("*.part")) == list(run.glob(".*.part")) == []


def test_another_place_without_stills_and_with_fewer_videos(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", run / "results.json", "--out", page, "--no-stills", "--limit-videos", 1)
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    assert "data:image/jpeg" not in text
    assert "The first 1 of 2 are shown" in text


def test_videos_that_were_moved_are_no_error(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", run, "--out", page, "--dataset", tmp_path / "gone")
    assert result.exit_code == 0, result.output
    assert "no such folder" in page.read_text(encoding="utf-8")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    says(call("report", tmp_path), 65, "not a run's folder", "hdguard replay --out")
    says(call("report", tmp_path / "gone"), 65, "No such file")


def test_a_folder_that_is_not_there_is_said(run: Path, tmp_path: Path) -> None:
    says(call("report", run, "--out", tmp_path / "no" / "page.html"), 65, "no such folder")


def test_without_the_extra_it_says_what_to_install(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return real(name, *more)

    for name in [m for m in sys.modules if m.startswith("hdguard.replay.html_report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    says(call("report", run), 78, "pip install 'hdguard[report]'")
