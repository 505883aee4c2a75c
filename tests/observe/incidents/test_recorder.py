"""The recorder as a whole: a thread that is slow, a disk that is full, an end in the middle."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hdguard.core import events
from hdguard.core.types import ImageSpec, Light
from hdguard.ingest.base import Frame, Rgb
from hdguard.observe.incidents import desk as desks
from hdguard.observe.incidents import record
from hdguard.observe.incidents.record import read_incident
from hdguard.observe.incidents.recorder import Recorder
from hdguard.observe.incidents.shelf import Shelf
from tests.observe.incidents.support import (
    ABOUT,
    NOT_MOVING,
    PATIENCE,
    POLICY,
    Plain,
    halt,
    part,
    ref,
    run,
    settings,
    until,
)


@asynccontextmanager
async def recording(
    folder: Path, floor: int = 0, **changes: object
) -> AsyncIterator[tuple[Recorder, float]]:
    """A recorder at work for a while, and the time."""
    shelf = Shelf(folder, 1 << 30, 1.0, floor)
    made = Recorder(shelf, settings(**changes), ABOUT, POLICY, boot=7)
    now = asyncio.get_running_loop().time()
    made._desk.begin(ABOUT, "", now - 10.0)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made.work())
        try:
            yield made, now
        finally:
            task.cancel()
            await made.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def see(made: Recorder, now: float, count: int = 5) -> None:
    for n in range(count):
        made.saw(Frame(ref(now - 1.0 + n * 0.2), Plain(40 * n)), kept=True)
        made.saw(Frame(ref(now - 0.9 + n * 0.2), Plain()), kept=False)


def stop(made: Recorder, now: float, number: int = 1) -> None:
    verdict = events.FastVerdict(ref(now - 0.2), "reflex", Light.RED)
    made.stepped(now, verdict, (halt(number, now, ref=ref(now - 0.2)), NOT_MOVING))


def test_a_halt_becomes_a_clip_by_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with recording(tmp_path, after=0.2) as (made, now):
            see(made, now)
            await until(lambda: not made._desk._frames)
            stop(made, now)
            made.stepped(now + 0.003, events.HaltDelivered("7-1"), ())
            await until(lambda: made.outcomes["kept"] == 1)
            await until(lambda: made.bytes > 0)
            incident = read_incident(tmp_path / "7-1")
            assert [f.captured_at for f in incident.clips[0].frames] == [
                now - 1.0 + n * 0.2 for n in range(5)
            ]
            assert incident.stamps["delivered"].at == now + 0.003
            assert (incident.interrupted, incident.lost) == (False, 0)
            assert incident.about == ABOUT

    run(story())


class Stuck:
    """A picture whose conversion waits."""

    def __init__(self, go_on: threading.Event) -> None:
        self._go_on = go_on

    def rgb(self, spec: ImageSpec) -> Rgb:
        self._go_on.wait(PATIENCE)
        return Plain().rgb(spec)


def test_a_thread_that_is_stuck_costs_frames_and_no_time_of_the_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        go_on = threading.Event()
        async with recording(tmp_path, after=0.2) as (made, now):
            loop = asyncio.get_running_loop()
            for n in range(100):
                made.saw(Frame(ref(now + n * 0.01), Stuck(go_on)), kept=True)
                await asyncio.sleep(0)
            assert 0 < made.lost < 100
            begun = loop.time()
            stop(made, now)
            assert loop.time() - begun < 0.05
            assert [r.message for r in caplog.records] == [  # once
                "incidents: pictures are lost: disk or processor is too slow for them"
            ]
            go_on.set()
            await until(lambda: made.outcomes["kept"] == 1)

    run(story())


def test_a_disk_that_hangs_for_a_day_takes_no_memory_and_what_it_costs_is_counted(
    tmp_path: Path,
) -> None:
    """As one in the network that is gone: the thread never comes back."""

    async def story() -> None:
        go_on = threading.Event()
        async with recording(tmp_path) as (made, now):
            made.saw(Frame(ref(now), Stuck(go_on)), kept=True)
            for minute in range(24 * 60):
                stop(made, now + minute * 60.0, minute)
                for n in range(20):
                    made.saw(Frame(ref(now + minute * 60.0 + n, n), Plain()), kept=True)
                if minute < 10:
                    await asyncio.sleep(0)
            assert made.outcomes["dropped"] == 24 * 60 - desks.MOST_OPEN
            assert len(made._desk._open) == desks.MOST_OPEN
            assert len(made._desk._frames) == desks.MOST_WAITING
            assert len(made._desk._notebook._notes) < 20
            assert made._executor._work_queue.qsize() <= 1
            go_on.set()

    run(story())


def test_a_guard_that_ends_while_its_thread_is_busy_loses_no_incident(tmp_path: Path) -> None:
    """The work waits for its turn when its task is cancelled."""

    async def story() -> None:
        go_on = threading.Event()
        async with recording(tmp_path) as (made, now):
            await until(made._leftovers.done)
            busy = asyncio.get_running_loop().run_in_executor(made._executor, go_on.wait, PATIENCE)
            stop(made, now - desks.BEGIN_AFTER)
            await until(lambda: all(each.begun for each in made._desk._open))
            go_on_soon = asyncio.get_running_loop().call_later(0.05, go_on.set)
        await busy
        go_on_soon.cancel()
        assert names(tmp_path) == ["7-1.part"]

    run(story())


def test_a_disk_that_is_full_costs_clips(tmp_path: Path) -> None:
    async def story() -> None:
        async with recording(tmp_path / "i", floor=1 << 60) as (made, now):
            see(made, now)
            stop(made, now)
            await until(lambda: made.outcomes["dropped"] == 1)
            assert made.outcomes == {"kept": 0, "dropped": 1, "failed": 0}

    run(story())


def test_too_many_at_a_time_are_dropped_and_counted(tmp_path: Path) -> None:
    async def story() -> None:
        async with recording(tmp_path, after=0.0) as (made, now):
            for n in range(desks.MOST_OPEN + 1):
                stop(made, now, n)
            await made.finished()
            await until(lambda: made.outcomes["kept"] == desks.MOST_OPEN)
            assert made.outcomes["dropped"] == 1

    run(story())


def test_what_an_earlier_life_has_begun_is_finished(tmp_path: Path) -> None:
    part(tmp_path, "6-3")
    (tmp_path / "6-4.part").mkdir()

    async def story() -> None:
        async with recording(tmp_path) as (made, _):
            await until(lambda: made.outcomes == {"kept": 1, "dropped": 0, "failed": 1})

    run(story())
    assert {p.name for p in tmp_path.iterdir()} == {"6-3", "6-4.broken"}


def test_a_guard_that_ends_leaves_what_the_next_start_can_finish(tmp_path: Path) -> None:
    async def story() -> None:
        async with recording(tmp_path) as (made, now):
            see(made, now)
            await until(lambda: not made._desk._frames)
            stop(made, now)
            await made.save()
            assert names(tmp_path) == ["7-1.part"]
            begun = record.read_incident(tmp_path / "7-1.part")
            assert (begun.complete, begun.interrupted) == (False, True)
        async with recording(tmp_path) as (made, _):
            await until(lambda: made.outcomes["kept"] == 1)
            assert len(read_incident(tmp_path / "7-1").clips[0].frames) == 5

    run(story())


def test_videos_of_a_replay_have_names_of_their_own(tmp_path: Path) -> None:
    async def story() -> None:
        async with recording(tmp_path) as (made, now):
            for video in ("a.mp4", "b.mp4"):
                made.concerns(video, f"{video}-")
                stop(made, now)
                await made.cut()
            await made.finished()
        assert read_incident(tmp_path / "b.mp4-7-1").about.robot == "b.mp4"
        assert read_incident(tmp_path / "a.mp4-7-1").about.robot == "a.mp4"

    run(story())


def test_old_incidents_are_looked_for_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = []
    monkeypatch.setattr("hdguard.observe.incidents.recorder.SWEEP_EVERY", 0.02)
    monkeypatch.setattr(Shelf, "sweep", lambda _, now: swept.append(now))

    async def story() -> None:
        async with recording(tmp_path):
            await until(lambda: len(swept) > 3)

    run(story())
    assert swept == sorted(swept)
