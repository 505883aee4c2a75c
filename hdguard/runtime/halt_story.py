"""The story of each halt: what was seen, who called it, and when each stage of it was reached.

Values that are the same whoever tells them: the running guard, its halt log, a journal, or the
record of an incident. Latencies are told from these stamps and nothing else.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

from hdguard.core.types import NO_HAZARD, FrameRef, HaltCause, HaltClass, Hazard, Light

Called = Literal["", "yellow", "blind", "failed"]
"""What the FastBrain said that had a review opened."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """When each stage was reached: seconds on the loop's clock.

    None: it has not been, or there is no such stage. `asked`: the review was requested;
    `answered`: its answer came; `given`: the FastBrain got the frame.
    """

    captured: float | None = None
    sampled: float | None = None
    given: float | None = None
    assessed: float | None = None
    asked: float | None = None
    answered: float | None = None
    decided: float | None = None
    delivered: float | None = None
    acknowledged: float | None = None
    confirmed: float | None = None
    escalated: float | None = None
    released: float | None = None


@dataclass(frozen=True, slots=True)
class HaltStory:
    """All that is known of a halt.

    Attributes:
        halt_id, halt_class, cause, source_id, brain, ref, light, hazard, latched: as in `Halt`; a
            hazard that a brain added to the very frame afterwards fills an empty one.
        boot: of the guard that tells it. A halt of an earlier life is told again by each guard that
            has it restored, on a clock of its own.
        stamps: when.
        at: wall clock of the decision, or of the takeover, for people, ISO 8601 in UTC; empty:
            unknown.
        called_by: the FastBrain that called the frame RED, or had the review opened.
        called: what it said of it, where a review was opened.
        review_id: the review that it hangs on, if it does.
        since: when what is missing was there last, for halts that age has brought: the newest clean
            frame, the newest frame that the brain answered or saw, the newest change of the
            picture. None: there is no such thing.
        why: reason of a review that failed.
        released_by: the operator whose reset ended it; empty: it ended by itself, or has not ended.
        superseded_by: the halt that took its place.
    """

    halt_id: str
    halt_class: HaltClass
    cause: HaltCause
    boot: int
    source_id: str = ""
    brain: str = ""
    ref: FrameRef | None = None
    light: Light | None = None
    hazard: Hazard = NO_HAZARD
    latched: bool = False
    stamps: Stamps = Stamps()
    at: str = ""
    called_by: str = ""
    called: Called = ""
    review_id: int | None = None
    since: float | None = None
    why: str = ""
    released_by: str = ""
    superseded_by: str = ""

    @property
    def restored(self) -> bool:
        """True if an earlier life decided it; `decided` is when this one took it over."""
        return self.halt_id.partition("-")[0] != str(self.boot)

    @property
    def escalated(self) -> bool:
        """True if the robot had not acknowledged it in time."""
        return self.stamps.escalated is not None

    @property
    def ended(self) -> bool:
        """True if it is not in force any more, as far as is known."""
        return self.stamps.released is not None or bool(self.superseded_by)


class StoryError(Exception):
    """There is no such story, or it cannot be read: names the place and says what there is."""


def encode(story: HaltStory) -> bytes:
    """As one line of JSON, without its end."""
    return msgspec.json.encode(story)


def decode(data: bytes) -> HaltStory:
    """Read it back.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return msgspec.json.decode(data, type=HaltStory)
