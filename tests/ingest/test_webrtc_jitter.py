"""When pictures after a gap are smeared, when they are only late or rare, and how late they are."""

import pytest

from hdguard.ingest.webrtc_jitter import Delay, LossWatch

STEP = 0.04


def steady(watch: LossWatch, count: int = 10) -> None:
    for n in range(count):
        assert watch.whole(n * STEP, 100.0 + n * STEP, key_frame=n == 0)


def test_pictures_after_one_that_was_given_up_wait_for_a_key_frame() -> None:
    watch = LossWatch()
    steady(watch)
    # Picture 10 never came: 11 was held back, those behind it come in a burst.
    assert not watch.whole(11 * STEP, 101.5, key_frame=False)
    assert not watch.whole(12 * STEP, 101.51, key_frame=False)
    assert not watch.whole(40 * STEP, 101.6, key_frame=False)
    assert watch.whole(41 * STEP, 101.64, key_frame=True)
    assert watch.whole(42 * STEP, 101.68, key_frame=False)


def test_a_key_frame_itself_is_whole_after_any_gap() -> None:
    watch = LossWatch()
    steady(watch)
    assert watch.whole(11 * STEP, 101.5, key_frame=True)


def test_pictures_that_are_only_late_are_whole() -> None:
    watch = LossWatch()
    steady(watch)
    assert watch.whole(10 * STEP, 101.5, key_frame=False)
    assert watch.whole(11 * STEP, 101.51, key_frame=False)


def test_a_camera_that_paused_or_skips_pictures_is_not_smeared() -> None:
    watch = LossWatch()
    steady(watch)
    assert watch.whole(0.36 + 2.0, 100.36 + 2.05, key_frame=False)
    assert watch.whole(0.36 + 2.08, 100.36 + 2.13, key_frame=False)


def test_the_first_pictures_are_whole() -> None:
    watch = LossWatch()
    assert watch.whole(5.0, 100.0, key_frame=True)
    assert watch.whole(5.5, 102.0, key_frame=False)


def test_a_buffer_that_stays_full_is_not_forgotten() -> None:
    delay = Delay()
    for n in range(10):
        assert delay.of(n * STEP, 100.0 + n * STEP) == pytest.approx(0.0)
    # From here on every picture is 0.8 s older than it seems, for five minutes.
    for n in range(10, 7500):
        late = delay.of(n * STEP, 100.8 + n * STEP)
    assert 0.6 < late < 0.8


def test_a_clock_that_runs_slow_makes_no_picture_late() -> None:
    delay = Delay()
    for n in range(100_000):
        late = delay.of(n * STEP, 100.0 + n * STEP * (1 + 200e-6))
        assert late == pytest.approx(0.0, abs=1e-6)


def test_a_quicker_journey_is_the_new_measure() -> None:
    delay = Delay()
    assert delay.of(0.0, 100.5) == 0.0
    assert delay.of(1.0, 101.2) == 0.0
    assert delay.of(2.0, 102.4) == pytest.approx(0.2, abs=0.001)
