"""Small numbers that others rely on."""

import math

import pytest

from hdguard.core import actions, events
from hdguard.core.policy import kill_after
from hdguard.core.types import ImageSpec, Scores
from tests.core.story import YELLOW, Story, frame, only


def test_a_call_is_killed_after_a_second_and_a_half_or_three_deadlines() -> None:
    assert kill_after(0.4) == 1.5
    assert kill_after(1.0) == 3.0


def test_the_largest_picture_of_a_spec() -> None:
    assert ImageSpec(448, 448).max_bytes == 448 * 448 * 3
    assert ImageSpec(448).max_bytes == 448 * 4 * 448 * 3


def test_the_pictures_of_a_waiting_trigger_are_held() -> None:
    s = Story().monitoring()
    s.at(0.75, events.FrameSeen(frame(0.75), kept=True))
    review = only(actions.RequestReview, s.verdict(0.8, YELLOW))
    assert review.refs == (frame(0.75), frame(0.8))
    s.verdict(1.0, YELLOW)
    assert s.guard.held("cam") == {frame(0.75), frame(1.0)}


@pytest.mark.parametrize("times", [(1.0, 0.9), (1.0, 1.0)])
def test_an_older_frame_than_the_newest_changes_no_age(times: tuple[float, float]) -> None:
    s = Story().monitoring()
    for t in times:
        s.at(1.0, events.FrameSeen(frame(t)))
    s.until(1.9)
    assert s.halts() == []
    s.until(2.0)
    assert [h.decided_at for h in s.halts()] == [2.0]


def test_the_mass_of_scores_is_the_probability_of_any_label() -> None:
    scores = Scores(math.log(0.5), math.log(0.25), math.log(0.125))
    assert scores.mass == pytest.approx(0.875)


@pytest.mark.parametrize("wrong", [math.nan, -math.inf, math.inf])
def test_a_score_that_is_no_number_is_refused_where_it_is_made(wrong: float) -> None:
    for place in range(3):
        values = [-1.0, -1.0, -1.0]
        values[place] = wrong
        with pytest.raises(ValueError, match="scores must be finite"):
            Scores(*values)
