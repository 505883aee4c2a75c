"""How evenly the FastBrain's verdicts come while the SlowBrain's worker is idle, and busy.

The interval between verdicts is nominally 40 ms (a camera of 50 FPS, a FastBrain sampled at 25);
its p99 with a busy worker is set against its p99 with an idle one. The two alternate in one run.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.ratio import Ratio
from hdguard.actuators.recording import RecordingActuator
from hdguard.brains.trace import TraceFastBrain, TraceFastSettings
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import PAPER, BrainPlan, SourcePlan
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest.base import Frame, Rgb, SourceReport
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.workers.seats import WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from hdguard.workers.thread import ThreadFastSeat

CAMERA_FPS, BRAIN_FPS = 50.0, 25.0
SEGMENT = 8.0
ROUNDS = 3
GOAL = 1.1


class _Grey:
    """A picture that costs nothing to convert."""

    _rgb = np.full((448, 448, 3), 127, np.uint8)

    def rgb(self, spec: ImageSpec) -> Rgb:
        """Always the same."""
        return self._rgb


@dataclass
class _Camera:
    """A camera that never misses its beat."""

    source_id: str
    interval: float = 1.0 / CAMERA_FPS
    report: SourceReport = field(default_factory=SourceReport)

    async def frames(self) -> AsyncIterator[Frame]:
        """Frames on the beat, for one segment."""
        loop = asyncio.get_running_loop()
        origin, picture = loop.time(), _Grey()
        for seq in range(round(SEGMENT * CAMERA_FPS)):
            at = seq / CAMERA_FPS
            await asyncio.sleep(max(0.0, origin + at - loop.time()))
            yield Frame(FrameRef(self.source_id, seq, origin + at, at), picture)

    def retry_after(self) -> float | None:
        """None: it ends for good."""
        return None


@dataclass
class _Watch:
    """Notes when verdicts came and how many reviews were answered."""

    verdicts: list[float] = field(default_factory=list)
    reviews: int = 0

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Note it."""
        if isinstance(stamps, Judged):
            self.verdicts.append(time.perf_counter())  # the loop's own clock counts milliseconds
        else:
            self.reviews += 1

    def stepped(self, now: float, event: Event, actions: object) -> None:
        """Nothing to note."""

    @property
    def intervals(self) -> list[float]:
        """Seconds between verdicts."""
        return [b - a for a, b in pairwise(self.verdicts)]


def run() -> Iterator[Ratio]:
    """Alternate idle and busy segments; the p99 is over all segments of a kind."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        idle, busy = runner.run(_measure())
    yield Ratio(
        f"FastBrain interval p99 in s, SlowBrain busy vs idle (n {len(busy)} and {len(idle)})",
        float(np.percentile(busy, 99)),
        float(np.percentile(idle, 99)),
        GOAL,
    )


async def _measure() -> tuple[list[float], list[float]]:
    busy_brain = WorkerSlowBrain(
        "benchmarks.busy_brain:BusySlowBrain",
        {"name": "busy", "seconds": 1.0},
        "busy",
        ImageSpec(448, 448),
        WorkerSettings(),
    )
    await busy_brain.start()
    idle: list[float] = []
    busy: list[float] = []
    try:
        for _ in range(ROUNDS):
            idle += (await _segment("green", busy_brain)).intervals
            watch = await _segment("yellow", busy_brain)
            assert watch.reviews >= SEGMENT / 2, "the SlowBrain was not busy"
            busy += watch.intervals
    finally:
        await busy_brain.close()
    return idle, busy


async def _segment(light: str, slow: WorkerSlowBrain) -> _Watch:
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "trace.json"
        fast = {"*": {"videos": {"*": [{"t": 0.0, "light": light}]}}}
        trace.write_text(json.dumps({"format": "hdguard-trace/1", "fast": fast, "slow": {}}))
        seat = ThreadFastSeat(lambda: TraceFastBrain(TraceFastSettings(str(trace))))
    policy = replace(
        PAPER,
        sources=(SourcePlan("camera", when_frozen="ignore"),),
        brains=(BrainPlan(seat.name, adaptive=False, fps=BRAIN_FPS),),
        slow=slow.name,
    )
    loop = asyncio.get_running_loop()
    watch = _Watch()
    guard = Guard(policy, loop.time())
    parts = Parts((_Camera("camera"),), {seat.name: seat}, slow, RecordingActuator(), (watch,))
    pipeline = Pipeline(guard, parts)
    await seat.start()
    try:
        await pipeline.run(lambda: asyncio.sleep(SEGMENT))
    finally:
        await seat.close()
    return watch
