"""Whoever was there, and whoever reads the journal afterwards, tell the same story of a halt."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.types import NO_HAZARD, FrameRef, HaltCause, HaltClass, Hazard, Light
from hdguard.runtime import halt_stories
from hdguard.runtime.explain import halts
from hdguard.runtime.halt_stories import MOST_KEPT, MOST_STORIES, HaltStories
from hdguard.runtime.halt_story import HaltStory, Stamps
from hdguard.runtime.journal import Journal, read_journal
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Pipeline
from tests.core.story import Story, frame, watching
from tests.fakes import (
    GREEN,
    RED,
    YELLOW,
    ListSource,
    Says,
    ScriptedFastSeat,
    ScriptedSlowSeat,
    SilentActuator,
    every,
)
from tests.runtime.rig import Played, play

TICK = events.DeadlineReached()


@dataclass
class Tape:
    """An observer that keeps all that it is told, times unrounded."""

    said: list[Callable[[halt_stories.HaltStories | Journal], None]] = field(default_factory=list)

    def judged(self, stamps: Judged | Reviewed) -> None:
        self.said.append(lambda to: to.judged(stamps))

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        self.said.append(lambda to: to.stepped(now, event, actions))


def seen(times: float = 4.0) -> ListSource:
    return ListSource(every(0.1, times), stays=True)


def red(stories: HaltStories, tape: Tape) -> Played:
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: Says(RED, 0.0137)})
    return play(3.0, seen(), fast=[fast], observers=(stories, tape))


def reviewed(stories: HaltStories, tape: Tape) -> Played:
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW})
    slow = ScriptedSlowSeat({0.0: True}, latency=0.3)
    return play(3.0, seen(), fast=[fast], slow=slow, observers=(stories, tape))


def overdue(stories: HaltStories, tape: Tape) -> Played:
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: GREEN})
    slow = ScriptedSlowSeat({0.0: True}, latency=1.2)
    return play(4.0, seen(), fast=[fast], slow=slow, observers=(stories, tape))


def stale(stories: HaltStories, tape: Tape) -> Played:
    source = ListSource([*every(0.1, 1.0), *every(0.1, 8.0)[30:]], stays=True)
    return play(8.0, source, fast=[ScriptedFastSeat()], observers=(stories, tape))


def unanswered(stories: HaltStories, tape: Tape) -> Played:
    def script(pipeline: Pipeline) -> None:
        pipeline._loop.call_at(1.0, pipeline.dispatch, events.HaltRequested("ada"))

    looking = (stories, tape)
    return play(3.0, seen(), actuator=SilentActuator, observers=looking, script=script)


Run = Callable[[HaltStories, Tape], Played]


def told(run: Run) -> HaltStory:
    stories = HaltStories(0)
    run(stories, Tape())
    return stories.stories[-1]


def rounded(stamps: Stamps) -> dict[str, float]:
    found = {name: getattr(stamps, name) for name in Stamps.__dataclass_fields__}
    return {name: round(at, 6) for name, at in found.items() if at is not None}


# What is told.


def test_a_red_frame_is_told_from_its_capture_to_the_robots_standstill() -> None:
    story = told(red)
    assert (story.halt_id, story.cause, story.brain, story.called_by) == (
        "0-1",
        "fast_red",
        "fast",
        "fast",
    )
    assert story.ref == FrameRef("cam", 10, 1.0, 1.0)
    assert rounded(story.stamps) == {
        "captured": 1.0,
        "sampled": 1.0,
        "given": 1.0,
        "assessed": 1.0137,
        "decided": 1.0137,
        "delivered": 1.0137,
        "acknowledged": 1.0137,
        "confirmed": 1.7137,
    }
    assert not story.ended


def test_a_review_is_told_with_who_asked_for_it_and_when_it_answered() -> None:
    story = told(reviewed)
    assert (story.cause, story.brain) == ("slow_danger", "slow")
    assert (story.called_by, story.called, story.review_id) == ("fast", "yellow", 1)
    assert story.hazard.text == "a pan on fire"
    stamps = rounded(story.stamps)
    assert (stamps["captured"], stamps["assessed"], stamps["asked"]) == (1.0, 1.01, 1.01)
    assert stamps["answered"] == stamps["decided"] == 1.31


def test_a_review_that_nobody_answered_has_no_answer_though_one_comes_later() -> None:
    story = told(overdue)
    assert story.cause == "review_overdue"
    stamps = rounded(story.stamps)
    assert (stamps["asked"], stamps["decided"]) == (1.01, 2.01)
    assert "answered" not in stamps


def test_silence_is_told_from_the_last_frame_and_ends_by_itself() -> None:
    story = told(stale)
    assert (story.cause, story.source_id, story.ref) == ("stale_frame", "cam", None)
    assert story.since == 1.0
    stamps = rounded(story.stamps)
    assert stamps["decided"] == 2.0
    assert "captured" not in stamps
    assert stamps["released"] > 6.0
    assert story.released_by == ""


def test_a_robot_that_does_not_answer_is_told_of() -> None:
    story = told(unanswered)
    assert (story.halt_class, story.hazard.text) == ("operator", "asked by ada")
    assert rounded(story.stamps) == {"decided": 1.0, "delivered": 1.0, "escalated": 1.5}
    assert story.escalated


@pytest.mark.parametrize("run", [red, reviewed, overdue, stale, unanswered])
def test_the_journal_of_a_run_tells_the_same_story_to_the_digit(run: Run, tmp_path: Path) -> None:
    live, tape = HaltStories(0), Tape()
    played = run(live, tape)
    path = tmp_path / "j.jsonl"
    journal = Journal(path, played.pipeline.guard, 0.0, {})
    for said in tape.said:
        said(journal)
    journal.flush()
    again = halts(read_journal(path))
    assert live.stories
    assert [replace(story, at="") for story in again] == [
        replace(story, at="") for story in live.stories
    ]


def test_the_wall_clock_is_the_one_at_the_decision_and_in_a_journal_the_headers(
    tmp_path: Path,
) -> None:
    live, tape = HaltStories(0), Tape()
    played = red(live, tape)
    path = tmp_path / "j.jsonl"
    journal = Journal(path, played.pipeline.guard, 0.0, {})
    for said in tape.said:
        said(journal)
    journal.flush()
    text = re.sub(r'"written":"[^"]+"', '"written":"2026-01-02T03:04:05+00:00"', path.read_text())
    path.write_text(text)
    assert halts(read_journal(path))[0].at == "2026-01-02T03:04:06.013700+00:00"
    path.write_text(text.replace("2026-01-02T03:04:05+00:00", "one fine day"))
    assert halts(read_journal(path))[0].at == ""
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+\+00:00", live.stories[0].at)


# What belongs to what.


def judged(brain: str, at: float, answered: float) -> Judged:
    return Judged(brain, frame(at), at + 0.001, at + 0.002, answered)


def halt(number: int = 1, **changes: object) -> Halt:
    plain = Halt(f"7-{number}", HaltClass.DANGER, HaltCause.FAST_RED, "cam", "fast", decided_at=1.0)
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_of_two_brains_that_judged_a_frame_the_one_that_called_it_gives_the_stamps() -> None:
    stories = HaltStories(7)
    stories.judged(judged("other", 1.0, 1.1))
    stories.judged(judged("fast", 1.0, 1.2))
    stories.judged(judged("fast", 1.2, 1.3))
    stories.stepped(1.3, TICK, (halt(ref=frame(1.0)),))
    assert stories.stories[0].stamps.assessed == 1.2
    stories.stepped(2.0, TICK, (halt(2, ref=frame(1.0), brain="third"),))
    assert stories.stories[1].stamps.captured == 1.0
    assert stories.stories[1].stamps.assessed is None


@pytest.mark.parametrize(
    ("event", "called"),
    [
        (events.FastVerdict(frame(1.0), "fast", YELLOW), "yellow"),
        (events.CannotSee(frame(1.0), "fast", "dark"), "blind"),
        (events.BrainFailed("cam", "fast", "late", frame(1.0)), "failed"),
    ],
)
def test_what_had_a_review_opened_is_known(event: Event, called: str) -> None:
    stories = HaltStories(7)
    asked = actions.RequestReview(5, "cam", frame(1.0), (frame(1.0),))
    stories.judged(judged("fast", 1.0, 1.1))
    stories.stepped(1.1, event, (asked,))
    for n in range(2 * MOST_KEPT):  # a review may outlast every stamp
        stories.judged(judged("fast", 2.0 + n, 2.0 + n))
        stories.stepped(2.0 + n, events.FastVerdict(frame(2.0 + n), "fast", YELLOW), ())
    failed = events.ReviewFailed(5, "killed")
    stories.judged(Reviewed("slow", 5, frame(1.0), 1.1, 900.0))
    danger = halt(cause=HaltCause.REVIEW_OVERDUE, brain="slow", ref=frame(1.0))
    stories.stepped(900.0, failed, (danger,))
    (story,) = stories.stories
    assert (story.called_by, story.called, story.review_id) == ("fast", called, 5)
    assert (story.stamps.assessed, story.stamps.asked) == (1.1, 1.1)
    assert story.stamps.answered is None  # that it failed is no answer
    assert story.why == "killed"


def test_of_the_reviews_of_several_cameras_the_one_about_its_frame_counts() -> None:
    stories = HaltStories(7)
    for number, ref in enumerate((frame(1.0), frame(1.0, "other")), start=5):
        asked = actions.RequestReview(number, ref.source_id, ref, (ref,))
        stories.stepped(1.1, events.FastVerdict(ref, "fast", YELLOW), (asked,))
    danger = halt(cause=HaltCause.SLOW_DANGER, brain="slow", ref=frame(1.0))
    stories.stepped(1.4, events.SlowVerdict(5, danger=True), (danger,))
    assert stories.stories[0].review_id == 5


def test_a_slow_brain_that_was_down_was_not_asked() -> None:
    story = Story(watching())
    stories = HaltStories(7)

    def step(at: float, event: Event) -> None:
        stories.stepped(at, event, story.guard.step(event, at))

    story.monitoring()
    step(0.65, events.BrainDown("slow"))
    stories.judged(judged("fast", 0.8, 0.81))
    step(0.81, events.FastVerdict(frame(0.8), "fast", YELLOW))
    (told,) = stories.stories
    assert (told.cause, told.review_id, told.called_by) == ("review_overdue", None, "fast")
    assert (told.stamps.assessed, told.stamps.asked) == (0.81, None)


def since(cause: HaltCause, *happened: Event) -> float | None:
    stories = HaltStories(7)
    for event in happened:
        stories.stepped(5.0, event, ())
    stories.stepped(9.0, TICK, (halt(cause=cause),))
    return stories.stories[0].since


def test_what_is_missing_is_told_from_when_it_was_there_last() -> None:
    frames = [events.FrameSeen(frame(t), frozen=t > 2.0) for t in (1.0, 2.0, 3.0, 2.5)]
    blind = events.CannotSee(frame(4.0), "fast", "dark")
    words = (events.FastVerdict(frame(3.0), "fast", GREEN), blind)
    others = (
        events.FrameSeen(frame(8.0, "other")),
        events.FastVerdict(frame(8.0), "another", GREEN),
    )
    happened: Sequence[Event] = (*frames, *words, *others)
    assert since(HaltCause.STALE_FRAME, *happened) == 3.0
    assert since(HaltCause.FROZEN_FRAME, *happened) == 2.0
    assert since(HaltCause.STALE_VERDICT, *happened) == 4.0
    assert since(HaltCause.BLIND, *happened) == 3.0
    still = [events.FrameSeen(frame(t), frozen=True) for t in (1.0, 2.0)]
    assert since(HaltCause.FROZEN_FRAME, *still) == 1.0  # from the very first frame on
    assert since(HaltCause.OPERATOR, *happened) is None
    assert since(HaltCause.STALE_FRAME) is None


def test_only_the_first_receipt_counts_and_only_of_its_own_halt() -> None:
    stories = HaltStories(7)
    stories.stepped(1.0, TICK, (halt(),))
    for at in (1.1, 1.2):
        stories.stepped(at, events.HaltDelivered("7-1"), (halt(repeat=1),))
        stories.stepped(at, events.HaltAcknowledged("7-1"), ())
        stories.stepped(at, events.HaltConfirmed("7-1"), ())
        stories.stepped(at, events.HaltDelivered("6-9"), ())
    (story,) = stories.stories
    stamps = story.stamps
    assert (stamps.delivered, stamps.acknowledged, stamps.confirmed) == (1.1, 1.1, 1.1)


def test_a_reset_names_its_operator_and_an_end_by_itself_nobody() -> None:
    stories = HaltStories(7)
    stories.stepped(1.0, TICK, (halt(1),))
    stories.stepped(2.0, events.ResetRequested("7-1", "ada"), (actions.Release("7-1"),))
    stories.stepped(3.0, TICK, (halt(2),))
    stories.stepped(4.0, TICK, (actions.Release("7-2"), actions.Release("6-4")))
    stories.stepped(5.0, TICK, (halt(3),))
    stray = events.ResetRequested("7-1", "ada")  # it is refused while the fault ends by itself
    stories.stepped(6.0, stray, (actions.Release("7-3"),))
    assert [(s.released_by, s.stamps.released, s.superseded_by) for s in stories.stories] == [
        ("ada", 2.0, ""),
        ("", 4.0, ""),
        ("", 6.0, ""),
    ]


def test_a_halt_that_takes_the_place_of_another_is_named_in_it() -> None:
    stories = HaltStories(7)
    stories.stepped(1.0, TICK, (halt(1, halt_class=HaltClass.FAULT),))
    stories.stepped(2.0, TICK, (halt(2),))
    first, second = stories.stories
    assert (first.superseded_by, second.superseded_by) == ("7-2", "")


def test_a_halt_of_an_earlier_life_is_told_without_what_led_to_it() -> None:
    stories = HaltStories(8)
    stories.stepped(0.5, events.FrameSeen(frame(0.5)), ())
    restored = halt(cause=HaltCause.STALE_FRAME, decided_at=0.6)
    stories.stepped(0.6, TICK, (restored,))
    stories.stepped(0.7, events.HaltConfirmed("7-1"), ())
    (story,) = stories.stories
    assert story.restored
    assert (story.since, story.stamps) == (None, Stamps(decided=0.6, confirmed=0.7))


def test_a_reason_that_comes_after_the_verdict_is_added_unless_one_is_there() -> None:
    why = Hazard("C1", "L2", "a blade")
    stories = HaltStories(7)
    stories.stepped(1.0, TICK, (halt(ref=frame(1.0)),))
    for remark in (
        events.Remarked(frame(1.2), "fast", why),
        events.Remarked(frame(1.0), "another", why),
        events.Remarked(frame(1.0), "fast"),
    ):
        stories.stepped(1.1, remark, ())
        assert stories.stories[0].hazard == NO_HAZARD
    stories.stepped(1.2, events.Remarked(frame(1.0), "fast", why), ())
    assert stories.stories[0].hazard == why
    stories.stepped(1.3, events.Remarked(frame(1.0), "fast", Hazard(text="more")), ())
    assert stories.stories[0].hazard == why


# Bounds.


def test_every_change_is_told_once_and_nothing_else() -> None:
    heard: list[HaltStory] = []
    stories = HaltStories(7)
    stories.on_change(heard.append)
    stories.stepped(0.5, events.FrameSeen(frame(0.5)), ())
    stories.stepped(1.0, TICK, (halt(),))
    stories.stepped(1.1, events.HaltDelivered("7-1"), (halt(repeat=1),))
    stories.stepped(1.2, events.HaltDelivered("7-1"), (halt(repeat=2),))
    assert [story.stamps.delivered for story in heard] == [None, 1.1]
    assert heard[-1] is stories.get("7-1")
    assert stories.get("7-2") is None


def test_memory_is_bounded() -> None:
    stories = HaltStories(7)
    for n in range(3 * MOST_STORIES):
        ref = frame(float(n))
        stories.judged(judged("fast", float(n), n + 0.1))
        asked = actions.RequestReview(n, "cam", ref, (ref,))
        doubt = events.FastVerdict(ref, "fast", Light.YELLOW)
        stories.stepped(n + 0.1, doubt, (asked, halt(n), actions.Release(f"7-{n}")))
    assert len(stories.stories) == MOST_STORIES
    assert stories.stories[-1].halt_id == f"7-{3 * MOST_STORIES - 1}"
    assert len(stories._stamps["fast"]) == MOST_KEPT
    assert len(stories._doubts) == len(stories._reviews) == MOST_KEPT
