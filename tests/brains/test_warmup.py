"""A model that does not see what it is shown is found before it is called ready."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from hdguard.brains import warmup
from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.warmup import LEAST, MOST, Pace, canaries, check_sight, measure
from hdguard.core.types import ImageSpec

PICTURES = canaries(ImageSpec(32, 32))


def seeing(rgb: Rgb) -> torch.Tensor:
    return torch.tensor([*map(float, rgb.reshape(-1, 3).mean(axis=0)), float(rgb.std())])


def test_canaries_have_the_size_that_a_brain_asks_for_and_never_change() -> None:
    again = canaries(ImageSpec(32, 32))
    assert list(PICTURES) == ["red", "green", "blank", "noise"]
    for name, picture in PICTURES.items():
        assert picture.shape == (32, 32, 3)
        assert picture.dtype == np.uint8
        assert np.array_equal(picture, again[name])
    assert canaries(ImageSpec(64, 48))["red"].shape == (48, 64, 3)


def test_a_model_that_sees_passes() -> None:
    check_sight(seeing, PICTURES)


def test_a_model_whose_sums_waver_a_little_passes() -> None:
    rng = np.random.default_rng(0)
    check_sight(lambda rgb: seeing(rgb) + torch.tensor(rng.normal(0, 0.01, 4)), PICTURES)


def test_a_cache_that_answers_for_the_picture_before_is_found() -> None:
    before = [PICTURES["red"]]

    def stale(rgb: Rgb) -> torch.Tensor:
        before.append(rgb)
        return seeing(before[-2])

    with pytest.raises(BrainError, match="answers for the one before"):
        check_sight(stale, PICTURES)


def test_a_model_that_looks_at_nothing_is_found() -> None:
    with pytest.raises(BrainError, match="'red' and 'green'"):
        check_sight(lambda rgb: torch.ones(4), PICTURES)


def test_a_model_that_samples_is_found() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(BrainError, match="shown twice"):
        check_sight(lambda rgb: torch.tensor(rng.normal(0, 300, 4)), PICTURES)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_logits_that_are_no_numbers_are_refused(value: float) -> None:
    with pytest.raises(BrainError, match="canary 'red': the model's logits are not finite"):
        check_sight(lambda rgb: torch.tensor([0.0, value]), PICTURES)


# The pace.


class Calls:
    """A model whose calls take these seconds, on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: Iterator[float]) -> None:
        self.count, self.now, self.seconds = 0, 0.0, seconds
        monkeypatch.setattr(warmup, "perf_counter", lambda: self.now)

    def __call__(self, rgb: Rgb) -> None:
        self.count += 1
        self.now += next(self.seconds)


def forever(seconds: float, first: tuple[float, ...] = ()) -> Iterator[float]:
    yield from first
    while True:
        yield seconds


def test_a_steady_model_is_called_twenty_times(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch, forever(0.03))
    pace = measure(calls, PICTURES)
    assert calls.count == LEAST
    assert pace.p50 == pytest.approx(0.03)
    assert pace.p99 == pytest.approx(0.03)


def test_slow_first_calls_are_waited_out_and_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch, forever(0.03, first=(9.0, 3.0, 1.0)))
    pace = measure(calls, PICTURES)
    assert LEAST < calls.count < MOST
    assert pace.p99 == pytest.approx(0.03)


def test_a_model_that_never_settles_is_measured_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls(monkeypatch, (0.01 * 1.03**i for i in range(1000)))
    pace = measure(calls, PICTURES)
    assert calls.count == MOST
    assert pace.p99 == pytest.approx(0.01 * 1.03 ** (MOST - 1))


def test_percentiles_are_seconds_that_a_call_really_took() -> None:
    assert Pace.of([0.5]) == Pace(0.5, 0.5, 0.5)
    assert Pace.of([i / 100 for i in range(1, 101)]) == Pace(0.5, 0.95, 0.99)
    assert Pace.of([0.1] * 19 + [0.9]) == Pace(0.1, 0.1, 0.9)
