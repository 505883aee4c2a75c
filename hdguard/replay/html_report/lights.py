"""What a run's journal says of one video over time: lights by brain, and reviews."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hdguard.core import actions, events
from hdguard.core.events import Event
from hdguard.core.types import FrameRef
from hdguard.runtime.journal import Written, read_journal


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer of a FastBrain: media time of its frame, and a light, "blind" or "failed"."""

    at: float
    kind: str


@dataclass(frozen=True, slots=True)
class Review:
    """A review in seconds of media time; `outcome` is danger, safe, failed, cancelled or open."""

    asked: float
    ended: float | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Lights:
    """A video's story.

    Attributes:
        written: the journal's wall-clock time; empty if it does not say.
        brains: by FastBrain, its answers in the order of their frames.
        reviews: in the order in which they were asked for.
    """

    written: str
    brains: dict[str, list[Seen]] = field(default_factory=dict)
    reviews: list[Review] = field(default_factory=list)


def read_lights(path: Path) -> Lights:
    """Read a journal of a replay.

    Raises:
        JournalError: it is not there, or not of a form that this version reads.
    """
    journal = read_journal(path)
    found = Lights(str(journal.header.get("written", "")))
    for step in journal.steps:
        answer = _answer(step.event)
        if answer is not None:
            brain, seen = answer
            found.brains.setdefault(brain, []).append(seen)
    for answers in found.brains.values():
        answers.sort(key=lambda seen: seen.at)
    found.reviews.extend(_reviews(journal))
    return found


def _answer(event: Event) -> tuple[str, Seen] | None:
    match event:
        case events.FastVerdict():
            return event.brain, Seen(event.ref.media_time, event.light.name.lower())
        case events.CannotSee():
            return event.brain, Seen(event.ref.media_time, "blind")
        case events.BrainFailed(ref=FrameRef() as ref):
            return event.brain, Seen(ref.media_time, "failed")
        case _:
            return None


def _reviews(journal: Written) -> Iterator[Review]:
    asked: dict[int, float] = {}
    origin = 0.0
    for step in journal.steps:
        event = step.event
        if isinstance(event, events.FrameSeen):
            origin = event.ref.captured_at - event.ref.media_time
        at = step.now - origin
        if isinstance(event, events.SlowVerdict) and event.review_id in asked:
            yield Review(asked.pop(event.review_id), at, "danger" if event.danger else "safe")
        elif isinstance(event, events.ReviewFailed) and event.review_id in asked:
            yield Review(asked.pop(event.review_id), at, "failed")
        for action in step.actions:
            if isinstance(action, actions.RequestReview):
                asked[action.review_id] = at
            elif isinstance(action, actions.CancelReview) and action.review_id in asked:
                yield Review(asked.pop(action.review_id), at, "cancelled")
    yield from (Review(at, None, "open") for at in asked.values())
