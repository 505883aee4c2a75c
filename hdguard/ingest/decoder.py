"""What every source that decodes with PyAV shares: its one thread, and packets into clean frames.

Decoding blocks, so it runs in a thread beside the event loop; no other file of `ingest` may start
one. Damage is normal for cameras and files: a packet that does not decode, or a frame that the
decoder flags, is left out and counted, and decoding goes on with the next packet.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import av
import av.logging
from av.container import InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from hdguard.ingest.base import SourceReport

T = TypeVar("T")

# PyAV's log callback takes the interpreter lock while a codec holds its own, which can deadlock
# with a noisy stream and several threads; errors reach us as exceptions and flags anyway.
av.logging.set_level(None)

# So many errors of the container in a row, without a packet between them, end the reading.
_MAX_READ_ERRORS = 16

# So many frames at the most lie between a packet and its picture (H.264 and HEVC: 16 references).
_MAX_REORDERED = 64


class Tally:
    """What a source saw so far: counted where it decodes, read where somebody asks.

    One thread writes and another may read: each update is one plain assignment.
    """

    def __init__(self, name: str) -> None:
        self.frames = 0
        self._name = name
        self._corrupt = 0
        self._repaired = 0
        self._kinds: dict[str, tuple[int, str]] = {}
        self._notes: list[str] = []

    def left_out(self, kind: str, at: float, why: str = "") -> None:
        """Count a frame or packet that was not used; `at` is seconds into the stream."""
        self._corrupt += 1
        self.trouble(kind, at, why)

    def repaired(self, kind: str, at: float) -> None:
        """Count a frame whose stamp was replaced."""
        self._repaired += 1
        self.trouble(kind, at)

    def trouble(self, kind: str, at: float, why: str = "") -> None:
        """Count a kind of trouble; `at` and `why` are kept from its first time only."""
        count, first = self._kinds.get(kind, (0, f"first at {at:.3f} s{why and f' ({why})'}"))
        self._kinds[kind] = (count + 1, first)

    def note(self, line: str, left_out: int = 0) -> None:
        """Add a line of its own, for what is known only at the end."""
        self._corrupt += left_out
        if line not in self._notes:  # a file in a loop says the same at each end
            self._notes.append(line)

    @property
    def report(self) -> SourceReport:
        """All of it as a value."""
        lines = [
            f"{self._name}: {count} x {kind}, {first}"
            for kind, (count, first) in list(self._kinds.items())
        ]
        notes = [f"{self._name}: {line}" for line in list(self._notes)]
        return SourceReport(self.frames, self._corrupt, self._repaired, (*lines, *notes))


def prepare(context: VideoCodecContext) -> None:
    """Set up a decoder that has not begun.

    One thread: least CPU per frame, and each frame as soon as it is complete; threads that take
    turns at whole frames would hold back one frame each. JPEG pictures that are cut short must be
    errors: by default the rest is made up in grey and nothing is flagged.
    """
    context.thread_count = 1
    context.thread_type = "SLICE"
    if context.name == "mjpeg":
        context.options = {"err_detect": "explode"}


class Cleaner:
    """Packets of one stream into frames, without those that did not decode cleanly.

    Attributes:
        damage: frames and packets left out.
        fed: packets given to the decoder.
        broken: which of them, counted from 1, was the last that is damaged or did not decode; 0 if
            none was. Frames come later than their packets: one whose packet was fed before this
            one says nothing about what is predicted from this one.
        at: seconds into the stream.
    """

    def __init__(self, stream: VideoStream, tally: Tally) -> None:
        self.damage = 0
        self.fed = 0
        self.broken = 0
        self.at = 0.0
        self._stream = stream
        self._tally = tally
        self._base, self._start = float(stream.time_base or 0), stream.start_time or 0
        self._pictures = self._failed = self._given = 0
        self._fields = False
        # Stamps: not every decoder passes the container's flag on.
        self._damaged: deque[int] = deque(maxlen=_MAX_REORDERED)

    def frames(
        self,
        packet: "Packet[VideoStream] | None",  # quoted: generic only for the type checker
    ) -> Iterator[av.VideoFrame]:
        """The clean frames that the decoder has once it was given this; None: those left in it."""
        if packet is not None:
            self.fed += 1
            self._pictures += not packet.is_discard
            if packet.dts is not None:
                self.at = (packet.dts - self._start) * self._base
            if packet.is_corrupt:
                self.broken = self.fed
                if packet.pts is not None:
                    self._damaged.append(packet.pts)
        try:
            decoded = self._stream.decode(packet)
        except av.FFmpegError:
            self._failed += 1
            self.broken = self.fed
            self._left_out("packet that does not decode, left out")
            return
        for frame in decoded:
            self._given += 1
            self._fields = self._fields or frame.interlaced_frame
            if frame.is_corrupt or frame.pts in self._damaged:
                self._left_out("frame flagged as corrupt, left out")
            else:
                yield frame

    def account(self) -> None:
        """At the end: tell what vanished.

        A decoder that lost its references (HEVC) drops pictures without a word. Two fields may
        share one picture, so interlaced streams cannot be counted this way.
        """
        silent = self._pictures - self._failed - self._given
        if silent > 0 and not self._fields:
            line = f"{silent} packets gave no picture, up to {self.at:.3f} s"
            self._tally.note(line, left_out=silent)

    def _left_out(self, kind: str) -> None:
        self.damage += 1
        self._tally.left_out(kind, self.at)


def clean_frames(
    container: InputContainer, stream: VideoStream, tally: Tally
) -> Iterator[av.VideoFrame]:
    """Every frame of the stream that decoded cleanly, in order of presentation.

    Frames keep their own stamps, in units of `stream.time_base`; a stamp may be missing.
    """
    cleaner = Cleaner(stream, tally)
    for packet in chain(_packets(container, stream, tally), (None,)):
        yield from cleaner.frames(packet)
    cleaner.account()


def _packets(
    container: InputContainer, stream: VideoStream, tally: Tally
) -> "Iterator[Packet[VideoStream]]":  # quoted: generic only for the type checker
    """The stream's packets, reading on after an error of the container."""
    errors = 0
    at = 0.0
    while errors < _MAX_READ_ERRORS:
        try:
            for packet in container.demux(stream):
                if packet.size:  # an empty one would put the decoder into its final flush
                    errors = 0
                    at = float((packet.dts or 0) * packet.time_base)
                    yield packet
        # IndexError: PyAV meets a stream that damage made appear after the container was opened.
        except (av.FFmpegError, IndexError):
            errors += 1
            tally.trouble("error in the container, read on", at)
        else:
            return


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class _Handover(Generic[T]):
    """A bounded queue from the thread to the loop, or a place for one where the newest wins."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ahead: int,
        closing: threading.Event,
        superseded: Callable[[], None] | None,
    ) -> None:
        self.ended = asyncio.Event()
        self._loop = loop
        self._space = threading.Semaphore(ahead)
        self._items: deque[T | _End] = deque()
        self._ready = asyncio.Event()
        self._closing = closing
        self._superseded = superseded

    def fill(self, make: Callable[[], Generator[T, None, None]]) -> None:
        """The thread's whole life: make the generator, hand over what it gives, close it."""
        try:
            with contextlib.closing(make()) as items:
                for item in items:
                    if self._superseded is None:
                        self._space.acquire()
                    else:
                        self._make_room(self._superseded)
                    if self._closing.is_set():
                        break
                    self._items.append(item)
                    self._tell(self._ready)
        except BaseException as error:  # noqa: BLE001 - take() raises it, in the consumer's task
            self._items.append(_End(error))
        else:
            self._items.append(_End(None))
        self._tell(self._ready)
        self._tell(self.ended)

    def _make_room(self, superseded: Callable[[], None]) -> None:
        with contextlib.suppress(IndexError):  # the reader took it in this very moment
            self._items.pop()
            superseded()

    def _tell(self, event: asyncio.Event) -> None:
        # A loop that was closed before the iterator was has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(event.set)

    async def take(self) -> T | _End:
        """The next item; the thread's exception as it is."""
        while not self._items:
            self._ready.clear()
            await self._ready.wait()
        item = self._items.popleft()
        self._space.release()
        if isinstance(item, _End) and item.error is not None:
            raise item.error
        return item

    def stop(self) -> None:
        """Tell the thread to end after the item that it is making."""
        self._closing.set()
        self._space.release()


async def in_thread(
    make: Callable[[], Generator[T, None, None]],
    *,
    name: str,
    ahead: int = 4,
    closing: threading.Event | None = None,
    superseded: Callable[[], None] | None = None,
    patience: float | None = None,
) -> AsyncGenerator[T, None]:
    """Iterate a blocking generator in a thread of its own, at most `ahead` items ahead.

    `make` is called, iterated and closed in the thread. Closing this iterator, or cancelling the
    task that waits for it, stops the thread after the item that it is making and joins it without
    blocking the loop; so the generator must not block for ever (set timeouts). Only a second
    cancellation meanwhile, or the end of `patience`, leaves the thread to end by itself.

    Args:
        make: makes the generator.
        name: the thread's.
        ahead: how far it may be ahead.
        closing: set when the thread is to stop, for a generator that may work long without an item.
        superseded: if given, the thread never waits for the reader: an item that was not taken
            when the next is made is dropped, and this is called, in the thread.
        patience: seconds to wait for the thread when it is closed; None: as long as it takes.

    Raises:
        whatever the generator raises, as it is.
    """
    loop = asyncio.get_running_loop()
    handover: _Handover[T] = _Handover(loop, ahead, closing or threading.Event(), superseded)
    thread = threading.Thread(  # noqa: TID251 - this is the file for it
        target=handover.fill, args=(make,), name=name, daemon=True
    )
    thread.start()
    try:
        while not isinstance(item := await handover.take(), _End):
            yield item
    finally:
        handover.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await handover.ended.wait()
                thread.join()
