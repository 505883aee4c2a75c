"""What the guard is doing, for probes and people: whether it is ready, and why not.

Being ready is a matter of decisions, not of a web server that answers: it means that the guard has
just decided something, on a fresh picture and a fresh verdict from every required camera and brain,
and that the broker returns what it says. A halted guard that sees all that is ready; one that is
still starting is not. The guard's own books are read when somebody asks, so that nothing shown here
can differ from what it decides by, and nothing is computed while it decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.roster import Lane, Watched
from hdguard.core.types import Hazard, Speed, State
from hdguard.observe.advice import advice
from hdguard.observe.keeping import Keeping
from hdguard.runtime.observer import Judged, Reviewed

DECIDED_WITHIN = 0.6
"""Seconds: a permit is decided every 0.2 s in every state, and the robot's lease bears 0.6 s."""


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far the halt of that id has come."""

    halt_id: str
    delivered: bool = False
    acknowledged: bool = False
    confirmed: bool = False
    escalated: bool = False


class Status:
    """An `Observer`.

    Args:
        guard: whose status it is.
        now: seconds on the loop's clock.
        keeping: the files and the hook that are reported on too.
    """

    def __init__(
        self, guard: Guard, now: Callable[[], float], keeping: Keeping | None = None
    ) -> None:
        self._guard = guard
        self._now = now
        self._keeping = keeping
        self._began = now()
        self._decided_at = self._began
        self._why = ""
        self._speed = Speed.NONE
        self._link: bool | None = None
        """Whether our permits come back; None: none has been seen to yet."""
        self._robot: tuple[float, events.RobotSeen] | None = None
        self._progress = _Progress("")

    # Looking on.

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing: the event that follows says what matters here."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what the guard's books do not keep."""
        self._decided_at = now
        match event:
            case events.LinkLost():
                self._link = False
            case events.LinkUp():
                self._link = True
            case events.SelfTestPassed() if self._link is None:  # it waits for the first echo
                self._link = True
            case events.RobotSeen():
                self._robot = (now, event)
            case events.HaltDelivered(halt_id=self._progress.halt_id):
                self._progress = replace(self._progress, delivered=True)
            case events.HaltAcknowledged(halt_id=self._progress.halt_id):
                self._progress = replace(self._progress, acknowledged=True)
            case events.HaltConfirmed(halt_id=self._progress.halt_id):
                self._progress = replace(self._progress, acknowledged=True, confirmed=True)
            case _:
                pass
        for action in actions:
            self._note(action)

    def _note(self, action: Action) -> None:
        match action:
            case actions.Permit():
                self._speed = action.speed
            case actions.Notify():
                self._why = action.why
            case Halt() if action.halt_id != self._progress.halt_id:
                self._progress = _Progress(action.halt_id)
            case actions.Escalate(halt_id=self._progress.halt_id):
                self._progress = replace(self._progress, escalated=True)
            case _:
                pass

    # Being asked.

    @property
    def state(self) -> State:
        """What the guard is doing."""
        return self._guard.state

    def unready(self) -> tuple[str, ...]:
        """Why the guard's decisions cannot be relied on now, in words; empty if they can."""
        now = self._now()
        found = []
        if (age := now - self._decided_at) > DECIDED_WITHIN:
            found.append(f"nothing was decided for {age:.1f} s")
        if self.state is State.STARTING:
            found.append(f"starting: {self._why or 'the first verdicts are awaited'}")
        if self._link is None:
            found.append("the broker has not returned a permit of ours yet")
        elif not self._link:
            found.append("the broker does not return our permits")
        for watched in self._guard.roster.sources.values():
            if watched.plan.required:
                found.extend(self._missing(watched, now))
        return tuple(found)

    def _missing(self, watched: Watched, now: float) -> list[str]:
        """What is not fresh of a required source."""
        name = watched.plan.source_id
        found = [] if watched.frame.fresh(now) else [f"{name} has no fresh frame"]
        for lane in watched.lanes.values():
            if not lane.brain.required:
                continue
            if lane.brain.name in self._guard.roster.down:
                found.append(f"{lane.brain.name} is down")
            elif not lane.verdict.fresh(now):
                found.append(f"{lane.brain.name} has no fresh verdict on {name}")
        return found

    def report(self) -> dict[str, Any]:
        """Everything, as plain data; times are ages in seconds, null where there is none."""
        now = self._now()
        unready = self.unready()
        roster = self._guard.roster
        slow = self._guard.policy.slow
        keeping = self._keeping
        return {
            "state": self.state,
            "why": self._why,
            "ready": not unready,
            "unready": list(unready),
            "warnings": [] if keeping is None else keeping.warnings(),
            "speed": self._speed.name.lower(),
            "light": roster.light.name,
            "boot": self._guard.boot,
            "running": round(now - self._began, 3),
            "decided": round(now - self._decided_at, 3),
            "link": self._link is True,
            "sources": [self._source(w, now) for w in roster.sources.values()],
            "brains": [
                self._brain(w, lane, now)
                for w in roster.sources.values()
                for lane in w.lanes.values()
            ],
            "slow": {"name": slow, "up": slow not in roster.down} if slow else None,
            "robot": self._said_by_robot(now),
            "halt": self.halt(),
            "keeping": None if keeping is None else keeping.report(),
        }

    def halt(self) -> dict[str, Any] | None:
        """The halt in force: why, how far it has come, and what to do; None if there is none."""
        halt = self._guard.halt
        if halt is None:
            return None
        came = self._progress
        if came.halt_id != halt.halt_id:
            came = _Progress(halt.halt_id)  # restored, and not said yet
        return {
            "halt_id": halt.halt_id,
            "class": halt.halt_class,
            "cause": halt.cause,
            "source": halt.source_id,
            "brain": halt.brain,
            "light": None if halt.light is None else halt.light.name,
            "hazard": _hazard(halt.hazard),
            "latched": halt.latched,
            "delivered": came.delivered,
            "acknowledged": came.acknowledged,
            "confirmed": came.confirmed,
            "escalated": came.escalated,
            "what_to_do": advice(halt, self._guard.policy),
        }

    def _source(self, watched: Watched, now: float) -> dict[str, Any]:
        frame = watched.frame
        return {
            "name": watched.plan.source_id,
            "required": watched.plan.required,
            "up": frame.up,
            "fresh": frame.fresh(now),
            "frame_age": _age(frame.newest, now),
            "light": None if watched.light is None else watched.light.name,
        }

    def _brain(self, watched: Watched, lane: Lane, now: float) -> dict[str, Any]:
        verdict = lane.verdict
        judged = None if verdict.newest is None else verdict.newest.captured_at
        return {
            "name": lane.brain.name,
            "source": watched.plan.source_id,
            "required": watched.requires(lane),
            "up": lane.brain.name not in self._guard.roster.down,
            "fresh": verdict.fresh(now),
            "verdict_age": _age(judged, now),
            "light": None if verdict.light is None else verdict.light.name,
        }

    def _said_by_robot(self, now: float) -> dict[str, Any] | None:
        if self._robot is None:
            return None
        at, said = self._robot
        return {"age": round(now - at, 3), "moving": said.moving, "speed": said.speed}


def _age(at: float | None, now: float) -> float | None:
    return None if at is None else round(now - at, 3)


def _hazard(hazard: Hazard) -> dict[str, str]:
    return {"category": hazard.category, "severity": hazard.severity, "text": hazard.text}
