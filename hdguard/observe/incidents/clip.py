"""A camera's pictures as an MP4 that browsers play: H.264, each picture at the time it was seen.

The clip runs on the pictures' own stamps, in milliseconds from the first: where a camera was silent
the last picture stands still, as it did for the guard. Nothing is written into the pictures.
"""

import errno
import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import cv2
import numpy as np
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from av.video.stream import VideoStream

from hdguard.core.policy import HIGH_FPS
from hdguard.core.types import FrameRef
from hdguard.ingest.base import Rgb
from hdguard.observe.incidents.record import Clip, ClipFrame, moment, sync_folder
from hdguard.observe.incidents.spool import Picture

TICK = Fraction(1, 1000)

LAST = round(1000 / HIGH_FPS)
"""Milliseconds that the last picture is shown, as if the next one had come in time. The gap before
it would not do: after a long silence the clip would go on for as long again."""

OPTIONS = {"preset": "veryfast", "crf": "26", "bf": "0", "threads": "1"}
"""libx264's. Choices: one thread, since the guard needs the rest; no frames out of order."""


def pts_of(refs: Sequence[FrameRef]) -> list[int]:
    """When each is shown, in milliseconds from the first: by its capture, and never two at once."""
    found: list[int] = []
    for ref in refs:
        at = round((ref.captured_at - refs[0].captured_at) * 1000)
        found.append(max(at, found[-1] + 1) if found else 0)
    return found


def write_clip(
    path: Path, camera: str, refs: Sequence[FrameRef], pictures: Iterable[Picture], zero: float
) -> Clip:
    """Make the file, whole or not at all; blocks until it is on disk.

    Args:
        path: of the file.
        camera: whose pictures they are.
        refs: of all pictures, in order of capture.
        pictures: the same, one after the other: a clip's pictures need not fit into memory.
        zero: the moment that `after` counts from.

    Raises:
        OSError: the disk does not take it.
        av.FFmpegError: a picture cannot be encoded.
        ValueError: a picture is no JPEG.
    """
    pts = pts_of(refs)
    lasts = [b - a for a, b in pairwise(pts)] + [LAST]
    beside = path.with_name(path.name + ".new")
    size: tuple[int, int] | None = None
    with av.open(str(beside), "w", format="mp4", options={"movflags": "+faststart"}) as out:
        stream = out.add_stream("libx264", rate=round(HIGH_FPS), options=OPTIONS)
        for picture, at, shown in zip(pictures, pts, lasts, strict=True):
            rgb = _decoded(picture)
            if size is None:
                size = (rgb.shape[1], rgb.shape[0])
                _prepare(stream, size)
            if (rgb.shape[1], rgb.shape[0]) != size:  # the camera has changed its shape meanwhile
                rgb = _fitted(rgb, size)
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
            frame.pts, frame.time_base, frame.duration = at, TICK, shown
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    assert size is not None  # there is a picture
    _check(beside, len(pts))
    _keep(beside, path)
    seconds = (pts[-1] + LAST) / 1000
    return Clip(
        file=path.name,
        camera=camera,
        width=size[0],
        height=size[1],
        seconds=seconds,
        frames=_frames(refs, pts, zero),
    )


def _frames(refs: Sequence[FrameRef], pts: Sequence[int], zero: float) -> tuple[ClipFrame, ...]:
    return tuple(
        ClipFrame(
            index=n,
            seq=ref.seq,
            captured_at=ref.captured_at,
            after=moment(ref.captured_at, zero).after,
            media_time=ref.media_time,
            pts=at / 1000,
        )
        for n, (ref, at) in enumerate(zip(refs, pts, strict=True))
    )


def _prepare(stream: VideoStream, size: tuple[int, int]) -> None:
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    stream.time_base = stream.codec_context.time_base = TICK
    # Said, since players guess it by the height: 720 rows and more would be shown as BT.709, but
    # libswscale makes BT.601 of RGB, in the narrow range, where nothing else is asked for.
    context = stream.codec_context
    context.colorspace = Colorspace.ITU601
    context.color_range = ColorRange.MPEG
    context.color_primaries = ColorPrimaries.BT709
    context.color_trc = ColorTrc.BT709


def _fitted(rgb: Rgb, size: tuple[int, int]) -> Rgb:
    """As large as it goes in width and height `size`, undistorted, with black bars."""
    height, width = rgb.shape[:2]
    scale = min(size[0] / width, size[1] / height)
    inner = (max(1, round(width * scale)), max(1, round(height * scale)))
    out: Rgb = np.zeros((size[1], size[0], 3), np.uint8)
    left, top = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    scaled = cv2.resize(rgb, inner, interpolation=cv2.INTER_AREA)
    out[top : top + inner[1], left : left + inner[0]] = scaled
    return out


def _decoded(picture: Picture) -> Rgb:
    bgr = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
    if bgr is None:
        msg = f"the picture of frame {picture.ref.seq} of {picture.ref.source_id} is no JPEG"
        raise ValueError(msg)
    return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)


def _check(path: Path, count: int) -> None:
    """A disk that fills up while a file is closed is not told of by every library."""
    with av.open(str(path)) as file:
        there = sum(1 for packet in file.demux(video=0) if packet.size)
    if there != count:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _keep(beside: Path, path: Path) -> None:
    file = os.open(beside, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchmod(file, 0o600)
        os.fsync(file)
    finally:
        os.close(file)
    beside.replace(path)
    sync_folder(path.parent)
