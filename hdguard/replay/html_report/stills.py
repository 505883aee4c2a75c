"""The pictures that the guard saw when it warned: the frame of the trigger, and that of the halt.

They are decoded by the replay's own source, so that a still is the very frame that was judged, with
the same stamps, the same orientation and the same regions painted over.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

import cv2

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, SourceError
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.ingest.image import Region
from hdguard.runtime.virtual_time import run_virtual

WIDTH = 320  # pixels
QUALITY = 72  # of a JPEG, of 100
ROUNDED = 0.0006  # s; a trigger is written to 1 ms


@dataclass(frozen=True, slots=True)
class Still:
    """A frame as JPEG, and its media time in seconds."""

    at: float
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class View:
    """How the run saw its videos: regions painted over, images a second of a folder."""

    ignore_regions: tuple[Region, ...] = ()
    image_fps: float = 10.0


def stills(path: str, times: Sequence[float], view: View, width: int = WIDTH) -> list[Still]:
    """For each of the ascending media times, the newest frame that was there by then.

    Raises:
        SourceError: the video is not there, or cannot be decoded.
    """
    settings = FileSettings(
        path,
        ignore_regions=view.ignore_regions,
        image_fps=view.image_fps,
        decode="inline",
    )
    frames = run_virtual(_newest_at(FileSource(settings), times))
    return [Still(frame.ref.media_time, _jpeg(frame, width, path)) for frame in frames]


async def _newest_at(source: FileSource, times: Sequence[float]) -> list[Frame]:
    """Decodes no further than it must."""
    found: list[Frame] = []
    newest: Frame | None = None
    async with aclosing(source.frames()) as frames:
        async for frame in frames:
            while newest and len(found) < len(times):
                if frame.ref.media_time <= times[len(found)] + ROUNDED:
                    break
                found.append(newest)
            if len(found) == len(times):
                return found
            newest = frame
            await asyncio.sleep(0)
    return found if newest is None else found + [newest] * (len(times) - len(found))


def _jpeg(frame: Frame, width: int, path: str) -> bytes:
    picture = cv2.cvtColor(frame.image.rgb(ImageSpec(width)), cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        msg = f"{path}: its frame at {frame.ref.media_time:.3f} s cannot be written as JPEG"
        raise SourceError(msg)
    return data.tobytes()
