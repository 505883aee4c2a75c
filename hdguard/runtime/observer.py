"""Who may look on while the pipeline works: journals, collectors, metrics. None may slow it."""

from dataclasses import dataclass
from typing import Protocol

from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.types import FrameRef
from hdguard.ingest.base import Frame


@dataclass(frozen=True, slots=True)
class Judged:
    """When a frame went through a brain: seconds on the loop's clock, one name per stamp.

    `given` is when the brain got it; an answer came at `assessed`.
    """

    brain: str
    ref: FrameRef
    sampled: float
    given: float
    assessed: float


@dataclass(frozen=True, slots=True)
class Reviewed:
    """When a review went through the SlowBrain: seconds on the loop's clock."""

    brain: str
    review_id: int
    trigger: FrameRef
    given: float
    assessed: float


class Observer(Protocol):
    """Looks on. Called from the decision step, after its actions are on their way: be quick."""

    def judged(self, stamps: Judged | Reviewed) -> None:
        """A brain has answered; the event that says so follows at once."""
        ...

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """The guard has decided."""
        ...


class Viewer(Protocol):
    """Looks at pictures. Called from the pump of a source: be quick, and convert nothing here."""

    def saw(self, frame: Frame, kept: bool) -> None:
        """A clean frame was decoded, and the guard has been told; `kept`: reviews may show it."""
        ...
