"""What the recorder knows on the loop: what was noted, what is being recorded, what waits.

No disk, no thread, no clock of its own: it is told what happens, and makes a batch of work when it
is asked for one.
"""

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.policy import Policy
from hdguard.core.types import HaltClass
from hdguard.ingest.base import Frame
from hdguard.observe.incidents.notebook import MOST, Note, Notebook, excerpt_header
from hdguard.observe.incidents.record import About, Decision, Incident, Wall, Window
from hdguard.observe.incidents.settings import IncidentSettings
from hdguard.observe.incidents.trigger import Triggers
from hdguard.observe.incidents.writer import Batch, Ending, Opening
from hdguard.runtime.observer import Judged, Reviewed

MOST_WAITING = 16
"""Frames that wait for the thread; a choice: four cameras' of 0.8 s, 50 MB at 1080p."""

MOST_OPEN = 8
"""Incidents recorded at a time; a choice. One more is dropped and counted."""

BEGIN_AFTER = 0.25
"""Seconds after a decision before the disk is touched for it. A choice: the halt is on its way to
the broker then (20 ms), and nothing is lost, for what came before is in memory."""

END_AFTER = 0.5
"""Seconds past its window in which an incident still takes frames: those captured within it may
come late. A choice, the age at which DESIGN calls a frame degraded."""

SLACK = 2.0
"""Seconds that memory goes further back than an incident does, which is begun late; a choice."""


def reach(settings: IncidentSettings, policy: Policy) -> float:
    """How many seconds back pictures are needed: a review names a frame of some time ago."""
    return settings.before + (policy.review_deadline if policy.slow else 0.0) + SLACK


@dataclass(slots=True)
class _Open:
    """An incident from its decision to its end; `lost` is the count at its decision."""

    incident: Incident
    lost: int
    begun: bool = False

    @property
    def due(self) -> float:
        """When something is to be done about it."""
        incident = self.incident
        if self.begun:
            return incident.window.end + END_AFTER
        return incident.decision.decided + BEGIN_AFTER


class Desk:
    """Takes notes, and says what is to be done.

    Args:
        settings: how incidents are recorded.
        about: who records.
        policy: of the guard.
        boot: of the guard.
        began: when the guard began, on the loop's clock.

    Attributes:
        lost: frames that the thread did not take in time.
        dropped: incidents that came while `MOST_OPEN` were being recorded.
    """

    def __init__(
        self, settings: IncidentSettings, about: About, policy: Policy, *, boot: int, began: float
    ) -> None:
        self.lost = self.dropped = 0
        self._settings = settings
        self._guard = (policy, boot)
        self.begin(about, "", began)
        self._open: list[_Open] = []
        self._frames: deque[Frame] = deque(maxlen=MOST_WAITING)
        self._fresh: deque[Note] = deque(maxlen=MOST)

    def begin(self, about: About, prefix: str, began: float) -> None:
        """A guard begins, whose ids are those of the last one: each video of a replay has its own.

        Args:
            about: who records.
            prefix: stands before every id.
            began: when, on the loop's clock; what was before is of no concern to it.
        """
        policy, boot = self._guard
        self.about, self._prefix, self._began = about, prefix, began
        self._notebook = Notebook(reach(self._settings, policy) + self._settings.after)
        self._triggers = Triggers(boot, policy.slow)

    @property
    def due(self) -> float:
        """When the next batch is due, if nothing else comes."""
        return min((each.due for each in self._open), default=float("inf"))

    def saw(self, frame: Frame) -> None:
        """A frame that may be recorded."""
        if len(self._frames) == MOST_WAITING:
            self.lost += 1
        self._frames.append(frame)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """The stamps of an answer."""
        self._noted(self._notebook.judged(stamps.assessed, stamps))

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> bool:
        """A step of the guard; True if an incident begins with it."""
        note = self._notebook.stepped(now, event, actions)
        if note is None:
            return False
        self._noted(note)
        decisions = self._triggers.stepped(now, event, actions)
        for decision in decisions:
            if len(self._open) < MOST_OPEN:
                self._open.append(_Open(self._incident(now, decision), self.lost))
            else:
                self.dropped += 1
        return bool(decisions)

    def batch(self, now: float) -> Batch:
        """What is to be done now."""
        begin = [each for each in self._open if not each.begun and each.due <= now]
        end = [each for each in self._open if each.begun and each.due <= now]
        return self._batch(begin, end, interrupted=False)

    def last_batch(self) -> Batch:
        """What is to be done because the guard ends: everything that is open ends with it."""
        return self._batch([e for e in self._open if not e.begun], [*self._open], interrupted=True)

    def _batch(self, begin: list[_Open], end: list[_Open], *, interrupted: bool) -> Batch:
        openings = tuple(self._opening(each) for each in begin)
        for each in begin:
            each.begun = True
        endings = tuple(
            Ending(each.incident.incident_id, self.lost - each.lost, interrupted) for each in end
        )
        self._open = [each for each in self._open if each not in end]
        notes, frames = tuple(self._fresh), tuple(self._frames)
        self._fresh.clear()
        self._frames.clear()
        return Batch(notes, openings, frames, endings)

    def _noted(self, note: Note) -> None:
        """Incidents that are begun with this batch find it in their history."""
        if any(each.begun for each in self._open):
            self._fresh.append(note)

    def _incident(self, now: float, decision: Decision) -> Incident:
        wall = datetime.now(UTC)  # noqa: TID251 - for people, and for MCAP, which counts so
        offset_ns = _ns(wall) - round(now * 1e9)
        begin = min(decision.zero, decision.decided) - self._settings.before
        begin = max(begin, self._began)
        end = decision.decided + self._settings.after
        return Incident(
            incident_id=self._prefix + self._triggers.name(decision),
            about=self.about,
            decision=decision,
            wall=Wall(decided=wall.isoformat(), offset_ns=offset_ns),
            window=Window(begin=begin, end=end),
        )

    def _opening(self, opened: _Open) -> Opening:
        incident, decision = opened.incident, opened.incident.decision
        # A danger is where it was seen; of a fault, the other cameras may show what it did.
        alone = decision.halt_class in {HaltClass.DANGER, "review"} and decision.source
        history = self._notebook.since(incident.window.begin)
        header = excerpt_header(*self._guard, self._began)
        return Opening(incident, header, history, decision.source if alone else None)


def _ns(wall: datetime) -> int:
    """Unix time in nanoseconds, exact to the microsecond that the value has."""
    return int(wall.timestamp()) * 10**9 + wall.microsecond * 1000
