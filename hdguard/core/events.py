"""What can happen to the guard: past-tense values, one line per field.

A new event is a type error in `Guard.step` until it is handled there.
"""

from dataclasses import dataclass

from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, Light, Scores


@dataclass(frozen=True, slots=True)
class FrameSeen:
    """A clean frame was decoded; `kept` frames may be shown to the SlowBrain.

    A `scene_change` says that this kept frame shows another scene than the kept one before it.
    `frozen` says that nothing has changed since the last frame that was not frozen, `damaged` that
    too many of the pictures before this one did not decode cleanly and were left out.
    """

    ref: FrameRef
    kept: bool = False
    scene_change: bool = False
    frozen: bool = False
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class FastVerdict:
    """A FastBrain judged a frame; `late` answers came past the deadline and count only if RED."""

    ref: FrameRef
    brain: str
    light: Light
    hazard: Hazard = NO_HAZARD
    late: bool = False
    scores: Scores | None = None


@dataclass(frozen=True, slots=True)
class CannotSee:
    """A FastBrain says that this frame cannot be judged: dark, blurred, covered."""

    ref: FrameRef
    brain: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrainFailed:
    """A FastBrain gave no usable answer: late, unparsed, crashed. `ref` is the frame, if any.

    `scores` are there where the model answered but its answer meant no light.
    """

    source_id: str
    brain: str
    reason: str
    ref: FrameRef | None = None
    scores: Scores | None = None


@dataclass(frozen=True, slots=True)
class Remarked:
    """What a FastBrain added about a frame after its verdict had left. It changes no light.

    `sights` are the persons and objects that the brain names in the frame.
    """

    ref: FrameRef
    brain: str
    hazard: Hazard = NO_HAZARD
    sights: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SlowVerdict:
    """The SlowBrain answered a review."""

    review_id: int
    danger: bool
    hazard: Hazard = NO_HAZARD


@dataclass(frozen=True, slots=True)
class ReviewFailed:
    """A review ended without an answer: unparsed, crashed, killed. Nothing else will come."""

    review_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class SourceUp:
    """A source delivers frames (again). `interval` is its declared frame interval in seconds."""

    source_id: str
    interval: float = 0.0


@dataclass(frozen=True, slots=True)
class SourceLost:
    """A source broke; it may come back."""

    source_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SourceEnded:
    """A source is finished for good: end of file. Raises no staleness."""

    source_id: str


@dataclass(frozen=True, slots=True)
class RobotSeen:
    """The robot reported itself. `speed` is in m/s, None if it does not know."""

    boot: int
    seq: int
    moving: bool
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class HaltDelivered:
    """The broker has the halt. No proof that the robot has it."""

    halt_id: str


@dataclass(frozen=True, slots=True)
class HaltAcknowledged:
    """The robot has the halt and has not stopped yet."""

    halt_id: str


@dataclass(frozen=True, slots=True)
class HaltConfirmed:
    """The robot says that it stands still."""

    halt_id: str


@dataclass(frozen=True, slots=True)
class HaltFailed:
    """Publishing the halt failed; it is repeated anyway."""

    halt_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResetRequested:
    """An operator, already authenticated at the edge, asks to end this halt."""

    halt_id: str
    operator: str


@dataclass(frozen=True, slots=True)
class HaltRequested:
    """An operator asks for a halt."""

    operator: str


@dataclass(frozen=True, slots=True)
class BrainDown:
    """A brain's worker is gone; `latched` when it will not be restarted any more."""

    brain: str
    latched: bool = False


@dataclass(frozen=True, slots=True)
class BrainUp:
    """A brain's worker is ready (again)."""

    brain: str


@dataclass(frozen=True, slots=True)
class LinkLost:
    """Our own permits have not come back from the broker for 1.0 s."""


@dataclass(frozen=True, slots=True)
class LinkUp:
    """Our own permits come back from the broker."""


@dataclass(frozen=True, slots=True)
class SelfTestPassed:
    """Broker echo and canaries are good; in replay, every brain is ready."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The daemon is asked to end."""


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """The time that `Guard.deadline` named has come."""


Event = (
    FrameSeen
    | FastVerdict
    | CannotSee
    | BrainFailed
    | Remarked
    | SlowVerdict
    | ReviewFailed
    | SourceUp
    | SourceLost
    | SourceEnded
    | RobotSeen
    | HaltDelivered
    | HaltAcknowledged
    | HaltConfirmed
    | HaltFailed
    | ResetRequested
    | HaltRequested
    | BrainDown
    | BrainUp
    | LinkLost
    | LinkUp
    | SelfTestPassed
    | StopRequested
    | DeadlineReached
)

BrainEvent = FastVerdict | CannotSee | BrainFailed
ReviewEvent = SlowVerdict | ReviewFailed
