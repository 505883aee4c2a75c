"""Is it watching? One plain sentence, and one of four moods, for whoever looks for two seconds."""

from collections.abc import Sequence

from hdguard.core.actions import Halt
from hdguard.core.types import Speed, State
from hdguard.observe.advice import because

WATCHING = "watching"
CAREFUL = "careful"
HALTED = "halted"
NOT_WATCHING = "not watching"

MAY = {
    Speed.FULL: "the robot may move at full speed",
    Speed.REDUCED: "the robot may move at reduced speed only",
    Speed.NONE: "the robot may not move",
}


def headline(
    state: State, speed: Speed, halt: Halt | None, unready: Sequence[str], reasons: Sequence[str]
) -> tuple[str, str]:
    """A mood and a sentence.

    Args:
        state: the guard's.
        speed: of the newest permit.
        halt: the one in force.
        unready: why the guard's decisions cannot be relied on.
        reasons: why the speed is not full: lights, reviews, whatever is impaired.
    """
    if halt is not None:
        return HALTED, f"The robot is halted: {because(halt)}."
    if state is State.STARTING:
        # The first of them is the guard's own word, which may say what the others do.
        said = "; ".join(unready).removeprefix("starting: ").split("; ")
        why = "; ".join(dict.fromkeys(said))
        return NOT_WATCHING, f"Starting, not watching yet; {MAY[Speed.NONE]}: {why}."
    if unready:
        return NOT_WATCHING, f"Not watching as it should; {MAY[speed]}: {'; '.join(unready)}."
    if speed is Speed.FULL:
        return WATCHING, f"Watching; {MAY[speed]}."
    why = "; ".join(filter(None, reasons))
    return CAREFUL, f"Watching; {MAY[speed]}{f': {why}' if why else ''}."
