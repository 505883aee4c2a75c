"""Tells each halt's story as it happens, or again from a journal's steps: the same, to the digit.

What may turn out to belong to a halt is kept for a while: the stamps of frames, who doubted which
frame, and the reviews that came of it.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.types import NO_HAZARD, FrameRef, HaltCause, Light
from hdguard.runtime.halt_story import Called, HaltStory, Stamps
from hdguard.runtime.observer import Judged, Reviewed

K = TypeVar("K")
V = TypeVar("V")

MOST_STORIES = 100
MOST_KEPT = 64
"""Stamps kept of one brain, and reviews and doubts remembered; a choice: 13 s at 5 FPS, which is
longer than any FastBrain may take. A review keeps the stamps of its own frame."""


def wall_clock(now: float) -> str:
    """The time for people, whatever the loop's clock says."""
    return datetime.now(UTC).isoformat()  # noqa: TID251 - for people; nothing is decided by it


@dataclass(slots=True)
class _Review:
    """A review that was asked for."""

    review_id: int
    trigger: FrameRef
    asked: float
    stamps: Judged | None
    called_by: str
    called: Called
    answered: float | None = None
    why: str = ""


@dataclass(slots=True)
class _Seen:
    """What came last of each source, and of each brain on it: seconds of capture."""

    frame: dict[str, float] = field(default_factory=dict)
    change: dict[str, float] = field(default_factory=dict)
    answer: dict[tuple[str, str], float] = field(default_factory=dict)
    sight: dict[tuple[str, str], float] = field(default_factory=dict)

    def came(self, event: events.FrameSeen) -> None:
        """A frame; the very first of a source proves neither rest nor change."""
        source, at = event.ref.source_id, event.ref.captured_at
        self.frame[source] = max(at, self.frame.get(source, at))
        if not event.frozen or source not in self.change:
            self.change[source] = at

    def answered(self, event: events.FastVerdict | events.CannotSee) -> None:
        """A brain answered."""
        pair, at = (event.ref.source_id, event.brain), event.ref.captured_at
        at = self.answer[pair] = max(at, self.answer.get(pair, at))
        if isinstance(event, events.FastVerdict):
            self.sight[pair] = at

    def since(self, halt: Halt) -> float | None:
        """When that was there last whose absence is this halt's cause."""
        match halt.cause:
            case HaltCause.STALE_FRAME:
                return self.frame.get(halt.source_id)
            case HaltCause.FROZEN_FRAME:
                return self.change.get(halt.source_id)
            case HaltCause.STALE_VERDICT:
                return self.answer.get((halt.source_id, halt.brain))
            case HaltCause.BLIND:
                return self.sight.get((halt.source_id, halt.brain))
            case _:
                return None


class HaltStories:
    """An `Observer` that tells the newest halts. Nothing here waits or writes.

    Args:
        boot: of the guard.
        wall: the wall clock at a time on the loop's clock, ISO 8601 in UTC.
    """

    def __init__(self, boot: int, wall: Callable[[float], str] = wall_clock) -> None:
        self._boot = boot
        self._wall = wall
        self._stories: OrderedDict[str, HaltStory] = OrderedDict()
        self._listeners: list[Callable[[HaltStory], None]] = []
        self._stamps: dict[str, OrderedDict[FrameRef, Judged]] = {}
        self._doubts: OrderedDict[FrameRef, tuple[str, Called]] = OrderedDict()
        self._reviews: OrderedDict[int, _Review] = OrderedDict()
        self._seen = _Seen()

    @property
    def stories(self) -> tuple[HaltStory, ...]:
        """The newest halts, the newest last."""
        return tuple(self._stories.values())

    def get(self, halt_id: str) -> HaltStory | None:
        """The story of that halt, if it is one of the newest."""
        return self._stories.get(halt_id)

    def on_change(self, listener: Callable[[HaltStory], None]) -> None:
        """Have this called with every new or changed story, in the decision step: be quick."""
        self._listeners.append(listener)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Keep them: they may be a halt's."""
        if isinstance(stamps, Judged):
            kept = self._stamps.setdefault(stamps.brain, OrderedDict())
            _keep(kept, stamps.ref, stamps)
        elif (review := self._reviews.get(stamps.review_id)) is not None:
            review.answered = stamps.assessed

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what happened, and what became of the halts."""
        self._happened(now, event)
        for action in actions:
            self._decided(now, event, action)

    # What happened.

    def _happened(self, now: float, event: Event) -> None:
        match event:
            case events.FrameSeen():
                self._seen.came(event)
            case events.FastVerdict():
                self._seen.answered(event)
                if event.light is Light.YELLOW:
                    self._doubted(event.ref, event.brain, "yellow")
            case events.CannotSee():
                self._seen.answered(event)
                self._doubted(event.ref, event.brain, "blind")
            case events.BrainFailed() if event.ref is not None:
                self._doubted(event.ref, event.brain, "failed")
            case events.Remarked() if event.hazard.text:
                self._remarked(event)
            case events.ReviewFailed():
                if (review := self._reviews.get(event.review_id)) is not None:
                    review.answered, review.why = None, event.reason
            case events.HaltDelivered():
                self._reached("delivered", event.halt_id, now)
            case events.HaltAcknowledged():
                self._reached("acknowledged", event.halt_id, now)
            case events.HaltConfirmed():
                self._reached("confirmed", event.halt_id, now)
            case _:
                pass

    def _doubted(self, ref: FrameRef, brain: str, called: Called) -> None:
        _keep(self._doubts, ref, (brain, called))

    def _remarked(self, event: events.Remarked) -> None:
        for story in self.stories:
            is_its = story.ref == event.ref and story.called_by == event.brain
            if is_its and story.hazard == NO_HAZARD:
                self._tell(replace(story, hazard=event.hazard))

    def _reached(self, stage: str, halt_id: str, now: float) -> None:
        """The first time counts: a halt is repeated until the robot confirms."""
        story = self._stories.get(halt_id)
        if story is not None and getattr(story.stamps, stage) is None:
            stamps: Stamps = replace(story.stamps, **{stage: now})
            self._tell(replace(story, stamps=stamps))

    # What was decided.

    def _decided(self, now: float, event: Event, action: Action) -> None:
        match action:
            case Halt(repeat=0):
                self._supersede(action.halt_id)
                self._tell(self._begun(now, action))
            case actions.Escalate():
                self._reached("escalated", action.halt_id, now)
            case actions.Release():
                self._released(now, event, action.halt_id)
            case actions.RequestReview():
                self._asked(now, action)
            case _:
                pass

    def _asked(self, now: float, action: actions.RequestReview) -> None:
        ref = action.trigger
        called_by, called = self._doubts.get(ref, ("", ""))
        stamps = self._stamps_of(called_by, ref)
        review = _Review(action.review_id, ref, now, stamps, called_by, called)
        _keep(self._reviews, action.review_id, review)

    def _supersede(self, halt_id: str) -> None:
        """At most one halt is in force, and it is the newest."""
        if self._stories:
            newest = next(reversed(self._stories.values()))
            if not newest.ended and newest.halt_id != halt_id:
                self._tell(replace(newest, superseded_by=halt_id))

    def _released(self, now: float, event: Event, halt_id: str) -> None:
        story = self._stories.get(halt_id)
        if story is None:
            return
        by = ""
        if isinstance(event, events.ResetRequested) and event.halt_id == halt_id:
            by = event.operator
        stamps = replace(story.stamps, released=now)
        self._tell(replace(story, stamps=stamps, released_by=by))

    def _begun(self, now: float, halt: Halt) -> HaltStory:
        told = HaltStory(
            halt_id=halt.halt_id,
            halt_class=halt.halt_class,
            cause=halt.cause,
            boot=self._boot,
            source_id=halt.source_id,
            brain=halt.brain,
            ref=halt.ref,
            light=halt.light,
            hazard=halt.hazard,
            latched=halt.latched,
            at=self._wall(now),
            stamps=Stamps(decided=halt.decided_at),
        )
        if told.restored:
            return told  # what led to it was on a clock that is gone
        if halt.ref is None:
            return replace(told, since=self._seen.since(halt))
        if halt.cause is HaltCause.FAST_RED:
            mine = self._stamps_of(halt.brain, halt.ref)
            stamps = _stamps(halt.decided_at, halt.ref, mine)
            return replace(told, called_by=halt.brain, stamps=stamps)
        return self._of_review(told, halt.decided_at, halt.ref)

    def _of_review(self, told: HaltStory, decided: float, ref: FrameRef) -> HaltStory:
        """A source has one review open at most: it is the newest about this frame."""
        about = (r for r in reversed(self._reviews.values()) if r.trigger == ref)
        review = next(about, None)
        if review is None:  # the SlowBrain was down, and was not asked
            called_by, called = self._doubts.get(ref, ("", ""))
            stamps = _stamps(decided, ref, self._stamps_of(called_by, ref))
            return replace(told, called_by=called_by, called=called, stamps=stamps)
        stamps = _stamps(decided, ref, review.stamps)
        return replace(
            told,
            called_by=review.called_by,
            called=review.called,
            review_id=review.review_id,
            why=review.why,
            stamps=replace(stamps, asked=review.asked, answered=review.answered),
        )

    def _stamps_of(self, brain: str, ref: FrameRef) -> Judged | None:
        kept = self._stamps.get(brain)
        return None if kept is None else kept.get(ref)

    def _tell(self, story: HaltStory) -> None:
        self._stories[story.halt_id] = story
        if len(self._stories) > MOST_STORIES:
            self._stories.popitem(last=False)
        for listener in self._listeners:
            listener(story)


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    """Put it in, and let the oldest go."""
    kept[key] = value
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def _stamps(decided: float, ref: FrameRef, mine: Judged | None) -> Stamps:
    """What is known at the decision."""
    if mine is None:
        return Stamps(captured=ref.captured_at, decided=decided)
    return Stamps(ref.captured_at, mine.sampled, mine.given, mine.assessed, decided=decided)
