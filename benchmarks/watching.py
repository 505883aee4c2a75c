"""A guard that watches streams until they end, and the processor time that this takes."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from hdguard.actuators.recording import RecordingActuator
from hdguard.brains.trace import TraceFastBrain, TraceFastSettings
from hdguard.core import events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.ingest.rtsp import RtspSettings, RtspSource
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.workers.thread import ThreadFastSeat

MakeSeat = Callable[[], ThreadFastSeat]


@dataclass
class Watched:
    """What watching took, and what was seen.

    Attributes:
        cpu: seconds of this process, all threads.
        frames: decoded and handed over, of all streams.
        verdicts: of the FastBrain.
    """

    cpu: float = 0.0
    frames: int = 0
    verdicts: int = 0


class _Ends:
    """An observer that waits for the end of every stream."""

    def __init__(self, count: int) -> None:
        self.verdicts = 0
        self.over = asyncio.Event()
        self._left = count

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Count it."""
        self.verdicts += 1

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Count the ends."""
        if isinstance(event, events.SourceLost):
            self._left -= 1
            if self._left == 0:
                self.over.set()


def watch(urls: list[str], seat: MakeSeat, plan: BrainPlan) -> Watched:
    """Watch them all at once, in GREEN, until all have ended."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_watch(urls, seat, plan))


async def _watch(urls: list[str], make: MakeSeat, plan: BrainPlan) -> Watched:
    seat = make()
    names = [f"camera {n}" for n in range(len(urls))]
    sources = [RtspSource(RtspSettings(u, n)) for u, n in zip(urls, names, strict=True)]
    plans = tuple(SourcePlan(name) for name in names)
    policy = replace(SIDECAR, sources=plans, brains=(plan,))
    ends = _Ends(len(urls))
    await seat.start()
    try:
        start = time.process_time()
        guard = Guard(policy, asyncio.get_running_loop().time())
        parts = Parts(tuple(sources), {plan.name: seat}, None, RecordingActuator(), (ends,))
        pipeline = Pipeline(guard, parts)

        async def until() -> None:
            pipeline.dispatch(events.SelfTestPassed())
            await ends.over.wait()

        await pipeline.run(until)
        cpu = time.process_time() - start
    finally:
        await seat.close()
    return Watched(cpu, sum(s.report.frames for s in sources), ends.verdicts)


def green_seat(folder: Path) -> ThreadFastSeat:
    """A FastBrain that says GREEN and costs nothing; it is shown 448 x 448 pixels."""
    trace = folder / "trace.json"
    fast = {"*": {"videos": {"*": [{"t": 0.0, "light": "green"}]}}}
    trace.write_text(json.dumps({"format": "hdguard-trace/1", "fast": fast, "slow": {}}))
    return ThreadFastSeat(lambda: TraceFastBrain(TraceFastSettings(str(trace))))
