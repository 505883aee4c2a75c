"""Abuse of the HTTP port counts as met only if it was refused."""

import asyncio

import pytest

from hdguard.faults import hostile_faults
from hdguard.faults.rows import FaultError
from tests.actuators.support import run
from tests.faults.support import ToldStack, injected


class Answering(ToldStack):
    """Its guard answers every request with that status, and the flood with those in turn."""

    def __init__(self, status: int, *flood: int) -> None:
        super().__init__()
        self.http = 0
        self._status = status
        self._flood = flood

    async def ask(self, _method: str, _path: str) -> int:
        await asyncio.sleep(0)
        self._flood = (*self._flood[1:], self._flood[0])
        return self._flood[0]

    async def listen(self) -> asyncio.Server:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._status:
                writer.write(f"HTTP/1.1 {self._status} X\r\n\r\n".encode())
            await reader.read(1)
            writer.transport.abort()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        self.http = server.sockets[0].getsockname()[1]
        return server


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        ((200, 200, 429), "a huge body was answered 200, not 4xx"),
        ((0, 200, 429), "a huge body was answered nothing, not 4xx"),
        ((413, 200), "100 times GET /metrics: {200: 100}, not 200 and then 429"),
        ((413, 0), "100 times GET /metrics: {0: 100}, not 200 and then 429"),
    ],
)
def test_what_was_not_refused_is_told(stack: tuple[int, ...], words: str) -> None:
    async def story() -> None:
        guard = Answering(*stack)
        async with await guard.listen():
            with pytest.raises(FaultError) as told:
                await injected(hostile_faults.http_abuse, guard)
        assert str(told.value) == words

    run(story(), "asyncio")


def test_refused_it_measures_the_gap_that_began_before_it() -> None:
    async def story() -> None:
        guard = Answering(413, 200, 429)
        guard.permits(-0.5, 0.1)
        guard.permits(0.1, 0.1)
        async with await guard.listen():
            assert await injected(hostile_faults.http_abuse, guard) == pytest.approx((0.6,))

    run(story(), "asyncio")
