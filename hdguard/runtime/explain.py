"""Tells a journal as a story: steps the guard again and prints what mattered, with times.

The halts' own stories need no guard: they are told from what the journal says was decided.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from hdguard.core import actions, events
from hdguard.core.actions import Action, Permit
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, Light, Scores, Speed
from hdguard.runtime.halt_stories import HaltStories
from hdguard.runtime.halt_story import HaltStory
from hdguard.runtime.journal import Step, Written, fields, step_again
from hdguard.runtime.one_line import one_line

QUIET = (events.FrameSeen, events.RobotSeen, events.DeadlineReached, events.HaltDelivered)
"""Events that are shown only where something followed from them."""

NO_REASON = "no reason given"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the story; `differs` says that the guard decides otherwise today."""

    at: float
    text: str
    differs: bool = False


def halts(written: Written) -> tuple[HaltStory, ...]:
    """The newest halts of a journal, the newest last; the same stories as were told live.

    Their wall clock is the header's, moved on by the loop's: in the virtual pace nobody lived it.
    """
    stories = HaltStories(written.boot, _wall(written))
    # An answer's stamps stand before the event that says what it was, and never after it in time.
    stamps = sorted(written.stamps, key=lambda each: each.assessed)
    given = 0
    for step in written.steps:
        while given < len(stamps) and stamps[given].assessed <= step.now:
            stories.judged(stamps[given])
            given += 1
        stories.stepped(step.now, step.event, step.actions)
    return stories.stories


def _wall(written: Written) -> Callable[[float], str]:
    try:
        header = datetime.fromisoformat(written.header["written"])
    except ValueError:
        return lambda _: ""
    return lambda now: (header + timedelta(seconds=now - written.began)).isoformat()


def timeline(written: Written) -> Iterator[Line]:
    """What happened and what followed; times are seconds since the guard began."""
    speed: Speed | None = None
    for step, now_decided in step_again(written):
        at = step.now - written.began
        shown, speed = _worth_showing(step.actions, speed)
        if shown or not isinstance(step.event, QUIET):
            yield Line(at, f"{_words(step.event)}{_arrow(shown)}")
        if now_decided != step.actions:
            yield Line(at, _difference(step, now_decided), differs=True)


def _worth_showing(
    decided: tuple[Action, ...], speed: Speed | None
) -> tuple[list[Action], Speed | None]:
    """Permits are shown where their speed changes, and a halt where it is not a repeat."""
    shown: list[Action] = []
    for action in decided:
        if isinstance(action, Permit):
            if action.speed is speed:
                continue
            speed = action.speed
        if isinstance(action, actions.Halt) and action.repeat > 0:
            continue
        shown.append(action)
    return shown, speed


def _arrow(shown: list[Action]) -> str:
    return "".join(f"\n           -> {_words(action)}" for action in shown)


def _words(value: object) -> str:
    known = fields(value).items()
    said = [f"{name} {_value(v)}" for name, v in known if v != NO_HAZARD]
    if owes_a_reason(value):
        said.append(NO_REASON)
    return f"{type(value).__name__}{': ' if said else ''}{', '.join(said)}"


def owes_a_reason(value: object) -> bool:
    """True for a warning, or a remark about a danger, without a word why."""
    match value:
        case events.FastVerdict(light=Light.RED, hazard=Hazard(text="")):
            return True
        case events.SlowVerdict(danger=True, hazard=Hazard(text="")):
            return True
        case events.Remarked(hazard=Hazard(category, severity, "")):
            return bool(category or severity)
        case _:
            return False


def _value(value: object) -> str:
    match value:
        case FrameRef():
            return f"{value.source_id} at {value.media_time:.3f} s"
        case tuple() if value and all(isinstance(v, FrameRef) for v in value):
            return " ".join(f"{v.media_time:.3f}" for v in value) + " s"
        case Scores():
            lights = {"green": value.green, "yellow": value.yellow, "red": value.red}
            return " ".join(f"{light} {math.exp(s):.3f}" for light, s in lights.items())
        case tuple():
            return one_line(" ".join(map(str, value)))
        case float():
            return f"{value:.3f}"
        case Hazard():
            said = (value.category, value.severity, value.text)
            return one_line(" ".join(filter(None, said)))
        case IntEnum():
            return value.name
        case _:
            return one_line(str(value))


def _difference(step: Step, now_decided: tuple[Action, ...]) -> str:
    was = "; ".join(_words(a) for a in step.actions) or "nothing"
    now = "; ".join(_words(a) for a in now_decided) or "nothing"
    return f"line {step.line}: the journal says {was}; the guard now decides {now}"
