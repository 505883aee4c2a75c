"""`hdguard incidents` as a person types it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from hdguard import cli_incidents
from hdguard.observe.incidents.encode import finish
from hdguard.observe.incidents.record import Wall
from hdguard.observe.incidents.shelf import items, remove, set_aside
from hdguard.observe.incidents.spool import SpoolFile
from tests.observe.incidents.support import INCIDENT, part


def call(*words: object, typed: str = "") -> Result:
    environment = {"COLUMNS": "60", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(
        cli_incidents.incidents, [str(word) for word in words], input=typed, env=environment
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole one, an old one, a broken one and one in progress."""
    place = tmp_path / "incidents"
    finish(part(place, "7-1"))
    wall = Wall(decided="2020-01-01T00:00:00+00:00", offset_ns=0)
    old = msgspec.structs.replace(INCIDENT, wall=wall, interrupted=True)
    finish(part(place, "5-1", old))
    set_aside(part(place, "7-2"), "torn")
    part(place, "7-3")
    return place


@contextmanager
def in_hand(part: Path) -> Iterator[None]:
    """As by a guard that records it."""
    other = SpoolFile(part / "other.spool")
    yield
    other.close()


def names(folder: Path) -> set[str]:
    return {item.name for item in items(folder)}


def test_the_list_says_what_there_is_oldest_first(folder: Path) -> None:
    done = call("list", "--dir", folder)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == [
        "id",
        "when",
        "(UTC)",
        "class",
        "cause",
        "camera",
        "seconds",
        "MB",
        "state",
    ]
    assert lines[1].split()[:7] == [
        "5-1",
        "2020-01-01",
        "00:00:00",
        "danger",
        "fast_red",
        "hall",
        "2.0",
    ]
    assert [line.split()[0] for line in lines[2:5]] == ["7-1", "7-2.broken", "7-3"]
    assert lines[1].endswith("cut short")
    assert lines[2].endswith("complete")
    assert lines[3].endswith("broken")
    assert lines[4].endswith("unfinished")
    assert [line.partition(":")[0] for line in lines[6:9]] == ["broken", "cut short", "unfinished"]
    assert lines[9].endswith(f"hdguard explain {folder}/ID")
    with in_hand(folder / "7-3.part"):
        assert call("list", "--dir", folder).stdout.splitlines()[4].endswith("in progress")


def test_what_we_may_not_look_into_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access

    def asked(path: Path, mode: int) -> bool:
        return access(path, mode) and path.name != "7-1"

    monkeypatch.setattr(os, "access", asked)
    done = call("list", "--dir", folder)
    assert done.stderr == f"hdguard: {folder / '7-1'}: you may not look into it: not listed\n"


def test_for_programs_it_is_json(folder: Path) -> None:
    rows = json.loads(call("list", "--dir", folder, "--json").stdout)
    assert rows[1] == {
        "id": "7-1",
        "when": "2026-05-01T10:00:00+00:00",
        "class": "danger",
        "cause": "fast_red",
        "camera": "hall",
        "seconds": 2.0,
        "bytes": rows[1]["bytes"],
        "status": "complete",
        "files": ["clip.mp4", "incident.json"],
    }


def test_by_the_configuration_it_is_the_guards_own_folder(tmp_path: Path) -> None:
    config = tmp_path / "hdguard.toml"
    config.write_text(f'[mqtt]\nrobot = "rosie"\n[live]\nstate_dir = "{tmp_path}"\n')
    done = call("list", "--config", config)
    assert done.stdout == f"{tmp_path / 'rosie.incidents'}: nothing is recorded\n"
    finish(part(tmp_path / "rosie.incidents", "7-1"))
    assert "7-1" in call("list", "--config", config).stdout


def test_where_must_be_said_once(folder: Path, tmp_path: Path) -> None:
    for words in (("list",), ("list", "--dir", folder, "--config", "x.toml")):
        done = call(*words)
        assert done.exit_code == 78
        assert "say where" in done.stderr
    assert "is no folder" in call("list", "--dir", tmp_path / "nowhere").stderr


def test_deleting_asks_first(folder: Path) -> None:
    done = call("delete", "7-1", "--dir", folder, typed="n\n")
    assert done.exit_code == 1
    assert "7-1" in names(folder)
    done = call("delete", "7-1", "7-2.broken", "--dir", folder, typed="y\n")
    assert done.exit_code == 0
    assert "delete these 2" in done.stdout
    assert names(folder) == {"5-1", "7-3.part"}


def test_all_means_all_but_what_is_in_progress(folder: Path) -> None:
    with in_hand(folder / "7-3.part"):
        assert call("delete", "--all", "--yes", "--dir", folder).stdout.startswith("deleted 3, ")
        assert names(folder) == {"7-3.part"}
        assert "nothing to delete" in call("delete", "--all", "--dir", folder).stdout
        done = call("delete", "7-3", "--yes", "--dir", folder)
        assert (done.exit_code, "in progress" in done.stderr) == (2, True)
    assert names(folder) == {"7-3.part"}


def test_what_a_guard_left_that_records_no_longer_can_be_deleted(folder: Path) -> None:
    assert call("delete", "7-3", "--yes", "--dir", folder).exit_code == 0
    assert "7-3.part" not in names(folder)


def test_what_the_guard_deletes_meanwhile_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(path: Path) -> None:
        remove(path)
        remove(path)

    monkeypatch.setattr(cli_incidents, "remove", twice)
    assert call("delete", "7-1", "--yes", "--dir", folder).exit_code == 0
    assert "7-1" not in names(folder)


def test_what_is_older_than_so_many_days(folder: Path) -> None:
    for path in folder.iterdir():
        os.utime(path)
    assert call("delete", "--older-than", 1000, "--yes", "--dir", folder).exit_code == 0
    assert "5-1" not in names(folder)
    assert "7-2.broken" in names(folder)


@pytest.mark.parametrize("name", ["../secret", "/etc", "..", "7-3.part/..", "9-9", "a/b"])
def test_nothing_outside_the_folder_is_ever_deleted(folder: Path, name: str) -> None:
    secret = folder.parent / "secret"
    secret.mkdir()
    before = names(folder)
    done = call("delete", name, "--yes", "--dir", folder)
    assert done.exit_code == 2
    assert done.stderr
    assert secret.exists()
    assert names(folder) == before


def test_what_to_delete_must_be_said_once(folder: Path) -> None:
    for words in ((), ("7-1", "--all"), ("--all", "--older-than", 3)):
        done = call("delete", *words, "--yes", "--dir", folder)
        assert done.exit_code == 2
        assert "say what" in done.stderr
    assert len(names(folder)) == 4
