"""What the SlowBrain is shown."""

import itertools

import pytest

from hdguard.core import actions, events
from hdguard.core.policy import Window
from hdguard.core.review_window import SIGHT_AGAIN, SPAN, KeyFrames, ReviewWindow
from hdguard.core.types import Hazard, Light
from tests.core.story import GREEN, YELLOW, Story, frame, only


def filled(window: Window, *times: float) -> ReviewWindow:
    made = ReviewWindow(window)
    for t in times:
        made.keep(frame(t))
    return made


def shown(window: ReviewWindow, trigger: float) -> list[float]:
    return [r.captured_at for r in window.around(frame(trigger))]


def fifths(until: float, start: float = 0.0) -> list[float]:
    """Times at 5 FPS."""
    return [k / 5 for k in range(round(start * 5), round(until * 5) + 1)]


def keys(window: ReviewWindow, until: float) -> list[float]:
    """The key frames of the past that are left when nothing new came until then."""
    for t in fifths(until, until - 2.0):
        window.keep(frame(t))
    return [t for t in shown(window, until) if t < until - 1.5]


def test_released_shows_the_last_four_of_ten() -> None:
    window = filled("released", *fifths(3.8))
    assert shown(window, 3.8)[-1] == 3.8
    assert len(shown(window, 3.8)) == 4


def test_released_shows_fewer_when_there_are_fewer() -> None:
    assert shown(filled("released", 0.0, 1.0), 1.0) == [0.0, 1.0]


def test_paper_shows_now_and_the_newest_at_or_before_one_and_two_seconds_ago() -> None:
    window = filled("paper", 0.0, 1.0, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0)
    assert shown(window, 3.0) == [1.0, 2.0, 3.0]
    assert shown(filled("paper", 0.0, 1.0, 1.4, 2.4), 2.4) == [0.0, 1.4, 2.4]
    assert shown(filled("paper", 2.0), 2.0) == [2.0]


def test_a_frame_from_after_the_trigger_is_never_shown() -> None:
    for window in ("paper", "released", "memory"):
        assert max(shown(filled(window, 0.0, 1.0, 2.0, 3.0), 2.0)) == 2.0


# Memory: changes of light.


def test_memory_keeps_the_last_eight_and_the_frame_before_each_change_of_light() -> None:
    window = ReviewWindow("memory")
    for t in fifths(19.8):
        window.keep(frame(t))
        window.judged(frame(t), Light.YELLOW if t in {3.0, 3.2, 11.0} else Light.GREEN)
    old = [t for t in shown(window, 19.8) if t < 18.0]
    assert old == [2.8, 3.2, 10.8, 11.0]
    assert len(shown(window, 19.8)) == 4 + 8


def test_a_change_before_the_first_kept_frame_has_nothing_to_remember() -> None:
    window = ReviewWindow("memory")
    window.judged(frame(0.0), Light.GREEN)
    window.judged(frame(0.2), Light.YELLOW)
    assert window.held == ()


def test_a_flickering_light_does_not_wash_out_the_change_long_before_it() -> None:
    window = ReviewWindow("memory")
    for t in fifths(40.0):
        window.keep(frame(t))
        flicker = t > 20.0 and round(t * 5) % 2 == 1
        window.judged(frame(t), Light.YELLOW if t == 3.0 or flicker else Light.GREEN)
    assert shown(window, 40.0)[0] == 2.8


def test_a_flickering_light_does_not_wash_out_scenes_and_sights() -> None:
    window = ReviewWindow("memory")
    for t in fifths(40.0):
        window.keep(frame(t), scene_change=t == 5.0)
        if t == 8.0:
            window.named(frame(t), ("a child",))
        window.judged(frame(t), Light.YELLOW if round(t * 5) % 2 else Light.GREEN)
    assert {4.8, 5.0, 8.0} <= set(shown(window, 40.0))


# Memory: scenes.


def test_memory_keeps_the_last_frame_of_the_old_scene_and_the_first_of_the_new() -> None:
    window = ReviewWindow("memory")
    for t in fifths(10.0):
        window.keep(frame(t), scene_change=t == 4.0)
    assert keys(window, 30.0) == [3.8, 4.0]


def test_a_scene_that_changes_with_the_first_frame_has_no_old_one() -> None:
    window = ReviewWindow("memory")
    window.keep(frame(0.0), scene_change=True)
    assert keys(window, 30.0) == [0.0]


# Memory: sights.


def seen(*named: tuple[float, str]) -> ReviewWindow:
    """Frames at 5 FPS, and at these times something is named in the frame just kept."""
    window = ReviewWindow("memory")
    for t in fifths(max(at for at, _ in named)):
        window.keep(frame(t))
        for at, name in named:
            if at == t:
                window.named(frame(t), (name,))
    return window


def test_the_first_sight_of_a_child_is_kept_and_not_each_further_one() -> None:
    assert keys(seen((2.0, "child"), (3.0, "child"), (4.0, "pan"), (5.0, "child")), 30.0) == [2, 4]


def test_who_comes_back_after_a_minute_is_a_first_sight_again() -> None:
    gone = SIGHT_AGAIN + 2.0
    assert keys(seen((2.0, "child"), (gone, "child"), (gone + 1.0, "child")), 90.0) == [2.0, gone]
    stays = [(float(t), "child") for t in range(2, 100, 10)]
    assert keys(seen(*stays), 120.0) == [2.0]


@pytest.mark.parametrize(
    ("at", "stands_for_it"),
    [(2.1, 2.0), (2.0, 2.0), (0.3, 1.6)],
    ids=["between two kept frames", "kept", "not held any more"],
)
def test_a_remark_on_a_frame_that_is_not_held_keeps_the_nearest(
    at: float, stands_for_it: float
) -> None:
    window = filled("memory", *fifths(3.0))
    window.named(frame(at), ("child",))
    assert keys(window, 30.0) == [stands_for_it]


def test_a_remark_before_the_first_kept_frame_keeps_nothing() -> None:
    window = ReviewWindow("memory")
    window.named(frame(0.0), ("child",))
    assert window.held == ()


def test_a_remark_reaches_the_memory_through_the_guard_and_changes_nothing_else() -> None:
    with_remark, without = Story().monitoring(), Story().monitoring()
    for story in (with_remark, without):
        for t in fifths(8.0, 0.8):
            story.at(t, events.FrameSeen(frame(t), kept=True))
            story.at(t, events.FastVerdict(frame(t), "fast", GREEN))
            if t == 2.0 and story is with_remark:
                remark = events.Remarked(frame(t), "fast", Hazard("C3", "L4"), ("child",))
                assert story.at(t, remark, events.Remarked(frame(t, "attic"), "fast")) == []
    assert with_remark.said == without.said
    refs = [
        only(actions.RequestReview, story.verdict(8.1, YELLOW)).refs
        for story in (with_remark, without)
    ]
    assert set(refs[0]) - set(refs[1]) == {frame(2.0)}


# Memory: its bounds.


def test_memory_is_bounded_whatever_happens() -> None:
    window = ReviewWindow("memory")
    for k in range(1000):
        window.keep(frame(k / 5), scene_change=k % 3 == 0)
        window.judged(frame(k / 5), Light.YELLOW if k % 2 else Light.GREEN)
        window.named(frame(k / 5), (f"thing {k}",))
        assert len(window.around(frame(k / 5 + 0.1))) <= 24
    assert len(window._named) <= SIGHT_AGAIN * 5


def test_what_is_ten_minutes_old_is_forgotten() -> None:
    window = ReviewWindow("memory")
    window.keep(frame(0.0), scene_change=True)
    for t in range(1, round(SPAN) + 1):
        window.keep(frame(float(t)))
    assert shown(window, SPAN)[0] == 0.0
    window.keep(frame(SPAN + 1.0))
    assert shown(window, SPAN + 1.0)[0] > 500.0


def test_what_is_recent_is_kept_denser_than_what_is_old() -> None:
    kept = KeyFrames(6)
    for t in range(0, 1000, 10):
        kept.add(frame(float(t)))
    times = [r.captured_at for r in kept.refs]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert (times[0], times[-1]) == (0.0, 990.0)
    assert gaps == sorted(gaps, reverse=True)


def test_a_key_frame_that_comes_late_is_put_in_its_place_and_none_twice() -> None:
    kept = KeyFrames(3)
    for t in (4.0, 2.0, 4.0):
        kept.add(frame(t))
    assert [r.captured_at for r in kept.refs] == [2.0, 4.0]
