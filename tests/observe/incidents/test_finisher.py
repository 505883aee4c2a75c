"""Clips are made by a child, one at a time, and what becomes of each is heard."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hdguard.observe.incidents import finisher, record
from hdguard.observe.incidents.finisher import Finisher
from hdguard.observe.incidents.record import read_incident
from tests.observe.incidents.support import PATIENCE, part, run, until


class Heard:
    def __init__(self) -> None:
        self.outcomes: list[str] = []

    async def __call__(self, outcome: str) -> None:
        self.outcomes.append(outcome)


@asynccontextmanager
async def working(made: Finisher) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made.work())
        try:
            yield
        finally:
            task.cancel()


def test_each_folder_becomes_an_incident(tmp_path: Path) -> None:
    heard = Heard()

    async def story() -> None:
        made = Finisher(heard, mcap=True)
        made.put(part(tmp_path, "7-1"))
        made.put(part(tmp_path, "7-2"))
        async with working(made):
            await made.idle()

    run(story())
    assert heard.outcomes == ["kept", "kept"]
    assert {p.name for p in tmp_path.iterdir()} == {"7-1", "7-2"}
    assert read_incident(tmp_path / "7-2").mcap == "clip.mcap"


def test_what_cannot_be_made_whole_is_set_aside_with_the_childs_own_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    async def story() -> None:
        made = Finisher(heard)
        bad = part(tmp_path, "7-1")
        (bad / record.FILE).write_text("{")
        made.put(bad)
        made.put(part(tmp_path, "7-2"))
        async with working(made):
            await made.idle()

    run(story())
    assert heard.outcomes == ["failed", "kept"]
    assert "not a record of an incident" in (tmp_path / "7-1.broken" / "why.txt").read_text()
    assert "incident 7-1: set aside" in caplog.text


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Another child: a module of this code."""
    (tmp_path / "stand_in.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(finisher, "CHILD", "stand_in")


HANGS = (
    "import os, pathlib, sys, time\n"
    "pathlib.Path(sys.argv[-1], 'pid').write_text(str(os.getpid()))\n"
    "time.sleep(600)\n"
)


def gone(path: Path) -> bool:
    try:
        os.kill(int(path.read_text()), 0)
    except ProcessLookupError:
        return True
    return False


def test_a_child_that_hangs_is_killed_and_the_next_folder_has_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    stand_in(tmp_path, monkeypatch, HANGS)

    async def story() -> None:
        made = Finisher(heard, within=0.5)
        made.put(part(tmp_path / "i", "7-1"))
        async with working(made):
            await made.idle()

    run(story())
    assert heard.outcomes == ["failed"]
    broken = tmp_path / "i" / "7-1.broken"
    assert "not made in 0.5 s, killed" in (broken / "why.txt").read_text()
    assert gone(broken / "pid")


def test_when_the_guard_ends_the_child_ends_and_the_folder_waits_for_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    stand_in(tmp_path, monkeypatch, HANGS)
    folder = part(tmp_path / "i", "7-1")

    async def story() -> None:
        made = Finisher(heard)
        made.put(folder)
        async with working(made):
            await until(lambda: (folder / "pid").exists() and bool((folder / "pid").read_text()))
        async with asyncio.timeout(PATIENCE):
            await until(lambda: gone(folder / "pid"))

    run(story())
    assert heard.outcomes == []
    assert [p.name for p in (tmp_path / "i").iterdir()] == ["7-1.part"]


def test_a_full_disk_costs_the_incident_and_frees_its_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    stand_in(
        tmp_path,
        monkeypatch,
        f"import sys\nsys.stderr.write('No space left on device\\n')\nsys.exit({finisher.DROPPED})",
    )

    async def story() -> None:
        made = Finisher(heard)
        made.put(part(tmp_path / "i", "7-1"))
        async with working(made):
            await made.idle()

    run(story())
    assert heard.outcomes == ["dropped"]
    assert list((tmp_path / "i").iterdir()) == []
    assert "incident 7-1: dropped: No space left on device" in caplog.text


def test_an_encoder_that_cannot_be_started_costs_the_incident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))

    async def story() -> None:
        made = Finisher(heard)
        made.put(part(tmp_path / "i", "7-1"))
        async with working(made):
            await made.idle()

    run(story())
    assert heard.outcomes == ["dropped"]
