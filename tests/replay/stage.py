"""A stage of doubles for `run_video`, in virtual time."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hdguard.actuators.base import Actuator
from hdguard.actuators.recording import RecordingActuator
from hdguard.brains.trace import TraceRecorder
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan
from hdguard.ingest.base import FrameSource
from hdguard.replay.dataset import Entry
from hdguard.replay.results import Outcome
from hdguard.replay.runner import Crew, VideoSettings, run_video
from hdguard.replay.scoring import KeyFrames
from hdguard.runtime.observer import Observer, Viewer
from hdguard.runtime.virtual_time import run_virtual
from hdguard.workers.base import FastSeat, SlowSeat
from tests.fakes import ListSource, ScriptedFastSeat

CLIP = Entry(video="clip.mp4", keyframes=KeyFrames(1.0, 2.0, 3.0, 4.0), path=Path("clip.mp4"))
REFLEX = BrainPlan("fast", adaptive=False)


@dataclass
class FakeStage:
    """Hands out this source; keeps the actuators that it made."""

    listed: FrameSource
    way: Callable[[], RecordingActuator] = RecordingActuator
    made: list[RecordingActuator] = field(default_factory=list)

    def source(self, entry: Entry) -> FrameSource:
        assert entry.video == self.listed.source_id
        return self.listed

    @asynccontextmanager
    async def actuator(self, entry: Entry) -> AsyncIterator[Actuator]:
        self.made.append(self.way())
        yield self.made[-1]

    def observers(self, entry: Entry, guard: Guard) -> tuple[Observer, ...]:
        return ()

    def viewers(self, entry: Entry) -> tuple[Viewer, ...]:
        return ()

    def recorder(self) -> TraceRecorder:
        return TraceRecorder()


def run(
    times: Sequence[float] | FrameSource,
    *fast: FastSeat,
    slow: SlowSeat | None = None,
    brains: Sequence[BrainPlan] = (REFLEX,),
    way: Callable[[], RecordingActuator] = RecordingActuator,
    drain: float = 1.0,
    stop_time: float = 0.7,
    journals: Path | None = None,
    **changes: object,
) -> tuple[Outcome, dict[str, Any]]:
    """Run a clip with frames at these media times; `changes` change the policy `sidecar`."""
    source = times if not isinstance(times, Sequence) else ListSource(times, CLIP.video)
    seats = {seat.name: seat for seat in fast or (ScriptedFastSeat(),)}
    policy = replace(SIDECAR, brains=tuple(brains), slow=slow.name if slow else "")
    policy = replace(policy, **changes)  # type: ignore[arg-type]
    settings = VideoSettings(policy, drain, stop_time, journals)
    return run_virtual(run_video(CLIP, Crew(seats, slow), FakeStage(source, way), settings))
