"""A camera that publishes to us by WebRTC: a robot, a browser, OBS.

The HTTP endpoint hands the offers that it was posted (WHIP, RFC 9725) to `WhipSource`. One at a
time may publish to a camera, and whether it still does is judged by its pictures alone.
"""

import asyncio
import hmac
import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from hdguard.ingest.base import Frame, SourceError, SourceReport
from hdguard.ingest.image import Region, View
from hdguard.ingest.webrtc_peer import (
    LATE,
    Patience,
    PeerGone,
    Receiver,
    Shot,
    Watched,
    check_settings,
    require_aiortc,
)
from hdguard.ingest.webrtc_sdp import BadDescription

_NEGOTIATION = 5.0  # s for an answer: it waits for sockets and for names to be looked up


class OfferRefused(Exception):  # noqa: N818 - a reply, not a defect
    """A publisher's offer was not taken.

    Attributes:
        status: the HTTP status that says so: 400 (the offer), 409 (somebody else publishes), 503.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What a publisher is sent back.

    Attributes:
        sdp: the answer's text.
        resource_id: names the session in its URL; cannot be guessed.
    """

    sdp: str
    resource_id: str


@dataclass(frozen=True, slots=True)
class WhipSettings:
    """A camera that publishes to us.

    Attributes:
        source_id: name that every ref carries.
        ignore_regions: x0, y0, x1, y1 as fractions of the picture, painted black.
        interval: declared seconds between frames; 0.0: not known.
        fresh_for: a second publisher is refused for so many seconds after the last picture, or for
            two and a half intervals. The default is the frame age at which the robot is halted.
        silent_after: seconds without a picture after which a publisher is disconnected; at least
            two and a half intervals.
        max_pixels: largest picture taken, width times height; the default is 4K.
    """

    source_id: str
    ignore_regions: tuple[Region, ...] = ()
    interval: float = 0.0
    fresh_for: float = 1.0
    silent_after: float = 5.0
    max_pixels: int = 3840 * 2160

    def __post_init__(self) -> None:
        if not self.source_id:
            msg = "source_id: must not be empty"
            raise ValueError(msg)
        check_settings(self.ignore_regions, self.interval, self.silent_after, self.max_pixels)
        if not 0.0 < self.fresh_for <= self.silent_after:
            msg = f"fresh_for: {self.fresh_for} must be above 0 and at most silent_after"
            raise ValueError(msg)


class WhipSource:
    """A `FrameSource` that waits for a publisher.

    While its pictures are fresh nobody else may publish; once they are not, whoever comes next
    takes over in the same stream of frames. A publisher that ends its session, or is silent for
    too long, ends `frames` with an error; the next call waits for the next publisher.
    """

    def __init__(self, settings: WhipSettings) -> None:
        """Raises: SourceError: WebRTC is not installed."""
        require_aiortc(settings.source_id)
        self._settings = settings
        self._watched = Watched(View(settings.source_id, ignore_regions=settings.ignore_regions))
        self._receiver: Receiver | None = None
        self._session = ""
        self._arrived = asyncio.Event()
        self._reading = self._negotiating = False

    @property
    def source_id(self) -> str:
        """The setting."""
        return self._settings.source_id

    @property
    def interval(self) -> float:
        """The setting."""
        return self._settings.interval

    @property
    def report(self) -> SourceReport:
        """What it saw so far, over all publishers."""
        return self._watched.tally.report

    @property
    def dropped(self) -> int:
        """Pictures that gave way to a newer one before anybody took them."""
        return self._watched.dropped

    def retry_after(self) -> float:
        """At once: `frames` itself waits for the next publisher."""
        return 0.0

    async def offer(self, sdp: str) -> Answer:
        """Take a publisher's offer.

        Raises:
            OfferRefused: see its status; a 409 or 503 may be tried again after a second.
        """
        if not self._reading:
            raise OfferRefused(503, "this camera is not being watched now")
        old, settings = self._receiver, self._settings
        slow = 2.5 * settings.interval
        fresh_for = max(settings.fresh_for, slow)
        if self._negotiating or (old is not None and old.fresh(fresh_for)):
            raise OfferRefused(409, "somebody else is publishing to this camera")
        silent = max(settings.silent_after, slow)
        patience = Patience(silent, silent, max(LATE, slow), settings.max_pixels)
        new = Receiver(self._watched, patience)
        self._negotiating = True
        try:
            async with asyncio.timeout(_NEGOTIATION):
                answer = await new.answer(sdp)
            if not self._reading:
                raise OfferRefused(503, "this camera is not being watched any more")
            self._receiver, self._session = new, secrets.token_urlsafe(16)
        except BadDescription as error:
            raise OfferRefused(400, str(error)) from error
        except TimeoutError as error:
            raise OfferRefused(503, f"no answer was ready in {_NEGOTIATION:g} s") from error
        finally:
            self._negotiating = False
            if self._receiver is not new:
                await new.close()
        self._arrived.set()
        accepted = Answer(answer, self._session)
        if old is not None:
            await old.close("another publisher took over")
        return accepted

    async def end(self, resource_id: str) -> bool:
        """End the session; False if it is not the one in force."""
        receiver = self._receiver
        if receiver is None or not hmac.compare_digest(
            resource_id.encode(), self._session.encode()
        ):
            return False
        await receiver.close("the publisher ended its session")
        return True

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """The newest pictures of whoever publishes.

        Raises:
            SourceError: the publisher ended its session, or was silent for too long.
        """
        if self._reading:
            msg = f"{self.source_id}: is being watched already"
            raise SourceError(msg)
        self._reading = True
        try:
            while True:
                yield self._watched.frame(await self._next())
        finally:
            self._reading = False
            receiver, self._receiver = self._receiver, None
            if receiver is not None:
                await receiver.close()

    async def _next(self) -> Shot:
        while True:
            while (receiver := self._receiver) is None:
                self._arrived.clear()
                await self._arrived.wait()
            try:
                return await receiver.next()
            except PeerGone as gone:
                if self._receiver is receiver:
                    msg = f"{self.source_id}: the publisher is gone: {gone}"
                    raise SourceError(msg) from gone
