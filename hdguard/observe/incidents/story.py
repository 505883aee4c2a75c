"""What happened around an incident, told from its excerpt of the journal."""

import re
from collections.abc import Iterator
from dataclasses import fields

import msgspec

from hdguard.core import actions, events
from hdguard.core.types import FrameRef, Hazard, Speed
from hdguard.observe.incidents.record import Decision, Happening, Incident, Moment, moment
from hdguard.runtime.halt_stories import HaltStories
from hdguard.runtime.halt_story import HaltStory, Stamps
from hdguard.runtime.journal import Step, Written
from hdguard.runtime.observer import Judged, Reviewed

_SHOWN_FOR_ITS_ACTIONS = (events.FrameSeen, events.DeadlineReached)

_LIBERTY = {
    Speed.NONE: "the robot may not move",
    Speed.REDUCED: "the robot may move at reduced speed",
    Speed.FULL: "the robot may move at full speed",
}


def in_order(written: Written) -> Iterator[Step | Judged | Reviewed]:
    """As it came: the stamps of an answer stand before the step that says what it was."""
    stamps = [(s.assessed, 0, s) for s in written.stamps]
    steps = [(s.now, 1, s) for s in written.steps]
    for _, _, value in sorted([*stamps, *steps], key=lambda each: each[:2]):
        yield value


def happenings(written: Written, zero: float) -> tuple[Happening, ...]:
    """Every event, action and answer's stamps of the excerpt, in order."""
    return tuple(_happenings(written, zero))


def _happenings(written: Written, zero: float) -> Iterator[Happening]:
    for each in in_order(written):
        shown: tuple[object, ...] = (each,)
        at = each.now if isinstance(each, Step) else each.assessed
        if isinstance(each, Step):
            shown = (each.event, *each.actions)[isinstance(each.event, _SHOWN_FOR_ITS_ACTIONS) :]
        for value in shown:
            yield Happening(
                at=at,
                after=moment(at, zero).after,
                what=type(value).__name__,
                of=msgspec.to_builtins(value),
                words=words(value),
            )


def words(value: object) -> str:
    """An event or action in one line for people."""
    match value:
        case Judged() | Reviewed():
            what = _frame(value.ref if isinstance(value, Judged) else value.trigger)
            return f"{value.brain} took {(value.assessed - value.given) * 1000:.0f} ms for {what}"
        case events.FastVerdict():
            late = " (late)" if value.late else ""
            return f"{value.brain}: {value.light.name}{late} {_frame(value.ref)}{_of(value.hazard)}"
        case events.CannotSee():
            return f"{value.brain} cannot see {_frame(value.ref)}: {value.reason}"
        case events.BrainFailed():
            return f"{value.brain} failed: {value.reason}"
        case events.Remarked():
            seen = f"; sees {', '.join(value.sights)}" if value.sights else ""
            return f"{value.brain} adds {_frame(value.ref)}{_of(value.hazard)}{seen}"
        case events.SlowVerdict():
            said = "danger" if value.danger else "safe"
            return f"review {value.review_id}: {said}{_of(value.hazard)}"
        case events.RobotSeen():
            speed = "" if value.speed is None else f" at {value.speed:g} m/s"
            return f"the robot {'moves' if value.moving else 'stands'}{speed}"
        case actions.Permit():
            return _LIBERTY[value.speed]
        case actions.Halt():
            return f"HALT {value.halt_id} ({value.halt_class}, {value.cause}){_of(value.hazard)}"
        case actions.RequestReview():
            return f"review {value.review_id} asked for {_frame(value.trigger)}"
        case actions.Notify():
            said = value.why.removeprefix(f"{value.state}: ")
            return f"{value.state}: {said}" if said else str(value.state)
        case _:
            return _plain(value)


def _plain(value: object) -> str:
    """A name in plain words, and what it is about."""
    of: dict[str, object] = msgspec.to_builtins(value)
    said = " ".join(str(v) for v in of.values() if isinstance(v, str) and v)
    name = re.sub("(?<!^)([A-Z])", r" \1", type(value).__name__).lower()
    return f"{name}{f': {said}' if said else ''}"


def _frame(ref: FrameRef) -> str:
    return f"frame {ref.seq} of {ref.source_id}"


def _of(hazard: Hazard) -> str:
    said = " ".join(filter(None, (hazard.category, hazard.severity, hazard.text)))
    return f": {said}" if said else ""


def told(written: Written, incident: Incident) -> HaltStory | None:
    """The halt's story; None for a review without a halt, and where the excerpt has none."""
    stories = HaltStories(written.boot, lambda _: incident.wall.decided)
    for each in in_order(written):
        if isinstance(each, Step):
            stories.stepped(each.now, each.event, each.actions)
        else:
            stories.judged(each)
    return stories.get(incident.decision.halt_id)


def stamps(written: Written, decision: Decision, story: HaltStory | None) -> dict[str, Moment]:
    """When each stage was reached; stages that were not are left out."""
    reached = _of_review(written, decision) if story is None else story.stamps
    found = {f.name: getattr(reached, f.name) for f in fields(Stamps)}
    zero = decision.zero
    return {name: moment(at, zero) for name, at in found.items() if at is not None}


def _of_review(written: Written, decision: Decision) -> Stamps:
    """The stages of a review that made no halt."""
    asked = [
        step.now
        for step in written.steps
        for action in step.actions
        if isinstance(action, actions.RequestReview) and action.review_id == decision.review_id
    ]
    answered = [
        stamp.assessed
        for stamp in written.stamps
        if isinstance(stamp, Reviewed) and stamp.review_id == decision.review_id
    ]
    return Stamps(
        captured=None if decision.trigger is None else decision.trigger.captured_at,
        asked=asked[-1] if asked else None,
        answered=answered[-1] if answered else None,
        decided=decision.decided,
    )
