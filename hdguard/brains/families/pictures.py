"""From a camera's picture to a family's pixels, the same way on every machine.

Families differ in size, mean and deviation only. Libraries offer several ways to resize, which
differ by up to 1/127 of the range, and a calibration holds for one of them: this is the only one.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.fingerprint import read_json

Resample = Literal["bicubic", "lanczos"]
Range = tuple[tuple[float, float, float], tuple[float, float, float]]
"""Mean and deviation per channel of the values that a model was trained on, of 0..1."""

IMAGENET: Range = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Of ImageNet's pictures; what the published InternVL folders say."""
HALVES: Range = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
"""Values from -1 to 1; what SmolVLM's and MiniCPM-o's say."""


def fitted(picture: Rgb, side: int, resample: Resample) -> Rgb:
    """The picture at the size that the model's eye takes.

    Args:
        picture: RGB, uint8, square: letterboxed, where the camera's is not.
        side: pixels.
        resample: the kernel, if it has another size; Pillow's, as the published processors use it.

    Raises:
        BrainError: it is no such picture.
    """
    square = picture.ndim == 3 and picture.shape[0] == picture.shape[1] and picture.shape[2] == 3
    if not square or picture.dtype != np.uint8 or picture.shape[0] == 0:
        raise BrainError(
            f"picture: needs a square of RGB bytes, not {picture.shape} of {picture.dtype}: "
            "letterbox it first"
        )
    if picture.shape[0] == side:
        return picture
    from PIL import Image  # noqa: PLC0415  Pillow comes with the models' extra

    kernel = Image.Resampling[resample.upper()]
    return np.asarray(Image.fromarray(picture).resize((side, side), kernel))


def normalised(picture: Rgb, values: Range) -> npt.NDArray[np.float32]:
    """Per channel (value / 255 - mean) / deviation; (3, height, width)."""
    mean, deviation = (np.asarray(v, np.float32).reshape(3, 1, 1) for v in values)
    scaled = picture.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    return (scaled - mean) / deviation


def folder_range(folder: Path) -> Range:
    """The range that a model's folder asks for.

    Raises:
        BrainError: it does not say.
    """
    alone, joint = folder / "preprocessor_config.json", folder / "processor_config.json"
    path = alone if alone.is_file() else joint
    found = read_json(folder, path.name)
    if path == joint:  # transformers 5 writes one file for all processors
        found = found.get("image_processor") or {}
    mean, deviation = found.get("image_mean"), found.get("image_std")
    if not (isinstance(mean, list) and isinstance(deviation, list)):
        mean, deviation = [], []
    if len(mean) != 3 or len(deviation) != 3:
        raise BrainError(
            f"{path}: image_mean, image_std: needs three numbers each: fetch the model again"
        )
    return (mean[0], mean[1], mean[2]), (deviation[0], deviation[1], deviation[2])
