"""What brains said last, in their own words."""

from typing import Any

from hdguard.core import events
from hdguard.core.types import FrameRef, Hazard, Light
from tests.observe.support import Watched

CUP = Hazard("C2", "L1", "a cup stands at the edge")


def ref(watched: Watched, seq: int = 90) -> FrameRef:
    return FrameRef("kitchen", seq, watched.now, 1.0)


def said(watched: Watched, brain: int = 0) -> Any:
    return watched.status.report()["brains"][brain]["said"]


def reviewed(watched: Watched) -> Any:
    return watched.status.report()["sources"][0]["reviewed"]


def test_nothing_was_said_before_the_first_answer() -> None:
    assert said(Watched()) is None
    assert reviewed(Watched()) is None


def test_a_verdict_comes_with_its_reason_and_its_age() -> None:
    watched = Watched()
    watched.step(events.FastVerdict(ref(watched), "reflex", Light.YELLOW, CUP))
    watched.now += 0.25
    shown = said(watched)
    assert (shown["said"], shown["text"], shown["age"]) == ("YELLOW", CUP.text, 0.25)
    assert (shown["category"], shown["severity"]) == ("C2", "L1")
    assert said(watched, 1) is None


def test_the_newest_answer_counts_also_if_it_is_none() -> None:
    watched = Watched()
    watched.step(events.FastVerdict(ref(watched), "reflex", Light.YELLOW, CUP))
    watched.step(events.CannotSee(ref(watched, 91), "reflex", "too dark"))
    assert (said(watched)["said"], said(watched)["text"]) == ("cannot see", "too dark")
    watched.step(events.BrainFailed("kitchen", "reflex", "late"))
    assert (said(watched)["said"], said(watched)["text"]) == ("no answer", "late")


def test_a_remark_is_added_to_the_verdict_on_its_own_frame_only() -> None:
    watched = Watched()
    first, second = ref(watched, 90), ref(watched, 91)
    watched.step(events.FastVerdict(first, "reflex", Light.YELLOW))
    watched.step(events.Remarked(first, "reflex", CUP))
    assert said(watched)["text"] == CUP.text
    watched.step(events.FastVerdict(second, "reflex", Light.GREEN))
    assert said(watched)["text"] == ""


def test_a_review_is_shown_while_it_is_open_and_then_what_it_found() -> None:
    watched = Watched()
    watched.starts()
    watched.now += 0.2
    watched.sees(Light.YELLOW)
    watched.now += 0.3
    review = watched.status.report()["sources"][0]["review"]
    deadline = watched.guard.policy.review_deadline
    assert (review["id"], review["age"], review["waiting"]) == (1, 0.3, True)
    assert review["due_in"] == round(deadline - 0.3, 3)
    watched.step(events.SlowVerdict(1, danger=False, hazard=Hazard(text="the cup is far away")))
    assert (reviewed(watched)["said"], reviewed(watched)["text"]) == ("safe", "the cup is far away")


def test_what_is_said_of_an_unknown_or_cancelled_review_is_not_shown() -> None:
    watched = Watched()
    watched.starts()
    watched.step(events.SlowVerdict(9, danger=False))
    assert reviewed(watched) is None
    watched.now += 0.2
    watched.sees(Light.YELLOW)
    watched.step(events.HaltRequested("anna"))  # it cancels the review
    watched.step(events.SlowVerdict(1, danger=True, hazard=CUP))
    assert reviewed(watched) is None


def test_a_review_that_failed_says_of_what() -> None:
    watched = Watched()
    watched.starts()
    watched.now += 0.2
    watched.sees(Light.YELLOW)
    watched.step(events.ReviewFailed(1, "unparsed"))
    assert (reviewed(watched)["said"], reviewed(watched)["text"]) == ("no answer", "unparsed")
