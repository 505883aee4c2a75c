"""A long day in short: what is left behind by each frame, verdict, review, permit or halt shows.

`HDGUARD_SOAK_FRAMES=100000 pytest tests/e2e/test_soak.py` is the soak itself, of 200 s.
"""

import asyncio
import gc
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hdguard.core import events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest.base import Frame, Rgb, SourceReport
from hdguard.observe.metrics import Metrics
from hdguard.observe.status import Status
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Parts, Pipeline
from tests.actuators.support import run
from tests.e2e.simple_brains import FIRST, PERIOD
from tests.e2e.stage import demo_robot, log, stage
from tests.workers.support import fast, slow

FRAMES = int(os.environ.get("HDGUARD_SOAK_FRAMES", "5000"))
RATE = 500.0
LOOK_EVERY = round(PERIOD * RATE)  # frames; each look finds the brains in the same moment
WARM = 4  # looks until caches, arenas and buffers have their size
RSS_MAY_GROW = 3 * 2**20
# Bytes that the allocator's arenas move by; one picture kept of each verdict would be 69 MB in the
# short run.
BLOCKS_MAY_GROW = 500 + round(0.01 * FRAMES)
# Objects: what the counters of a state that is new have, and one for each tenth verdict.
WORDS = "tests.e2e.simple_brains:WaryFastBrain"


class Picture:
    """A picture of its own memory, so that keeping it shows; a bar moves through it."""

    def __init__(self, seq: int) -> None:
        self._pixels = np.full((240, 320, 3), 60, np.uint8)
        left = seq // 2 % 16 * 20
        self._pixels[:, left : left + 20] = 200

    def rgb(self, spec: ImageSpec) -> Rgb:
        height = spec.height or spec.width
        rows, columns = np.arange(height) * 240 // height, np.arange(spec.width) * 320 // spec.width
        return np.ascontiguousarray(self._pixels[rows][:, columns])


class Camera:
    """Five hundred frames a second, stamped with the loop's time; tells every so many."""

    source_id, interval, report = "kitchen", 1.0 / RATE, SourceReport()

    def __init__(self) -> None:
        self.looks: asyncio.Queue[int] = asyncio.Queue()

    async def frames(self) -> AsyncIterator[Frame]:
        loop = asyncio.get_running_loop()
        origin = loop.time()
        for seq in range(FRAMES + 1):
            at = origin + seq / RATE
            await asyncio.sleep(max(0.0, at - loop.time()))
            yield Frame(FrameRef(self.source_id, seq, at, FIRST + seq / RATE), Picture(seq))
            if seq and seq % LOOK_EVERY == 0:
                self.looks.put_nowait(seq)
        self.looks.put_nowait(0)
        await asyncio.Event().wait()

    def retry_after(self) -> float | None:
        return None


class Count:
    """How much was done; it remembers nothing else."""

    def __init__(self) -> None:
        self.verdicts = self.reviews = self.halts = 0

    def judged(self, stamps: Judged | Reviewed) -> None:
        self.verdicts += isinstance(stamps, Judged)
        self.reviews += isinstance(stamps, Reviewed)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        self.halts += isinstance(event, events.HaltConfirmed)


def _rss(pid: int | str) -> int:
    resident = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(resident) * os.sysconf("SC_PAGE_SIZE")


def _shared_kib() -> int:
    """Of shared memory; the rings that the workers read are all there is of it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssShmem:")[1].split()[0])


MEASURES: dict[str, Callable[[int, int], int]] = {
    "rss": lambda *_: _rss("self"),
    "fast_rss": lambda fast_pid, _: _rss(fast_pid),
    "slow_rss": lambda _, slow_pid: _rss(slow_pid),
    "blocks": lambda *_: sys.getallocatedblocks(),
    "tasks": lambda *_: len(asyncio.all_tasks()),
    "threads": lambda *_: threading.active_count(),
    "files": lambda *_: len(list(Path("/proc/self/fd").iterdir())),
    "shared": lambda *_: _shared_kib(),
}
"""What could pile up: bytes of three processes, Python's objects, and things that are counted."""


class Looks:
    """A table of what there was; it has its size from the start, so that it adds nothing itself."""

    def __init__(self) -> None:
        self.count = 0
        self._table = np.zeros((FRAMES // LOOK_EVERY, len(MEASURES)))

    def take(self, fast_pid: int, slow_pid: int) -> None:
        gc.collect()
        for column, measure in enumerate(MEASURES.values()):
            self._table[self.count, column] = measure(fast_pid, slow_pid)
        self.count += 1

    def all(self, name: str) -> list[int]:
        """After the warm-up."""
        return [int(n) for n in self._table[WARM : self.count, list(MEASURES).index(name)]]

    def rise(self, name: str) -> int:
        """By how much a line through all looks rises; no one look decides."""
        seen = self.all(name)
        return round(float(np.polyfit(np.arange(len(seen)), seen, 1)[0]) * (len(seen) - 1))


async def soak(folder: Path) -> tuple[Looks, Count]:
    loop = asyncio.get_running_loop()
    camera, count, looks = Camera(), Count(), Looks()
    watcher, thinker = fast(target=WORDS), slow()
    policy = replace(
        SIDECAR,
        sources=(SourcePlan("kitchen"),),
        brains=(BrainPlan("command", adaptive=False, fps=50.0),),
        slow="command",
    )
    async with (
        stage("mosquitto", folder) as at,
        at.guard() as actuator,
        demo_robot(at.robot_settings()),
    ):
        await actuator.ready()
        await watcher.start()
        await thinker.start()
        try:
            guard = Guard(policy, loop.time(), boot=7)
            metrics = Metrics(guard, loop.time, lambda: actuator.connected)
            observers = (count, Status(guard, loop.time), metrics)
            parts = Parts((camera,), {"command": watcher}, thinker, actuator, observers)
            pipeline = Pipeline(guard, parts)
            metrics.watch(pipeline)

            async def until() -> None:
                pipeline.dispatch(events.SelfTestPassed())
                while await camera.looks.get():
                    # Every other look finds the robot halted, and lets it go.
                    if guard.halt is None:
                        pipeline.dispatch(events.HaltRequested("ada"))
                    else:
                        pipeline.dispatch(events.ResetRequested(guard.halt.halt_id, "ada"))
                    assert watcher.pid is not None
                    assert thinker.pid is not None
                    looks.take(watcher.pid, thinker.pid)

            await pipeline.run(until)
        finally:
            await watcher.close()
            await thinker.close()
    return looks, count


@pytest.mark.timeout(60 + 2 * FRAMES / RATE)
def test_a_guard_that_works_for_days_is_as_small_as_in_its_first_minute(tmp_path: Path) -> None:
    looks, count = run(soak(tmp_path), patience=30 + 2 * FRAMES / RATE)
    log.info("measured: %d frames, %s", FRAMES, vars(count))
    for name in MEASURES:
        some = looks.all(name)[:: max(1, looks.count // 10)]
        log.info("measured: %s rises by %d: %s", name, looks.rise(name), some)
    assert count.verdicts > 0.5 * FRAMES / 10  # 50 a second are asked for
    assert count.reviews > 0.2 * FRAMES / LOOK_EVERY  # none while halted
    assert count.halts >= looks.count // 4
    for name in ("rss", "fast_rss", "slow_rss"):
        assert looks.rise(name) < RSS_MAY_GROW, f"{name}: {looks.all(name)}"
    assert looks.rise("blocks") < BLOCKS_MAY_GROW, looks.all("blocks")
    for name in ("tasks", "threads", "files", "shared"):
        seen = looks.all(name)
        half = len(seen) // 2
        # A few are what happens to be in hand at a look.
        assert max(seen[half:]) <= max(seen[:half]) + 3, f"{name}: {seen}"
