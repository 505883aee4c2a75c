"""When a permit is due: five a second, and at once when the robot must slow down."""

from hdguard.core.types import Speed

PERMIT_EVERY = 0.2
"""Seconds between permits: DESIGN section 5, five a second."""


class PermitClock:
    """Keeps the beat. A permit that is late is sent once; the next is due 200 ms later."""

    def __init__(self, now: float) -> None:
        self.due = now
        self._last = Speed.NONE

    def strike(self, speed: Speed, now: float) -> bool:
        """True if a permit of this speed must leave now."""
        slower = speed < self._last
        if now < self.due and not slower:
            return False
        self.due = now + PERMIT_EVERY
        self._last = speed
        return True
