"""How much one client may ask of us, so that none of it is asked of the decision path.

Numbers without a source are choices: far above what an honest client needs, far below what a 2-core
machine would notice.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

MOST_BODY = 1 << 20
MOST_SDP = 1 << 16
"""Bytes of a request's body, and of one that is an SDP offer (field.md F30)."""

READ_AWAY = 2 << 20
"""Bytes of a body that is too long which are still read, and dropped, before we say so: a client
that is cut off while it sends never sees the answer. Whoever comes next may have its place."""

MOST_HEAD = 16 << 10
MOST_LINES = 100
"""Bytes and lines of a request's head; a browser sends about 20 lines and 1 KiB."""

HEAD_WITHIN = 5.0
BODY_WITHIN = 5.0
LIFE = 15.0
"""Seconds: for a request's head, for its body, and for the whole connection (field.md F30). The
last leaves room for a WebRTC offer, whose answer waits for addresses to be gathered."""

STREAM_LASTS = 9.0
"""Seconds after which a stream of events ends by itself, with room in LIFE for a slow head.
Browsers ask again at once; so no connection needs a longer life, and who does not read is lost."""

ACCEPTS_PER_SECOND = 100.0
ACCEPTS_AT_ONCE = 10
"""Connections taken from the kernel. Each costs 0.1 to 0.5 ms of the loop (measured on 2 cores), so
that a flood takes a twentieth of a core; the rest of it waits outside."""

GOODBYE_WITHIN = 0.5
"""Seconds for a client to take its answer and leave; over TLS it is to say so."""

OFFERS_AT_ONCE = 4
"""WebRTC offers worked on at a time: each makes keys and opens sockets. They alone keep their
places against newcomers, so that with `LEAST_CONNECTIONS` there is always one for an operator."""

LEAST_CONNECTIONS = 2 * OFFERS_AT_ONCE


class Bucket:
    """Lets so many through in a second, and a few at once.

    Args:
        rate: a second.
        burst: at once, after a rest.
        clock: seconds, the loop's.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left = float(burst)
        self._at = clock()

    def take(self) -> bool:
        """One more, if it may."""
        self._fill()
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    async def turn(self) -> None:
        """One more, as soon as it may."""
        self._fill()
        self._left -= 1.0
        if self._left < 0.0:
            await asyncio.sleep(-self._left / self._rate)

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(float(self._burst), self._left + (now - self._at) * self._rate)
        self._at = now


class TooLong(Exception):  # noqa: N818 - what is wrong, not whose error
    """The body is longer than it may be."""


class TooSlow(Exception):  # noqa: N818
    """The body did not come in time."""


class Gone(Exception):  # noqa: N818
    """The client has left before its body was complete."""


async def read_body(
    chunks: AsyncIterator[bytes], most: int, *, within: float = BODY_WITHIN
) -> bytes:
    """A body of at most `most` bytes.

    Args:
        chunks: its parts as they come; raises Gone if the client leaves.
        most: bytes.
        within: seconds.

    Raises:
        TooLong: it has more bytes; up to READ_AWAY of them were read and dropped.
        TooSlow: it was not complete in time.
        Gone: the client has left.
    """
    body = bytearray()
    read = 0
    try:
        async with asyncio.timeout(within):
            async for chunk in chunks:
                read += len(chunk)
                if read > READ_AWAY:
                    break
                if read <= most:
                    body += chunk
    except TimeoutError:
        raise TooSlow from None
    if read > most:
        raise TooLong
    return bytes(body)
