"""Pictures that came damaged, or no longer at all, where the stream itself goes on."""

import asyncio
import io
from collections.abc import Iterator
from contextlib import aclosing
from fractions import Fraction
from random import Random
from typing import cast

import av
import numpy as np
import pytest
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from hdguard.core.types import ImageSpec
from hdguard.ingest.live_stream import LiveStream, Now, Reading
from hdguard.ingest.rtsp import RtspSettings, RtspSource
from tests.ingest.live import decoder_threads, run, watch_to_the_end
from tests.ingest.media import _moving
from tests.ingest.ts_server import Collector, Sender, numbered, ts_server

FPS, GROUP, PICTURES = 100, 25, 125
BROKEN_GROUP = 3  # behind the half second after which pictures are believed


def clip_with_b_frames() -> bytes:
    out = io.BytesIO()
    options = {"bf": "2", "g": str(GROUP), "sc_threshold": "0", "preset": "veryfast"}
    options["x264-params"] = "b-adapt=0:open-gop=0"
    with av.open(out, "w", format="matroska") as container:
        stream = container.add_stream("libx264", rate=FPS, options=options)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        for n in range(PICTURES):
            frame = av.VideoFrame.from_ndarray(_moving(n, (160, 120)))
            frame.pts, frame.time_base = n, Fraction(1, FPS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()


class Damaged:
    """A camera whose packet number `behind` after a key frame is rubbish."""

    def __init__(self, clip: bytes, behind: int, now: Now) -> None:
        self._container = av.open(io.BytesIO(clip), "r")
        self.streams, self.format = self._container.streams, self._container.format
        self._packets = [p for p in self._container.demux(video=0) if p.size]
        keys = [n for n, packet in enumerate(self._packets) if packet.is_keyframe]
        self._broken = keys[BROKEN_GROUP] + behind
        self._now, self._begun, self._given = now, now(), 0

    def demux(self) -> "Iterator[Packet[VideoStream]]":
        while self._given < len(self._packets):
            if self._now() < self._begun + self._given / FPS:
                raise av.BlockingIOError(11, "Resource temporarily unavailable")
            packet = self._packets[self._given]
            if self._given == self._broken:
                packet.update(bytes([0, 0, 0, 40]) + Random(1).randbytes(packet.size - 4))
            self._given += 1
            yield packet

    def close(self) -> None:
        self._container.close()


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_what_is_lost_right_behind_a_key_frame_is_not_forgotten_with_it(behind: int) -> None:
    clip = clip_with_b_frames()
    with av.open(io.BytesIO(clip), "r") as container:
        clean = [f.to_ndarray(format="rgb24").astype(int) for f in container.decode(video=0)]

    def opened(now: Now) -> InputContainer:
        return cast("InputContainer", Damaged(clip, behind, now))

    source = LiveStream(Reading("desk", 0.0, 2.0, 1.0, ()), opened)
    got, why = run(watch_to_the_end(source))
    assert why == "desk: the stream ended"
    shown = []
    for frame, _ in got:
        rgb = frame.image.rgb(ImageSpec(160)).astype(int)
        apart = [np.abs(picture - rgb).mean() for picture in clean]
        shown.append(int(np.argmin(apart)))
        assert min(apart) < 1.0
    again = (BROKEN_GROUP + 1) * GROUP
    assert [n for n in shown if again - GROUP + 3 < n < again] == []
    assert sum(n < again for n in shown) >= 5
    assert sum(n >= again for n in shown) >= 8  # and the next key frame ends it


def with_sound(pictures: int, seconds: float) -> list[bytes]:
    """MPEG-TS in pieces of 50 ms, whose pictures end before its sound."""
    chunks: list[bytes] = []
    out = Collector()
    options = {"flush_packets": "1", "max_interleave_delta": "1"}
    with av.open(out, "w", format="mpegts", options=options) as container:
        video = container.add_stream("libx264", rate=20, options={"tune": "zerolatency", "g": "1"})
        sound = container.add_stream("mp2", rate=48_000, layout="mono")
        assert isinstance(video, VideoStream)
        assert isinstance(sound, AudioStream)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        for n in range(round(20 * seconds)):
            if n < pictures:
                frame = av.VideoFrame.from_ndarray(numbered(n))
                frame.pts, frame.time_base = n, Fraction(1, 20)
                container.mux(video.encode(frame))
            noise = np.full((1, 2400), 100 * (n % 9), np.int16)
            heard = av.AudioFrame.from_ndarray(noise, "s16", "mono")
            heard.sample_rate, heard.pts = 48_000, 2400 * n
            container.mux(sound.encode(heard))
            chunks.append(out.got)
            out.got = b""
    return chunks


def test_a_camera_whose_sound_goes_on_without_pictures_is_silent_all_the_same() -> None:
    chunks = with_sound(30, 5.0)
    senders: list[Sender] = []

    async def play(sender: Sender) -> None:
        senders.append(sender)
        await sender.paced(chunks)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with ts_server(play) as url:
            got, why = await watch_to_the_end(RtspSource(RtspSettings(url, "desk")))
            lost = loop.time()
        assert len(got) >= 5
        assert why == "desk: silent for 1 s"
        assert 0.9 <= lost - senders[0].sent[29] < 1.0 + 0.3
        assert decoder_threads() == []

    run(main())


def test_one_can_leave_a_camera_whose_sound_goes_on_at_once() -> None:
    chunks = with_sound(30, 6.0)
    without_pictures = asyncio.Event()

    async def play(sender: Sender) -> None:
        await sender.paced(chunks[:34])
        without_pictures.set()
        await sender.paced(chunks[34:])

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with ts_server(play) as url:
            source = RtspSource(RtspSettings(url, "desk", read_timeout=5.0))
            async with aclosing(source.frames()) as frames:
                await anext(frames)
                await without_pictures.wait()
                left = loop.time()
            assert loop.time() - left < 0.3
            assert decoder_threads() == []

    run(main())
