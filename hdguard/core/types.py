"""Every value that the parts exchange, in one small file, so that a word has one meaning."""

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Light(IntEnum):
    """What a FastBrain says of a frame; the order is the severity."""

    GREEN = 0
    YELLOW = 1
    RED = 2


class Speed(IntEnum):
    """What a permit allows; the order is the liberty."""

    NONE = 0
    REDUCED = 1
    FULL = 2


class State(StrEnum):
    """What the guard is doing."""

    STARTING = "starting"
    MONITORING = "monitoring"
    REVIEWING = "reviewing"
    HALTED = "halted"


class HaltClass(StrEnum):
    """Who or what asked for the halt; it decides how the halt may end."""

    DANGER = "danger"
    FAULT = "fault"
    OPERATOR = "operator"


class HaltCause(StrEnum):
    """Why the robot was halted, one word per thing that can go wrong."""

    FAST_RED = "fast_red"
    SLOW_DANGER = "slow_danger"
    REVIEW_OVERDUE = "review_overdue"
    STALE_FRAME = "stale_frame"
    FROZEN_FRAME = "frozen_frame"
    STALE_VERDICT = "stale_verdict"
    BRAIN_FAILED = "brain_failed"
    BRAIN_LATCHED = "brain_latched"
    BLIND = "blind"
    STOPPING = "stopping"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class FrameRef:
    """Names one decoded frame.

    Attributes:
        source_id: the camera or file that it came from.
        seq: counts the source's frames from 0.
        captured_at: seconds on the loop's clock at which the scene looked so; ages count from it.
        media_time: seconds since the source's first frame, by presentation stamps.
    """

    source_id: str
    seq: int
    captured_at: float
    media_time: float


@dataclass(frozen=True, slots=True)
class Hazard:
    """What a brain says the danger is; an empty field is "not given".

    Attributes:
        category: HomeSafe-Bench C1 to C4, or empty.
        severity: HomeSafe-Bench L1 to L4, or empty.
        text: one sentence for people, or empty.
    """

    category: str = ""
    severity: str = ""
    text: str = ""


NO_HAZARD = Hazard()


@dataclass(frozen=True, slots=True)
class Scores:
    """How probable each light is by a model's own word, before any calibration.

    Natural logarithms of p(light): the probability, among all that the model could have said
    next, of the forms that mean this light, summed. Not renormalised over the three lights, so
    that what is missing from their sum is what the model would rather have said.

    Attributes:
        green: log p, at most 0 but for rounding.
        yellow: likewise.
        red: likewise.

    Raises:
        ValueError: one is not finite; a NaN would compare as neither low nor high.
    """

    green: float
    yellow: float
    red: float

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.green, self.yellow, self.red))):
            msg = f"scores must be finite, not {self.green}, {self.yellow}, {self.red}"
            raise ValueError(msg)

    @property
    def mass(self) -> float:
        """The probability that the model says any light at all: the sum of the three."""
        return math.exp(self.green) + math.exp(self.yellow) + math.exp(self.red)


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """The picture that a brain wants: RGB, 8 bits.

    Attributes:
        width: pixels.
        height: pixels, or None to keep the aspect ratio (then there are no bars).
        letterbox: keep the aspect ratio inside width x height and fill the rest with black;
            False stretches. Meaningless without a height.
    """

    width: int
    height: int | None = None
    letterbox: bool = True

    @property
    def max_bytes(self) -> int:
        """Upper bound of the picture's size in bytes; without a height, 1:4 is the tallest."""
        return self.width * (self.height or 4 * self.width) * 3
