"""Notices that a camera loses many of its pictures to damage although some still come clean.

A picture that did not decode cleanly, or is predicted from one that did not, is left out where it
is decoded, and the age of the newest clean one tells of a gap. Where clean ones come in between,
no gap is long enough to be told, and what happens meanwhile may be in the part that is never seen.
"""

from collections import deque
from typing import Protocol, runtime_checkable

from hdguard.ingest.base import FrameSource

SPAN = 2.0
"""Seconds, up to now, over which pictures are counted. A choice."""

SHARE = 0.1
"""The part of them that may be damaged: from above this on too many are. A choice, and there is no
least number: of a camera with under five pictures a second a single one is more, and is told."""


@runtime_checkable
class _NewestOnly(Protocol):
    """A source whose pictures give way to newer ones that come before they are taken."""

    @property
    def dropped(self) -> int: ...


class DamageWatch:
    """Counts the pictures of one source. Its thread may count on meanwhile: only ints are read.

    Clean ones are those that are handed over and those that gave way to a newer one: it is not the
    picture's fault that nobody had time for it. Damaged ones are what the source's report counts as
    `corrupt`. They are known to be missing when the next clean one comes; where none does, the age
    of the newest frame tells.
    """

    def __init__(self, source: FrameSource) -> None:
        self._source = source
        self._newest_only = source if isinstance(source, _NewestOnly) else None
        self._corrupt = self._dropped = 0
        self._counted: deque[tuple[float, int, int]] = deque()  # loop's time, clean, damaged
        self._clean = self._damaged = 0

    def began(self) -> None:
        """The first frame of a connection is there: count from here on.

        A connection begins amid a group of pictures. Those up to its next key frame cannot be
        decoded, and nothing is wrong with them. What was counted on the connection before stays.
        """
        self._corrupt, self._dropped = self._totals()

    def damaged(self, now: float) -> bool:
        """A clean frame was handed over at this time, in seconds on the loop's clock.

        True if too many of the last pictures were left out because they are damaged.
        """
        before = self._corrupt, self._dropped
        self._corrupt, self._dropped = self._totals()
        self._count(now, 1 + self._dropped - before[1], self._corrupt - before[0])
        return self._damaged > SHARE * (self._clean + self._damaged)

    def _totals(self) -> tuple[int, int]:
        dropped = 0 if self._newest_only is None else self._newest_only.dropped
        return self._source.report.corrupt, dropped

    def _count(self, now: float, clean: int, damaged: int) -> None:
        self._counted.append((now, clean, damaged))
        self._clean += clean
        self._damaged += damaged
        while self._counted[0][0] <= now - SPAN:
            _, clean, damaged = self._counted.popleft()
            self._clean -= clean
            self._damaged -= damaged
