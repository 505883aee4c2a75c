"""What the SlowBrain is shown."""

from hdguard.core.policy import Window
from hdguard.core.review_window import ReviewWindow
from hdguard.core.types import Light
from tests.core.story import frame


def filled(window: Window, *times: float) -> ReviewWindow:
    made = ReviewWindow(window)
    for t in times:
        made.keep(frame(t))
    return made


def shown(window: ReviewWindow, trigger: float) -> list[float]:
    return [r.captured_at for r in window.around(frame(trigger))]


def test_released_shows_the_last_four_of_ten() -> None:
    window = filled("released", *[k / 5 for k in range(20)])
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


def test_memory_keeps_the_last_eight_and_the_frame_before_each_change_of_light() -> None:
    window = ReviewWindow("memory")
    for k in range(100):
        t = k / 5
        window.keep(frame(t))
        window.judged(frame(t), Light.YELLOW if t in {3.0, 3.2, 11.0} else Light.GREEN)
    old = [t for t in shown(window, 19.8) if t < 18.0]
    assert old == [2.8, 3.2, 10.8, 11.0]
    assert len(shown(window, 19.8)) == 4 + 8


def test_memory_is_bounded_however_often_the_light_changes() -> None:
    window = ReviewWindow("memory")
    for k in range(1000):
        window.keep(frame(k / 5))
        window.judged(frame(k / 5), Light.YELLOW if k % 2 else Light.GREEN)
    assert len(window.held) <= 16


def test_a_change_before_the_first_kept_frame_has_nothing_to_remember() -> None:
    window = ReviewWindow("memory")
    window.judged(frame(0.0), Light.GREEN)
    window.judged(frame(0.2), Light.YELLOW)
    assert window.held == ()
