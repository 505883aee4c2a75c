"""What the guard decided, in the log: one line for a step that somebody wants to know of.

Most steps change nothing; they are not said, nor is anything said twice. A halt that time alone has
brought is a line of its own, before the one of the event that came then. Every line has an id,
`decision`: the guard's boot and a number. Only values are handed over here, in the decision
step; another thread puts them into words.
"""

from collections.abc import Iterator

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.types import HaltCause, Speed
from hdguard.runtime.decision_line import (
    ERROR,
    ESCALATED,
    EVENT,
    HALT,
    INFO,
    RELEASED,
    REVIEW,
    SPEED,
    STATE,
    WARNING,
    DecisionLine,
    Words,
    of_hazard,
)
from hdguard.runtime.happenings import Happenings
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.structured import get_logger

log = get_logger(__name__)

OF_AGE = frozenset({HaltCause.STALE_FRAME, HaltCause.STALE_VERDICT, HaltCause.BLIND})
"""Causes that no event has."""


class DecisionLog:
    """An `Observer` that says what was decided.

    Args:
        guard: whose decisions they are.
        numbers: of the lines; they go on where another guard of the same boot has ended.
    """

    def __init__(self, guard: Guard, numbers: Iterator[int]) -> None:
        self._guard = guard
        self._numbers = numbers
        self._happenings = Happenings(guard)
        self._state = guard.state
        self._speed = Speed.NONE
        self._why = ""

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Keep how long it took; the event that follows says what it was."""
        self._happenings.judged(stamps)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Say what this step decided, if it is worth a line."""
        happened = DecisionLine()
        self._happenings.say(happened, event, now)
        decided = DecisionLine() if any(_is_overdue(a, event) for a in actions) else happened
        for action in actions:
            self._decided(decided, action, now)
        if isinstance(event, events.ResetRequested):
            self._reset(happened, event, actions)
        for line in dict.fromkeys((decided, happened)):
            self._say(line)

    def _say(self, line: DecisionLine) -> None:
        if not line.name:
            return
        state, speed = self._guard.state, self._speed.name.lower()
        words = line.words(state=state, speed=speed, light=self._guard.roster.light.name)
        number = f"{self._guard.boot}.{next(self._numbers)}"
        log.log(line.level, line.name, decision=number, **words)

    def _reset(
        self, line: DecisionLine, event: events.ResetRequested, decided: tuple[Action, ...]
    ) -> None:
        words: Words = {"halt_id": event.halt_id, "operator": event.operator}
        if actions.Release(event.halt_id) in decided:
            line.say(EVENT, "reset", **words)
            return
        if line.rank == RELEASED:  # another halt, which has ended by itself
            words["refused"] = words.pop("halt_id")
        halt = self._guard.halt
        in_force = "none" if halt is None else halt.halt_id
        line.say(EVENT, "reset refused", WARNING, in_force=in_force, why=self._why, **words)

    # What was decided.

    def _decided(self, line: DecisionLine, action: Action, now: float) -> None:
        match action:
            case Halt():
                self._halted(line, action, now)
            case actions.Release():
                line.say(RELEASED, "released", halt_id=action.halt_id)
            case actions.Escalate():
                reason = "the robot has not acknowledged it"
                line.say(ESCALATED, "escalated", ERROR, halt_id=action.halt_id, reason=reason)
            case actions.RequestReview():
                age, count = now - action.trigger.captured_at, len(action.refs)
                words: Words = {"review": action.review_id, "source": action.source_id}
                line.say(REVIEW, "review requested", **words, frames=count, age=age)
            case actions.CancelReview():
                line.say(REVIEW, "review cancelled", cancelled=action.review_id)
            case actions.Notify():
                self._why = action.why
                if action.state is not self._state:
                    line.say(STATE, "state changed", from_state=self._state, why=action.why)
                    self._state = action.state
            case actions.Permit():
                if action.speed is not self._speed:
                    was = self._speed.name.lower()
                    line.say(SPEED, "speed changed", from_speed=was, why=self._why)
                    self._speed = action.speed
            case actions.SetSampleRate():
                pass

    def _halted(self, line: DecisionLine, halt: Halt, now: float) -> None:
        ours = halt.halt_id.startswith(f"{self._guard.boot}-")
        if not self._happenings.halts.raised(halt, ours=ours):
            return
        name = "halt" if ours else "halt restored"
        level = INFO if halt.cause is HaltCause.STOPPING else WARNING
        frame_age, verdict_age = self._ages(halt.source_id, now)
        line.say(
            HALT,
            name,
            level,
            halt_id=halt.halt_id,
            **{"class": halt.halt_class, "cause": halt.cause},
            source=halt.source_id,
            brain=halt.brain,
            light=None if halt.light is None else halt.light.name,
            latched=halt.latched or None,
            capture_to_halt=now - halt.ref.captured_at if ours and halt.ref else None,
            frame_age=frame_age,
            verdict_age=verdict_age,
            **of_hazard(halt.hazard),
        )

    def _ages(self, source_id: str, now: float) -> tuple[float | None, float | None]:
        """Of the newest frame and the oldest verdict of that source; of none: as in permits."""
        watched = self._guard.roster.sources.get(source_id)
        if watched is None:
            return self._guard.roster.ages(now)
        refs = [x.verdict.newest for x in watched.lanes.values() if x.brain.required]
        judged = [now - ref.captured_at for ref in refs if ref is not None]
        verdict_age = max(judged) if judged and len(judged) == len(refs) else None
        seen = watched.frame.newest
        return None if seen is None else now - seen, verdict_age


def _is_overdue(action: Action, event: Event) -> bool:
    """True for a halt that came of a time that has passed, and not of this event."""
    if not isinstance(action, Halt) or action.repeat:
        return False
    if action.cause is not HaltCause.REVIEW_OVERDUE:
        return action.cause in OF_AGE
    if isinstance(event, events.ReviewFailed | events.BrainDown):
        return False
    return getattr(event, "ref", None) != action.ref
