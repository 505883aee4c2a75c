"""What an event means to whoever reads the decision log; nothing is said twice.

A camera may be tried for days, a brain may fail on every frame, a halt is repeated until the robot
stands: what is remembered here is how far each of them was told already.
"""

from hdguard.core import events
from hdguard.core.actions import Halt
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.types import FrameRef, Light
from hdguard.runtime.decision_line import (
    ERROR,
    EVENT,
    LIGHT,
    SPEED,
    WARNING,
    DecisionLine,
    Words,
    of_hazard,
)
from hdguard.runtime.observer import Judged, Reviewed

MOST_REASONS = 8
"""Reasons that are said of one source until it is back: it may be tried again for days."""

Pair = tuple[str, str]
"""A source and a brain."""


class ToldHalt:
    """How far the newest halt has come, so that repeats are not said."""

    def __init__(self) -> None:
        self.halt_id = ""
        self.decided_at: float | None = None
        self._said: set[str] = set()

    def raised(self, halt: Halt, *, ours: bool) -> bool:
        """False if it is a repeat."""
        if halt.halt_id == self.halt_id:
            return False
        self.halt_id = halt.halt_id
        self.decided_at = halt.decided_at if ours else None  # of another life's clock
        self._said.clear()
        return True

    def first(self, halt_id: str, what: str) -> bool:
        """True once for each."""
        if halt_id != self.halt_id or what in self._said:
            return False
        self._said.add(what)
        return True


class Happenings:
    """Puts events into words.

    Args:
        guard: to whom they happen; it has handled the event already.
    """

    def __init__(self, guard: Guard) -> None:
        self.halts = ToldHalt()
        self._guard = guard
        self._stamps: Judged | Reviewed | None = None
        self._lights: dict[Pair, Light] = {}
        self._troubles: dict[Pair, str] = {}
        self._sources: dict[str, set[str] | None] = {}
        """Why a source is lost; None: it is up."""
        self._down: set[str] = set()

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Keep how long it took; the event that follows says what it was."""
        self._stamps = stamps

    # A branch for each event that is said.
    def say(self, line: DecisionLine, event: Event, now: float) -> None:  # noqa: C901, PLR0912
        """Add to the line of this step what happened in it, if anybody wants to know."""
        match event:
            case events.FastVerdict() | events.CannotSee() | events.BrainFailed():
                self._answered(line, event, now)
            case events.SlowVerdict() | events.ReviewFailed():
                self._reviewed(line, event)
            case events.SourceUp() | events.SourceLost() | events.SourceEnded():
                self._source(line, event)
            case events.BrainDown() | events.BrainUp():
                self._worker(line, event)
            case (
                events.HaltDelivered()
                | events.HaltAcknowledged()
                | events.HaltConfirmed()
                | events.HaltFailed()
            ):
                self._progressed(line, event, now)
            case events.Remarked():
                halt = self._guard.halt
                if halt is not None and halt.ref == event.ref and event.hazard.text:
                    words: Words = {"halt_id": halt.halt_id, "brain": event.brain}
                    line.say(EVENT, "remark on the halt", **words, **of_hazard(event.hazard))
            case events.HaltRequested():
                line.say(EVENT, "halt asked", operator=event.operator)
            case events.LinkLost():
                line.say(EVENT, "the broker does not return our permits", WARNING)
            case events.LinkUp():
                line.say(EVENT, "the broker returns our permits")
            case events.SelfTestPassed():
                line.say(EVENT, "self-test passed")
            case events.StopRequested():
                line.say(EVENT, "stopping")
            case _:
                pass

    def _answered(self, line: DecisionLine, event: events.BrainEvent, now: float) -> None:
        ref = event.ref
        source = event.source_id if isinstance(event, events.BrainFailed) else event.ref.source_id
        pair = (source, event.brain)
        lane = self._guard.roster.lane(*pair)
        if lane is None:
            return
        words: Words = {
            "source": source,
            "brain": event.brain,
            **self._times(ref, event.brain, now),
        }
        match event:
            case events.FastVerdict():
                taken = lane.verdict.newest == ref  # not a late answer, nor one to an old frame
                if taken and self._troubles.pop(pair, ""):
                    line.say(SPEED, "judges again", **words)
                words |= of_hazard(event.hazard)
            case events.CannotSee() if self._troubles.get(pair) != "blind":
                self._troubles[pair] = "blind"
                line.say(LIGHT, "cannot see", reason=event.reason, **words)
            case events.BrainFailed() if self._troubles.get(pair) != "failed":
                self._troubles[pair] = "failed"
                line.say(LIGHT, "no verdict", WARNING, reason=event.reason, **words)
            case _:
                pass
        before, light = self._lights.get(pair), lane.verdict.light
        if light is not None and light is not before:  # as the guard took it: old news count not
            self._lights[pair] = light
            was = before.name if before is not None else None
            line.say(LIGHT, "light changed", verdict=light.name, was=was, **words)

    def _times(self, ref: FrameRef | None, brain: str, now: float) -> dict[str, float]:
        """Seconds since the frame's capture, and those that the brain had it."""
        if ref is None:
            return {}
        stamps, times = self._stamps, {"age": now - ref.captured_at}
        if isinstance(stamps, Judged) and (stamps.brain, stamps.ref) == (brain, ref):
            times["judged_in"] = stamps.assessed - stamps.given
        return times

    def _reviewed(self, line: DecisionLine, event: events.ReviewEvent) -> None:
        stamps, took = self._stamps, None
        if isinstance(stamps, Reviewed) and stamps.review_id == event.review_id:
            took = stamps.assessed - stamps.given
        words: Words = {"review": event.review_id, "reviewed_in": took}
        if isinstance(event, events.ReviewFailed):
            line.say(EVENT, "review failed", WARNING, reason=event.reason, **words)
        else:
            name = "review says danger" if event.danger else "review says safe"
            line.say(EVENT, name, **words, **of_hazard(event.hazard))

    def _source(
        self, line: DecisionLine, event: events.SourceUp | events.SourceLost | events.SourceEnded
    ) -> None:
        name = event.source_id
        if isinstance(event, events.SourceEnded):
            line.say(EVENT, "source ended", source=name)
        elif isinstance(event, events.SourceUp):
            if self._sources.get(name, set()) is not None:
                self._sources[name] = None
                line.say(EVENT, "source up", source=name)
        else:
            said = self._sources.get(name) or set()
            if event.reason not in said and len(said) < MOST_REASONS:
                self._sources[name] = {*said, event.reason}
                line.say(EVENT, "source lost", WARNING, source=name, reason=event.reason)

    def _worker(self, line: DecisionLine, event: events.BrainDown | events.BrainUp) -> None:
        if isinstance(event, events.BrainDown):
            if event.latched:
                line.say(EVENT, "brain down for good", ERROR, brain=event.brain)
            elif event.brain not in self._down:
                line.say(EVENT, "brain down", WARNING, brain=event.brain)
            self._down.add(event.brain)
        elif event.brain in self._down:
            self._down.discard(event.brain)
            line.say(EVENT, "brain up", brain=event.brain)

    def _progressed(
        self,
        line: DecisionLine,
        event: events.HaltDelivered
        | events.HaltAcknowledged
        | events.HaltConfirmed
        | events.HaltFailed,
        now: float,
    ) -> None:
        decided_at = self.halts.decided_at
        words: Words = {
            "halt_id": event.halt_id,
            "after": None if decided_at is None else now - decided_at,
        }
        match event:
            case events.HaltDelivered() if self.halts.first(event.halt_id, "delivered"):
                line.say(EVENT, "halt delivered", **words)
            case events.HaltAcknowledged() if self.halts.first(event.halt_id, "acknowledged"):
                line.say(EVENT, "halt acknowledged", **words)
            case events.HaltConfirmed() if self.halts.first(event.halt_id, "confirmed"):
                line.say(EVENT, "halt confirmed", **words)
            case events.HaltFailed() if self.halts.first(event.halt_id, "failed"):
                line.say(EVENT, "halt not delivered", WARNING, reason=event.reason, **words)
            case _:
                pass
