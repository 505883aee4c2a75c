"""A TCP server that sends MPEG-TS as a test wants it: in time, too late, damaged, or not at all."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from fractions import Fraction

import av
import numpy as np
from av.video.stream import VideoStream

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, Rgb

Play = Callable[["Sender"], Awaitable[None]]

DARKEST, STEP = 18, 5


class Collector(io.RawIOBase):
    """Keeps what a container writes."""

    def __init__(self) -> None:
        self.got = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        self.got += bytes(data)  # type: ignore[call-overload]
        return len(bytes(data))  # type: ignore[call-overload]


def numbered(index: int) -> Rgb:
    """A grey picture that tells its number; see `number_of`."""
    return np.full((48, 64, 3), DARKEST + STEP * index, np.uint8)


def number_of(frame: Frame) -> int:
    return round((float(frame.image.rgb(ImageSpec(16)).mean()) - DARKEST) / STEP)


def ts_chunks(
    pictures: Sequence[Rgb], fps: int = 20, codec: str = "libx264", group: int = 1
) -> list[bytes]:
    """The bytes of one MPEG-TS with these pictures, one piece each; `group`: from key to key."""
    out, chunks = Collector(), []
    with av.open(out, "w", format="mpegts", options={"flush_packets": "1"}) as container:
        options = {"preset": "ultrafast", "tune": "zerolatency", "crf": "4", "g": str(group)}
        stream = container.add_stream(
            codec, rate=fps, options=options if codec == "libx264" else {}
        )
        assert isinstance(stream, VideoStream)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for index, rgb in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(rgb)
            frame.pts, frame.time_base = index, Fraction(1, fps)
            container.mux(stream.encode(frame))
            chunks.append(out.got)
            out.got = b""
    return chunks


class Sender:
    """One connection's sending side, and when each piece went out, on the loop's clock."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.sent: list[float] = []
        self._writer = writer
        self._loop = asyncio.get_running_loop()

    async def burst(self, chunks: Sequence[bytes]) -> None:
        for chunk in chunks:
            self.sent.append(self._loop.time())
            self._writer.write(chunk)
        await self._writer.drain()

    async def paced(self, chunks: Sequence[bytes], fps: int = 20) -> None:
        """Each piece at its time, as a camera sends them."""
        start = self._loop.time()
        for index, chunk in enumerate(chunks):
            await asyncio.sleep(max(0.0, start + index / fps - self._loop.time()))
            await self.burst([chunk])


@asynccontextmanager
async def ts_server(play: Play) -> AsyncIterator[str]:
    """Serves every client with `play`; gives the URL. What is still playing is cancelled."""
    playing: set[asyncio.Task[None]] = set()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        playing.add(task)
        try:
            with contextlib.suppress(ConnectionError):
                await play(Sender(writer))
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            playing.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(playing):
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)


async def for_ever(_: object = None) -> None:
    """Send nothing and keep the connection."""
    await asyncio.Event().wait()
