"""People who look at the status page, as a process: `python -m benchmarks.page_clients PORT`.

40 follow its events as a browser does, 10 take a few bytes a second of theirs, all 50 together ask
for as many pictures as `page.js` allows itself, and a scraper asks for the metrics. They look until
the process is ended; every second it says on a line how many events, pictures and scrapes there
were so far.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

EVENTS = "/api/v1/events"
READERS, SLOW = 40, 10
BYTES, EVERY = 256, 0.5
"""What a slow reader takes, and seconds between: far less than it is sent."""

PICTURES_EVERY = 0.05
"""Seconds: `page.js` asks for 20 a second of all cameras and viewers."""

SCRAPES_EVERY = 1.0
"""Seconds; a choice, 15 times as often as Prometheus does by itself."""


class Clients:
    """All of them, with what they have got.

    Args:
        port: of the page, on loopback.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.get_running_loop()
        self.events = self.pictures = self.scrapes = 0

    async def look(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(self._follow(), name="reader")
            for _ in range(SLOW):
                group.create_task(self._dawdle(), name="slow reader")
            group.create_task(self._pictures(group), name="pictures")
            group.create_task(self._scrapes(), name="scraper")
            group.create_task(self._tell(), name="tells")

    async def _answer(self, path: str, most: int = 1 << 16) -> AsyncIterator[bytes]:
        """The pieces of an answer, at most so long; one that the server breaks off is over."""
        with suppress(ConnectionError), socket.socket() as sock:
            sock.setblocking(False)
            if most == BYTES:  # the kernel is not to read in its place
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await self._loop.sock_connect(sock, ("127.0.0.1", self._port))
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            await self._loop.sock_sendall(sock, head.encode())
            while data := await self._loop.sock_recv(sock, most):
                yield data

    async def _read(self, path: str) -> bytes:
        return b"".join([data async for data in self._answer(path)])

    async def _follow(self) -> None:
        while True:  # an answer ends by itself, in time
            async for data in self._answer(EVENTS):
                self.events += data.count(b"data: ")

    async def _dawdle(self) -> None:
        while True:
            async for _ in self._answer(EVENTS, BYTES):
                await asyncio.sleep(EVERY)

    async def _pictures(self, group: asyncio.TaskGroup) -> None:
        while True:
            group.create_task(self._picture(), name="picture")
            await asyncio.sleep(PICTURES_EVERY)

    async def _picture(self) -> None:
        answer = await self._read("/api/v1/cameras/camera/picture")
        self.pictures += answer.startswith(b"HTTP/1.1 200")

    async def _scrapes(self) -> None:
        while True:
            answer = await self._read("/metrics")
            self.scrapes += answer.startswith(b"HTTP/1.1 200")
            await asyncio.sleep(SCRAPES_EVERY)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            sys.stdout.write(f"{self.events} {self.pictures} {self.scrapes}\n")
            sys.stdout.flush()


async def _main(port: int) -> None:
    await Clients(port).look()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
