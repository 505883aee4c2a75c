"""What was seen and decided in the last seconds, kept in memory until somebody wants it.

The decision step only adds a value here. It is written elsewhere, as an excerpt of a journal: the
journal's own header and lines, so that its reader reads it back, times and all.
"""

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from hdguard.core import events
from hdguard.core.actions import Action, Halt, Permit
from hdguard.core.events import Event
from hdguard.core.policy import Policy
from hdguard.core.types import Speed
from hdguard.runtime.journal import FORMAT
from hdguard.runtime.observer import Judged, Reviewed

FILE = "steps.jsonl"

ROBOT_EVERY = 0.5
"""Seconds between two of the robot's reports that are noted, if it moves or stands as before; a
choice: it sends ten a second."""

MOST = 20_000
"""Notes; a choice: a minute of three brains on four cameras at 5 FPS is 3,600 verdicts, and as many
stamps."""

_QUIET = (events.FrameSeen, events.DeadlineReached)
"""Noted only where something followed from them."""


@dataclass(frozen=True, slots=True)
class Note:
    """A step, or the stamps of an answer, as it came."""

    at: float
    event: Event | None = None
    actions: tuple[Action, ...] = ()
    stamps: Judged | Reviewed | None = None

    def line(self) -> bytes:
        """As a line of a journal."""
        if self.stamps is not None:
            found: dict[str, object] = {"stamps": type(self.stamps).__name__, "of": self.stamps}
        else:
            decided = [{"action": type(a).__name__, "of": a} for a in self.actions]
            name = type(self.event).__name__
            found = {"t": self.at, "event": name, "of": self.event, "actions": decided}
        return msgspec.json.encode(found) + b"\n"


class Notebook:
    """The newest notes.

    Args:
        seconds: how far back it goes.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._notes: deque[Note] = deque(maxlen=MOST)
        self._speed: Speed | None = None
        self._heard: dict[type[Event], str] = {}
        self._frames: dict[tuple[str, bool], Note] = {}
        self._robot: tuple[bool, float] = (False, float("-inf"))

    def judged(self, now: float, stamps: Judged | Reviewed) -> Note:
        """Note when an answer came."""
        return self._add(Note(now, stamps=stamps))

    def stepped(self, now: float, event: Event, decided: tuple[Action, ...]) -> Note | None:
        """Note a step, if there is anything in it."""
        if isinstance(event, events.FrameSeen):
            self._frames[event.ref.source_id, event.frozen] = Note(now, event)
        if decided:
            decided = tuple(action for action in decided if self._is_news(action))
        if not decided and not self._matters(now, event):
            return None
        if any(isinstance(action, Halt) for action in decided):
            self._notes.extend(self._frames.values())  # since when it is that a camera is silent
        return self._add(Note(now, event, decided))

    def since(self, begin: float) -> tuple[Note, ...]:
        """What was noted from then on, oldest first."""
        return tuple(note for note in self._notes if note.at >= begin)

    def _add(self, note: Note) -> Note:
        notes = self._notes
        notes.append(note)
        while notes[0].at < note.at - self._seconds:
            notes.popleft()
        return note

    def _is_news(self, action: Action) -> bool:
        """Permits leave five times a second, and a halt ten times, until the robot confirms."""
        match action:
            case Permit():
                before, self._speed = self._speed, action.speed
                return before is not action.speed
            case Halt():
                return action.repeat == 0
            case _:
                return True

    def _matters(self, now: float, event: Event) -> bool:
        match event:
            case events.RobotSeen():
                moving, at = self._robot
                if moving is event.moving and now - at < ROBOT_EVERY:
                    return False
                self._robot = (event.moving, now)
                return True
            case events.HaltDelivered() | events.HaltAcknowledged():  # they come ten times a second
                before = self._heard.get(type(event))
                self._heard[type(event)] = event.halt_id
                return before != event.halt_id
            case _:
                return not isinstance(event, _QUIET)


def excerpt_header(policy: Policy, boot: int, began: float) -> bytes:
    """The first line of an excerpt.

    Args:
        policy: of the guard.
        boot: of the guard.
        began: seconds on the loop's clock.
    """
    header = {
        "format": FORMAT,
        "written": datetime.now(UTC).isoformat(),  # noqa: TID251 - the header's wall clock
        "began": began,
        "boot": boot,
        "policy": policy,
        "excerpt": True,
    }
    return msgspec.json.encode(header) + b"\n"
