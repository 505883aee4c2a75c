"""One client's connection: one request, read in small steps and in bounded time.

What uvicorn's protocol leaves open is closed here. It parses whatever one read brings in one go, so
that a head of thousands of tiny lines, or a body of thousands of tiny chunks, would hold up the
loop for a tenth of a second; and it waits for ever for a head, and half a minute for a TLS client
to say goodbye.
"""

import asyncio
from http import HTTPStatus

from starlette.requests import Request
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from hdguard.observe.limits import GOODBYE_WITHIN, HEAD_WITHIN, MOST_LINES

KEEPS_PLACE = "keeps_place"  # in a request's state: what its endpoint calls

STEP = 1024
"""Bytes parsed between two looks at what came out of them, until the head is complete."""


class Visitor(H11Protocol):
    """A client, for the one request that its connection carries."""

    def __init__(self, config: Config, state: ServerState) -> None:
        super().__init__(config, state, {KEEPS_PLACE: self._keep_place})
        self._asked = asyncio.Event()
        self._answered = asyncio.Event()
        self._gone = asyncio.Event()
        self._lines = 0
        self._came = False
        self._keeps_place = False

    @property
    def has_asked(self) -> bool:
        """The head of its request is complete, or it has left."""
        return self._asked.is_set()

    @property
    def may_go(self) -> bool:
        """Another may have its place: its token was not accepted, or it has its answer."""
        return self._answered.is_set() or not self._keeps_place

    async def stay(self) -> None:
        """Wait until it has its answer and has left, or has had time to.

        One that does not ask in time is turned away.
        """
        try:
            async with asyncio.timeout(HEAD_WITHIN):
                await self._asked.wait()
        except TimeoutError:
            self._turn_away(408)
        await self._answered.wait()
        async with asyncio.timeout(GOODBYE_WITHIN):
            await self._gone.wait()

    def _keep_place(self) -> None:
        self._keeps_place = True

    def abort(self) -> None:
        """Drop it at once, whatever is unsent."""
        if self._came:
            self.transport.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is here; over TLS, the handshake is done."""
        super().connection_made(transport)
        self._came = True

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        for start in range(0, len(data), STEP):
            if self.transport.is_closing():
                return
            if self.has_asked:  # the rest is the body, or not wanted
                if not self._chunked():
                    super().data_received(data[start:])
                return
            step = data[start : start + STEP]
            self._lines += step.partition(b"\r\n\r\n")[0].count(b"\n")
            if self._lines > MOST_LINES:
                self._turn_away(431)
                return
            super().data_received(step)
            if self.cycle is not None:
                self._asked.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has left, or was dropped."""
        super().connection_lost(exc)
        self._asked.set()
        self._answered.set()
        self._gone.set()

    def send_400_response(self, msg: str) -> None:
        """What it sent is no HTTP. If its request is being answered, this is the answer."""
        if self.cycle is not None:  # uvicorn's word for it; what the endpoint says is not sent
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        super().send_400_response(msg)
        self._answered.set()

    def on_response_complete(self) -> None:
        """All of the answer is with the transport."""
        super().on_response_complete()
        self._answered.set()

    def _chunked(self) -> bool:
        return any(name == b"transfer-encoding" for name, _ in self.headers)

    def _turn_away(self, status: int) -> None:
        if not self.transport.is_closing():
            self.transport.write(short_reply(status))
            self.transport.close()
        self._answered.set()


def keep_place(request: Request) -> None:
    """Let nobody have this client's place until it has its answer; it has shown a token."""
    getattr(request.state, KEEPS_PLACE)()


def short_reply(status: int) -> bytes:
    """An answer without a body, for whoever's request is not even read."""
    phrase = HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {phrase}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
