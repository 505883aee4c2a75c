"""A network camera on loopback that breaks as it is told, and knows when it sent what.

It speaks enough RTSP for one video over TCP. Its pictures are taken at a steady pace whatever
becomes of them: silence loses them, a hold keeps them back and sends them late, all at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

import numpy as np

from hdguard.faults.rtp import FPS, GROUP, Film, Packets, covered_lens, damaged, quiet_room

Mode = Literal["sending", "silent", "holding", "damaging", "stuck"]


class _Client:
    """One connection; `playing` once it has asked for the video."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.packets = Packets()
        self.playing = False


class FaultyCamera:
    """An RTSP camera; see `faulty_camera`. All times are seconds on the loop's clock.

    Attributes:
        port: on which it listens, also after it has gone and come back.
        mode: what becomes of the pictures that it takes; set it.
        covered: True: its lens is; from the next key frame on.
        deaf: True: it accepts connections and answers nothing.
        taken: when each picture was taken that has been sent, in order.
        accepted: when each connection was accepted.
        closed: when each of them ended.
    """

    def __init__(self, film: Film, covered: Film) -> None:
        self.port = 0
        self.covered = False
        self.mode: Mode = "sending"
        self.deaf = False
        self.taken: list[float] = []
        self.accepted: list[float] = []
        self.closed: list[float] = []
        self._films = (film, covered)
        self._film = film
        self._loop = asyncio.get_running_loop()
        self._clients: set[_Client] = set()
        self._held: list[tuple[tuple[bytes, ...], int, float]] = []
        self._server: asyncio.Server | None = None
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"rtsp://127.0.0.1:{self.port}/video"

    async def come(self) -> None:
        """Listen, on the same port as before."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def go(self) -> None:
        """Break every connection and listen no more."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for client in self._clients:
            client.writer.transport.abort()
        while self._clients:
            await self.changed()

    async def mend(self) -> None:
        """Undo every fault; nothing of the past is sent to whoever connects from now on."""
        self.mode, self.covered, self.deaf = "sending", False, False
        self._held.clear()
        await self.go()
        await self.come()

    async def changed(self) -> None:
        """Wait until a connection begins or ends."""
        self._news.clear()
        await self._news.wait()

    async def film(self) -> None:
        """Take pictures until cancelled."""
        rng = np.random.default_rng(1)
        began = self._loop.time()
        index = 0
        while True:
            await asyncio.sleep(began + index / FPS - self._loop.time())
            now = self._loop.time()
            if index % GROUP == 0:
                self._film = self._films[self.covered]
            units = self._film.units(index)
            match self.mode:
                case "sending":
                    self._release()
                    self._send(units, index, now)
                case "holding":
                    self._held.append((units, index, now))
                case "damaging":
                    self._send(damaged(units, rng), index, now)
                case "stuck":
                    self._send(self._film.units(0), index, now)
                case "silent":
                    pass
            index += 1

    def _release(self) -> None:
        """Send what was held back; with nobody there it waits on."""
        if any(client.playing for client in self._clients):
            for units, index, taken in self._held:
                self._send(units, index, taken)
            self._held.clear()

    def _send(self, units: tuple[bytes, ...], index: int, taken: float) -> None:
        listeners = [client for client in self._clients if client.playing]
        for client in listeners:
            client.writer.write(client.packets.of(units, index, channel=0))
        if listeners:
            self.taken.append(taken)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(writer)
        self._clients.add(client)
        self.accepted.append(self._loop.time())
        self._news.set()
        # A guard that is killed, or gives up, ends it in any of these ways.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                await self._answer(client, reader)
        self._clients.discard(client)
        self.closed.append(self._loop.time())
        self._news.set()
        writer.close()

    async def _answer(self, client: _Client, reader: asyncio.StreamReader) -> None:
        first = await reader.readexactly(1)
        if first == b"$":  # the receiver's report of how it receives
            head = await reader.readexactly(3)
            await reader.readexactly(int.from_bytes(head[1:], "big"))
            return
        request = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        if self.deaf:
            return
        method = request[0].split(" ")[0]
        headers = dict(line.split(": ", 1) for line in request[1:] if ": " in line)
        lines, body = self._reply(method, headers)
        text = "\r\n".join(
            ["RTSP/1.0 200 OK", f"CSeq: {headers.get('CSeq', '0')}", *lines, "", body]
        )
        client.writer.write(text.encode())
        client.playing = client.playing or method == "PLAY"

    def _reply(self, method: str, headers: dict[str, str]) -> tuple[list[str], str]:
        match method:
            case "OPTIONS":
                return ["Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"], ""
            case "DESCRIBE":
                body = self._films[0].description()
                lines = [
                    "Content-Type: application/sdp",
                    f"Content-Base: {self.url}/",
                    f"Content-Length: {len(body)}",
                ]
                return lines, body
            case "SETUP":
                return [f"Transport: {headers.get('Transport', '')}", "Session: 1"], ""
            case _:
                return ["Session: 1"], ""


@asynccontextmanager
async def faulty_camera() -> AsyncIterator[FaultyCamera]:
    """A camera that listens and films, for as long as the block lasts."""
    camera = FaultyCamera(quiet_room(), covered_lens())
    await camera.come()
    async with asyncio.TaskGroup() as group:
        filming = group.create_task(camera.film(), name="camera")
        try:
            yield camera
        finally:
            filming.cancel()
            await camera.go()
