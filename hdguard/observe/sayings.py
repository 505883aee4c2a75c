"""What each brain said last, in its own words: the guard's books keep lights, people ask why.

Events are kept as they came and put into words when somebody asks.
"""

from typing import Any, assert_never

from hdguard.core import actions, events
from hdguard.core.actions import Action
from hdguard.core.events import BrainEvent, Event, ReviewEvent
from hdguard.core.types import NO_HAZARD, Hazard
from hdguard.runtime.observer import Judged, Reviewed


class Sayings:
    """An `Observer`: the newest answer of each brain on each source, and of each source's review.

    Memory is bounded by the brains and sources, and by the reviews that are open.
    """

    def __init__(self) -> None:
        self._fast: dict[tuple[str, str], tuple[float, BrainEvent]] = {}
        self._remarks: dict[tuple[str, str], events.Remarked] = {}
        self._asked: dict[int, str] = {}
        self._slow: dict[str, tuple[float, ReviewEvent]] = {}

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing: the event that follows says what matters here."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Keep what was said."""
        match event:
            case events.FastVerdict() | events.CannotSee():
                self._fast[event.ref.source_id, event.brain] = (now, event)
            case events.BrainFailed():
                self._fast[event.source_id, event.brain] = (now, event)
            case events.Remarked() if event.hazard != NO_HAZARD:
                self._remarks[event.ref.source_id, event.brain] = event
            case events.SlowVerdict() | events.ReviewFailed():
                if (source := self._asked.pop(event.review_id, None)) is not None:
                    self._slow[source] = (now, event)
            case _:
                pass
        for action in actions:
            self._note(action)

    def _note(self, action: Action) -> None:
        match action:
            case actions.RequestReview():
                self._asked[action.review_id] = action.source_id
            case actions.CancelReview():
                self._asked.pop(action.review_id, None)
            case _:
                pass

    def fast(self, source: str, brain: str, now: float) -> dict[str, Any] | None:
        """What that brain last answered about that source, as plain data; None: nothing yet."""
        kept = self._fast.get((source, brain))
        if kept is None:
            return None
        at, event = kept
        match event:
            case events.FastVerdict():
                said = _said(event.light.name, self._hazard(event))
            case events.CannotSee():
                said = _said("cannot see", Hazard(text=event.reason))
            case events.BrainFailed():
                said = _said("no answer", Hazard(text=event.reason))
            case _:
                assert_never(event)
        return {**said, "age": round(now - at, 3)}

    def _hazard(self, event: events.FastVerdict) -> Hazard:
        """What it said with the verdict, else what it added about that very frame."""
        remark = self._remarks.get((event.ref.source_id, event.brain))
        if event.hazard == NO_HAZARD and remark is not None and remark.ref == event.ref:
            return remark.hazard
        return event.hazard

    def slow(self, source: str, now: float) -> dict[str, Any] | None:
        """How the newest review of that source ended, as plain data; None: none has."""
        kept = self._slow.get(source)
        if kept is None:
            return None
        at, event = kept
        match event:
            case events.SlowVerdict():
                said = _said("danger" if event.danger else "safe", event.hazard)
            case events.ReviewFailed():
                said = _said("no answer", Hazard(text=event.reason))
            case _:
                assert_never(event)
        return {**said, "age": round(now - at, 3)}


def _said(what: str, hazard: Hazard) -> dict[str, str]:
    return {
        "said": what,
        "text": hazard.text,
        "category": hazard.category,
        "severity": hazard.severity,
    }
