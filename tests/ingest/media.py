"""Makes the media that the ingest tests decode; nothing is stored in the repository."""

import struct
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.codec.context import CodecContext
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, Rgb
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.runtime.virtual_time import run_virtual

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


@dataclass(frozen=True)
class Clip:
    """How to encode a clip; `stamps` count units of `base` seconds."""

    stamps: Sequence[int] = range(10)
    base: Fraction = Fraction(1, 10)
    size: tuple[int, int] = (64, 48)
    codec: str = "libx264"
    pix_fmt: str = "yuv420p"
    options: dict[str, str] = field(default_factory=lambda: {"preset": "ultrafast"})
    container: dict[str, str] = field(default_factory=dict)
    format: str | None = None
    rotation: tuple[float, bool, bool] | None = None  # degrees, mirror left-right, top-bottom
    aspect: Fraction | None = None
    sound: bool = False  # silence, a second for each frame
    still: Rgb | None = None  # shown all the time; else a pattern that moves


def corners(size: tuple[int, int]) -> Rgb:
    """Red, green, blue and white quarters, clockwise from the top left."""
    width, height = size
    out = np.zeros((height, width, 3), np.uint8)
    out[: height // 2, : width // 2] = RED
    out[: height // 2, width // 2 :] = GREEN
    out[height // 2 :, width // 2 :] = BLUE
    out[height // 2 :, : width // 2] = WHITE
    return out


def _moving(index: int, size: tuple[int, int]) -> Rgb:
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(7).integers(0, 40, (height, width))
    grey = (x * 3 + y * 2 + index * 11 + noise) % 256
    return np.repeat(grey[..., None], 3, axis=2).astype(np.uint8)


def write_video(path: Path, clip: Clip | None = None) -> Path:
    """Encode the clip to `path`; the suffix chooses the container."""
    clip = clip or Clip()
    with av.open(path, "w", format=clip.format, options=clip.container) as out:
        stream = out.add_stream(clip.codec, rate=1 / clip.base, options=clip.options)
        assert isinstance(stream, VideoStream)
        silence = out.add_stream("pcm_s16le", rate=800, layout="mono") if clip.sound else None
        stream.width, stream.height = clip.size
        stream.pix_fmt = clip.pix_fmt
        stream.codec_context.time_base = clip.base
        if clip.aspect is not None:
            stream.codec_context.sample_aspect_ratio = clip.aspect
        if clip.rotation is not None:
            stream.set_display_rotation(*clip.rotation)
        for index, stamp in enumerate(clip.stamps):
            rgb = _moving(index, clip.size) if clip.still is None else clip.still
            frame = av.VideoFrame.from_ndarray(rgb)
            frame.pts, frame.time_base = stamp, clip.base
            out.mux(stream.encode(frame))
            if silence is not None:
                quiet = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
                quiet.sample_rate, quiet.pts = 800, 800 * index
                out.mux(silence.encode(quiet))
        out.mux(stream.encode(None))
        if silence is not None:
            out.mux(silence.encode(None))
    return path


def write_still(path: Path, rgb: Rgb, codec: str = "mjpeg", pix_fmt: str = "yuvj420p") -> Path:
    """Encode one picture as a file."""
    context = CodecContext.create(codec, "w")
    assert isinstance(context, VideoCodecContext)
    context.height, context.width = rgb.shape[:2]
    context.pix_fmt, context.time_base = pix_fmt, Fraction(1, 10)
    frame = av.VideoFrame.from_ndarray(rgb).reformat(format=pix_fmt)
    packets = [*context.encode(frame), *context.encode(None)]
    path.write_bytes(b"".join(bytes(packet) for packet in packets))
    return path


def write_folder(path: Path, count: int, size: tuple[int, int] = (64, 48)) -> Path:
    """A folder of `count` JPEG pictures whose names sort naturally only."""
    path.mkdir()
    for index in range(count):
        write_still(path / f"frame{index}.jpg", corners(size))
    return path


def with_exif_orientation(jpeg: bytes, orientation: int) -> bytes:
    """The same JPEG with an EXIF block that holds only the orientation, 1 to 8."""
    entry = struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0)
    exif = b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4)
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + jpeg[2:]


def restamp_ts(path: Path, stamps: dict[int, int]) -> None:
    """Overwrite the presentation stamps (90 kHz) of the n-th frames of an MPEG-TS without B."""
    data = bytearray(path.read_bytes())
    at = -1
    index = 0
    while (at := data.find(b"\0\0\1\xe0", at + 1)) >= 0:
        if data[at + 7] & 0x80:  # has a stamp: 33 bits in 5 bytes, ISO/IEC 13818-1, 2.4.3.6
            if index in stamps:
                pts = stamps[index]
                data[at + 9 : at + 14] = bytes(
                    (
                        (data[at + 9] & 0xF0) | ((pts >> 29) & 0x0E) | 1,
                        (pts >> 22) & 0xFF,
                        ((pts >> 14) & 0xFE) | 1,
                        (pts >> 7) & 0xFF,
                        ((pts << 1) & 0xFE) | 1,
                    )
                )
            index += 1
    path.write_bytes(data)


def bare_times(path: Path) -> list[float]:
    """The frames' times straight from PyAV, from the first one on."""
    with av.open(path) as container:
        stamps = [frame.pts for frame in container.decode(video=0)]
        base = container.streams.video[0].time_base
    assert base is not None
    return [float((stamp - (stamps[0] or 0)) * base) for stamp in stamps if stamp is not None]


@dataclass(frozen=True)
class Played:
    """What a source handed over in virtual time."""

    source: FileSource
    frames: list[Frame]

    @property
    def times(self) -> list[float]:
        return [frame.ref.media_time for frame in self.frames]

    def rgb(self, width: int = 64, height: int | None = None) -> Rgb:
        """The first picture."""
        return self.frames[0].image.rgb(ImageSpec(width, height))


def play(settings: FileSettings | Path) -> Played:
    """Play the whole file in virtual time, decoding inline."""
    if isinstance(settings, Path):
        settings = FileSettings(str(settings), decode="inline")
    source = FileSource(settings)

    async def collect() -> list[Frame]:
        async with aclosing(source.frames()) as frames:
            return [frame async for frame in frames]

    return Played(source, run_virtual(collect()))
