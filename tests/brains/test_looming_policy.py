"""The reflex's rules by themselves: agreement, expectation, sudden motion, the latch."""

from dataclasses import replace

import pytest

from hdguard.brains.looming_policy import (
    Latch,
    Looming,
    Sudden,
    agree,
    comes_at_us,
    everything_shown,
)
from hdguard.brains.regions import Body
from hdguard.core.types import Light

INF = float("inf")
WALL = Body(0, 0.9, 224 + 126j, 448, 252, INF, 0.0, 0.0, measured=True, parents=(0,))
BOX = Body(1, 0.1, 224 + 126j, 140, 140, 2.0, 0.0, 0.0, measured=True, parents=(1,))
LOST = replace(BOX, tau=INF, miss=INF, measured=False)


def test_one_prediction_is_no_contact_two_are() -> None:
    looming = Looming()
    assert looming.update(0.0, (WALL, BOX)) is None
    contact = looming.update(0.2, (WALL, replace(BOX, tau=1.8)))
    assert contact is not None
    assert contact.instant == pytest.approx(2.0)
    assert contact.tau(0.5) == pytest.approx(1.5)
    assert not contact.background


@pytest.mark.parametrize(
    "change",
    [{"tau": 4.0}, {"size": 0.009}, {"miss": 1.0}, {"measured": False}, {"parents": (0,)}],
    ids=str,
)
def test_a_second_prediction_must_agree_be_large_hit_and_be_of_the_same_body(
    change: dict[str, object],
) -> None:
    looming = Looming()
    looming.update(0.0, (WALL, BOX))
    assert looming.update(0.2, (WALL, replace(BOX, **{"tau": 1.8, **change}))) is None  # type: ignore[arg-type]


def test_instants_agree_within_a_third_of_the_time_left() -> None:
    assert agree(2.0, 5.0, 5.79)
    assert not agree(2.0, 5.0, 5.81)
    assert agree(0.1, 5.0, 5.23)  # a tenth of a second before contact the limit is that of 0.4 s


def test_what_fills_the_picture_keeps_its_history_as_background() -> None:
    looming = Looming()
    looming.update(0.0, (WALL, BOX))
    contact = looming.update(0.2, (replace(WALL, tau=1.8, parents=(1,)),))
    assert contact is not None
    assert contact.background


def test_a_body_that_is_no_longer_measured_is_still_expected_for_a_second() -> None:
    looming = Looming()
    looming.update(0.0, (WALL, BOX))
    agreed = looming.update(0.2, (WALL, replace(BOX, tau=1.8)))
    for t in (0.4, 0.6, 0.8, 1.0, 1.2):
        assert looming.update(t, (WALL, LOST)) == agreed
    assert looming.update(1.4, (WALL, LOST)) is None


def test_a_body_that_is_measured_and_does_not_come_is_not_expected() -> None:
    looming = Looming()
    looming.update(0.0, (WALL, BOX))
    looming.update(0.2, (WALL, replace(BOX, tau=1.8)))
    assert looming.update(0.4, (WALL, replace(BOX, tau=INF))) is None


def test_after_forgetting_two_new_predictions_are_needed() -> None:
    looming = Looming()
    looming.update(0.0, (WALL, BOX))
    looming.forget()
    assert looming.update(0.2, (WALL, replace(BOX, tau=1.8))) is None


def test_a_prediction_older_than_a_second_confirms_nothing() -> None:
    looming = Looming()
    looming.update(0.0, (WALL, BOX))
    assert looming.update(1.1, (WALL, replace(BOX, tau=0.9))) is None


def test_only_what_is_measured_near_and_on_our_path_comes_at_us() -> None:
    assert comes_at_us(BOX)
    assert not any(comes_at_us(b) for b in (LOST, replace(BOX, miss=1.2), replace(BOX, tau=INF)))


def usual(speed: float) -> Sudden:
    sudden = Sudden()
    for _ in range(10):
        assert sudden.update((WALL, replace(BOX, speed=speed)), 0.9, 0.0) is None
    return sudden


def test_a_body_that_is_suddenly_fast_is_noticed() -> None:
    fast = replace(BOX, speed=0.6)
    assert usual(0.02).update((WALL, fast), 0.9, 0.0) == fast


def test_fast_is_not_sudden_where_it_is_usual() -> None:
    assert usual(0.55).update((WALL, replace(BOX, speed=0.6)), 0.9, 0.0) is None


@pytest.mark.parametrize(
    ("speed", "inliers", "camera"), [(0.39, 0.9, 0.0), (0.6, 0.49, 0.0), (0.6, 0.9, 0.31)]
)
def test_slow_bodies_unclear_pictures_and_a_moving_camera_are_not_sudden(
    speed: float, inliers: float, camera: float
) -> None:
    fast = replace(BOX, speed=speed)
    assert usual(0.02).update((WALL, fast), inliers, camera) is None


def test_a_first_look_at_fast_motion_is_not_sudden() -> None:
    assert Sudden().update((WALL, replace(BOX, speed=0.9)), 0.9, 0.0) is None


def test_yellow_is_left_after_a_clear_second_not_before() -> None:
    latch = Latch()
    assert latch.update(0.0, Light.YELLOW, shown=True) is Light.YELLOW
    assert latch.update(0.8, Light.GREEN, shown=True) is Light.YELLOW
    assert latch.update(1.0, Light.GREEN, shown=True) is Light.GREEN


def test_a_flicker_of_yellow_starts_the_second_again() -> None:
    latch = Latch()
    latch.update(0.0, Light.YELLOW, shown=True)
    latch.update(0.8, Light.YELLOW, shown=True)
    assert latch.update(1.6, Light.GREEN, shown=True) is Light.YELLOW


def test_red_waits_until_something_is_shown_however_long() -> None:
    latch = Latch()
    latch.update(0.0, Light.RED, shown=True)
    for t in (0.5, 1.5, 5.0, 50.0):
        assert latch.update(t, Light.GREEN, shown=False) is Light.RED
    assert latch.update(50.2, Light.GREEN, shown=True) is Light.RED
    assert latch.update(51.0, Light.GREEN, shown=True) is Light.GREEN


def test_red_falls_to_yellow_where_yellow_is_still_wanted() -> None:
    latch = Latch()
    latch.update(0.0, Light.RED, shown=True)
    assert latch.update(0.5, Light.YELLOW, shown=True) is Light.RED
    assert latch.update(1.2, Light.YELLOW, shown=True) is Light.YELLOW


def test_a_large_body_that_is_not_measured_is_not_shown() -> None:
    assert everything_shown((WALL, BOX))
    assert not everything_shown((WALL, LOST))
    assert everything_shown((WALL, replace(LOST, size=0.02)))
    assert not everything_shown((replace(WALL, measured=False),))
