"""A camera to measure with: 720p30 as MPEG-TS over TCP, in its own pace and its own process.

What it costs to send is not ours, so the sender is a process of its own; run as a program it is
that process.
"""

import asyncio
import io
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.video.stream import VideoStream

FPS = 30
BITS_A_SECOND = 4_000_000  # a stated choice; cameras of this size are sold with 2 to 8


@contextmanager
def camera_stream(folder: Path, seconds: int) -> Iterator[str]:
    """Serves every client those seconds of video, then closes; gives the URL."""
    file = folder / "stream"
    file.write_bytes(pickle.dumps(_chunks(seconds)))
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.camera_stream", str(file)],
        cwd=Path(__file__).resolve().parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"tcp://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class _Collector(io.RawIOBase):
    def __init__(self) -> None:
        self.got = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self.got += piece
        return len(piece)


def _chunks(seconds: int) -> list[bytes]:
    """The bytes of each frame: a textured room that drifts, with the noise of a sensor."""
    chance = np.random.default_rng(1)
    room = chance.integers(40, 200, (90, 160, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    noise = chance.integers(0, 12, (4, *room.shape), np.uint8)
    out, chunks = _Collector(), []
    with av.open(out, "w", format="mpegts", options={"flush_packets": "1"}) as container:
        options = {"preset": "veryfast", "tune": "zerolatency", "g": str(FPS)}
        stream = container.add_stream("libx264", rate=FPS, options=options)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        stream.bit_rate = BITS_A_SECOND
        for n in range(seconds * FPS):
            rgb = np.roll(room, n, axis=1) + noise[n % len(noise)]
            frame = av.VideoFrame.from_ndarray(rgb)
            frame.pts, frame.time_base = n, Fraction(1, FPS)
            container.mux(stream.encode(frame))
            chunks.append(bytes(out.got))
            out.got.clear()
    return chunks


async def _serve(chunks: list[bytes]) -> None:
    loop = asyncio.get_running_loop()

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = loop.time()
        try:
            for n, chunk in enumerate(chunks):
                await asyncio.sleep(max(0.0, start + n / FPS - loop.time()))
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            return  # who measures has seen enough
        finally:
            writer.close()

    server = await asyncio.start_server(play, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(pickle.loads(Path(sys.argv[1]).read_bytes())))
