"""The exact interval of a rate, against printed tables."""

import math

import pytest

from hdguard.replay.intervals import poisson_interval, rate_per_hour


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (0, 0.0, 3.6889), (1, 0.0253, 5.5716), (2, 0.2422, 7.2247), (3, 0.6187, 8.7673),
        (5, 1.6235, 11.6683), (10, 4.7954, 18.3904), (20, 12.2165, 30.8884), (50, 37.1110, 65.9183),
        (100, 81.3640, 121.6270),
    ],
)  # fmt: skip
def test_garwoods_table(count: int, low: float, high: float) -> None:
    assert poisson_interval(count) == pytest.approx((low, high), abs=2e-3)


def test_no_event_has_a_closed_form() -> None:
    assert poisson_interval(0)[1] == pytest.approx(-math.log(0.025), abs=1e-9)


def test_the_limits_are_where_the_tails_are_two_and_a_half_percent() -> None:
    for count in (1, 4, 9):
        low, high = poisson_interval(count)
        below = sum(math.exp(-low) * low**i / math.factorial(i) for i in range(count))
        up_to = sum(math.exp(-high) * high**i / math.factorial(i) for i in range(count + 1))
        assert 1 - below == pytest.approx(0.025, abs=1e-9)
        assert up_to == pytest.approx(0.025, abs=1e-9)


def test_a_large_count_neither_underflows_nor_loses_the_count() -> None:
    low, high = poisson_interval(2000)
    assert low == pytest.approx(2000 - 1.96 * math.sqrt(2000), rel=0.002)
    assert high == pytest.approx(2000 + 1.96 * math.sqrt(2000), rel=0.002)


def test_another_confidence() -> None:
    assert poisson_interval(0, 0.90)[1] == pytest.approx(2.9957, abs=1e-3)


def test_a_rate_per_hour_from_seconds() -> None:
    rate = rate_per_hour(1, 1800)
    assert (rate.count, rate.hours, rate.rate) == (1, 0.5, 2.0)
    assert rate.low == pytest.approx(0.0506, abs=1e-3)
    assert rate.high == pytest.approx(11.143, abs=1e-3)


def test_without_exposure_there_is_no_rate() -> None:
    rate = rate_per_hour(0, 0)
    assert (rate.rate, rate.low, rate.high) == (None, None, None)


@pytest.mark.parametrize(("count", "seconds"), [(-1, 10.0), (1, -10.0)])
def test_nonsense_is_refused(count: int, seconds: float) -> None:
    with pytest.raises(ValueError, match="negative"):
        rate_per_hour(count, seconds)
