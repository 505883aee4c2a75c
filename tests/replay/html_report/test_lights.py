"""What a journal of a real run says over time."""

from dataclasses import replace
from pathlib import Path

import pytest

from hdguard.core import actions, events
from hdguard.core.guard import Guard
from hdguard.core.policy import PRESETS, BrainPlan, SourcePlan
from hdguard.core.types import FrameRef
from hdguard.replay.html_report.lights import Review, Seen, read_lights
from hdguard.runtime.journal import Journal, JournalError


def test_lights_are_at_the_time_of_their_frames_not_of_their_answers(run: Path) -> None:
    lights = read_lights(run / "journals" / "red.mp4.jsonl")
    (answers,) = lights.brains.values()
    assert [seen.at for seen in answers] == sorted(seen.at for seen in answers)
    assert answers[0].kind == "green"
    assert next(seen for seen in answers if seen.kind == "red") == Seen(1.0, "red")
    assert lights.written.startswith("20")


def test_a_review_lasts_from_its_question_to_its_answer(run: Path) -> None:
    lights = read_lights(run / "journals" / "stove.mp4.jsonl")
    (review,) = lights.reviews
    assert review.outcome == "danger"
    assert review.ended is not None
    assert review.asked >= 1.0
    assert review.ended - review.asked == pytest.approx(0.6, abs=0.01)


def test_blind_and_failed_answers_and_reviews_without_one_are_there_too(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    watched = {"sources": (SourcePlan("cam"),), "brains": (BrainPlan("b"),)}
    policy = replace(PRESETS["sidecar"], **watched)  # type: ignore[arg-type]
    journal = Journal(path, Guard(policy, 100.0), 100.0, {})
    refs = [FrameRef("cam", n, 100.0 + n, float(n)) for n in range(6)]
    ask = [actions.RequestReview(n, "cam", refs[n], (refs[n],)) for n in range(3)]
    journal.stepped(100.0, events.FrameSeen(refs[0], kept=True), (ask[0],))
    journal.stepped(101.5, events.CannotSee(refs[1], "b", "dark"), ())
    journal.stepped(102.5, events.BrainFailed("cam", "b", "late", refs[2]), (ask[1],))
    journal.stepped(103.0, events.BrainFailed("cam", "b", "died"), (actions.CancelReview(0),))
    journal.stepped(104.0, events.ReviewFailed(1, "killed"), (ask[2],))
    journal.flush()
    lights = read_lights(path)
    assert lights.brains == {"b": [Seen(1.0, "blind"), Seen(2.0, "failed")]}
    assert lights.reviews == [
        Review(0.0, 3.0, "cancelled"),
        Review(2.5, 4.0, "failed"),
        Review(4.0, None, "open"),
    ]


def test_something_else_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"none\.jsonl"):
        read_lights(tmp_path / "none.jsonl")
