"""What the runtime awaits: a brain with a seat, be it inline, on a thread or in a process."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from hdguard.brains.base import Shot
from hdguard.core.events import BrainDown, BrainUp, CannotSee, FastVerdict, Remarked, SlowVerdict
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.workers.wire import Numbers

Notice = BrainDown | BrainUp | Remarked
Listener = Callable[[Notice], None]


class Seat(Protocol):
    """Where a brain sits. One call at a time; the caller keeps the queue."""

    @property
    def name(self) -> str:
        """The brain's name."""
        ...

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain wants."""
        ...

    @property
    def fingerprint(self) -> str:
        """What the brain's scores depend on, in words; known after `start`, empty if not told."""
        ...

    @property
    def warm_p99(self) -> float | None:
        """Seconds, the warm-up's 99th percentile; 0: it was not to measure, None: it never does."""
        ...

    async def start(self) -> None:
        """Load the brain; returns when it is ready.

        Raises:
            BrainError: it cannot be loaded, or was not ready in time.
        """
        ...

    def listen(self, listener: Listener | None) -> None:
        """Send BrainDown, BrainUp and Remarked there from now on; None: nowhere.

        Whoever comes while a brain that was started is down hears BrainDown at once, before this
        returns: the one that was sent when it went down had no listener.

        Only a brain in a process of its own makes remarks: an afterthought must be droppable
        between two steps, and at the virtual pace it would have no time of its own.
        """
        ...

    async def kill(self, reason: str) -> None:
        """Give up the call in progress and replace the brain; returns once the old one is gone.

        BrainDown is sent at once, BrainUp when the new one is ready.
        """
        ...

    async def close(self) -> None:
        """End the brain for good."""
        ...


@runtime_checkable
class NumberedSeat(Seat, Protocol):
    """A seat whose brain has a process of its own, and so memory that is its alone."""

    @property
    def numbers(self) -> Numbers | None:
        """What the process takes; None before it was asked first, and while it is down."""
        ...


class FastSeat(Seat, Protocol):
    """A FastBrain that can be awaited."""

    async def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame.

        Raises:
            BrainError: no usable answer, or the brain died.
        """
        ...


class SlowSeat(Seat, Protocol):
    """A SlowBrain that can be awaited."""

    @property
    def interruptible(self) -> bool:
        """Whether a review that is cancelled is broken off; known after `start`."""
        ...

    async def review(
        self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]
    ) -> SlowVerdict:
        """Answer the review.

        Raises:
            BrainError: no usable answer, or the brain died.
        """
        ...

    def cancel(self, review_id: int) -> None:
        """Break off this review, if it is not asked yet or the brain bears to be interrupted.

        Its caller then gets a BrainError that says "cancelled", and the brain lives on. Otherwise
        nothing happens: the brain is busy until it has answered.
        """
        ...
