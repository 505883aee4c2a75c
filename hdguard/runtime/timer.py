"""The guard's one timer. An error in its callback ends the pipeline instead of vanishing.

The loop would only log it, and the deadlines would have stopped.
"""

import asyncio
from collections.abc import Callable


class Timer:
    """Rings at the last time it was set for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None
        self._set_for = -1.0
        self._failure: asyncio.Future[None] = loop.create_future()

    def arm(self, when: float) -> None:
        """Ring then, and at no other time."""
        if when == self._set_for and self._handle is not None:
            return
        self.cancel()
        self._set_for = when
        self._handle = self._loop.call_at(when, self._on_time)

    def cancel(self) -> None:
        """Do not ring."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    async def failed(self) -> None:
        """Wait for an error in the callback, and raise it."""
        await self._failure

    def _on_time(self) -> None:
        self._handle = None
        try:
            self._ring()
        except BaseException as error:  # noqa: BLE001 - carried to the task group, which ends
            if not self._failure.done():
                self._failure.set_exception(error)
