"""Temperature and bias from labelled frames."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from hdguard.brains.calibration import Calibration, shares
from hdguard.brains.trace_format import FastRow
from hdguard.core.types import Light, Scores
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.temperature import Labelled, fit, labelled, light_at, nll
from tests.replay.recorded import case, cases

KEYFRAMES = KeyFrames(1.0, 2.0, 2.2, 3.0)
LOGITS = np.random.default_rng(5).normal(scale=1.5, size=(4000, 3))


def drawn(logits: NDArray[np.float64], seed: int = 1) -> NDArray[np.int64]:
    """Labels drawn with the probabilities of these logits: on them they are calibrated."""
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    above = p.cumsum(axis=1) > np.random.default_rng(seed).random((len(p), 1))
    return np.asarray(above.argmax(axis=1), np.int64)


def normal(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))


@pytest.mark.parametrize("times", [0.5, 1.0, 2.0, 5.0])
def test_a_model_that_is_too_sure_by_a_factor_gets_that_factor_back(times: float) -> None:
    found = fit([Labelled(normal(times * LOGITS), drawn(LOGITS))])
    assert found.temperature == pytest.approx(times, rel=0.08)
    assert found.bias == (0.0, 0.0, 0.0)
    assert found.nll <= found.before
    assert not found.at_its_end


def test_a_recorded_model_that_is_twice_as_sure_as_it_should_be_is_found_out() -> None:
    videos = [labelled(each) for each in cases(40, apart=1.5, times=2.0)]
    assert fit(videos).temperature == pytest.approx(2.0, rel=0.15)


def test_a_model_with_a_habit_gets_its_bias_back() -> None:
    labels = drawn(LOGITS)
    crooked = normal(2.0 * (LOGITS - [0.0, -1.0, 0.5]))
    found = fit([Labelled(crooked, labels)], with_bias=True)
    assert found.temperature == pytest.approx(2.0, rel=0.08)
    assert found.bias[1:] == pytest.approx((-1.0, 0.5), abs=0.15)
    assert found.nll < fit([Labelled(crooked, labels)]).nll


def test_the_minimum_is_a_minimum() -> None:
    frames = Labelled(normal(3.0 * LOGITS), drawn(LOGITS))
    found = fit([frames], with_bias=True)
    for t, y, r in [(1.1, 0, 0), (0.9, 0, 0), (1, 0.1, 0), (1, -0.1, 0), (1, 0, 0.1), (1, 0, -0.1)]:
        bias = (0.0, found.bias[1] + y, found.bias[2] + r)
        assert nll(frames.scores, frames.lights, found.temperature * t, bias) > found.nll


def test_scores_that_say_nothing_or_everything_stop_at_the_limit_and_say_so() -> None:
    rng = np.random.default_rng(0)
    nothing = fit([Labelled(normal(3 * LOGITS), rng.integers(0, 3, len(LOGITS)))])
    assert nothing.at_its_end
    assert nothing.temperature > 10
    everything = fit([Labelled(normal(LOGITS), LOGITS.argmax(axis=1))])
    assert everything.at_its_end
    assert everything.temperature < 0.1


def test_without_frames_nothing_is_changed() -> None:
    empty = labelled(case("calm.mp4", None, [FastRow(t=0.0, error="late")]))
    found = fit([empty])
    assert (found.temperature, found.frames) == (1.0, 0)
    assert math.isnan(found.nll)


def test_the_likelihood_is_that_of_the_calibration_that_is_served() -> None:
    calibration = Calibration(temperature=1.7, bias=(0.0, -0.4, 0.9))
    row = normal(LOGITS[:1])
    found = shares(Scores(*row[0]), calibration)
    assert found is not None
    for light, p in enumerate((found.green, found.yellow, found.red)):
        one = nll(row, np.array([light]), calibration.temperature, calibration.bias)
        assert one == pytest.approx(-math.log(p))


@pytest.mark.parametrize(
    ("t", "light"),
    [
        (0.0, Light.GREEN),
        (0.999, Light.GREEN),
        (1.0, Light.YELLOW),
        (2.0, Light.YELLOW),
        (2.001, Light.RED),
        (3.0, Light.RED),
        (3.001, None),
    ],
)
def test_a_frames_label_follows_from_the_key_frames(t: float, light: Light | None) -> None:
    assert light_at(t, KEYFRAMES) is light
    assert light_at(t, None) is Light.GREEN


def test_only_frames_that_mean_a_light_are_fitted_on() -> None:
    sure, mumbling = (-0.1, -3.0, -4.0), (-3.0, -3.0, -3.0)
    frames = [
        FastRow(t=0.0, light="green", scores=sure),
        FastRow(t=0.2, error="low label mass", scores=mumbling),
        FastRow(t=0.4, blind="dark"),
        FastRow(t=0.6, error="late"),
        FastRow(t=2.4, light="green", scores=sure),
        FastRow(t=5.0, light="red", scores=sure),
    ]
    found = labelled(case("v.mp4", KEYFRAMES, frames))
    assert found.lights.tolist() == [Light.GREEN, Light.RED]
    assert found.scores.tolist() == [list(sure), list(sure)]
