"""How sure a model's probabilities should have been: temperature and bias from labelled frames.

The benchmark labels moments of a video, not frames, so a label for each frame is a choice, made
here once: before intent onset and in safe material GREEN, from onset to the intervention deadline
YELLOW (something may be about to go wrong), from there to impact RED (only a halt helps). Frames
after impact have no label: whatever happened there is over. On these labels the negative
log-likelihood is minimised (C. Guo et al., "On calibration of modern neural networks", ICML 2017);
in the inverse temperature and the bias it is convex, so a search along one axis after the other
finds the minimum.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdguard.brains.calibration import Calibration
from hdguard.core.types import Light, Scores
from hdguard.replay.scoring import KeyFrames, milliseconds
from hdguard.replay.simulate import Case

LOWEST, HIGHEST = 0.05, 20.0
"""Of a temperature: beyond them every frame is as good as certain, or as good as unknown."""
MOST_BIAS = 5.0
"""Of a bias, either way: a factor of 148 on the odds. A label that never occurs would ask for
infinity."""
ROUNDS = 50
EXACT = 1e-4
"""Of a logarithm of a temperature and of a bias, where the search ends."""
STEPS = 20
"""A temperature is rounded to twentieths of a factor of 2 (3.5 % apart), a bias to 1/20, which no
threshold feels; so folds that agree share their simulations."""
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Labelled:
    """Frames of one video with scores and a label.

    Attributes:
        scores: shape (frames, 3): natural log p of GREEN, YELLOW, RED.
        lights: shape (frames,): the label, as a column of `scores`.
    """

    scores: NDArray[np.float64]
    lights: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fit:
    """A temperature and a bias.

    Attributes:
        temperature: as in `Calibration`.
        bias: likewise.
        nll: mean negative log-likelihood of the frames that it was fitted on; NaN without any.
        before: the same at temperature 1 without a bias.
        frames: how many they were.
    """

    temperature: float
    bias: tuple[float, float, float]
    nll: float
    before: float
    frames: int

    @property
    def at_its_end(self) -> bool:
        """The temperature would have gone on: the scores tell the labels apart, or nothing."""
        return not LOWEST * 1.05 < self.temperature < HIGHEST / 1.05


def light_at(t: float, keyframes: KeyFrames | None) -> Light | None:
    """The label of a frame at media time `t` seconds; None after impact."""
    at = milliseconds(t)
    if keyframes is None or at < milliseconds(keyframes.intent_onset):
        return Light.GREEN
    if at <= milliseconds(keyframes.intervention_deadline):
        return Light.YELLOW
    return Light.RED if at <= milliseconds(keyframes.impact_outcome) else None


def labelled(case: Case, least_mass: float = Calibration().least_mass) -> Labelled:
    """The frames of a video that have scores and a label; those that mean no light are left out."""
    found: list[tuple[Scores, Light]] = []
    for rows in case.fast.videos.values():
        for row in rows:
            scores, light = row.scored(), light_at(row.t, case.keyframes)
            if scores is not None and light is not None and scores.mass >= least_mass:
                found.append((scores, light))
    return Labelled(
        np.array([(s.green, s.yellow, s.red) for s, _ in found], np.float64).reshape(-1, 3),
        np.array([int(light) for _, light in found], np.int64),
    )


def fit(videos: Iterable[Labelled], *, with_bias: bool = False) -> Fit:
    """The temperature, and if asked the bias, that fit the frames best; every frame counts alike.

    GREEN's bias stays 0: only differences matter. Without frames nothing is changed.
    """
    parts = list(videos)
    scores = np.concatenate([p.scores for p in parts]) if parts else np.empty((0, 3))
    lights = np.concatenate([p.lights for p in parts]) if parts else np.empty(0, np.int64)
    if not len(lights):
        return Fit(1.0, (0.0, 0.0, 0.0), math.nan, math.nan, 0)

    at = _descend(scores, lights, axes=3 if with_bias else 1)
    temperature = 2.0 ** (round(-at[0] / math.log(2) * STEPS) / STEPS)
    bias = (0.0, round(at[1] * STEPS) / STEPS, round(at[2] * STEPS) / STEPS)
    after = nll(scores, lights, temperature, bias)
    return Fit(temperature, bias, after, nll(scores, lights), len(lights))


def nll(
    scores: NDArray[np.float64],
    lights: NDArray[np.int64],
    temperature: float = 1.0,
    bias: Sequence[float] = (0.0, 0.0, 0.0),
) -> float:
    """Mean of -log p(label) over the frames, p as `calibration.shares` has it; shapes as above."""
    bent = scores / temperature + np.asarray(bias)
    bent = bent - bent.max(axis=1, keepdims=True)
    chosen = np.take_along_axis(bent, lights[:, None], axis=1)[:, 0]
    return float(np.mean(np.log(np.exp(bent).sum(axis=1)) - chosen))


def _descend(
    scores: NDArray[np.float64], lights: NDArray[np.int64], axes: int
) -> tuple[float, float, float]:
    """The lowest point: logarithm of the inverse temperature, bias of YELLOW, bias of RED."""
    point = [0.0, 0.0, 0.0]
    limits = (math.log(HIGHEST), MOST_BIAS, MOST_BIAS)
    for _ in range(ROUNDS):
        before = tuple(point)
        for axis in range(axes):

            def along(x: float, axis: int = axis) -> float:
                moved = [*point[:axis], x, *point[axis + 1 :]]
                return nll(scores, lights, math.exp(-moved[0]), (0.0, moved[1], moved[2]))

            point[axis] = _lowest(along, -limits[axis], limits[axis])
        if axes == 1 or all(abs(a - b) < EXACT for a, b in zip(point, before, strict=True)):
            break
    return (point[0], point[1], point[2])


def _lowest(cost: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search: where a function with one valley is lowest, to `EXACT`."""
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = cost(a), cost(b)
    while high - low > EXACT:
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = cost(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = cost(b)
    return (low + high) / 2
