"""A video file or a folder of images, played at its own pace.

Presentation time is the clock. A frame's `captured_at` is fixed by its stamp the moment the first
frame is handed over; slow decoding or a slow reader makes later frames late, never newer, exactly
as a camera would. The same code serves both paces: in real time a thread decodes a few frames
ahead, in virtual time decoding happens in between and costs nothing.
"""

import asyncio
import re
import struct
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, cast

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from hdguard.core.types import FrameRef
from hdguard.ingest.base import Frame, SourceError, SourceReport
from hdguard.ingest.decoder import Tally, clean_frames, in_thread, prepare
from hdguard.ingest.image import IMAGE_SUFFIXES, Region, VideoImage, View, decode_still
from hdguard.ingest.stamps import MediaTimes

_Item = tuple[av.VideoFrame, View]

_RETRY_LOOP = 5.0  # s; the longest pause that a camera is given
_UNKNOWN_INTERVAL = 0.04  # s; across the seam of a loop, for files that declare no rate


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What to play and how.

    Attributes:
        path: a video that PyAV reads, or a folder of images (jpg, png, webp, bmp), which are
            shown in natural order ("2.jpg" before "10.jpg").
        source_id: name that every ref carries; empty: the file's name.
        ignore_regions: x0, y0, x1, y1 as fractions of the upright picture, painted black.
        image_fps: images a second of a folder.
        decode: "thread" for real time; "inline" for virtual time, which has no threads.
        loop: begin again at the end, for ever, as a camera would go on: for tests and demos.
    """

    path: str
    source_id: str = ""
    ignore_regions: tuple[Region, ...] = ()
    image_fps: float = 10.0
    decode: Literal["thread", "inline"] = "thread"
    loop: bool = False

    def __post_init__(self) -> None:
        if not self.path:
            msg = "path: must name a video file or a folder of images"
            raise ValueError(msg)
        for region in self.ignore_regions:
            x0, y0, x1, y1 = region
            if not (0.0 <= x0 < x1 <= 1.0 and 0.0 <= y0 < y1 <= 1.0):
                msg = f"ignore_regions: {region} must be 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1"
                raise ValueError(msg)
        if not 0.001 <= self.image_fps <= 1000.0:
            msg = f"image_fps: {self.image_fps} must be 0.001 to 1000"
            raise ValueError(msg)
        if self.decode not in ("thread", "inline"):
            msg = f'decode: {self.decode!r} must be "thread" or "inline"'
            raise ValueError(msg)


class FileSource:
    """A `FrameSource` over a video file or a folder of images.

    Media time 0 is the first frame that is handed over. Each call of `frames` plays from the start
    and begins a new report; one at a time.
    """

    def __init__(self, settings: FileSettings) -> None:
        self._settings = settings
        self._path = Path(settings.path)
        self._name = self._path.resolve().name
        self._source_id = settings.source_id or self._name
        self._interval = 0.0
        self._tally = Tally(self._name)

    @property
    def source_id(self) -> str:
        """The setting, else the file's name."""
        return self._source_id

    @property
    def interval(self) -> float:
        """The declared time between frames in seconds; 0.0 until opened, or if not declared."""
        return self._interval

    @property
    def report(self) -> SourceReport:
        """What it saw so far; decoding may be a few frames ahead of what was handed over."""
        return self._tally.report

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Clean frames, each at its time or later, until the file ends.

        A late frame still lets the loop's other tasks run once before it is handed over.

        Raises:
            SourceError: the file cannot be opened or holds no picture; says what to do.
        """
        self._tally = Tally(self._name)
        loop = asyncio.get_running_loop()
        if self._settings.decode == "thread":
            stream = in_thread(self._images, name=f"decoder of {self._source_id}")
        else:
            stream = _inline(self._images)
        async with aclosing(stream):
            origin = loop.time()
            seq = 0
            async for media_time, image in stream:
                if seq == 0:
                    origin = loop.time()
                else:
                    await _until(origin + media_time, loop)
                self._tally.frames += 1
                ref = FrameRef(self._source_id, seq, origin + media_time, media_time)
                yield Frame(ref, image)
                seq += 1

    def retry_after(self) -> float | None:
        """None: a file that has ended stays so, and one that cannot be read does not mend.

        One that is played in a loop stands for a camera, which is expected back.
        """
        return _RETRY_LOOP if self._settings.loop else None

    def _images(self) -> Generator[tuple[float, VideoImage], None, None]:
        """Media time and picture of each frame, as fast as they decode."""
        if not self._settings.loop:
            yield from self._once()
            return
        seam = 0.0
        while True:
            newest = 0.0
            for media_time, image in self._once():
                newest = seam + media_time
                yield newest, image
            seam = newest + (self._interval or _UNKNOWN_INTERVAL)

    def _once(self) -> Generator[tuple[float, VideoImage], None, None]:
        if self._path.is_dir():
            base = 1 / Fraction(self._settings.image_fps).limit_denominator(100_000)
            yield from self._stamped(self._stills(), base, float(base))
        elif self._path.exists():
            with _open_video(self._path) as (container, stream):
                rate = stream.average_rate or stream.guessed_rate
                items = self._pictures(container, stream)
                base = stream.time_base or Fraction(1)
                yield from self._stamped(items, base, float(1 / rate) if rate else 0.0)
        else:
            msg = f"{self._path}: no such file; check the setting path"
            raise SourceError(msg)

    def _stamped(
        self, items: Iterator[_Item], base: Fraction, interval: float
    ) -> Generator[tuple[float, VideoImage], None, None]:
        self._interval = interval
        times = MediaTimes(base, interval, self._tally)
        held = next(items, None)
        if held is None:
            problems = "; ".join(self._tally.report.problems) or "it is empty"
            msg = f"{self._path}: not one picture could be decoded ({problems}); use another copy"
            raise SourceError(msg)
        for item in items:
            yield times.of(held[0].pts, item[0].pts), VideoImage(*held)
            held = item
        yield times.of(held[0].pts, None), VideoImage(*held)

    def _pictures(self, container: InputContainer, stream: VideoStream) -> Iterator[_Item]:
        aspect = stream.sample_aspect_ratio or Fraction(1)
        view = View(self._source_id, aspect, self._settings.ignore_regions)
        end = None
        for frame in clean_frames(container, stream, self._tally):
            end = end if frame.pts is None else frame.pts + frame.duration
            yield frame, view
        promised = _promised_end(container, stream)
        if end is not None and stream.time_base is not None and promised is not None:
            # Some formats count the end from the first stamp, some from 0: the later one.
            seen = float((end - min(stream.start_time or 0, 0)) * stream.time_base)
            if seen + max(2 * self._interval, 0.1) < promised:
                self._tally.note(f"ends at {seen:.3f} s although it declares {promised:.3f} s")

    def _stills(self) -> Iterator[_Item]:
        paths = [p for p in self._path.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES]
        if not paths:
            msg = f"{self._path}: holds no image (jpg, png, webp, bmp); check the setting path"
            raise SourceError(msg)
        for index, path in enumerate(sorted(paths, key=natural_order)):
            try:
                frame, aspect = decode_still(path)
            except (av.FFmpegError, OSError, ValueError) as error:
                at = index / self._settings.image_fps
                why = f"{path.name}: {error}"
                self._tally.left_out("image that does not decode, left out", at, why)
                continue
            frame.pts = index
            yield frame, View(self._source_id, aspect, self._settings.ignore_regions)


def natural_order(path: Path) -> tuple[tuple[str | int, ...], str]:
    """Sort key by which frame2 comes before frame10."""
    parts = re.split(r"([0-9]+)", path.name.casefold())
    return tuple(int(p) if i % 2 else p for i, p in enumerate(parts)), path.name


@contextmanager
def _open_video(path: Path) -> Iterator[tuple[InputContainer, VideoStream]]:
    try:
        # "file:" because a name with a colon would be taken for a protocol.
        container = av.open(f"file:{path}", "r", metadata_errors="replace")
    except av.FFmpegError as error:
        reason = f"{error.strerror}; check that it is a complete video file"
        msg = f"{path}: cannot be opened as a video: {_why(path, reason)}"
        raise SourceError(msg) from error
    try:
        stream = container.streams.best("video")
        if not isinstance(stream, VideoStream) or stream.disposition & Disposition.attached_pic:
            reason = _why(path, "name a file that has one")
            msg = f"{path}: has no video stream: {reason}"
            raise SourceError(msg)
        if cast("VideoCodecContext | None", stream.codec_context) is None:
            msg = f"{path}: its video codec has no decoder here; convert it, to H.264 for example"
            raise SourceError(msg)
        prepare(stream.codec_context)
        yield container, stream
    finally:
        container.close()


def _why(path: Path, otherwise: str) -> str:
    if path.is_file() and _lost_its_index(path):
        return (
            "the MP4 was cut before its index (moov atom) was complete, so no frame can be found; "
            "copy it again in full"
        )
    return otherwise


def _lost_its_index(path: Path) -> bool:
    """Whether an MP4 has no complete moov box (ISO/IEC 14496-12: size, kind, content)."""
    kinds = set()
    with path.open("rb") as file:
        size = file.seek(0, 2)
        at = 0
        for _ in range(64):  # more boxes than any sound file has at its top
            file.seek(at)
            head = file.read(16).ljust(16, b"\0")
            length, kind = struct.unpack(">I4s", head[:8])
            length = int.from_bytes(head[8:]) if length == 1 else length or size - at
            if length < 8:
                break
            at += length
            if at <= size or kind != b"moov":
                kinds.add(kind)
    return bool(kinds & {b"ftyp", b"mdat"}) and b"moov" not in kinds


def _promised_end(container: InputContainer, stream: VideoStream) -> float | None:
    """Seconds at which the headers say that the video ends; None if they do not say.

    MPEG streams have no such header: their duration is itself guessed from the last stamps.
    """
    if "mpeg" in container.format.name:
        return None
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    tag = re.fullmatch(r"(\d+):(\d+):([\d.]+)", stream.metadata.get("DURATION", ""))
    if tag is not None:  # Matroska
        return int(tag[1]) * 3600 + int(tag[2]) * 60 + float(tag[3])
    if len(container.streams) == 1 and container.duration is not None:
        return container.duration / 1_000_000
    return None


async def _inline(
    make: Callable[[], Generator[tuple[float, VideoImage], None, None]],
) -> AsyncGenerator[tuple[float, VideoImage], None]:
    with closing(make()) as items:
        for item in items:
            yield item


async def _until(due: float, loop: asyncio.AbstractEventLoop) -> None:
    """Wait for `due`; a timer may fire a little early, a late frame only lets others run."""
    if loop.time() >= due:
        await asyncio.sleep(0)
    while (now := loop.time()) < due:  # noqa: ASYNC110 - time passes, no event will tell
        await asyncio.sleep(due - now)
