"""A guard that dies halted comes back halted, and no decision waits for a disk."""

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hdguard.core.actions import Halt, Release
from hdguard.core.events import DeadlineReached
from hdguard.core.types import FrameRef, HaltCause, HaltClass, Hazard, Light
from hdguard.runtime.state_file import (
    Kept,
    StateFileError,
    StateKeeper,
    number_of,
    read_state,
    write_state,
)

TICK = DeadlineReached()
RED = Halt(
    "7-1",
    HaltClass.DANGER,
    HaltCause.FAST_RED,
    "kitchen",
    "reflex",
    FrameRef("kitchen", 41, 12.25, 1.4),
    Light.RED,
    Hazard("C1", "L3", "a knife"),
    decided_at=12.375,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rosie.state.json"


def test_a_halt_comes_back_with_its_id_and_cause_and_without_the_times_of_a_clock_that_is_gone(
    path: Path,
) -> None:
    write_state(path, Kept(robot="rosie", halt=RED, newest="7-1"))
    kept = read_state(path, "rosie")
    assert kept is not None
    assert kept.restored(2.0) == replace(RED, ref=None, decided_at=2.0)
    assert path.stat().st_mode & 0o777 == 0o600


def test_no_file_is_no_halt_that_is_known(path: Path) -> None:
    assert read_state(path, "rosie") is None
    assert Kept(robot="rosie").restored(1.0) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"format":"hdguard-state/1","robot":"rosie","hal',
        '{"format":"hdguard-state/2","robot":"rosie"}',
        '{"format":"hdguard-state/1","robot":"rosie","halt":{"halt_id":"7-1"}}',
        '{"format":"hdguard-state/1","robot":"rosie","newest":"seven"}',
        '{"format":"hdguard-state/1","robot":"rosie","newest":"7-1","halt":'
        '{"halt_id":"seven","halt_class":"danger","cause":"fast_red"}}',
        '{"format":"hdguard-state/1","robot":"rosie","newest":"7-1","other":1}',
        '{"format":"hdguard-state/1","robot":"daisy"}',
    ],
)
def test_a_torn_or_foreign_file_is_named_and_nothing_is_assumed(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(StateFileError) as error:
        read_state(path, "rosie")
    assert str(path) in str(error.value)
    assert "delete the file" in str(error.value)


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StateFileError, match=r"rosie\.state\.json: Is a directory"):
        read_state(path, "rosie")


def test_later_halts_have_greater_numbers() -> None:
    ids = ["", "2-9", "2-10", "10-1"]
    assert sorted(ids, key=number_of) == ids
    kept = Kept(robot="rosie", newest="2-10")
    assert [kept.knows(each) for each in ("2-9", "2-10", "2-11", "10-1")] == [
        True,
        True,
        False,
        False,
    ]


def test_halts_and_releases_reach_the_disk_and_repeats_do_not(path: Path) -> None:
    written: list[Kept] = []

    def write(where: Path, kept: Kept) -> None:
        written.append(kept)
        write_state(where, kept)

    async def story() -> None:
        keeper = StateKeeper(path, Kept(robot="rosie"), write)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(keeper.work())
            keeper.stepped(1.0, TICK, (RED,))
            await keeper.written()
            assert (written[-1].halt, written[-1].newest) == (RED, "7-1")
            count = len(written)
            keeper.stepped(2.0, TICK, (replace(RED, repeat=3),))
            await keeper.written()
            assert len(written) == count
            keeper.stepped(3.0, TICK, (Release("7-1"),))
            await keeper.written()
            work.cancel()

    asyncio.run(story())
    kept = read_state(path, "rosie")
    assert kept is not None
    assert (kept.halt, kept.newest) == (None, "7-1")


def test_a_disk_that_hangs_or_is_full_holds_up_nobody_and_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hdguard.runtime.state_file.RETRY_AFTER", 0.0)
    hung, tries = threading.Event(), []

    def write(where: Path, kept: Kept) -> None:
        tries.append(threading.current_thread())
        if len(tries) < 3:
            raise OSError(28, "No space left on device")
        assert hung.wait(10.0)
        write_state(where, kept)

    async def story() -> None:
        keeper = StateKeeper(path, Kept(robot="rosie"), write)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(keeper.work())
            keeper.stepped(1.0, TICK, (RED,))
            while len(tries) < 3:  # noqa: ASYNC110 - it is another thread that tries
                await asyncio.sleep(0)
            keeper.stepped(2.0, TICK, (Release("7-1"),))  # returns although the disk hangs
            assert keeper.failures == 2
            hung.set()
            await keeper.written()
            work.cancel()

    asyncio.run(story())
    assert threading.main_thread() not in tries
    assert json.loads(path.read_text())["halt"] is None
    assert len(caplog.records) == 1
    assert "not kept on disk yet" in caplog.text


def test_a_disk_that_hangs_does_not_stay_quiet(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hdguard.runtime.state_file.WRITTEN_WITHIN", 0.01)
    hung = threading.Event()

    def write(where: Path, kept: Kept) -> None:
        assert hung.wait(10.0)
        write_state(where, kept)

    async def story() -> None:
        keeper = StateKeeper(path, Kept(robot="rosie"), write)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(keeper.work())
            keeper.stepped(1.0, TICK, (RED,))
            async with asyncio.timeout(5.0):
                while not keeper.failing:  # noqa: ASYNC110 - no event tells of it
                    await asyncio.sleep(0.005)
            assert keeper.failures == 1
            hung.set()
            await keeper.written()
            again = keeper.failing
            work.cancel()
        assert not again

    try:
        asyncio.run(story())
    finally:
        hung.set()
    assert "not written in 0.01 s; the halt in force is not kept on disk yet" in caplog.text
    kept = read_state(path, "rosie")
    assert kept is not None
    assert kept.halt == RED


def test_a_disk_that_fails_again_after_it_worked_is_said_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hdguard.runtime.state_file.RETRY_AFTER", 0.0)
    tries = 0

    def write(where: Path, kept: Kept) -> None:
        nonlocal tries
        tries += 1
        if tries % 3:
            raise OSError(28, "No space left on device")

    async def story() -> None:
        keeper = StateKeeper(path, Kept(robot="rosie"), write)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(keeper.work())
            for action in (RED, Release("7-1")):
                keeper.stepped(1.0, TICK, (action,))
                await keeper.written()
            work.cancel()

    asyncio.run(story())
    assert (tries, len(caplog.records)) == (6, 2)
