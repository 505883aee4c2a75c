"""Runs the real guard over a recorded video as it would have gone with another calibration.

Tuning asks thousands of times "and with this threshold?". The answer comes from the one path that
every replay takes, `run_video` in virtual time, with brains that repeat a trace and frames without
pixels: there is no second copy of the guard's rules that could disagree with the first.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hdguard.actuators.base import Actuator
from hdguard.actuators.recording import RecordingActuator, RecordingSettings
from hdguard.brains.trace import (
    TraceFastBrain,
    TraceFastSettings,
    TraceSlowBrain,
    TraceSlowSettings,
)
from hdguard.brains.trace_format import BrainTrace, FastRow, SlowRow
from hdguard.core import events
from hdguard.core.actions import Action, CancelReview, RequestReview
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import Policy
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest.base import Frame, Rgb, SourceReport
from hdguard.replay.dataset import Entry
from hdguard.replay.results import Outcome
from hdguard.replay.runner import Crew, VideoSettings, run_video
from hdguard.replay.scoring import KeyFrames
from hdguard.runtime.observer import Judged, Observer, Reviewed, Viewer
from hdguard.runtime.virtual_time import run_virtual
from hdguard.workers.inline import InlineFastSeat, InlineSlowSeat

FAST, SLOW = "recorded", "recorded-slow"
"""What the two brains are called in a simulation."""

BORROWED = 1.0
"""Seconds; a review that is answered by a row older than this was answered about another scene.
The longest time between two frames of a recording at 1 FPS: a choice."""

SAME_CANCEL = 0.01
"""Seconds by which a review may be cancelled later than when it was recorded and count as cancelled
alike: between the guard's decisions and the stamps of a review lies the loop's work. A choice."""

STOP_TIME = RecordingSettings().stop_time


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded video, with all that a simulation needs of it.

    Attributes:
        video: its name.
        keyframes: what the truth says; None is safe material.
        times: media times of its frames in seconds, ascending from 0.
        fast: the rows of the brain that is tuned, under the name "*".
        slow: the rows of the reviews, under the name "*"; None: there is no SlowBrain.
    """

    video: str
    keyframes: KeyFrames | None
    times: tuple[float, ...]
    fast: BrainTrace[FastRow]
    slow: BrainTrace[SlowRow] | None


@dataclass(frozen=True, slots=True)
class Reviews:
    """What became of the questions to the SlowBrain.

    Attributes:
        asked: questions put.
        answered: the trace had an answer.
        borrowed: those of them whose answer was to a trigger over a second earlier.
        failed: it had none, or a failure.
        unrecorded: the review was broken off when it was recorded, and here it was waited for
            longer; what became of the video is then not known.
    """

    asked: int = 0
    answered: int = 0
    borrowed: int = 0
    failed: int = 0
    unrecorded: int = 0


@dataclass(frozen=True, slots=True)
class Simulated:
    """What happened in one simulation."""

    outcome: Outcome
    reviews: Reviews


def simulate(
    case: Case, fast: BrainTrace[FastRow], policy: Policy, stop_time: float = STOP_TIME
) -> Simulated:
    """Run the guard over the case.

    Args:
        case: the recorded video.
        fast: its rows as they are to be repeated: `rejudge` them first.
        policy: with a plan for the brain `FAST`; its `slow` is filled in.
        stop_time: seconds that the ideal robot takes to stand still.
    """
    return run_virtual(_simulate(case, fast, policy, stop_time))


async def _simulate(
    case: Case, fast: BrainTrace[FastRow], policy: Policy, stop_time: float
) -> Simulated:
    judge = TraceFastBrain(TraceFastSettings("trace", FAST, width=1, height=1), fast)
    crew = Crew({FAST: InlineFastSeat(lambda: judge, "trace")}, None)
    if case.slow is not None:
        thinker = TraceSlowBrain(TraceSlowSettings("trace", SLOW, width=1, height=1), case.slow)
        crew = Crew(crew.fast, InlineSlowSeat(lambda: thinker, "trace"))
    policy = replace(policy, slow=SLOW if crew.slow else "")
    stage = _Stage(case, stop_time)
    entry = Entry(video=case.video, keyframes=case.keyframes, path=Path(case.video))
    settings = VideoSettings(policy, drain=policy.review_deadline, stop_time=stop_time)
    outcome, _ = await run_video(entry, crew, stage, settings)
    return Simulated(outcome, stage.reviews.counted())


class _Stage:
    """Frames without pixels, an ideal robot, and nobody who writes anything down."""

    def __init__(self, case: Case, stop_time: float) -> None:
        self.reviews = _ReviewCount(case.slow)
        self._case = case
        self._stop_time = stop_time

    def source(self, entry: Entry) -> "BlindSource":
        return BlindSource(entry.video, self._case.times)

    @asynccontextmanager
    async def actuator(self, entry: Entry) -> AsyncIterator[Actuator]:
        del entry
        yield RecordingActuator(RecordingSettings(self._stop_time))

    def observers(self, entry: Entry, guard: Guard) -> tuple[Observer, ...]:
        del entry, guard
        return (self.reviews,)

    def viewers(self, entry: Entry) -> tuple[Viewer, ...]:
        del entry
        return ()

    def recorder(self) -> "_NoRecorder":
        return _NoRecorder()


class _NoRecorder:
    """A trace of a trace is of no use."""

    def fast(self, *_: object) -> None:
        return

    def slow(self, *_: object) -> None:
        return

    def data(self) -> dict[str, Any]:
        return {}


@dataclass
class _ReviewCount:
    """Counts how reviews ended; those that nobody waits for any more as well."""

    rows: BrainTrace[SlowRow] | None
    asked: int = 0
    answered: int = 0
    borrowed: int = 0
    failed: int = 0
    unrecorded: int = 0
    _trigger: FrameRef | None = None
    _known_until: dict[int, float] = field(default_factory=dict)
    """By review that was broken off: until when it is known that there was no answer, and infinity
    once nobody waits for one."""

    def judged(self, stamps: Judged | Reviewed) -> None:
        if isinstance(stamps, Reviewed):
            self._trigger = stamps.trigger

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        match event:
            case events.SlowVerdict():
                self.answered += 1
                self.borrowed += self._is_borrowed()
            case events.ReviewFailed() if event.review_id in self._known_until:
                self._waited(event.review_id, now)
            case events.ReviewFailed():
                self.failed += 1
            case _:
                pass
        for action in actions:
            self._note_action(now, action)

    def _note_action(self, now: float, action: Action) -> None:
        match action:
            case RequestReview():
                self.asked += 1
                row = self._row(action.trigger)
                if self.rows is not None and row is not None and row.broken_off:
                    self._known_until[action.review_id] = now + self.rows.latency_of(row)
            case CancelReview():
                self._waited(action.review_id, now)
            case _:
                pass

    def _waited(self, review_id: int, now: float) -> None:
        """Nobody waits for this review any more."""
        if review_id in self._known_until:
            self.unrecorded += now > self._known_until[review_id] + SAME_CANCEL
            self._known_until[review_id] = math.inf

    def _is_borrowed(self) -> bool:
        if self._trigger is None:
            return False
        row = self._row(self._trigger)
        return row is not None and self._trigger.media_time - row.t > BORROWED

    def _row(self, trigger: FrameRef) -> SlowRow | None:
        if self.rows is None:
            return None
        return self.rows.row(trigger.source_id, trigger.media_time)

    def counted(self) -> Reviews:
        return Reviews(self.asked, self.answered, self.borrowed, self.failed, self.unrecorded)


@dataclass(frozen=True, slots=True)
class _NoPicture:
    """Black, in whatever size; nobody looks."""

    def rgb(self, spec: ImageSpec) -> Rgb:
        return np.zeros((spec.height or 1, spec.width, 3), np.uint8)


@dataclass
class BlindSource:
    """A `FrameSource` that knows when the frames are, and has no pictures.

    Attributes:
        source_id: the video's name.
        times: media times of the frames in seconds.
    """

    source_id: str
    times: Sequence[float]
    handed: int = field(default=0, init=False)

    @property
    def interval(self) -> float:
        """The mean time between frames in seconds; 0.0 if there are not two."""
        return self.times[-1] / (len(self.times) - 1) if len(self.times) > 1 else 0.0

    @property
    def report(self) -> SourceReport:
        """How many frames it has handed over."""
        return SourceReport(frames=self.handed)

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Every frame at its time."""
        loop = asyncio.get_running_loop()
        origin = loop.time()
        for seq, t in enumerate(self.times):
            await asyncio.sleep(max(0.0, origin + t - loop.time()))
            self.handed += 1
            yield Frame(FrameRef(self.source_id, seq, origin + t, t), _NoPicture())

    def retry_after(self) -> float | None:
        """None: it ends for good."""
        return None
