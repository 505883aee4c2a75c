"""A network camera over RTSP, or an encoder that sends MPEG-TS over TCP.

Never over UDP: what is lost there is smeared over the picture, and the decoder flags none of it.
Every step has a time limit, in PyAV's way and in the protocol's own, because each of them alone has
holes.
"""

import re
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Literal, cast
from urllib.parse import urlsplit

import av
from av.container import InputContainer

from hdguard.ingest.image import Region
from hdguard.ingest.live_stream import LiveStream, Now, Reading
from hdguard.ingest.redact import bare_address, redacted

_ANALYSE = 0.1
# Seconds of the stream that libavformat may look at before it hands over the first packet. By its
# own rule it looks at 20 frames, which are 2 s at 10 frames a second; 0.1 s opened in 0.44 s.

_LONGEST_NAME = 253
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]+(?:%[\w.-]+)?")


@dataclass(frozen=True, slots=True)
class RtspSettings:
    """Which camera, and how long it may keep us waiting.

    Attributes:
        url: rtsp:// or rtsps://; or tcp://, from which MPEG-TS is read. Credentials stand in it as
            usual (rtsp://user:password@host/path) and are shown nowhere.
        source_id: name that every ref carries; empty: the URL's host and path.
        interval: seconds between frames of a camera slower than 5 a second; 0.0: it is faster.
            The limits of a frame's age follow it.
        ignore_regions: x0, y0, x1, y1 as fractions of the upright picture, painted black.
        transport: what RTSP runs over; "tcp" is all there is.
        open_timeout: seconds until a camera that does not answer is given up; the default leaves
            0.1 of the 2.0 s (field.md F7) to a machine that is busy.
        read_timeout: seconds without a packet after which the connection is given up; at least
            two and a half intervals.
    """

    url: str = field(repr=False)
    source_id: str = ""
    interval: float = 0.0
    ignore_regions: tuple[Region, ...] = ()
    transport: Literal["tcp"] = "tcp"
    open_timeout: float = 1.9
    read_timeout: float = 1.0

    def __post_init__(self) -> None:
        _check(self.url)
        if str(self.transport) != "tcp":  # what a file says is not checked before
            msg = f'transport: {self.transport!r} loses packets unnoticed; use "tcp"'
            raise ValueError(msg)
        for name in ("open_timeout", "read_timeout"):
            if not 0.1 <= getattr(self, name) <= 30.0:
                msg = f"{name}: {getattr(self, name)} must be 0.1 to 30 s"
                raise ValueError(msg)
        self.reading.check()

    @property
    def reading(self) -> Reading:
        """What reading it needs to know."""
        silence = max(self.read_timeout, 2.5 * self.interval)
        name = self.source_id or bare_address(self.url)
        return Reading(name, self.interval, self.open_timeout, silence, self.ignore_regions)


def _check(url: str) -> None:
    """Raise a ValueError if nothing can be reached under this URL; without its credentials."""
    if not url.isprintable() or " " in url:
        # What is behind a space or a line's end is not known for a URL's part, nor hidden.
        msg = "url: holds a space or a control character; write them as %20 and the like"
        raise ValueError(msg)
    wrong = ""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # its words may hold a part of a password
        wrong = "cannot be read: the port is 1 to 65535, and a password has %40 %3A %2F for @ : /"
    else:
        if parts.scheme not in ("rtsp", "rtsps", "tcp"):
            wrong = "must be rtsp://HOST/PATH, rtsps:// or tcp://"
        elif not _is_host(host):
            wrong = f"has no usable host; {parts.scheme}://HOST:PORT/PATH is expected"
        elif port == 0 or (port is None and parts.scheme == "tcp"):
            wrong = "needs a port of 1 to 65535"
    if wrong:
        raise ValueError(f"url: {redacted(url)!r} {wrong}")


def _is_host(host: str) -> bool:
    """Whether it is an address, or a name that a resolver can be asked for (RFC 1035, 2.3.4)."""
    if ":" in host:  # IPv6, which may name its interface
        return _IPV6.fullmatch(host) is not None
    labels = host.removesuffix(".").split(".")
    return len(host) <= _LONGEST_NAME and all(_LABEL.fullmatch(label) for label in labels)


class RtspSource(LiveStream):
    """A `FrameSource` over one camera's stream; see `LiveStream`."""

    def __init__(self, settings: RtspSettings, rng: Random | None = None) -> None:
        super().__init__(settings.reading, partial(_open, settings), rng)


class _Remaining:
    """The seconds that are left of a limit, each time that somebody asks for the number.

    PyAV counts its limit anew for each of the two halves of opening.
    """

    def __init__(self, limit: float, now: Now) -> None:
        self._until = now() + limit
        self._now = now

    def __float__(self) -> float:
        return max(0.001, self._until - self._now())


def _open(settings: RtspSettings, now: Now) -> InputContainer:
    silence = settings.reading.silence
    limits = {"timeout": str(round(1e6 * max(settings.open_timeout, silence)))}  # microseconds
    quick = {"analyzeduration": str(round(1e6 * _ANALYSE)), "fpsprobesize": "0"}
    rtsp = {"rtsp_transport": settings.transport, "allowed_media_types": "video"}
    raw = urlsplit(settings.url).scheme == "tcp"
    return av.open(
        settings.url,
        "r",
        format="mpegts" if raw else "rtsp",
        options=limits | quick | ({} if raw else rtsp),
        metadata_errors="replace",
        timeout=(cast("float", _Remaining(settings.open_timeout, now)), silence),
    )
