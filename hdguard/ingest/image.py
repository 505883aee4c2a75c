"""A decoded picture that costs nothing until a brain looks at it.

Most frames are never sampled, so a frame stays as the decoder made it (planar YUV, a reference to
the decoder's own buffer) until `rgb` is called. Everything that makes it the picture that a person
would see happens there: non-square pixels, rotation and mirroring, scaling, bars, and the regions
that nobody may look at.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

import av
import numpy as np
from av.codec.context import CodecContext
from av.packet import Packet
from av.sidedata.sidedata import SideData
from av.video.codeccontext import VideoCodecContext
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Rgb, SourceError
from hdguard.ingest.decoder import prepare

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp"})
# How each format's files begin, and its decoder: a file's suffix may lie.
_STILLS = ((b"\xff\xd8", "mjpeg"), (b"\x89PNG", "png"), (b"RIFF", "webp"), (b"BM", "bmp"))

# What 0, 1, 2, 3 quarter turns counter-clockwise are in the terms of `_orientation`.
_TURNS = ((False, False, False), (True, False, True), (False, True, True), (True, True, False))

Region = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class View:
    """How the pictures of one source are to be seen.

    Attributes:
        name: the source, for error messages.
        pixel_aspect: a stored pixel's width over its height.
        ignore_regions: x0, y0, x1, y1 as fractions of the upright picture; painted black.
    """

    name: str
    pixel_aspect: Fraction = Fraction(1)
    ignore_regions: tuple[Region, ...] = ()


class VideoImage:
    """An `Image` over one PyAV frame; may be converted from any thread.

    Nobody waits for anybody: what another thread makes for people to look at, 4 ms of a 4K frame,
    must not hold up the decision loop, which wants the same frame for a brain.
    """

    __slots__ = ("_cache", "_frame", "_view")

    def __init__(self, frame: av.VideoFrame, view: View) -> None:
        self._frame = frame
        self._view = view
        self._cache: dict[ImageSpec, Rgb] = {}

    def rgb(self, spec: ImageSpec) -> Rgb:
        """The upright picture as RGB, shape (height, width, 3), uint8, C-contiguous, read-only.

        Without a height the display aspect ratio is kept, up to 1:4 (see `ImageSpec.max_bytes`).

        Raises:
            SourceError: the frame cannot be converted to this spec.
        """
        rgb = self._cache.get(spec)
        if rgb is None:
            try:
                converted = convert(self._frame, self._view, spec)
            except (av.FFmpegError, ValueError) as error:
                msg = f"{self._view.name}: cannot convert {self._frame!r} to {spec}: {error}"
                raise SourceError(msg) from error
            rgb = self._cache.setdefault(spec, converted)  # another thread may have been first
        return rgb


def convert(frame: av.VideoFrame, view: View, spec: ImageSpec) -> Rgb:
    """Scale, turn upright, add bars and paint over; colours as the frame's own tags say.

    AREA averages when it shrinks, so that small things do not flicker from frame to frame.

    Raises:
        av.FFmpegError: libswscale refuses the format or the size.
        ValueError: the spec has no pixels.
    """
    if spec.width < 1 or (spec.height is not None and spec.height < 1):
        msg = "width and height must be at least 1"
        raise ValueError(msg)
    turned, flip_x, flip_y = _orientation(frame)
    shown = (frame.width * view.pixel_aspect, Fraction(frame.height))
    width, height, inner_width, inner_height = _layout(shown[::-1] if turned else shown, spec)
    # Not `frame.reformat`: the reformatter that it keeps with the frame bears one thread at a time.
    # While it works, PyAV tags a frame of BT.470BG as SMPTE 170M, which have the same colours; no
    # other tag changes, so that threads do not disturb each other.
    scaled = VideoReformatter().reformat(
        frame,
        width=inner_height if turned else inner_width,
        height=inner_width if turned else inner_height,
        format="rgb24",
        interpolation="AREA",
        threads=1,  # the default starts a thread per core for every frame
    )
    picture = scaled.to_ndarray()
    picture = picture.swapaxes(0, 1) if turned else picture
    picture = picture[:: -1 if flip_y else 1, :: -1 if flip_x else 1]
    left, top = (width - inner_width) // 2, (height - inner_height) // 2
    out: Rgb = np.zeros((height, width, 3), np.uint8)
    inner = out[top : top + inner_height, left : left + inner_width]
    inner[...] = picture
    for region in view.ignore_regions:
        _paint(inner, region)
    out.setflags(write=False)
    return out


def _layout(shown: tuple[Fraction, Fraction], spec: ImageSpec) -> tuple[int, int, int, int]:
    """Width and height of the result and of the picture inside its bars.

    `shown` is the size of the upright picture in square pixels.
    """
    if spec.height is None:
        height = round(spec.width * shown[1] / shown[0])
        height = min(max(height, 1), 4 * spec.width)
        return spec.width, height, spec.width, height
    if not spec.letterbox:
        return spec.width, spec.height, spec.width, spec.height
    scale = min(spec.width / shown[0], spec.height / shown[1])
    inner = (max(1, round(shown[0] * scale)), max(1, round(shown[1] * scale)))
    return spec.width, spec.height, inner[0], inner[1]


def _orientation(frame: av.VideoFrame) -> tuple[bool, bool, bool]:
    """Whether to swap the axes, then mirror left-right, then mirror top-bottom.

    The display matrix maps a stored pixel (x, y) to (a x + c y, b x + d y), the nine numbers being
    a b u c d v x y w (libavutil/display.h). Snapped to the nearest of the eight orientations.
    """
    try:
        matrix = cast("SideData | None", frame.side_data.get("DISPLAYMATRIX"))
    except ValueError:
        # PyAV shows no side data at all where it has no name for one kind (EXIF); it still tells
        # the rotation, counter-clockwise, but not the mirroring.
        return _TURNS[round(frame.rotation / 90) % 4]
    if matrix is None:
        return False, False, False
    a, b, _, c, d = (int(v) for v in np.frombuffer(bytes(matrix), np.int32)[:5])
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return False, a < 0, d < 0
    return True, c < 0, b < 0


def _paint(picture: NDArray[np.uint8], region: Region) -> None:
    """Black out every pixel that the region touches."""
    height, width = picture.shape[:2]
    x0, y0, x1, y1 = region
    picture[
        math.floor(y0 * height) : math.ceil(y1 * height),
        math.floor(x0 * width) : math.ceil(x1 * width),
    ] = 0


def decode_still(path: Path) -> tuple[av.VideoFrame, Fraction]:
    """The picture in a jpg, png, webp or bmp file, and its pixel aspect.

    Straight to the codec: as a container, a name with a % would be taken for a pattern.

    Raises:
        OSError, av.FFmpegError, ValueError: it cannot be read, or not be decoded without damage.
    """
    data = path.read_bytes()
    codec = next((name for magic, name in _STILLS if data.startswith(magic)), None)
    if codec is None:
        msg = "neither jpg, png, webp nor bmp"
        raise ValueError(msg)
    context = cast("VideoCodecContext", CodecContext.create(codec, "r"))
    prepare(context)
    frames = [*context.decode(Packet(data)), *context.decode(None)]
    if not frames or frames[0].is_corrupt:
        msg = "damaged"
        raise ValueError(msg)
    return frames[0], context.sample_aspect_ratio or Fraction(1)
