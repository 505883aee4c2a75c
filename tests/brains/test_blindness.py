"""A covered lens is not a calm kitchen: a picture that shows nothing is named as such."""

import cv2
import numpy as np
import pytest

from hdguard.brains import blindness, clarity, flow
from hdguard.brains.base import Rgb
from hdguard.brains.blindness import blind

rng = np.random.default_rng(0)


def scene() -> Rgb:
    """Boxes of any grey on a wall, with bars above and below."""
    picture = np.full((448, 448, 3), 150, np.uint8)
    for _ in range(60):
        x, y = rng.integers(0, 420, 2)
        picture[y : y + rng.integers(10, 80), x : x + rng.integers(10, 80)] = rng.integers(0, 255)
    picture[:60] = picture[-60:] = 0
    return picture


def smeared(sigma: float) -> Rgb:
    return cv2.GaussianBlur(SCENE[60:-60], (0, 0), sigma).astype(np.uint8)


SCENE = scene()
WALL = np.full((448, 448, 3), 150, np.uint8)


def test_a_scene_can_be_seen() -> None:
    assert blind(SCENE) == ""


def test_a_scene_in_a_small_part_of_the_picture_can_be_seen() -> None:
    picture = WALL.copy()
    picture[100:260, 100:260] = SCENE[100:260, 100:260]
    assert blind(picture) == ""


def test_a_scene_through_a_dim_window_can_be_seen() -> None:
    assert blind((SCENE * 0.2).astype(np.uint8)) == ""


def clocked(x: int, y: int) -> Rgb:
    """A covered lens on which the camera writes the time."""
    picture = np.zeros((448, 448, 3), np.uint8)
    cv2.putText(picture, "2026-11-30 12:00:01", (x, y), 0, 0.6, (255, 255, 255))
    return picture


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (np.zeros((448, 448, 3), np.uint8), "dark"),
        (np.clip(rng.normal(10, 2, (448, 448, 3)), 0, 255).astype(np.uint8), "dark"),
        ((SCENE * 0.02).astype(np.uint8), "dark"),
        (clocked(10, 30), "dark"),
        (clocked(130, 224), "dark"),
        (WALL, "blurred, covered or blank"),
        (smeared(24.0), "blurred, covered or blank"),
    ],
    ids=[
        "black",
        "noise of the dark",
        "almost no light",
        "a clock",
        "a clock amid",
        "one wall",
        "smeared lens",
    ],
)
def test_a_picture_that_shows_nothing_says_why(picture: Rgb, why: str) -> None:
    assert blind(picture).startswith(why)


def test_the_bars_of_a_letterbox_are_no_detail() -> None:
    picture = WALL.copy()
    picture[:98] = picture[-98:] = 0
    assert "blank" in blind(picture)
    picture[:, :98] = picture[:, -98:] = 0
    assert "blank" in blind(picture)


def test_the_rule_is_the_reflexes() -> None:
    assert blindness.LEAST_DETAIL == clarity.LEAST_DETAIL
    assert blindness.DETAIL == flow.DETAIL
    assert blindness.DARK == clarity.DARK


@pytest.mark.parametrize("sigma", [1.0, 4.0, 8.0, 12.0, 16.0, 24.0])
def test_both_say_the_same_of_a_lens_that_gets_worse(sigma: float) -> None:
    picture = smeared(sigma)
    reflex = flow._detailed(flow.Picture.of(picture).half) < clarity.LEAST_DETAIL
    assert bool(blind(picture)) == reflex


@pytest.mark.parametrize("shape", [(1, 1), (5, 400), (13, 27), (33, 35)])
def test_pictures_of_any_size_are_judged(shape: tuple[int, int]) -> None:
    assert isinstance(blind(np.full((*shape, 3), 9, np.uint8)), str)
    assert blind(np.full((*shape, 3), 9, np.uint8)) != ""
