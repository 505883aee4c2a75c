"""What the guard is doing, as it changes: server-sent events, made once for all who look.

Nobody is sent anything: each answer fetches the newest report when its client has taken the last
one. So nothing queues for a slow reader, nothing is made while nobody looks, and the report of a
moment is made once. sse-starlette is not used: it replaces uvicorn's signal handler for the whole
process when it is imported, and leaves a task of its own running that nobody owns.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hdguard.observe.limits import LIFE, STREAM_LASTS

EVERY = 0.25
"""Seconds between two reports; a change of the state, a light or a halt comes at once."""

YOUNG = 0.2
"""Seconds for which a report serves whoever asks for one."""

APART = 0.002
"""Seconds between two clients' turns: one is served in about 0.2 ms, and fifty at once would hold
up a decision for all of theirs."""

RETRY = 200  # ms after which a browser asks again

assert STREAM_LASTS < LIFE


class ReportStream:
    """All the answers that are open.

    Args:
        report: what is shown, as plain data.
        clock: seconds, the loop's.
    """

    def __init__(self, report: Callable[[], Mapping[str, Any]], clock: Callable[[], float]) -> None:
        self._report = report
        self._clock = clock
        self._event = b""
        self._made_at = float("-inf")
        self._turns = asyncio.Lock()
        self._news = asyncio.Event()
        self._has_news = False
        self.viewers = 0

    def changed(self) -> None:
        """Something happened that nobody should wait for; cheap enough for the decision step."""
        if self.viewers and not self._has_news:
            self._has_news = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._has_news = False
        self._made_at = float("-inf")
        news, self._news = self._news, asyncio.Event()
        news.set()

    def answer(self) -> "EventsResponse":
        """One client's answer."""
        return EventsResponse(self.events())

    async def events(self) -> AsyncGenerator[bytes, None]:
        """What one client is told; it ends by itself, in time, and is asked for again."""
        until = self._clock() + STREAM_LASTS
        self.viewers += 1
        try:
            yield f"retry: {RETRY}\n\n".encode()
            while self._clock() < until:
                news = self._news
                async with self._turns:
                    await asyncio.sleep(APART)
                yield self._newest()
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY):
                        await news.wait()
        finally:
            self.viewers -= 1

    def _newest(self) -> bytes:
        now = self._clock()
        if now - self._made_at > YOUNG:
            self._made_at = now
            self._event = b"data: " + msgspec.json.encode(self._report()) + b"\n\n"
        return self._event


class EventsResponse(StreamingResponse):
    """Events that end with their client, also one that is given up while it does not read."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        # A proxy before us must not collect them.
        super().__init__(events, headers={"X-Accel-Buffering": "no"})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and end in peace when the server does.

        uvicorn would write a traceback into the log for everybody who looks on at that time.
        """
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def stream_response(self, send: Send) -> None:
        """Send them one by one, each when the one before has been taken."""
        async with aclosing(self._events):
            await super().stream_response(send)
