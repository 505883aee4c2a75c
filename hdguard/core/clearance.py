"""Whether the robot may move at all, and how fast, as long as no halt is in force."""

from hdguard.core.policy import Policy
from hdguard.core.roster import Roster
from hdguard.core.types import Speed


class Clearance:
    """The self-test, the first GREEN, the link to the robot, and what the eyes say now.

    Attributes:
        tested: the self-test is passed.
        started: enough fresh GREEN came after it; from then on faults halt.
        link: our own permits come back from the broker.
    """

    def __init__(self, policy: Policy, roster: Roster) -> None:
        self.tested = False
        self.started = False
        self.link = True
        self._greens = policy.start_greens
        self._roster = roster

    def settle(self, now: float) -> None:
        """Start if all that is needed is there."""
        if self.tested and not self.started:
            self.started = self._roster.fresh_green(now, self._greens)

    def speed(self, now: float) -> Speed:
        """What a permit may allow."""
        if not self.started or not self.link:
            return Speed.NONE
        return Speed.FULL if self._roster.calm(now) else Speed.REDUCED

    def missing(self, now: float) -> tuple[str, ...]:
        """What keeps the robot from full speed, in words; the lights are not named."""
        reasons = []
        if not self.tested:
            reasons.append("self-test not passed")
        if not self.link:
            reasons.append("the broker does not return our permits")
        return (*reasons, *self._roster.impairments(now))
