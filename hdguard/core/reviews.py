"""The reviews of one source: at most one open, at most one trigger waiting, or a caution."""

import math
from dataclasses import dataclass

from hdguard.core.policy import Pending, Window
from hdguard.core.review_window import ReviewWindow
from hdguard.core.types import FrameRef


@dataclass(frozen=True, slots=True)
class OpenReview:
    """A question that the SlowBrain has not answered yet."""

    review_id: int
    trigger: FrameRef
    refs: tuple[FrameRef, ...]
    due: float


class ReviewDesk:
    """Keeps what is asked of the SlowBrain about one source.

    A caution stays when a review was overdue and nobody has said "safe" since.
    """

    def __init__(self, window: Window, pending: Pending) -> None:
        self.window = ReviewWindow(window)
        self._pending = pending
        self.open: OpenReview | None = None
        self.overdue = False
        self.waiting: tuple[FrameRef, tuple[FrameRef, ...]] | None = None
        self.caution = False

    def wait(self, trigger: FrameRef) -> None:
        """A review is open already: by policy the newest trigger waits for its end."""
        if self._pending == "newest_waits":
            self.waiting = (trigger, self.window.around(trigger))

    def take_waiting(self) -> tuple[FrameRef, tuple[FrameRef, ...]] | None:
        """The trigger that waited, with the frames around it; it waits no more."""
        waiting, self.waiting = self.waiting, None
        return waiting

    def close(self) -> None:
        """The open review is over."""
        self.open = None
        self.overdue = False

    def clear(self) -> None:
        """Forget what is open, waiting or cautious: the robot is halted."""
        self.close()
        self.waiting = None
        self.caution = False

    @property
    def held(self) -> frozenset[FrameRef]:
        """Every frame that a later review may still show."""
        waiting = self.waiting[1] if self.waiting is not None else ()
        return frozenset((*self.window.held, *waiting))

    @property
    def awaited(self) -> OpenReview | None:
        """The open review, unless it is overdue already."""
        return None if self.overdue else self.open

    @property
    def due(self) -> float:
        """The time at which the awaited review is overdue; infinity if there is none."""
        return math.inf if self.awaited is None else self.awaited.due
