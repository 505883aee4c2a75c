"""What the guard is doing, for probes and people: whether it is ready, and why not.

Being ready is a matter of decisions, not of a web server that answers: it means that the guard has
just decided something, on a fresh picture and a fresh verdict from every required camera and brain,
and that the broker returns what it says. A halted guard that sees all that is ready; one that is
still starting is not. The guard's own books are read when somebody asks, so that nothing shown here
can differ from what it decides by, and nothing is computed while it decides.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.freshness import frame_limits
from hdguard.core.guard import Guard
from hdguard.core.roster import Lane, Watched
from hdguard.core.types import Hazard, Light, Speed, State
from hdguard.observe.advice import advice, because
from hdguard.observe.headline import headline
from hdguard.observe.keeping import Keeping
from hdguard.observe.latency import Latency
from hdguard.observe.sayings import Sayings
from hdguard.observe.timeline import Timeline, sure
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
        self._sayings = Sayings()
        self._latency = Latency(guard.boot)
        self._timeline = Timeline(guard)
        self._shown: tuple[object, ...] = ()
        self.on_change: Callable[[], None] = lambda: None

    # Looking on.

    def judged(self, stamps: Judged | Reviewed) -> None:
        """A brain has answered."""
        self._latency.judged(stamps)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what the guard's books do not keep."""
        for notes in (self._sayings, self._latency, self._timeline):
            notes.stepped(now, event, actions)
        self._step(now, event)
        for action in actions:
            self._note(action)
        shown = (self.state, self._progress, *(w.light for w in self._watched))
        if shown != self._shown:
            self._shown = shown
            self.on_change()

    def _step(self, now: float, event: Event) -> None:
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
    def _watched(self) -> Collection[Watched]:
        return self._guard.roster.sources.values()

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
        for watched in self._watched:
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
        """Everything, as plain data; times are ages in seconds, null where there is none.

        `now` is the time of this report on the guard's clock: of two reports, who reads them can
        tell how much later than the other one came.
        """
        now = self._now()
        unready = self.unready()
        roster = self._guard.roster
        keeping = self._keeping
        mood, sentence = headline(
            self.state, self._speed, self._guard.halt, unready, (*self._wary(), self._why)
        )
        return {
            "now": round(now, 3),
            "mood": mood,
            "headline": sentence,
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
            "sources": [self._source(w, now) for w in self._watched],
            "brains": [self._brain(w, x, now) for w in self._watched for x in w.lanes.values()],
            "slow": self._slow(),
            "robot": self._said_by_robot(now),
            "halt": self.halt(),
            "timeline": self._timeline.report(now),
            "latency": self._latency.report(now),
            "keeping": None if keeping is None else keeping.report(),
        }

    def _wary(self) -> list[str]:
        """What the lights and reviews ask for, in words."""
        found = []
        for watched in self._watched:
            name = watched.plan.source_id
            if watched.light is not None and watched.light > Light.GREEN:
                found.append(f"{name} is {watched.light.name}")
            if watched.desk.open is not None:
                found.append(f"{self._guard.policy.slow} reviews {name}")
            elif watched.desk.caution:
                found.append(f"the review of {name} was overdue")
        return found

    def unreleased(self) -> tuple[str, ...]:
        """What a reset waits for, in words; empty if every required brain is fresh GREEN."""
        now, roster = self._now(), self._guard.roster
        greens = self._guard.policy.release_greens
        found = []
        for watched in self._watched:
            if watched.plan.required:
                found += self._missing(watched, now)
        for watched, lane in roster.required_lanes():
            where = f"{lane.brain.name} on {watched.plan.source_id}"
            verdict = lane.verdict
            if verdict.light is not None and verdict.light is not Light.GREEN:
                found.append(f"{where} is {verdict.light.name}")
            elif verdict.greens.count < greens:
                found.append(f"{where} has said GREEN {verdict.greens.count} of {greens} times")
        return tuple(found)

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
            "because": because(halt),
            "restored": self._timeline.restored(halt.halt_id),
            "age": self._timeline.age(halt.halt_id, self._now()),
            "what_to_do": advice(halt, self._guard.policy),
        }

    def _source(self, watched: Watched, now: float) -> dict[str, Any]:
        name, frame, desk = watched.plan.source_id, watched.frame, watched.desk
        review = None
        if desk.open is not None:
            since = desk.open.due - self._guard.policy.review_deadline
            review = {
                "id": desk.open.review_id,
                "age": round(now - since, 3),
                "due_in": round(desk.open.due - now, 3),
                "waiting": desk.waiting is not None,
            }
        return {
            "name": name,
            "required": watched.plan.required,
            "up": frame.up,
            "ended": frame.ended,
            "trouble": "" if frame.up else watched.trouble,
            "fresh": frame.fresh(now),
            "frame_age": _age(frame.newest, now),
            "stale_after": frame_limits(frame.interval).halt,
            "light": None if watched.light is None else watched.light.name,
            "sure": sure(watched, now),
            "review": review,
            "reviewed": self._sayings.slow(name, now),
        }

    def _brain(self, watched: Watched, lane: Lane, now: float) -> dict[str, Any]:
        verdict = lane.verdict
        name, source = lane.brain.name, watched.plan.source_id
        judged = None if verdict.newest is None else verdict.newest.captured_at
        return {
            "name": name,
            "source": source,
            "required": watched.requires(lane),
            "up": name not in self._guard.roster.down,
            "fresh": verdict.fresh(now),
            "verdict_age": _age(judged, now),
            "light": None if verdict.light is None else verdict.light.name,
            "said": self._sayings.fast(source, name, now),
        }

    def _slow(self) -> dict[str, Any] | None:
        slow = self._guard.policy.slow
        return {"name": slow, "up": slow not in self._guard.roster.down} if slow else None

    def _said_by_robot(self, now: float) -> dict[str, Any] | None:
        if self._robot is None:
            return None
        at, said = self._robot
        return {"age": round(now - at, 3), "moving": said.moving, "speed": said.speed}


def _age(at: float | None, now: float) -> float | None:
    return None if at is None else round(now - at, 3)


def _hazard(hazard: Hazard) -> dict[str, str]:
    return {"category": hazard.category, "severity": hazard.severity, "text": hazard.text}
