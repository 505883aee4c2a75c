"""One line of the decision log: what is said of one step, called by what matters most in it."""

import logging
from typing import Any

from hdguard.core.types import Hazard

ORDER = (
    *("halt_id", "in_force", "class", "cause", "latched", "operator", "source", "brain"),
    *("review", "cancelled", "was", "verdict", "light", "from_state", "state", "from_speed"),
    *("speed", "age", "judged_in", "reviewed_in", "capture_to_halt", "frame_age", "verdict_age"),
)
"""Keys in the order in which people look for them; all others, which are texts, come last."""

INFO, WARNING, ERROR = logging.INFO, logging.WARNING, logging.ERROR
Words = dict[str, Any]

SPEED, STATE, LIGHT, REVIEW, EVENT, ESCALATED, RELEASED, HALT = range(8)
"""What a step is called by, if several things happened in it: the last of these."""


class DecisionLine:
    """What is to be said of one step.

    Attributes:
        name: what it is called by; empty: there is nothing to be said.
        rank: of the name.
        level: of the gravest thing said.
    """

    __slots__ = ("_words", "level", "name", "rank")

    def __init__(self) -> None:
        self.name = ""
        self.rank = -1
        self.level = INFO
        self._words: Words = {}

    def say(self, rank: int, name: str, level: int = INFO, **words: Any) -> None:
        """Something happened; what is not given is not said."""
        if rank > self.rank:
            self.rank, self.name = rank, name
        self.level = max(self.level, level)
        for key, value in words.items():
            if value is not None and value != "":
                self._words[key] = round(value, 4) if isinstance(value, float) else value

    def words(self, **rest: Any) -> Words:
        """All that was said, in the order in which people read it; `rest` where it was not."""
        words = rest | self._words
        return {key: words[key] for key in ORDER if key in words} | words


def of_hazard(hazard: Hazard) -> Words:
    """Its words."""
    return {"hazard": hazard.text, "category": hazard.category, "severity": hazard.severity}
