"""What the guard wants done: imperative values, returned from every step."""

from dataclasses import dataclass

from hdguard.core.types import (
    NO_HAZARD,
    FrameRef,
    HaltCause,
    HaltClass,
    Hazard,
    Light,
    Speed,
    State,
)


@dataclass(frozen=True, slots=True)
class Permit:
    """Let the robot move at most so fast until its lease ends.

    Attributes:
        speed: the liberty given.
        light: the most severe light of all sources; YELLOW while one is unknown.
        state: the guard's state.
        frame_age: seconds, the oldest required source's; None before its first frame.
        verdict_age: seconds, the oldest required brain's; None before its first verdict.
        robot: (boot, seq) of the newest robot message seen, or None.
    """

    speed: Speed
    light: Light
    state: State
    frame_age: float | None
    verdict_age: float | None
    robot: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop the robot. Emitted again with the same id until the robot confirms.

    Attributes:
        halt_id: `<boot>-<n>`, unique for this guard's life and after it.
        halt_class: decides how the halt may end.
        cause: why.
        source_id: the source concerned, or empty.
        brain: the brain concerned, or empty.
        ref: the RED frame, or the YELLOW frame that opened the review; None for other causes.
        light: the source's light when decided, if a source is concerned.
        hazard: what a brain said of it.
        decided_at: seconds on the loop's clock.
        repeat: 0 for the first, then counting.
        latched: a fault that only a reset ends.
    """

    halt_id: str
    halt_class: HaltClass
    cause: HaltCause
    source_id: str = ""
    brain: str = ""
    ref: FrameRef | None = None
    light: Light | None = None
    hazard: Hazard = NO_HAZARD
    decided_at: float = 0.0
    repeat: int = 0
    latched: bool = False


@dataclass(frozen=True, slots=True)
class Escalate:
    """The robot has not acknowledged in time: use every other means there is."""

    halt_id: str


@dataclass(frozen=True, slots=True)
class Release:
    """The halt is over; publish the same id as inactive."""

    halt_id: str


@dataclass(frozen=True, slots=True)
class RequestReview:
    """Ask the SlowBrain about these frames, oldest first."""

    review_id: int
    source_id: str
    trigger: FrameRef
    refs: tuple[FrameRef, ...]


@dataclass(frozen=True, slots=True)
class CancelReview:
    """Nobody waits for this review any more."""

    review_id: int


@dataclass(frozen=True, slots=True)
class SetSampleRate:
    """Sample this source for this brain at `fps`; `ref` is the frame that changed it, if any."""

    source_id: str
    brain: str
    fps: float
    ref: FrameRef | None = None


@dataclass(frozen=True, slots=True)
class Notify:
    """The state or its reasons changed; `why` is for people."""

    state: State
    why: str


Action = Permit | Halt | Escalate | Release | RequestReview | CancelReview | SetSampleRate | Notify
