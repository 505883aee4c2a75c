"""One WebRTC connection that receives one video track and keeps only its newest picture.

A track that nobody reads fills the memory, and one that is read slowly falls further and further
behind (aiortc hands over through a queue without an end). So a task of the connection's own takes
every picture as soon as it is decoded, and whoever asks gets the newest. Whether the other side is
still there is told by its pictures alone: ICE notices a lost peer after half a minute.

A key frame is asked for by aiortc itself: after a picture that does not decode and after a gap that
no retransmission filled. It has no public call for it; where that one request is lost too, nothing
but smeared pictures would come, so they count as none and the connection ends as a silent one does.
So does one whose pictures are all late, because only a new connection has an empty buffer.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import av

from hdguard.core.types import FrameRef
from hdguard.ingest.base import Frame, SourceError
from hdguard.ingest.decoder import Tally
from hdguard.ingest.image import Region, VideoImage, View
from hdguard.ingest.live_clock import LiveClock
from hdguard.ingest.webrtc_inlet import Inlet
from hdguard.ingest.webrtc_jitter import Delay, LossWatch
from hdguard.ingest.webrtc_sdp import BadDescription, check

if TYPE_CHECKING:
    from aiortc import MediaStreamTrack, RTCRtpTransceiver

LATE = 1.0
"""Seconds: nothing older is shown to a brain (DESIGN 3, frame age), or than 2.5 intervals."""

_PROMPT = 0.3  # s of delay; a connection that is later for good is better made anew
_CLOSE_TIMEOUT = 1.0  # s; aiortc's close waits for its sockets and its decoder


class PeerGone(Exception):  # noqa: N818 - it is news, and the source makes the error of it
    """No more pictures come over this connection; says why."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for pictures and how large they may be.

    Attributes:
        connect: seconds from the descriptions' exchange to the first picture.
        silent: seconds without a clean and prompt picture after which a connection is over.
        late: seconds of delay beyond which a picture is left out.
        max_pixels: width times height; a larger picture ends the connection.
    """

    connect: float
    silent: float
    late: float
    max_pixels: int


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture, the loop's time at which the scene looked so, and the source's media time."""

    image: VideoImage
    captured_at: float
    media_time: float


class Watched:
    """What one source keeps over all its connections: numbers and times that go on rising.

    Attributes:
        dropped: pictures that gave way to a newer one before anybody took them.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.tally = Tally(view.name)
        self.clock = LiveClock()
        self.dropped = 0
        self._seq = 0

    def frame(self, shot: Shot) -> Frame:
        """The next frame."""
        ref = FrameRef(self.view.name, self._seq, shot.captured_at, shot.media_time)
        self._seq += 1
        self.tally.frames += 1
        return Frame(ref, shot.image)


def require_aiortc(name: str) -> None:
    """Check that WebRTC is installed.

    Raises:
        SourceError: it is not; says what to install.
    """
    try:
        import aiortc  # noqa: F401, PLC0415 - an optional part, slow to import
    except ImportError as error:
        msg = f"{name}: WebRTC needs more packages: pip install 'hdguard[webrtc]' ({error})"
        raise SourceError(msg) from error


class Receiver:
    """Takes part as the one that receives; made and used inside the running loop."""

    def __init__(self, watched: Watched, patience: Patience) -> None:
        from aiortc import RTCConfiguration, RTCPeerConnection  # noqa: PLC0415 - optional

        self._watched = watched
        self._patience = patience
        # By default aiortc asks a public STUN server for our address; nothing here leaves the site.
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._loss, self._delay = LossWatch(), Delay()
        self._pictured = False
        self._due = asyncio.get_running_loop().time() + patience.connect
        self._newest: Shot | None = None
        self._news = asyncio.Event()
        self._over = ""
        self._inlet: Inlet | None = None
        self._drainer: asyncio.Task[None] | None = None

    async def answer(self, offer: str) -> str:
        """Take an offer and begin to receive; the answer's text.

        Raises:
            BadDescription: it is no offer of one video track that can be decoded here.
        """
        from aiortc import RTCSessionDescription  # noqa: PLC0415 - optional

        check(offer, "offer")
        try:
            await self._peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
            for transceiver in self._peer.getTransceivers():
                if transceiver.kind == "audio":
                    transceiver.direction = "inactive"  # asks the other side not to send it
                else:
                    self._limit(transceiver)
            await self._peer.setLocalDescription(await self._peer.createAnswer())
        except Exception as error:  # its reader asserts, looks up and unpacks what strangers sent
            msg = f"the offer cannot be used ({type(error).__name__})"
            raise BadDescription(msg) from error
        return self._receive()

    async def offer(self) -> str:
        """Ask to be sent one video track; the offer's text."""
        self._limit(self._peer.addTransceiver("video", direction="recvonly"))
        await self._peer.setLocalDescription(await self._peer.createOffer())
        return str(self._peer.localDescription.sdp)

    async def accept(self, answer: str) -> None:
        """Take the answer to our offer and begin to receive.

        Raises:
            BadDescription: it is no answer to it.
        """
        from aiortc import RTCSessionDescription  # noqa: PLC0415 - optional

        check(answer, "answer")
        try:
            await self._peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        except Exception as error:  # as above
            msg = f"the answer cannot be used ({type(error).__name__})"
            raise BadDescription(msg) from error
        self._receive()

    def fresh(self, within: float) -> bool:
        """Whether a picture came in the last `within` seconds, or the first is not yet overdue."""
        if self._over:
            return False
        now = asyncio.get_running_loop().time()
        if not self._pictured:
            return now <= self._due
        return now <= self._due - self._patience.silent + within

    async def next(self) -> Shot:
        """The newest picture that nobody had yet.

        Raises:
            PeerGone: the connection is over.
        """
        while (shot := self._newest) is None:
            if self._over:
                raise PeerGone(self._over)
            self._news.clear()
            try:
                async with asyncio.timeout_at(self._due):
                    await self._news.wait()
            except TimeoutError:
                self._end("no clean picture came in time")
            if self._drainer is not None and self._drainer.done():
                self._drainer.result()  # a defect of this file is not to be swallowed
        self._newest = None
        return shot

    async def close(self, reason: str = "closed") -> None:
        """End the connection; `reason` is what whoever waits for a picture is told.

        One that does not let itself be closed is reported and left: an error here would take the
        place of whatever made the source close it. The loop goes on while a picture is decoded.
        """
        self._end(reason)
        # A task of its own: a close that was broken off half-way leaves sockets and a thread.
        closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.wait([closing], timeout=_CLOSE_TIMEOUT)
        error = closing.exception() if closing.done() else TimeoutError()
        if self._drainer is not None:
            self._drainer.cancel()
            await asyncio.wait([self._drainer])
        if error is not None:
            tally, clock = self._watched.tally, self._watched.clock
            tally.trouble("connection that does not close", clock.media_time, repr(error))

    async def _close(self) -> None:
        await self._peer.close()
        if self._drainer is not None and self._inlet is not None and self._inlet.ending:
            await asyncio.wait([self._drainer])  # its track ends with the decoder thread

    def _limit(self, transceiver: "RTCRtpTransceiver") -> None:
        self._inlet = Inlet(transceiver.receiver, self._patience.max_pixels, self._end)

    def _receive(self) -> str:
        loop = asyncio.get_running_loop()
        self._watched.clock.restart()
        self._due = loop.time() + self._patience.connect
        tracks = [t.receiver.track for t in self._peer.getTransceivers() if t.kind == "video"]
        name = f"drain {self._watched.view.name}"
        self._drainer = loop.create_task(self._drain(tracks[0]), name=name)
        return str(self._peer.localDescription.sdp)

    async def _drain(self, track: "MediaStreamTrack") -> None:
        from aiortc.mediastreams import MediaStreamError  # noqa: PLC0415 - optional

        loop = asyncio.get_running_loop()
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                if not isinstance(frame, av.VideoFrame):
                    continue
                if frame.width * frame.height > self._patience.max_pixels:
                    self._end(f"sends pictures of {frame.width}x{frame.height} pixels, too large")
                if not self._over:
                    self._take(frame, loop.time())
        self._end("the other side ended the stream")

    def _take(self, frame: av.VideoFrame, arrival: float) -> None:
        watched = self._watched
        clock, tally = watched.clock, watched.tally
        at = float((frame.pts or 0) * (frame.time_base or 0))
        delay = self._delay.of(at, arrival)
        captured = min(clock.captured(at, arrival), arrival - delay)
        if not self._loss.whole(at, arrival, frame.key_frame):
            tally.left_out("frame after lost ones, left out", clock.media_time)
        elif frame.is_corrupt:
            tally.left_out("frame flagged as corrupt, left out", clock.media_time)
        elif delay > self._patience.late:
            tally.left_out("frame too old when it came, left out", clock.media_time)
        elif clock.settled:
            watched.dropped += self._newest is not None
            self._newest = Shot(VideoImage(frame, watched.view), captured, clock.media_time)
            self._pictured = True
            self._news.set()
            if delay <= _PROMPT:
                self._due = arrival + self._patience.silent

    def _end(self, reason: str) -> None:
        self._over = self._over or reason
        self._news.set()


def check_settings(
    regions: tuple[Region, ...], interval: float, silent_after: float, max_pixels: int
) -> None:
    """Check what both directions' settings have in common.

    Raises:
        ValueError: names the setting.
    """
    for region in regions:
        x0, y0, x1, y1 = region
        if not (0.0 <= x0 < x1 <= 1.0 and 0.0 <= y0 < y1 <= 1.0):
            msg = f"ignore_regions: {region} must be 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1"
            raise ValueError(msg)
    if not 0.0 <= interval <= 60.0:
        msg = f"interval: {interval} must be 0 to 60"
        raise ValueError(msg)
    if not 0.1 <= silent_after <= 60.0:
        msg = f"silent_after: {silent_after} must be 0.1 to 60"
        raise ValueError(msg)
    if max_pixels < 1:
        msg = f"max_pixels: {max_pixels} must be at least 1"
        raise ValueError(msg)
