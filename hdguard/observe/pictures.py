"""The newest picture of each camera, as JPEG, made only when somebody looks and never on the loop.

However many look, each frame is encoded at most once, a few times a second, in a thread. An older
picture is as good as its age says: whoever shows it must show that.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import cv2

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, Image, SourceError

SPEC = ImageSpec(640)
QUALITY = 75  # of 100: enough to see by; a choice

ENCODED_EVERY = 0.2
"""Seconds between two pictures of one camera. One takes a core some milliseconds; a page asks for
fewer. The age that comes with a picture tells how old it is."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A frame as JPEG; `captured_at` is on the loop's clock."""

    captured_at: float
    jpeg: bytes


class NewestPictures:
    """A `Viewer`.

    Args:
        clock: seconds, the loop's.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._newest: dict[str, Frame] = {}
        self._making: dict[str, asyncio.Future[bytes | SourceError]] = {}
        self._made: dict[str, Picture] = {}
        self._next_at: dict[str, float] = {}

    def saw(self, frame: Frame, kept: bool) -> None:
        """Remember it; one frame per source."""
        self._newest[frame.ref.source_id] = frame

    async def jpeg(self, source: str) -> Picture | None:
        """The newest picture of that source, 640 pixels wide; None before its first frame.

        Raises:
            SourceError: the frame cannot be converted.
        """
        if source in self._making:
            return await self._wait(source, self._making[source])
        frame, made = self._newest.get(source), self._made.get(source)
        if frame is None:
            return None
        known = made is not None and made.captured_at == frame.ref.captured_at
        if known or (made is not None and self._clock() < self._next_at[source]):
            return made
        self._next_at[source] = self._clock() + ENCODED_EVERY
        loop = asyncio.get_running_loop()
        making = loop.run_in_executor(None, _encode, frame.image)
        self._making[source] = making
        making.add_done_callback(lambda done: self._keep(frame, done))
        return await self._wait(source, making)

    async def _wait(
        self, source: str, making: asyncio.Future[bytes | SourceError]
    ) -> Picture | None:
        await asyncio.wait({making})  # whoever leaves does not take it from the others
        result = making.result()
        if isinstance(result, SourceError):
            raise result
        return self._made[source]

    def _keep(self, frame: Frame, done: asyncio.Future[bytes | SourceError]) -> None:
        source = frame.ref.source_id
        del self._making[source]
        if not done.cancelled() and isinstance(jpeg := done.result(), bytes):
            self._made[source] = Picture(frame.ref.captured_at, jpeg)


def _encode(image: Image) -> bytes | SourceError:
    try:
        rgb = image.rgb(SPEC)
    except SourceError as error:
        return error
    bgr = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
    _, jpeg = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return jpeg.tobytes()
