"""The newest seconds of every camera as JPEGs, in memory, bounded in seconds and in bytes."""

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, Rgb, SourceError
from hdguard.observe.incidents.spool import Picture

QUALITY = 85
"""JPEG's, of 100; a choice."""

MOST_BYTES = 16 << 20
"""Of one camera. A choice: ten seconds at 5 FPS are 3 MB at 640 x 360, and a minute still fits."""

MOST_CAMERAS = 16
"""Reels at a time; of one camera more the one that was silent longest goes."""


class Developer:
    """Makes JPEGs of frames; in a thread, for a frame takes milliseconds.

    Args:
        width: of the JPEGs in pixels.
    """

    def __init__(self, width: int) -> None:
        # Loaded here, before anything is watched, and only by whoever records.
        import cv2  # noqa: PLC0415

        self._cv2: Any = cv2
        self._spec = ImageSpec(width)

    def developed(self, frame: Frame) -> Picture:
        """The frame as a JPEG of even height, since H.264 takes no other.

        Raises:
            SourceError: the picture cannot be converted or encoded.
        """
        rgb = frame.image.rgb(self._spec)
        even: Rgb = rgb[: max(2, rgb.shape[0] // 2 * 2)]
        if even.shape[0] % 2:  # a single row
            even = np.repeat(even, 2, axis=0)
        try:
            bgr = self._cv2.cvtColor(even, self._cv2.COLOR_RGB2BGR)
            done, jpeg = self._cv2.imencode(".jpg", bgr, (self._cv2.IMWRITE_JPEG_QUALITY, QUALITY))
        except self._cv2.error as error:  # it has no memory, say: no reason to end a guard
            raise SourceError(f"{frame.ref.source_id}: {error}") from error
        if not done:
            raise SourceError(
                f"{frame.ref.source_id}: no JPEG can be made of frame {frame.ref.seq}"
            )
        return Picture(frame.ref, jpeg.tobytes())


class Reels:
    """A reel per camera.

    Args:
        seconds: how far back each goes from its newest frame.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._reels: dict[str, deque[Picture]] = {}
        self._bytes: dict[str, int] = {}

    def add(self, picture: Picture) -> None:
        """Keep it, and let the oldest go."""
        camera = picture.ref.source_id
        reel = self._reels.pop(camera, None) or deque()
        self._reels[camera] = reel  # the newest camera comes last
        reel.append(picture)
        self._bytes[camera] = self._bytes.get(camera, 0) + len(picture.jpeg)
        oldest = picture.ref.captured_at - self._seconds
        while reel[0].ref.captured_at < oldest or (
            self._bytes[camera] > MOST_BYTES and len(reel) > 1
        ):
            self._bytes[camera] -= len(reel.popleft().jpeg)
        if len(self._reels) > MOST_CAMERAS:
            silent = next(iter(self._reels))
            del self._reels[silent], self._bytes[silent]

    def since(self, begin: float) -> Iterable[Picture]:
        """What was captured from then on, camera by camera."""
        return [p for reel in self._reels.values() for p in reel if p.ref.captured_at >= begin]
