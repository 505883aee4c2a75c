"""Commands that nobody was allowed to give: none is obeyed, nothing breaks, the loop stays quick.

They go through the real protocol, gate and endpoints; only the socket is made up, for 10,000 real
connections at the rate at which the server takes them would be a test of two minutes.
"""

import asyncio
import logging
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdguard.observe.server import HttpServer
from hdguard.observe.visitor import Visitor
from tests.observe.support import CAMERA_TOKEN, OPEN, TOKEN, Stage, lag_probe, run

SDP = b"Content-Type: application/sdp"
HALT, WHIP = b"/api/v1/halt?operator=eve", b"/whip/kitchen"


class MadeUpSocket(asyncio.Transport):
    """Keeps what it is given to send; closing is heard one turn of the loop later."""

    def __init__(self, visitor: Visitor) -> None:
        super().__init__()
        self.sent = bytearray()
        self._visitor = visitor
        self._closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._visitor.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def hear(server: HttpServer, raw: bytes) -> int:
    """One connection that sends these bytes and then closes; its answer's status, 0 if none."""
    visitor = Visitor(server._config, server._state)
    sock = MadeUpSocket(visitor)
    visitor.connection_made(sock)
    middle = len(raw) // 2
    for part in (raw[:middle], raw[middle:]):
        if part and not sock.is_closing():
            visitor.data_received(part)
        await asyncio.sleep(0)
    if server._state.tasks and not sock.is_closing():
        await asyncio.wait(server._state.tasks, timeout=0.01)
    sock.close()
    await visitor.stay()
    await asyncio.gather(*server._state.tasks, return_exceptions=True)
    return int(sock.sent.split()[1]) if sock.sent else 0


class Forger(Random):
    """Makes commands that look right and are not."""

    def command(self) -> bytes:
        """A request without the token that its address asks for, often damaged besides."""
        path = self.choice([HALT, WHIP, WHIP + b"/session-1", self.randbytes(5).hex().encode()])
        lines = [self.choice([b"POST", b"POST", b"DELETE", b"PUT", b"GET"]) + b" " + path]
        lines[0] += self.choice([b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0", b""])
        lines += [b"Host: guard", SDP, *self._authorization(path)]
        body = self.randbytes(self.choice([0, 3, 300]))
        lines.append(b"Content-Length: %d" % (len(body) + self.choice([0, 0, 0, 1, -1])))
        if self.random() < 0.1:
            lines.insert(self.randrange(1, len(lines)), b"Transfer-Encoding: chunked")
        raw = b"\r\n".join([*lines, b"", body])
        return self._damaged(raw) if self.random() < 0.5 else raw

    def _authorization(self, path: bytes) -> list[bytes]:
        other = (CAMERA_TOKEN if path == HALT else TOKEN).encode()  # right for another address
        right = (TOKEN if path == HALT else CAMERA_TOKEN).encode()
        cut = self.randrange(len(right))
        token = self.choice(
            [other, right[:cut], right[:cut] + right[cut:].swapcase() + b"-", right[::-1], b""]
        )
        scheme = self.choice([b"Bearer ", b"bearer ", b"Basic ", b"Bearer\t", b""])
        named = self.choice([b"Authorization: ", b"Proxy-Authorization: ", b"Cookie: token="])
        return [named + scheme + token] * self.choice([0, 1, 1, 2])

    def _damaged(self, raw: bytes) -> bytes:
        at = self.randrange(len(raw))
        length = self.randrange(1, 9)
        return raw[:at] + self.randbytes(self.choice([0, 1, 8])) + raw[at + length :]


def test_of_ten_thousand_forged_commands_none_is_obeyed(caplog: pytest.LogCaptureFixture) -> None:
    forger = Forger(5)
    commands = [forger.command() for _ in range(10_000)]
    broke: list[Any] = []

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: broke.append(context))
        stage = Stage(OPEN)
        answers: dict[int, int] = {}
        async with lag_probe() as probe:
            for raw in commands:
                status = await hear(stage.server, raw)
                answers[status] = answers.get(status, 0) + 1
        assert stage.accepted == 0
        assert broke == []
        assert not {500, 200, 201} & set(answers), answers
        assert answers[401] > 1000  # they were understood, and refused for what they lacked
        assert probe.p99() < 0.05

    with caplog.at_level(logging.WARNING):
        run(story())
    assert caplog.messages == []


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.sampled_from(
                [
                    b"POST " + HALT + b" HTTP/1.1\r\n",
                    b"POST " + WHIP + b" HTTP/1.1\r\n",
                    b"Host: x\r\n",
                    b"Authorization: Bearer ",
                    b"Content-Length: 4\r\n",
                    b"Transfer-Encoding: chunked\r\n",
                    b"\r\n",
                    b"5\r\nv=0\r\n\r\n",
                ]
            ),
        ),
        max_size=8,
    )
)
def test_no_bytes_break_it(parts: list[bytes]) -> None:
    broke: list[Any] = []

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: broke.append(context))
        stage = Stage(OPEN)
        assert await hear(stage.server, b"".join(parts)) != 500
        assert stage.accepted == 0
        assert broke == []

    run(story())


@pytest.mark.parametrize(("path", "token"), [(HALT, TOKEN), (WHIP, CAMERA_TOKEN)])
def test_what_is_forged_here_would_be_obeyed_if_it_were_not(path: bytes, token: str) -> None:
    async def story() -> None:
        stage = Stage(OPEN)
        lines = [b"POST " + path + b" HTTP/1.1", b"Host: guard", SDP]
        lines += [b"Authorization: Bearer " + token.encode(), b"Content-Length: 3", b"", b"v=0"]
        assert await hear(stage.server, b"\r\n".join(lines)) in {200, 201}
        assert stage.accepted == 1

    run(story())
