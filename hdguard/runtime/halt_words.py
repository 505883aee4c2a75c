"""A halt's story in words for people: what brought it about, its stages, and how it ended."""

from collections.abc import Iterator
from dataclasses import dataclass

from hdguard.core.types import HaltCause
from hdguard.runtime.halt_story import HaltStory, Stamps

TOLD = (
    "captured",
    "sampled",
    "given",
    "assessed",
    "asked",
    "answered",
    "decided",
    "delivered",
    "acknowledged",
    "confirmed",
)
"""The stages of a halt that goes well, in their order."""

MEANS = {
    "captured": "the camera took the frame",
    "sampled": "chosen for the FastBrain",
    "given": "the FastBrain got it",
    "assessed": "its answer came",
    "asked": "a review was requested",
    "answered": "the review's answer came",
    "decided": "the guard decided to halt",
    "delivered": "the broker had it",
    "acknowledged": "the robot had it",
    "confirmed": "the robot stood still",
}

CALLED = {
    "yellow": "called it YELLOW",
    "blind": "could not see on it",
    "failed": "gave no answer to it",
    "": "had it reviewed",
}

SAID: dict[HaltCause, str] = {
    HaltCause.STALE_FRAME: "no clean frame of {source}{waited}",
    HaltCause.FROZEN_FRAME: "the picture of {source} did not change{waited}, and the robot moved",
    HaltCause.STALE_VERDICT: "no verdict of {brain} on {source}{waited}",
    HaltCause.BLIND: "{brain} could see nothing on {source}{waited}",
    HaltCause.BRAIN_FAILED: "{brain} failed on {source} again and again{text}",
    HaltCause.BRAIN_LATCHED: "{brain} died so often that it is not started any more",
    HaltCause.STOPPING: "hdguard was asked to end",
    HaltCause.OPERATOR: "an operator halted the robot{text}",
}
"""The causes that no frame has."""


NOT_HEARD_OF = "the broker never had it"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage that was reached.

    Attributes:
        name: of the stamp.
        at: seconds on the loop's clock.
        after: seconds since `zero`.
        took: seconds since the stage before it; None: it is the first.
    """

    name: str
    at: float
    after: float
    took: float | None


def zero(story: HaltStory) -> float:
    """What times count from: the capture; without a frame, when there was last what is missing.

    Else the decision. Seconds on the loop's clock.
    """
    stamps = story.stamps
    known = (stamps.captured, story.since, stamps.decided)
    return next((time for time in known if time is not None), 0.0)


def stages(story: HaltStory) -> tuple[Stage, ...]:
    """Those that were reached, oldest first: a robot may have it before the broker says so."""
    stamps = ((name, getattr(story.stamps, name)) for name in TOLD)
    reached: list[tuple[str, float]] = [(name, at) for name, at in stamps if at is not None]
    found: list[Stage] = []
    begin, before = zero(story), story.since
    for name, at in sorted(reached, key=lambda each: each[1]):
        found.append(Stage(name, at, at - begin, None if before is None else at - before))
        before = at
    return tuple(found)


def because(story: HaltStory) -> str:
    """What brought it about, in one sentence without its stop."""
    said = f": {story.hazard.text.rstrip('.')}" if story.hazard.text else ""
    source = story.source_id or "a camera"
    brain = story.brain or "a brain"
    if story.restored and story.ref is None:
        earlier = f"in force since an earlier life ({story.cause}{said})"
        return earlier if not story.source_id else f"{earlier}, about {story.source_id}"
    if story.cause is HaltCause.FAST_RED:
        return f"{brain} called {_frame(story)} RED{said or ', no reason given'}"
    if story.ref is not None:
        return f"{story.called_by or 'a FastBrain'} {_reviewed(story, brain)}{said}"
    waited = "" if story.since is None else f" for {_decided(story.stamps) - story.since:.1f} s"
    words = SAID.get(story.cause, f"{story.cause}{{text}}")
    return words.format(source=source, brain=brain, waited=waited, text=said)


def _frame(story: HaltStory) -> str:
    ref = story.ref
    return "a frame" if ref is None else f"frame {ref.seq} of {ref.source_id}"


def _reviewed(story: HaltStory, brain: str) -> str:
    called = CALLED[story.called].replace("it", _frame(story), 1)
    stamps = story.stamps
    if stamps.asked is None:
        return f"{called}, and {brain} was not there to review it"
    which = "the review" if story.review_id is None else f"review {story.review_id}"
    review = f"{called}, {which} by {brain}"
    if story.cause is HaltCause.SLOW_DANGER:
        answered = stamps.answered if stamps.answered is not None else _decided(stamps)
        return f"{review} said danger after {milliseconds(answered - stamps.asked)}"
    waited = milliseconds(_decided(stamps) - stamps.asked)
    if story.why:
        return f"{review} failed after {waited}: {story.why}"
    return f"{review} was not answered in {waited}"


def _decided(stamps: Stamps) -> float:
    return 0.0 if stamps.decided is None else stamps.decided


def heard_of(story: HaltStory) -> bool:
    """True if the broker had it: a robot that answers proves that, too."""
    stamps = story.stamps
    heard = (stamps.delivered, stamps.acknowledged, stamps.confirmed)
    return any(at is not None for at in heard)


def ending(story: HaltStory) -> Iterator[str]:
    """What became of it, line by line: what the robot did not do, and how it ended."""
    stamps, decided = story.stamps, _decided(story.stamps)
    if stamps.escalated is not None:
        after = milliseconds(stamps.escalated - decided)
        yield f"escalated after {after}: the robot had not acknowledged it"
    if not heard_of(story):
        yield NOT_HEARD_OF if not story.restored else f"{NOT_HEARD_OF} from this start of the guard"
    elif stamps.confirmed is None:
        heard = "has it, but" if stamps.acknowledged is not None else "never acknowledged it, and"
        yield f"the robot {heard} never said that it stands still"
    if stamps.released is not None:
        by = f"reset by {story.released_by}" if story.released_by else "it ended by itself"
        yield f"released after {stamps.released - decided:.1f} s: {by}"
    elif story.superseded_by:
        yield f"superseded by halt {story.superseded_by}"
    elif story.cause is HaltCause.STOPPING:
        yield "the next start of hdguard ends it"
    else:
        yield "still in force when last heard of"


def block(story: HaltStory) -> Iterator[str]:
    """The whole of it, line by line: a heading, the cause, a table of its stages, its end."""
    known = f" {story.at[:19].replace('T', ' ')} UTC" if story.at else ""
    when = f", decided{known}" if known else ""
    if story.restored:
        when = f", taken over{known} by start {story.boot} of the guard"
    yield f"halt {story.halt_id}: {story.halt_class}, {story.cause}{when}"
    yield f"  {because(story)}"
    yield f"  {'':12}  {_since(story):>20}  {'since the step before':>21}"
    for stage in stages(story):
        took = "" if stage.took is None else f"{stage.took:.4f} s"
        taken_over = story.restored and stage.name == "decided"
        means = "the guard took it over" if taken_over else MEANS[stage.name]
        yield f"  {stage.name:12}  {stage.after:18.4f} s  {took:>21}  {means}"
    for line in ending(story):
        yield f"  {line}"


def _since(story: HaltStory) -> str:
    if story.stamps.captured is not None:
        return "since the capture"
    if story.since is not None:
        return "since the last one"
    return "since the takeover" if story.restored else "since the decision"


def milliseconds(seconds: float) -> str:
    """A duration for people: a tenth of a millisecond where that is seen."""
    value = seconds * 1000.0
    return f"{value:.1f} ms" if abs(value) < 10.0 else f"{value:.0f} ms"
