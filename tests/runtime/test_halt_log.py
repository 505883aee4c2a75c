"""Halts of every life can be read afterwards, whatever happened to the process or its disk."""

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from hdguard.core.types import HaltCause, HaltClass, Hazard
from hdguard.runtime import halt_log
from hdguard.runtime.halt_log import MOST_WAITING, HaltLog, read_halt_log
from hdguard.runtime.halt_story import HaltStory, Stamps, StoryError, encode

HALT = HaltStory(
    "7-1",
    HaltClass.DANGER,
    HaltCause.FAST_RED,
    7,
    "kitchen",
    "reflex",
    stamps=Stamps(decided=1.0),
)
DELIVERED = replace(HALT, stamps=Stamps(decided=1.0, delivered=1.1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rosie.halts.jsonl"


def write(path: Path, *stories: HaltStory) -> HaltLog:
    """Each in a write of its own."""

    async def story() -> HaltLog:
        log = HaltLog(path)
        for each in stories:
            log.note(each)
            await log.flush()
        return log

    return asyncio.run(story())


def test_the_newest_line_of_a_halt_counts_and_only_its_owner_may_read_it(path: Path) -> None:
    second = replace(HALT, halt_id="7-2")
    write(path, HALT, second, DELIVERED)
    assert len(path.read_bytes().splitlines()) == 3
    assert read_halt_log(path).stories == (DELIVERED, second)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_task_writes_what_is_noted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        log, loop, written = HaltLog(path), asyncio.get_running_loop(), asyncio.Event()
        append = log._append

        def telling(stories: Iterable[HaltStory]) -> None:
            append(stories)
            loop.call_soon_threadsafe(written.set)

        monkeypatch.setattr(log, "_append", telling)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(log.work())
            log.note(HALT)
            await written.wait()
            work.cancel()
        assert read_halt_log(path).stories == (HALT,)
        log.note(DELIVERED)
        await log.flush()

    asyncio.run(story())
    assert read_halt_log(path).stories == (DELIVERED,)


def test_what_changes_before_it_is_written_is_written_once(path: Path) -> None:
    async def story() -> None:
        log = HaltLog(path)
        log.note(HALT)
        log.note(DELIVERED)
        await log.flush()
        await log.flush()

    asyncio.run(story())
    assert path.read_bytes() == encode(DELIVERED) + b"\n"


def test_a_later_life_that_takes_a_halt_over_adds_to_what_is_known(path: Path) -> None:
    restored = replace(HALT, boot=8, stamps=Stamps(decided=0.1, released=9.0))
    write(path, DELIVERED)
    write(path, restored)
    assert read_halt_log(path).stories == (DELIVERED, restored)


def test_a_line_that_a_process_died_writing_costs_no_other(path: Path) -> None:
    write(path, HALT)
    whole = path.read_bytes()
    path.write_bytes(whole + encode(DELIVERED)[:50])
    assert read_halt_log(path).stories == (HALT,)
    assert read_halt_log(path).left_out == 1
    second = replace(HALT, halt_id="8-1", boot=8)
    write(path, second)  # the next life
    logged = read_halt_log(path)
    assert (logged.stories, logged.left_out) == ((HALT, second), 1)


def test_a_full_log_goes_aside_and_both_are_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halt_log, "MOST_BYTES", 2 * len(encode(HALT)))
    stories = [replace(HALT, halt_id=f"7-{n}") for n in range(1, 6)]
    write(path, *stories)
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, f"{path.name}.1"]
    assert read_halt_log(path).stories == tuple(stories[2:])
    path.unlink()
    assert read_halt_log(path).stories == tuple(stories[2:4])


def test_a_full_disk_costs_no_halt_that_still_waits_when_there_is_room_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_all: Callable[..., int] = os.write
    room = 100

    def little(file: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = write_all(file, bytes(data[:room]))
        room -= taken
        return taken

    async def story() -> None:
        nonlocal room
        log = HaltLog(path)
        second = replace(HALT, halt_id="7-2")
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", little)
            for each in (HALT, second):
                log.note(each)
                await log.flush()
        assert (log.failures, log.failing) == (2, True)
        log.note(DELIVERED)
        await log.flush()
        assert not log.failing
        logged = read_halt_log(path)
        assert set(logged.stories) == {DELIVERED, second}
        assert logged.left_out == 1  # what there was room for

    with caplog.at_level("INFO"):
        asyncio.run(story())
    said = [record.getMessage() for record in caplog.records]
    assert sum("No space left on device" in line for line in said) == 1
    assert sum("written down again" in line for line in said) == 1


def test_what_waits_for_a_disk_that_never_takes_it_is_bounded_and_counted(path: Path) -> None:
    async def story() -> None:
        log = HaltLog(path)
        for n in range(MOST_WAITING + 3):
            log.note(replace(HALT, halt_id=f"7-{n}"))
        assert log.dropped == 3
        await log.flush()

    asyncio.run(story())
    stories = read_halt_log(path).stories
    assert [stories[0].halt_id, stories[-1].halt_id] == ["7-3", f"7-{MOST_WAITING + 2}"]


def test_halts_that_come_while_a_disk_refuses_do_not_pile_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        log = HaltLog(path / "no" / "folder")

        def refuses(*_: object) -> None:
            for n in range(MOST_WAITING):
                log.note(replace(HALT, halt_id=f"8-{n}"))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(log, "_append", refuses)
        for n in range(MOST_WAITING):
            log.note(replace(HALT, halt_id=f"7-{n}"))
        await log.flush()
        assert log.dropped == MOST_WAITING
        assert [key for key, _ in log._waiting] == [f"8-{n}" for n in range(MOST_WAITING)]

    asyncio.run(story())


def test_the_bound_of_the_size_is_about_what_it_says() -> None:
    long = replace(HALT, hazard=Hazard("C1", "L1", "x" * 200), stamps=Stamps(*[1e5 + 1 / 3] * 12))
    assert 800 * 5 * len(encode(long)) < 1.3 * halt_log.MOST_BYTES


def test_where_there_is_no_log_it_says_how_one_comes_about(path: Path) -> None:
    with pytest.raises(StoryError, match=r"rosie.halts.jsonl: no such file; `hdguard run` begins"):
        read_halt_log(path)
    path.mkdir()
    with pytest.raises(StoryError, match=r"rosie.halts.jsonl: Is a directory"):
        read_halt_log(path)
