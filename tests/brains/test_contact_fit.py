"""Contacts fitted over a window, against the exact motion of a body."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hdguard.brains.contact_fit import (
    Sample,
    Track,
    Tracks,
    contradicts,
    fit_approach,
    outline_grows,
)
from hdguard.brains.regions import Body, Sight
from tests.brains.test_looming_policy import BOX, INF, LOST, WALL

BLANK = np.zeros((1, 1), np.uint8)
TIMES = [0.2 * i for i in range(8)]


def track(z: float, v: float, a: float = 0.0, noise: float = 0.0) -> Track:
    """A body z metres away at v that brakes at a; every other prediction off by `noise`."""
    samples = []
    for i, t in enumerate(TIMES):
        tau = (z - v * t + a * t * t / 2) / (v - a * t)
        body = replace(BOX, tau=tau * (1 + noise * (-1) ** i))
        samples.append(Sample(t, body))
    return tuple(samples)


def tau_of(samples: Track) -> float:
    found = fit_approach(samples, TIMES[-1])
    assert found is not None
    return found.tau


def test_constant_speed_gives_the_exact_contact() -> None:
    found = fit_approach(track(3.0, 1.0), TIMES[-1])
    assert found is not None
    assert found.tau == pytest.approx(1.6)
    assert found.slope == pytest.approx(0.0, abs=1e-9)
    assert found.count == 8


def test_noise_of_five_percent_moves_the_contact_by_less() -> None:
    assert tau_of(track(3.0, 1.0, noise=0.05)) == pytest.approx(1.6, rel=0.05)


def test_braking_that_is_too_weak_only_delays_the_contact() -> None:
    a = 0.2
    exact = (1 - math.sqrt(1 - 2 * a * 2)) / a - TIMES[-1]
    found = tau_of(track(2.0, 1.0, a))
    assert 0.6 * exact <= found <= exact * 1.1


@pytest.mark.parametrize("a", [0.3, 0.4])
def test_a_body_that_brakes_enough_never_makes_contact(a: float) -> None:
    assert tau_of(track(2.0, 1.0, a)) == math.inf


def test_speeding_up_brings_the_contact_nearer_than_constant_speed() -> None:
    samples = track(4.0, 1.0, -0.5)
    assert tau_of(samples) < samples[-1].body.tau


def test_an_outlier_does_not_move_the_contact() -> None:
    samples = list(track(3.0, 1.0))
    for i in (2, 7):
        samples[i] = Sample(samples[i].t, replace(BOX, tau=12.0))
    assert tau_of(tuple(samples)) == pytest.approx(1.6, rel=0.01)


def test_two_predictions_are_not_enough() -> None:
    assert fit_approach(track(3.0, 1.0)[:2], TIMES[1]) is None
    assert fit_approach(track(3.0, 1.0)[:2], TIMES[1], 2) is not None


def test_predictions_that_contradict_each_other_are_no_contact() -> None:
    taus = (0.5, 2.5, 0.6, 2.4, 0.5, 2.6, 0.5, 2.5)
    samples = tuple(Sample(t, replace(BOX, tau=tau)) for t, tau in zip(TIMES, taus, strict=True))
    assert fit_approach(samples, TIMES[-1]) is None
    assert contradicts(samples, 2.51)
    assert not contradicts(samples, 0.4)


def test_a_scale_that_is_noise_is_no_approach() -> None:
    samples = tuple(Sample(t, replace(BOX, tau=5000.0 - t)) for t in TIMES)
    assert fit_approach(samples, TIMES[-1]) is None


def lost(widths: list[int], heights: list[int]) -> Track:
    """A body that is not measured, by its outline."""
    bodies = [replace(LOST, width=w, height=h) for w, h in zip(widths, heights, strict=True)]
    return tuple(Sample(0.2 * i, body) for i, body in enumerate(bodies))


@pytest.mark.parametrize(
    ("widths", "heights", "grows"),
    [
        ([100, 112, 126, 142], [100, 112, 126, 142], True),
        ([100, 150, 150, 150], [80, 80, 82, 80], False),
        ([100, 100, 100, 100], [80, 80, 80, 80], False),
        ([100, 100], [80, 80], True),
        ([640, 640, 640, 640], [360, 360, 360, 360], True),
        ([640, 640, 640, 640], [100, 112, 126, 142], True),
    ],
    ids=["looming", "smeared by motion", "steady", "too short", "spans the frame", "half spans it"],
)
def test_what_cannot_be_measured_is_judged_by_its_outline(
    widths: list[int], heights: list[int], grows: bool
) -> None:
    assert outline_grows(lost(widths, heights), 2.5, (640, 360)) is grows


def sight(*bodies: Body) -> Sight:
    return Sight(bodies, labels=BLANK)


def test_bodies_that_merge_keep_both_pasts_and_count_no_sample_twice() -> None:
    tracks = Tracks()
    other = replace(BOX, label=2, parents=(0,))
    tracks.add(0.0, sight(WALL, replace(BOX, parents=(0,)), other))
    tracks.add(0.2, sight(WALL, replace(BOX, parents=(1, 2))))
    tracks.add(0.4, sight(WALL, replace(BOX, tau=INF)))
    assert [s.t for s in tracks.ends[1]] == [0.0, 0.0, 0.2, 0.4]
    assert [s.t for s in tracks.ends[0]] == [0.0, 0.2, 0.4]
