"""Brains for long or many runs: what they say goes by no command."""

from hdguard.brains.base import Shot
from hdguard.core.events import FastVerdict
from hdguard.core.types import Light
from tests.workers.command_brain import CommandFastBrain

FIRST = 100.0  # s of media time: small whole numbers are commands to a command brain
PERIOD = 1.0  # s of media time; a review is asked for once in each
YELLOW_FROM, YELLOW_UNTIL = 0.4, 0.5


class WaryFastBrain(CommandFastBrain):
    """YELLOW for a moment in every period, so that the SlowBrain has something to do."""

    def assess(self, shot: Shot) -> FastVerdict:
        wary = YELLOW_FROM <= shot.ref.media_time % PERIOD < YELLOW_UNTIL
        return FastVerdict(shot.ref, self.name, Light.YELLOW if wary else Light.GREEN)


class CalmFastBrain(CommandFastBrain):
    """GREEN, whatever the time."""

    def assess(self, shot: Shot) -> FastVerdict:
        return FastVerdict(shot.ref, self.name, Light.GREEN)
