"""Between a fast producer and a slow consumer: newest wins, and every drop is counted.

A queue would hand a brain yesterday's frames; a mailbox of one cannot.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hdguard.ingest.base import Frame

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sampled:
    """A frame taken for a brain, and when, in seconds on the loop's clock."""

    frame: Frame
    at: float


class Mailbox:
    """The newest sampled frame of each source, for one brain."""

    def __init__(self) -> None:
        self.dropped = 0
        self._frames: dict[str, Sampled] = {}
        self._filled = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def put(self, sampled: Sampled) -> None:
        """Offer a frame; one of the same source that still waits is dropped."""
        source_id = sampled.frame.ref.source_id
        if source_id in self._frames:
            self.dropped += 1
        self._frames[source_id] = sampled
        self._filled.set()
        self._idle.clear()

    async def get(self) -> Sampled:
        """The frame of the source that has waited longest. Call `done` when it is judged."""
        while not self._frames:
            self._filled.clear()
            await self._filled.wait()
        return self._frames.pop(next(iter(self._frames)))

    def done(self) -> None:
        """The frame that `get` gave is judged."""
        if not self._frames:
            self._idle.set()

    async def settled(self) -> None:
        """Wait until no frame waits or is being judged."""
        await self._idle.wait()


class Outbox(Generic[T]):
    """Actions on their way to the robot; one that says the same again replaces the last."""

    def __init__(self, replaces: Callable[[T, T], bool]) -> None:
        self._replaces = replaces
        self._items: deque[T] = deque()
        self._filled = asyncio.Event()

    def put(self, item: T) -> None:
        """Hand over; never waits."""
        if self._items and self._replaces(item, self._items[-1]):
            self._items[-1] = item
        else:
            self._items.append(item)
        self._filled.set()

    async def get(self) -> T:
        """The oldest that is left."""
        while not self._items:
            self._filled.clear()
            await self._filled.wait()
        return self._items.popleft()
