"""What the robot last said of itself, and since when it has been moving."""

import math

from hdguard.core.events import RobotSeen

ROBOT_SILENT = 0.5
"""Seconds after which a robot's report is no news any more (DESIGN 5)."""


class RobotMotion:
    """The newest report of the robot; an older one that comes late changes nothing."""

    def __init__(self) -> None:
        self.newest: tuple[int, int] | None = None
        self._at = -math.inf
        self._since = math.inf

    def seen(self, event: RobotSeen, now: float) -> None:
        """The robot reported itself. Only its own word that it stands ends its motion."""
        if self.newest is not None and (event.boot, event.seq) <= self.newest:
            return
        self.newest = (event.boot, event.seq)
        self._at = now
        self._since = min(self._since, now) if event.moving else math.inf

    def since(self, now: float) -> float:
        """The time since which the robot has been moving; infinity if it does not say so now.

        A robot that is silent may be moving, but there it is its lease that stops it: to halt it
        as well would only halt every camera that is tried out without a robot. Nor does silence
        end a motion: if the robot moves before and after it, it is taken to have moved all along.
        """
        return self._since if now - self._at <= ROBOT_SILENT else math.inf
