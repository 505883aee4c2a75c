"""The last minutes at a glance: how each camera's light and the guard's state went, and the halts.

A row has one letter a second, the most severe of that second, so that a RED of one frame is not
lost between two looks and memory is bounded by nature. What is noted is noted with every permit,
five times a second in every state, and with every verdict; a second without a letter is one in
which nothing was decided.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.roster import Watched
from hdguard.core.types import Light, State
from hdguard.observe.advice import advice, because
from hdguard.runtime.observer import Judged, Reviewed

SECONDS = 300
"""What a person remembers of, and a phone shows at a pixel a second; a choice."""

MOST_HALTS = 50

NOTHING = " "
STALE = "s"
LIGHTS = {None: "-", Light.GREEN: "G", Light.YELLOW: "Y", Light.RED: "R"}
STATES = {
    State.STARTING: "W",
    State.MONITORING: "M",
    State.REVIEWING: "V",
    State.HALTED: "H",
}
OF_LIGHTS = " -GYsR"
OF_STATES = " MVWH"
"""The letters in the order of their severity: no fresh picture or verdict is worse than YELLOW."""


class Row:
    """A letter a second for the last `SECONDS`; time is in seconds, never going back."""

    def __init__(self, order: str) -> None:
        self._order = order
        self._letters = [NOTHING] * SECONDS
        self._newest = -1

    def note(self, now: float, letter: str) -> None:
        """It was so at that time."""
        second = self._advance(now)
        place = second % SECONDS
        if self._order.index(letter) > self._order.index(self._letters[place]):
            self._letters[place] = letter

    def text(self, now: float) -> str:
        """Oldest first; the last letter is of the second that is passing."""
        first = self._advance(now) + 1
        return "".join(self._letters[n % SECONDS] for n in range(first, first + SECONDS))

    def _advance(self, now: float) -> int:
        second = max(int(now), self._newest)
        for passed in range(max(self._newest, second - SECONDS) + 1, second + 1):
            self._letters[passed % SECONDS] = NOTHING
        self._newest = second
        return second


@dataclass(slots=True)
class Mark:
    """A halt of this life; `ended_at` is None while it is in force."""

    halt: Halt
    at: float
    ended_at: float | None = None


class Timeline:
    """An `Observer`.

    Args:
        guard: whose story it is.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._ours = f"{guard.boot}-"  # so begin the ids of halts that were decided in this life
        self._state = Row(OF_STATES)
        self._lights = {name: Row(OF_LIGHTS) for name in guard.roster.sources}
        self.halts: deque[Mark] = deque(maxlen=MOST_HALTS)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing: the event that follows says what matters here."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note a verdict's light at once, and all else with each permit."""
        if isinstance(event, events.FastVerdict):
            self._light(event.ref.source_id, now)
        for action in actions:
            self._note(action, now)

    def _note(self, action: Action, now: float) -> None:
        match action:
            case actions.Permit():
                self._state.note(now, STATES[action.state])
                for source in self._lights:
                    self._light(source, now)
            case Halt(repeat=0):
                self._end(now)
                self.halts.append(Mark(action, now))
                self._state.note(now, STATES[State.HALTED])
            case actions.Release():
                self._end(now)
            case _:
                pass

    def _light(self, source: str, now: float) -> None:
        watched = self._guard.roster.sources.get(source)
        if watched is not None:
            self._lights[source].note(now, _letter(watched, now))

    def _end(self, now: float) -> None:
        if self.halts and self.halts[-1].ended_at is None:
            self.halts[-1].ended_at = now

    def report(self, now: float) -> dict[str, Any]:
        """Rows of letters, oldest first, and the halts, newest first, as plain data."""
        return {
            "seconds": SECONDS,
            "state": self._state.text(now),
            "lights": {name: row.text(now) for name, row in self._lights.items()},
            "halts": [self._halt(mark, now) for mark in reversed(self.halts)],
        }

    def age(self, halt_id: str, now: float) -> float:
        """Seconds since this halt was decided, or restored; 0.0 before it was said."""
        return next((round(now - m.at, 3) for m in self.halts if m.halt.halt_id == halt_id), 0.0)

    def restored(self, halt_id: str) -> bool:
        """True if it was decided in an earlier life: nobody here knows when."""
        return not halt_id.startswith(self._ours)

    def _halt(self, mark: Mark, now: float) -> dict[str, Any]:
        halt, ended = mark.halt, mark.ended_at
        return {
            "halt_id": halt.halt_id,
            "class": halt.halt_class,
            "cause": halt.cause,
            "because": because(halt),
            "restored": self.restored(halt.halt_id),
            "age": round(now - mark.at, 3),
            "lasted": None if ended is None else round(ended - mark.at, 3),
            "what_to_do": advice(halt, self._guard.policy) if ended is None else "",
        }


def sure(watched: Watched, now: float) -> bool:
    """True if its light is of now: each brain that must has a fresh verdict, on a fresh picture."""
    lanes = [x for x in watched.lanes.values() if x.brain.required] or list(watched.lanes.values())
    return watched.frame.fresh(now) and all(x.verdict.fresh(now) for x in lanes)


def _letter(watched: Watched, now: float) -> str:
    if watched.light is Light.RED or watched.frame.newest is None:
        return LIGHTS[watched.light]
    if watched.light is None and watched.frame.fresh(now):
        return LIGHTS[None]
    return LIGHTS[watched.light] if sure(watched, now) else STALE
