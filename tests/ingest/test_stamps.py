from fractions import Fraction
from itertools import pairwise

import pytest

from hdguard.ingest.decoder import Tally
from hdguard.ingest.stamps import MediaTimes

TENTHS = Fraction(1, 10)


def times(
    stamps: list[int | None], base: Fraction = TENTHS, interval: float = 0.1
) -> tuple[list[float], Tally]:
    tally = Tally("clip")
    clock = MediaTimes(base, interval, tally)
    following = [*stamps[1:], None]
    return [clock.of(s, f) for s, f in zip(stamps, following, strict=True)], tally


def test_good_stamps_are_exact_whatever_their_start_and_rate() -> None:
    stamps: list[int | None] = [90_017, 90_018, 93_020, 183_017]
    got, tally = times(stamps, Fraction(1, 90_000))
    assert got == [0.0, 1 / 90_000, 3_003 / 90_000, 93_000 / 90_000]
    assert tally.report.repaired == 0


def test_negative_start_is_time_zero() -> None:
    assert times([-3, -2, -1, 0])[0] == [0.0, 0.1, 0.2, 0.3]


def test_missing_stamps_continue_at_the_nominal_interval() -> None:
    got, tally = times([0, None, None, 3])
    assert got == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert tally.report.repaired == 2
    assert tally.report.problems == (
        "clip: 2 x presentation stamp missing, replaced, first at 0.000 s",
    )


def test_a_file_without_any_stamp_plays_at_the_nominal_interval() -> None:
    got, tally = times([None, None, None])
    assert got == pytest.approx([0.0, 0.1, 0.2])
    assert tally.report.repaired == 3


def test_a_file_without_stamps_or_rate_plays_at_25_frames_a_second() -> None:
    assert times([None, None], interval=0.0)[0] == pytest.approx([0.0, 0.04])


def test_stamps_that_begin_late_continue_from_the_unstamped_frames() -> None:
    assert times([None, None, 70, 71])[0] == pytest.approx([0.0, 0.1, 0.2, 0.3])


def test_missing_stamp_never_overtakes_the_next_good_one() -> None:
    got, _ = times([0, None, 1, 2], interval=0.3)
    assert got == pytest.approx([0.0, 0.05, 0.1, 0.2])


def test_repeated_stamp_does_not_push_the_later_good_ones() -> None:
    got, tally = times([0, 1, 1, 2, 3])
    assert got == pytest.approx([0.0, 0.1, 0.15, 0.2, 0.3])
    assert tally.report.repaired == 1


def test_a_run_of_repeats_keeps_rising_and_recovers() -> None:
    got, _ = times([0, 1, 1, 1, 1, 2, 3, 4, 5, 6])
    assert all(a < b for a, b in pairwise(got))
    assert got[-1] == pytest.approx(0.6)


def test_small_step_back_is_nudged_and_the_rest_stays_exact() -> None:
    got, tally = times([0, 10, 20, 15, 30, 40], Fraction(1, 100))
    assert all(a < b for a, b in pairwise(got))
    assert got[-2:] == [0.3, 0.4]
    assert tally.report.repaired == 1


def test_one_wild_stamp_far_ahead_costs_nothing() -> None:
    got, tally = times([0, 1, 5_000, 3, 4])
    assert got == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert tally.report.repaired == 1


def test_wild_first_stamp_does_not_shift_the_rest() -> None:
    got, tally = times([9_000, 1, 2, 3])
    assert got == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert tally.report.repaired == 1


def test_a_jump_ahead_that_goes_on_is_kept_and_told() -> None:
    got, tally = times([0, 1, 601, 602])
    assert got == pytest.approx([0.0, 0.1, 60.1, 60.2])
    assert tally.report.repaired == 0
    assert "gap of over a second" in tally.report.problems[0]


def test_slow_sources_have_no_gaps() -> None:
    assert times([0, 50, 100], interval=5.0)[1].report.problems == ()


def test_a_time_line_that_begins_again_continues_the_old_one() -> None:
    got, tally = times([100, 101, 102, 0, 1, 2])
    assert got == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert tally.report.repaired == 1
