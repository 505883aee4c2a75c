"""Both ends of a WebRTC connection: a camera that sends coloured pictures, and who watches it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from fractions import Fraction
from typing import Any

import av
import ifaddr
import numpy as np
import pytest
import uvloop
from aiortc import (
    AudioStreamTrack,
    MediaStreamTrack,
    RTCConfiguration,
    RTCPeerConnection,
    RTCSessionDescription,
)

from hdguard.ingest.base import Frame, SourceError
from hdguard.ingest.webrtc import WhipSettings, WhipSource

CLOCK = 90_000

needs_network = pytest.mark.skipif(
    not any(
        isinstance(ip.ip, str) and not ip.ip.startswith("127.")
        for adapter in ifaddr.get_adapters()
        for ip in adapter.ips
    ),
    reason="ICE uses no loopback address, and this machine has no other",
)


def coloured(colour: tuple[int, int, int], width: int = 64, height: int = 48) -> av.VideoFrame:
    picture = np.full((height, width, 3), colour, np.uint8)
    return av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")


class Camera(MediaStreamTrack):
    """Hands out one picture after the other at its rate, for ever."""

    kind = "video"

    def __init__(self, colour: tuple[int, int, int] = (200, 40, 40), fps: int = 30) -> None:
        super().__init__()
        self.sent = 0
        self.size = (64, 48)
        self._colour = colour
        self._fps = fps
        self._start: float | None = None
        self._later = 0, colour
        self._news = asyncio.Event()

    def change_at(self, number: int, colour: tuple[int, int, int]) -> None:
        """Show another colour from that picture on."""
        self._later = number, colour

    async def reached(self, count: int) -> None:
        """Wait until so many pictures were handed out."""
        while self.sent < count:
            self._news.clear()
            await self._news.wait()

    async def recv(self) -> av.VideoFrame:
        now = asyncio.get_running_loop().time()
        self._start = now if self._start is None else self._start
        await asyncio.sleep(max(0.0, self._start + self.sent / self._fps - now))
        first, later = self._later
        frame = coloured(later if self.sent >= first else self._colour, *self.size)
        frame.pts, frame.time_base = self.sent * CLOCK // self._fps, Fraction(1, CLOCK)
        self.sent += 1
        self._news.set()
        return frame


class Publisher:
    """A robot's half: offers its camera, and can fall off the network."""

    def __init__(self, camera: Camera, *, sound: bool = False) -> None:
        self.camera = camera
        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.peer.addTransceiver(camera, direction="sendonly")
        if sound:
            self.peer.addTransceiver(AudioStreamTrack(), direction="sendonly")

    async def offer(self) -> str:
        await self.peer.setLocalDescription(await self.peer.createOffer())
        return str(self.peer.localDescription.sdp)

    async def accept(self, answer: str) -> None:
        await self.peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    def vanish(self) -> None:
        """Send not one datagram more, not even a farewell."""
        ice = self.peer.getTransceivers()[0].sender.transport.transport
        for protocol in ice._connection._protocols:
            vars(protocol).update(send_data=_nowhere, send_stun=lambda *_: None)

    def lose(self, lost: Callable[[int, bool], bool]) -> None:
        """Lose those media packets of which that is true: its number from 0, and is it a repeat."""
        sender = self.peer.getTransceivers()[0].sender
        transport = sender.transport
        send, count = transport._send_rtp, -1

        async def send_some(data: bytes) -> None:
            nonlocal count
            if not 64 <= data[1] & 0x7F <= 95:  # those are reports, RFC 5761
                repeat = int.from_bytes(data[8:12], "big") != sender._ssrc
                count += not repeat
                if lost(count, repeat):
                    return
            await send(data)

        transport._send_rtp = send_some  # type: ignore[method-assign]


async def _nowhere(*_: object) -> None:
    pass


@asynccontextmanager
async def publishing(
    take: Callable[[str], Awaitable[str]], publisher: Publisher
) -> AsyncIterator[Publisher]:
    """Publish by handing the offer to `take`, which gives the answer's text."""
    try:
        await publisher.accept(await take(await publisher.offer()))
        yield publisher
    finally:
        await publisher.peer.close()


def on_uvloop(story: Coroutine[Any, Any, None], within: float = 20.0) -> None:
    """As the daemon runs; `within` is in seconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(story, within))


class Watch:
    """Reads a source in a task, as the pipeline does, until it ends."""

    def __init__(self, source: WhipSource) -> None:
        self.source = source
        self.frames: list[Frame] = []
        self.arrivals: list[float] = []
        self.error: SourceError | None = None
        self.stalled = asyncio.Event()  # cleared: the reader stops where it is
        self.stalled.set()
        self._news = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with aclosing(self.source.frames()) as frames:
                async for frame in frames:
                    self.frames.append(frame)
                    self.arrivals.append(loop.time())
                    self._news.set()
                    await self.stalled.wait()
        except SourceError as error:
            self.error = error
        self._news.set()

    async def more(self, count: int) -> list[Frame]:
        """So many frames from now on."""
        have = len(self.frames)
        while len(self.frames) < have + count and self.error is None:
            self._news.clear()
            await self._news.wait()
        return self.frames[have:]

    def give_up(self, why: str) -> None:
        """Let whoever waits know that there is nothing to wait for."""
        self.error = SourceError(why)
        self._news.set()

    async def over(self) -> SourceError:
        while self.error is None:
            self._news.clear()
            await self._news.wait()
        return self.error


@asynccontextmanager
async def watched(settings: WhipSettings) -> AsyncIterator[Watch]:
    watch = Watch(WhipSource(settings))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch.run())
        await asyncio.sleep(0)  # it is reading now
        try:
            yield watch
        finally:
            task.cancel()


async def answer(source: WhipSource, offer: str) -> str:
    return (await source.offer(offer)).sdp
