"""What every camera that PyAV reads shares: read, decode, stamp, and only ever the newest picture.

A camera is never awaited. Its thread takes packets as they come, and a picture that nobody took in
time gives way to the next. Nothing here lasts: a connection that is silent, that ended or that
gives no pictures any more is closed, and `retry_after` says when to open the next.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from random import Random
from typing import cast

import av
from av.container import InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from hdguard.core.types import FrameRef
from hdguard.ingest.base import Frame, SourceError, SourceReport
from hdguard.ingest.decoder import Cleaner, Tally, in_thread, prepare
from hdguard.ingest.image import Region, VideoImage, View
from hdguard.ingest.live_clock import LiveClock
from hdguard.ingest.retry import Backoff

Now = Callable[[], float]
Opener = Callable[[Now], InputContainer]

_FIRST_PICTURE = 10.0
# Seconds from the first packet to a picture: a connection begins amid a group of pictures, and
# cameras are delivered with groups of up to some seconds. So long, too, until pictures keep pace.
_NO_PICTURE = 2.0
# Seconds of packets without a clean picture after which the connection is opened again: the
# decoder is for another codec by now, or has lost its way.
_MAX_ERRORS = 16  # of the container in a row, without a packet between them
_PATIENCE = 2.5
# Seconds to wait for the thread when we leave: above the limits of opening and reading. To look up
# a name has no limit, and the whole daemon has 3 s to stop (DESIGN 6).
_POLL = 0.005  # s between two looks at a device that has nothing yet
_MAX_WAITING = 64  # packets whose picture has not come; H.264 and HEVC reorder by up to 16
_UNPACED = (
    "its pictures come faster or slower than it says that it takes them, so nobody can tell how "
    "old they are; the network may be too slow for it"
)
# Codecs whose packets come whole. Of all others the container knows that a picture is complete
# only when the next one begins, which is when its packet comes out.
_WHOLE = frozenset({"mjpeg", "rawvideo", "vp8", "vp9"})


@dataclass(frozen=True, slots=True)
class Reading:
    """How one camera is read, whatever it speaks.

    Attributes:
        source_id: name that every ref carries, and every message.
        interval: declared seconds between frames, 0.0 if not known. It is declared and not read
            from the stream, because age limits follow it.
        opening: seconds within which the opener answers or fails.
        silence: seconds without a packet after which the connection is closed.
        ignore_regions: x0, y0, x1, y1 as fractions of the upright picture, painted black.
    """

    source_id: str
    interval: float
    opening: float
    silence: float
    ignore_regions: tuple[Region, ...]

    def check(self) -> None:
        """Raise a ValueError that names the setting which is wrong."""
        for region in self.ignore_regions:
            x0, y0, x1, y1 = region
            if not (0.0 <= x0 < x1 <= 1.0 and 0.0 <= y0 < y1 <= 1.0):
                msg = f"ignore_regions: {region} must be 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1"
                raise ValueError(msg)
        if not 0.0 <= self.interval <= 60.0:
            msg = f"interval: {self.interval} must be 0 to 60 s"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class _Picture:
    captured_at: float
    media_time: float
    image: VideoImage


class LiveStream:
    """A `FrameSource` over a container that is opened anew each time.

    Frames count on across connections. Closing waits for the thread: at most `silence` while frames
    flow, as long as opening may take before, and never more than 2.5 s; then it ends by itself.
    """

    def __init__(self, reading: Reading, opener: Opener, rng: Random | None = None) -> None:
        """`opener` is called in the thread; its errors may be PyAV's, its time must be bounded."""
        self._reading = reading
        self._opener = opener
        self._tally = Tally(reading.source_id)
        self._clock = LiveClock(reading.interval)
        self._backoff = Backoff(rng)
        self._dropped = 0

    @property
    def source_id(self) -> str:
        """The name of the settings."""
        return self._reading.source_id

    @property
    def interval(self) -> float:
        """The declared time between frames in seconds, 0.0 if not known."""
        return self._reading.interval

    @property
    def report(self) -> SourceReport:
        """What it saw since it was made; decoding may be a frame ahead of what was handed over."""
        return self._tally.report

    @property
    def dropped(self) -> int:
        """Frames that gave way to a newer one before anybody took them."""
        return self._dropped

    def retry_after(self) -> float:
        """Seconds until the camera may be tried again; it never ends for good."""
        return self._backoff.delay

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Clean frames, newest only, until the connection is lost: always with an error.

        Raises:
            SourceError: it cannot be opened, fell silent, ended, or gives no pictures.
        """
        loop = asyncio.get_running_loop()
        closing = threading.Event()
        pictures = in_thread(
            partial(self._pictures, loop.time, closing),
            name=f"decoder of {self.source_id}",
            closing=closing,
            superseded=self._superseded,
            patience=_PATIENCE,
        )
        try:
            async with aclosing(pictures):
                async for picture in pictures:
                    seq = self._tally.frames
                    self._tally.frames += 1
                    self._backoff.frame(loop.time())
                    at, media_time = picture.captured_at, picture.media_time
                    yield Frame(FrameRef(self.source_id, seq, at, media_time), picture.image)
        finally:
            self._backoff.ended()

    def _superseded(self) -> None:
        self._dropped += 1

    def _pictures(self, now: Now, closing: threading.Event) -> Generator[_Picture, None, None]:
        """One connection, from its opening to its end; runs in the thread."""
        self._clock.restart()
        container = self._open(now)
        try:
            stream = self._video(container)
            aspect = stream.sample_aspect_ratio or Fraction(1)
            view = View(self.source_id, aspect, self._reading.ignore_regions)
            base = stream.time_base or Fraction(1)
            patience = max(_FIRST_PICTURE, 2.5 * self._reading.interval)
            trusted = now()
            packets = self._packets(container, stream, now, closing)
            for frame, arrival in self._decoded(stream, packets, now, _lag(container, stream)):
                t = None if frame.pts is None else float(frame.pts * base)
                at = self._clock.captured(t, arrival)
                if self._clock.settled:
                    trusted = now()
                    yield _Picture(at, self._clock.media_time, VideoImage(frame, view))
                elif now() > trusted + patience:
                    raise SourceError(f"{self.source_id}: {_UNPACED}")
        finally:
            container.close()

    def _open(self, now: Now) -> InputContainer:
        # Neither the error's text nor its traceback may go on: both hold the URL.
        begun = now()
        try:
            return self._opener(now)
        except av.FFmpegError as error:
            why = f"cannot be opened: {error.strerror or type(error).__name__}"
        # An interrupted attempt fails in whatever step it was in, with that step's error.
        if now() - begun >= self._reading.opening:
            why = f"no answer in {self._reading.opening:g} s"
        raise SourceError(f"{self.source_id}: {why}")

    def _video(self, container: InputContainer) -> VideoStream:
        stream = container.streams.best("video")
        if not isinstance(stream, VideoStream):
            raise SourceError(f"{self.source_id}: sends no video")
        if cast("VideoCodecContext | None", stream.codec_context) is None:
            raise SourceError(
                f"{self.source_id}: there is no decoder for its video; set the camera to H.264"
            )
        prepare(stream.codec_context)
        return stream

    def _decoded(
        self,
        stream: VideoStream,
        packets: "Iterator[tuple[Packet[VideoStream], float]]",
        now: Now,
        lag: int,
    ) -> Iterator[tuple[av.VideoFrame, float]]:
        """Clean frames, each with the time at which its first bytes came."""
        cleaner = Cleaner(stream, self._tally)
        seen_until = now() + _FIRST_PICTURE
        patience = max(_NO_PICTURE, 2.5 * self._reading.interval)
        smeared, known = False, (0, 0)
        waiting: OrderedDict[int | None, tuple[float, int]] = OrderedDict()  # by their stamp
        # A packet comes out when the packet that is `lag` behind it begins to arrive.
        out: deque[float] = deque(maxlen=lag + 1)
        for packet, at in packets:
            out.append(at)
            waiting[packet.pts] = out[0], cleaner.fed + 1
            if len(waiting) > _MAX_WAITING:
                waiting.popitem(last=False)
            for frame in cleaner.frames(packet):
                arrival, fed = waiting.pop(frame.pts, (out[0], 0))
                # What was lost is smeared over all that is predicted from it, and none of that
                # is flagged. Only a key frame that followed the loss ends it.
                damage = cleaner.damage, cleaner.broken
                smeared = smeared or damage != known
                smeared = smeared and not (frame.key_frame and fed >= cleaner.broken)
                known = damage
                if smeared:
                    self._tally.left_out("frame after a damaged one, left out", cleaner.at)
                    continue
                seen_until = now() + patience
                yield frame, arrival
            if now() > seen_until:
                raise SourceError(f"{self.source_id}: sends data, but no picture comes of it")

    def _packets(
        self, container: InputContainer, stream: VideoStream, now: Now, closing: threading.Event
    ) -> "Iterator[tuple[Packet[VideoStream], float]]":
        """Packets and when each came out, until the connection is lost or is to be closed."""
        errors, asked = 0, now()
        while not closing.is_set():
            try:
                # All streams: reading on to the next picture would neither end nor be silent where
                # the sound goes on without one.
                for packet in container.demux():
                    if closing.is_set():
                        return
                    heard = now()
                    if heard - asked >= 0.9 * self._reading.silence:  # clocks have grains
                        # Not news: at its time limit the container lets go of what it held back.
                        raise SourceError(f"{self.source_id}: {self._silent()}")
                    if packet.stream_index == stream.index and packet.size:
                        errors = 0
                        yield cast("Packet[VideoStream]", packet), heard
                        asked = now()
                why = "the stream ended"
            except av.BlockingIOError:  # a device has nothing yet
                why = self._silent() if now() > asked + self._reading.silence else ""
                closing.wait(_POLL)
            except av.error.ExitError:
                why = self._silent()
            # IndexError: PyAV meets a stream that appeared after the container was opened.
            except (av.InvalidDataError, IndexError):
                errors += 1
                self._tally.trouble("error in the container, read on", 0.0)
                why = "sends data that is no video" if errors > _MAX_ERRORS else ""
            except av.FFmpegError as error:
                why = error.strerror or type(error).__name__
            if why:
                raise SourceError(f"{self.source_id}: {why}")

    def _silent(self) -> str:
        return f"silent for {self._reading.silence:g} s"


def _lag(container: InputContainer, stream: VideoStream) -> int:
    """How many packets behind the newest bytes the container is.

    Measured with libavformat 62: H.264 over RTSP 1, H.264 in MPEG-TS over TCP 2.
    """
    if stream.codec_context.name in _WHOLE:
        return 0
    return 2 if "mpegts" in container.format.name else 1
