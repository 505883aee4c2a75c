"""How long a condition has held without a break: by count, and by time.

Both only ever delay what lets the robot run; RED needs one frame.
"""

import math


class Hold:
    """A condition that must hold without a break for a time."""

    def __init__(self, duration: float) -> None:
        self._duration = duration
        self.since: float | None = None

    def update(self, *, holds: bool, at: float) -> None:
        """Note whether the condition holds at that time; a break starts the count anew."""
        if not holds:
            self.since = None
        elif self.since is None:
            self.since = at

    @property
    def due(self) -> float:
        """The time at which it will have held long enough; infinity while it does not hold."""
        return math.inf if self.since is None else self.since + self._duration


class Streak:
    """Counts the same thing in a row."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        """One more in a row."""
        self.count += 1

    def end(self) -> None:
        """The row is broken."""
        self.count = 0
