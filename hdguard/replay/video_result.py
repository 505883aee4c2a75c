"""All that a run found out about one video, scored.

A `VideoResult` travels alone: between worker processes, and from an interrupted run to the one that
resumes it. Everything else is computed from the list of them, so nothing can be counted twice.
"""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

import msgspec
from msgspec import Struct

from hdguard.core.types import NO_HAZARD, Hazard
from hdguard.replay.annotations import Annotation
from hdguard.replay.scoring import KeyFrames, Phase, phase_of, score_of

T = TypeVar("T")
V = TypeVar("V")
TIMES = ("trigger", "issued", "stopped")


class ByTime(Struct, Generic[T], frozen=True):
    """One value for each of a warning's three times."""

    trigger: T
    issued: T
    stopped: T

    @staticmethod
    def of(value: Callable[[str], V]) -> "ByTime[V]":
        """Ask for the value of each time by its name."""
        return ByTime(*(value(when) for when in TIMES))

    def items(self) -> tuple[tuple[str, T], ...]:
        """(name of the time, value), earliest first."""
        return (("trigger", self.trigger), ("issued", self.issued), ("stopped", self.stopped))


class Warned(Struct, frozen=True, kw_only=True):
    """The first danger halt; times are seconds of media time, rounded to 1 ms.

    Attributes:
        trigger: the RED frame, or the YELLOW frame that opened the review.
        issued: trigger + (decided - captured).
        stopped: issued + the robot's stop time.
        cause: the halt's cause.
        brain: the brain that caused it, empty if none did.
        hazard: what that brain said the danger is.
    """

    trigger: float
    issued: float
    stopped: float
    cause: str
    brain: str = ""
    hazard: Hazard = NO_HAZARD

    def __post_init__(self) -> None:
        """What is scored is what is written."""
        for when in TIMES:
            msgspec.structs.force_setattr(self, when, round(float(getattr(self, when)), 3))


class FaultHalt(Struct, frozen=True, kw_only=True):
    """A halt that is no warning; media time in seconds, `released_at` None if it never ended."""

    at: float
    cause: str
    released_at: float | None = None

    def __post_init__(self) -> None:
        """Media time is written to 1 ms."""
        msgspec.structs.force_setattr(self, "at", round(float(self.at), 3))
        if self.released_at is not None:
            msgspec.structs.force_setattr(self, "released_at", round(self.released_at, 3))


class Stages(Struct, frozen=True, kw_only=True):
    """Where the warning's time went, for the frame that caused it: seconds between stamps.

    `warning` is the warning latency, decided - captured; a stage whose stamps do not both exist
    is None.
    """

    captured_to_sampled: float | None = None
    sampled_to_assessed: float | None = None
    assessed_to_decided: float | None = None
    decided_to_delivered: float | None = None
    delivered_to_confirmed: float | None = None
    warning: float

    @classmethod
    def between(
        cls,
        *,
        captured: float,
        decided: float,
        sampled: float | None = None,
        assessed: float | None = None,
        delivered: float | None = None,
        confirmed: float | None = None,
    ) -> Self:
        """From a frame's stamps, in seconds on one clock."""

        def gap(start: float | None, end: float | None) -> float | None:
            return None if start is None or end is None else end - start

        return cls(
            captured_to_sampled=gap(captured, sampled),
            sampled_to_assessed=gap(sampled, assessed),
            assessed_to_decided=gap(assessed, decided),
            decided_to_delivered=gap(decided, delivered),
            delivered_to_confirmed=gap(delivered, confirmed),
            warning=decided - captured,
        )


class Source(Struct, frozen=True, kw_only=True):
    """What the video file was like: frames handed over, left out, mended, and what was wrong."""

    frames: int = 0
    corrupt: int = 0
    repaired: int = 0
    problems: tuple[str, ...] = ()


class Annotated(Struct, frozen=True, kw_only=True):
    """What the truth says of the video; `keyframes` null is safe material."""

    keyframes: KeyFrames | None = None
    category: str = ""
    severity: str = ""
    difficulty: str = ""
    room: str = ""
    extra: dict[str, Any] = {}


class VideoResult(Struct, frozen=True, kw_only=True):
    """All there is to say of one video. Make it with `video_result`.

    Attributes:
        video: the entry's name.
        annotated: its key frames and labels.
        safe: safe material, never in n; `phase` and `score` are then None.
        warning: the first danger halt, None if there was none.
        phase, score: of the warning, by each of its three times; missed and 0 without one.
        fault_halts: every fault halt, in order.
        watched: seconds of media time from the start to the danger halt or the end.
        stages: the warning's latency by stage.
        verdicts: number of FastBrain verdicts by light.
        dropped: sampled frames that no brain looked at because a newer one came.
        source: what the file was like.
        failed: why the video could not be run; it stays in n, as missed.
    """

    video: str
    annotated: Annotated
    safe: bool
    warning: Warned | None
    phase: ByTime[Phase] | None
    score: ByTime[float] | None
    fault_halts: tuple[FaultHalt, ...] = ()
    watched: float = 0.0
    stages: Stages | None = None
    verdicts: dict[str, int] = {}
    dropped: int = 0
    source: Source = Source()
    failed: str | None = None


class Outcome(Struct, frozen=True, kw_only=True):
    """What the runner saw of one video; the fields are those of `VideoResult`."""

    warning: Warned | None = None
    fault_halts: tuple[FaultHalt, ...] = ()
    watched: float = 0.0
    stages: Stages | None = None
    verdicts: dict[str, int] = {}
    dropped: int = 0
    source: Source = Source()
    failed: str | None = None


def warning_time(warning: Warned | None, when: str) -> float | None:
    """One of the three times of a warning, by its name; None without a warning."""
    return None if warning is None else float(getattr(warning, when))


def video_result(entry: Annotation, outcome: Outcome) -> VideoResult:
    """Score what was seen of one video.

    A video that failed counts as missed whatever it said before: half a run is no evidence.
    """
    keyframes = entry.keyframes
    warning = None if outcome.failed is not None else outcome.warning
    phase: ByTime[Phase] | None = None
    score: ByTime[float] | None = None
    if keyframes is not None:
        phase = ByTime.of(lambda when: phase_of(warning_time(warning, when), keyframes))
        score = ByTime.of(lambda when: score_of(warning_time(warning, when), keyframes))
    seen = {name: getattr(outcome, name) for name in Outcome.__struct_fields__}
    return VideoResult(
        video=entry.video,
        annotated=Annotated(
            keyframes=keyframes,
            category=entry.category,
            severity=entry.severity,
            difficulty=entry.difficulty,
            room=entry.room,
            extra=dict(entry.extra),
        ),
        safe=entry.safe,
        phase=phase,
        score=score,
        **{**seen, "warning": warning, "stages": outcome.stages if warning else None},
    )
