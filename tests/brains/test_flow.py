"""Fits and flow against motions that are known exactly."""

import numpy as np
import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.flow import FlowMeter, Picture, carried, fit
from tests.brains import scenes


def grid() -> np.ndarray[tuple[int], np.dtype[np.complex64]]:
    x, y = np.meshgrid(np.arange(0, 448, 12), np.arange(0, 252, 12))
    return np.asarray((x + 1j * y).ravel(), np.complex64)


def test_a_similarity_is_found_among_forty_percent_of_outliers() -> None:
    rng = np.random.default_rng(3)
    points = grid()
    a, b = 0.92 * np.exp(0.02j), 5 - 3j
    moves = np.asarray((a - 1) * points + b, np.complex64)
    moves += np.asarray(rng.normal(0, 0.1, (2, len(points))).T @ [1, 1j], np.complex64)
    wrong = rng.random(len(points)) < 0.4
    moves[wrong] += np.asarray(rng.uniform(-40, 40, (int(wrong.sum()), 2)) @ [1, 1j], np.complex64)
    found = fit(points, moves, 448 * 252)
    assert found is not None
    assert found.a == pytest.approx(a, abs=3 * found.error)
    assert found.inliers == pytest.approx(1 - np.mean(wrong), abs=0.01)
    assert found.error < 0.001
    assert found.tau(0.2) == pytest.approx(0.2 * 0.92 / 0.08, rel=0.03)
    assert found.fixed_point() == pytest.approx(b / (1 - a), abs=1)
    assert found.fixed_point(b) == pytest.approx(0, abs=1)


def test_a_body_that_recedes_or_stays_has_no_contact() -> None:
    points = grid()
    for scale in (1.0, 1.1):
        found = fit(points, np.asarray((scale - 1) * points, np.complex64), 448 * 252)
        assert found is not None
        assert found.tau(0.2) == float("inf")


def test_too_few_points_or_one_place_give_no_fit() -> None:
    points = grid()[:11]
    assert fit(points, 0 * points, 100) is None
    same = np.full(50, 3 + 4j, np.complex64)
    assert fit(same, 0 * same, 100) is None


def test_the_flow_of_a_drive_gives_its_time_to_contact() -> None:
    before, now = (Picture.of(s.rgb) for s in scenes.shots_at(scenes.EGO_WALL, [2.0, 2.2]))
    motion = FlowMeter().between(before, now)
    assert motion.ego is not None
    assert motion.ego.tau(0.2) == pytest.approx(3.8, rel=0.02)
    assert motion.believable
    assert motion.detailed > 0.5


def test_what_the_camera_explains_is_carried_along() -> None:
    before, now = (Picture.of(s.rgb) for s in scenes.shots_at(scenes.TURN, [1.0, 1.2]))
    motion = FlowMeter().between(before, now)
    assert motion.ego is not None
    assert motion.ego.move(0j).real == pytest.approx(-scenes.FOCAL * 0.1, rel=0.01)
    inside = np.s_[10:-10, 30:-30]
    still = carried(before.half, motion.ego)[inside].astype(int)
    left = np.median(np.abs(still - now.half[inside]))
    assert left < np.median(np.abs(before.half[inside].astype(int) - now.half[inside])) / 5


def test_a_picture_of_a_few_rows_is_refused() -> None:
    with pytest.raises(BrainError, match="448 x 8 pixels"):
        Picture.of(np.zeros((8, 448, 3), np.uint8))


def test_pictures_of_another_size_are_measured_by_the_same_meter() -> None:
    meter = FlowMeter()
    for width in (448, 640, 448):
        before, now = (
            Picture.of(s.rgb) for s in scenes.shots_at(scenes.EGO_WALL, [2.0, 2.2], width)
        )
        found = meter.between(before, now).ego
        assert found is not None
        assert found.tau(0.2) == pytest.approx(3.8, rel=0.02)
