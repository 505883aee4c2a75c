"""How long to leave a camera alone before it is tried again: for ever, and never in step.

A camera that reboots must be back within seconds; ten sidecars whose switch restarted must not
knock at the same moment.
"""

from random import Random

LEAST, MOST = 0.5, 5.0
"""Seconds between two attempts (DESIGN 6)."""

HEALTHY = 10.0
"""Seconds of frames after which the next loss counts as the first one again."""


class Backoff:
    """The pauses of one source."""

    def __init__(self, rng: Random | None = None) -> None:
        self.delay = 0.0
        self._rng = rng or Random()
        self._failures = 0
        self._first: float | None = None
        self._last = 0.0

    def frame(self, at: float) -> None:
        """A frame came; `at` is in seconds on the loop's clock."""
        if self._first is None:
            self._first = at
        self._last = at

    def ended(self) -> None:
        """The connection is over, or none came about: `delay` is the pause before the next.

        It is drawn from the upper half of up to 1, 2, 4, then 5 s.
        """
        if self._first is not None and self._last - self._first >= HEALTHY:
            self._failures = 0
        self._first = None
        top = min(MOST, 2 * LEAST * 2.0 ** min(self._failures, 8))
        self._failures += 1
        self.delay = self._rng.uniform(top / 2, top)
