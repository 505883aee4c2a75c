"""A camera that we pull by WebRTC from a server such as MediaMTX or go2rtc (WHEP).

WHEP is an Internet draft (draft-ietf-wish-whep): an offer is posted, the answer comes back, and a
DELETE of the session's URL ends it.
"""

import base64
import ssl
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlunsplit

from hdguard.ingest.base import Frame, SourceError, SourceReport
from hdguard.ingest.image import Region, View
from hdguard.ingest.redact import bare_address, redacted
from hdguard.ingest.retry import Backoff
from hdguard.ingest.webrtc_http import Endpoint, end, exchange, parsed
from hdguard.ingest.webrtc_peer import (
    LATE,
    Patience,
    PeerGone,
    Receiver,
    Watched,
    check_settings,
    require_aiortc,
)
from hdguard.ingest.webrtc_sdp import BadDescription


@dataclass(frozen=True, slots=True)
class WhepSettings:
    """A stream that we pull from a server.

    Attributes:
        url: whep+http or whep+https, else http or https; may hold a user and a password.
        source_id: name that every ref carries; empty: the URL without credentials.
        token: bearer token; empty: none, or the URL's user and password.
        ca_file: certificates to trust instead of the system's.
        ignore_regions: x0, y0, x1, y1 as fractions of the picture, painted black.
        interval: declared seconds between frames; 0.0: not known.
        connect_timeout: seconds for each HTTP request, and from the answer to the first picture.
        silent_after: seconds without a picture after which it is pulled anew; at least two and a
            half intervals.
        max_pixels: largest picture taken, width times height; the default is 4K.
    """

    url: str = field(repr=False)
    source_id: str = ""
    token: str = field(default="", repr=False)
    ca_file: str = ""
    ignore_regions: tuple[Region, ...] = ()
    interval: float = 0.0
    connect_timeout: float = 5.0
    silent_after: float = 2.0
    max_pixels: int = 3840 * 2160

    def __post_init__(self) -> None:
        try:
            parsed(self.url.removeprefix("whep+"))
        except ValueError as error:
            url = redacted("".join(self.url.split()))
            msg = f"url: {url} is not whep+http(s)://HOST/PATH: {error}"
            raise ValueError(msg) from error
        if not all("!" <= c <= "~" for c in self.token):
            msg = "token: must be printable ASCII without spaces"
            raise ValueError(msg)
        check_settings(self.ignore_regions, self.interval, self.silent_after, self.max_pixels)
        if not 0.1 <= self.connect_timeout <= 60.0:
            msg = f"connect_timeout: {self.connect_timeout} must be 0.1 to 60"
            raise ValueError(msg)


class WhepSource:
    """A `FrameSource` that pulls a stream from a WHEP server, again and again."""

    def __init__(self, settings: WhepSettings) -> None:
        """Raises: SourceError: WebRTC is not installed, or `ca_file` cannot be read."""
        self._settings = settings
        name = settings.source_id or bare_address(settings.url)
        require_aiortc(name)
        self._watched = Watched(View(name, ignore_regions=settings.ignore_regions))
        self._endpoint = _endpoint(settings, name)
        self._backoff = Backoff()

    @property
    def source_id(self) -> str:
        """The setting, else the URL without credentials."""
        return self._watched.view.name

    @property
    def interval(self) -> float:
        """The setting."""
        return self._settings.interval

    @property
    def report(self) -> SourceReport:
        """What it saw so far, over all sessions."""
        return self._watched.tally.report

    @property
    def dropped(self) -> int:
        """Pictures that gave way to a newer one before anybody took them."""
        return self._watched.dropped

    def retry_after(self) -> float:
        """The pause before the next session, in seconds."""
        return self._backoff.delay

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """The newest pictures of one session.

        Raises:
            SourceError: no session, no picture in time, or the server ended it.
        """
        settings, session = self._settings, ""
        slow = 2.5 * settings.interval
        silent, late = max(settings.silent_after, slow), max(LATE, slow)
        patience = Patience(settings.connect_timeout, silent, late, settings.max_pixels)
        receiver = Receiver(self._watched, patience)
        try:
            answer, session = await exchange(self._endpoint, await receiver.offer())
            await receiver.accept(answer)
            while True:
                shot = await receiver.next()
                self._backoff.frame(shot.captured_at)
                yield self._watched.frame(shot)
        except (BadDescription, PeerGone) as error:
            msg = f"{self.source_id}: {error}"
            raise SourceError(msg) from error
        finally:
            self._backoff.ended()
            await receiver.close()
            if session:
                await end(self._endpoint, session)


def _endpoint(settings: WhepSettings, name: str) -> Endpoint:
    parts = parsed(settings.url.removeprefix("whep+"))
    authorization = f"Bearer {settings.token}" if settings.token else ""
    if parts.username is not None and not authorization:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    tls = None
    if parts.scheme == "https":
        try:
            tls = ssl.create_default_context(cafile=settings.ca_file or None)
        except OSError as error:
            msg = f"{name}: ca_file {settings.ca_file} cannot be read ({error.strerror})"
            raise SourceError(msg) from error
    host = parts.netloc.rpartition("@")[2]
    url = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    return Endpoint(url, name, authorization, tls, settings.connect_timeout)
