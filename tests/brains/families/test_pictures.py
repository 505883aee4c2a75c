"""Pictures become the pixels that the published processors make of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hdguard.brains.base import BrainError
from hdguard.brains.families.pictures import HALVES, IMAGENET, fitted, folder_range, normalised

NOISE = np.random.default_rng(3).integers(0, 256, (60, 60, 3)).astype(np.uint8)


def test_a_picture_of_the_right_size_is_left_alone() -> None:
    assert fitted(NOISE, 60, "bicubic") is NOISE


@pytest.mark.parametrize("side", [28, 112])
def test_another_size_is_what_pillow_makes_of_it(side: int) -> None:
    expected = Image.fromarray(NOISE).resize((side, side), Image.Resampling.LANCZOS)
    assert np.array_equal(fitted(NOISE, side, "lanczos"), np.asarray(expected))
    assert not np.array_equal(fitted(NOISE, side, "bicubic"), np.asarray(expected))


def test_a_view_of_a_larger_picture_is_taken_as_well() -> None:
    flipped = NOISE[::-1, ::2][:30]
    assert fitted(flipped, 14, "bicubic").shape == (14, 14, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        NOISE[:30],
        NOISE[:, :, 0],
        NOISE.astype(np.float32),
        NOISE[:, :, [0, 1, 2, 0]],
        NOISE[:0, :0],
    ],
    ids=["not square", "grey", "floats", "four channels", "empty"],
)
def test_what_is_no_square_of_rgb_bytes_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(BrainError, match="letterbox"):
        fitted(wrong, 28, "bicubic")


def test_values_go_from_minus_one_to_one() -> None:
    ramp = np.stack([np.arange(256, dtype=np.uint8).reshape(16, 16)] * 3, -1)
    made = normalised(ramp, HALVES)
    assert made.dtype == np.float32
    assert made.shape == (3, 16, 16)
    assert (made.min(), made.max()) == (-1.0, 1.0)


def test_each_channel_has_its_own_range() -> None:
    made = normalised(np.full((2, 2, 3), 255, np.uint8), IMAGENET)
    expected = [(1 - 0.485) / 0.229, (1 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    assert made[:, 0, 0].tolist() == pytest.approx(expected, rel=1e-6)


def test_a_folder_says_its_range_in_either_of_two_files(tmp_path: Path) -> None:
    said = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}
    joint = tmp_path / "processor_config.json"
    joint.write_text(json.dumps({"image_processor": said}))
    assert folder_range(tmp_path) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    alone = tmp_path / "preprocessor_config.json"
    alone.write_text(json.dumps(said | {"image_std": [1, 1, 1]}))
    assert folder_range(tmp_path) == ((0.1, 0.2, 0.3), (1, 1, 1))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("other.json", "{}", r"processor_config\.json: cannot be read"),
        ("preprocessor_config.json", "[", r"preprocessor_config\.json: is no JSON"),
        ("preprocessor_config.json", "{}", r"preprocessor_config\.json: image_mean, image_std"),
        ("preprocessor_config.json", '{"image_mean": 0.5, "image_std": 0.5}', "image_mean"),
        ("processor_config.json", '{"image_processor": null}', "image_mean"),
    ],
)
def test_a_folder_that_does_not_say_is_refused_not_guessed(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BrainError, match=says):
        folder_range(tmp_path)
