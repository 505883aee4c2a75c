"""What the runtime awaits: a brain with a seat, be it inline, on a thread or in a process."""

from collections.abc import Callable
from typing import Protocol

from hdguard.brains.base import Shot
from hdguard.core.events import BrainDown, BrainUp, CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, ImageSpec

Listener = Callable[[BrainDown | BrainUp], None]


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

    async def start(self) -> None:
        """Load the brain; returns when it is ready.

        Raises:
            BrainError: it cannot be loaded, or was not ready in time.
        """
        ...

    def listen(self, listener: Listener | None) -> None:
        """Send BrainDown and BrainUp there from now on; None: nowhere."""
        ...

    async def kill(self, reason: str) -> None:
        """Give up the call in progress and replace the brain; returns once the old one is gone.

        BrainDown is sent at once, BrainUp when the new one is ready.
        """
        ...

    async def close(self) -> None:
        """End the brain for good."""
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

    async def review(
        self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]
    ) -> SlowVerdict:
        """Answer the review.

        Raises:
            BrainError: no usable answer, or the brain died.
        """
        ...
