"""Whether a picture shows anything at all: a model asked about a covered lens may well say GREEN.

The rule is the reflex's (`clarity.vague`): a picture needs fine detail in a twentieth of it. Here
it is plain arrays, since a model's own environment need not have OpenCV.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hdguard.brains.base import Rgb

LEAST_DETAIL: Final = 0.05  # of the picture; as `clarity.LEAST_DETAIL`
DETAIL: Final = 4.0  # grey levels at half size; as `flow.DETAIL`
DARK: Final = 40.0  # mean grey level; names the reason, decides nothing; as `clarity.DARK`
NARROWEST: Final = 0.25  # of a letterboxed side: what 4 to 1 leaves of a square
UNEVEN: Final = 2  # lines by which the bars of one letterbox differ at most, by rounding
WINDOW: Final = 7  # half-size pixels: what differs from the mean of its surroundings is detail
QUARTERS: Final = np.array([0.299 / 4, 0.587 / 4, 0.114 / 4], np.float32)  # ITU-R BT.601, of 4


def blind(rgb: Rgb) -> str:
    """Why nothing can be seen in the picture; empty if something can.

    The bars of a letterbox are left out. It takes 1 ms at 448 x 448 (one core).

    Args:
        rgb: (height, width, 3), uint8.
    """
    shown = _without_bars(rgb)
    if min(shown.shape[:2]) < 2 * WINDOW:
        return "the picture is too small"
    half = _half(shown)
    fine = _widened(np.abs(half - _mean(half)) > DETAIL)
    share = float(fine.mean())
    if share >= LEAST_DETAIL:
        return ""
    cause = "dark" if float(half.mean()) < DARK else "blurred, covered or blank"
    return f"{cause}: detail in {share:.0%} of the picture"


def _without_bars(rgb: Rgb) -> Rgb:
    """The picture without a letterbox's bars: black, and alike on opposite sides.

    Any other black is the picture's own: a clock that a camera writes on black is no scene.
    """
    lit = rgb.max(axis=2) > 0
    top, left = _bar(lit.max(axis=1)), _bar(lit.max(axis=0))
    return rgb[top : len(rgb) - top, left : rgb.shape[1] - left]


def _bar(lit: NDArray[np.bool_]) -> int:
    """How many lines are black at either end."""
    found = np.flatnonzero(lit)
    if not found.size:
        return 0
    first, last = int(found[0]), len(lit) - 1 - int(found[-1])
    bar = min(first, last)
    return bar if abs(first - last) <= UNEVEN and len(lit) - 2 * bar >= NARROWEST * len(lit) else 0


def _half(rgb: Rgb) -> NDArray[np.float32]:
    """Grey at half size, each pixel the mean of four."""
    height, width = (side // 2 * 2 for side in rgb.shape[:2])
    even = rgb[:height, :width].astype(np.uint16)
    four = even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]
    grey: NDArray[np.float32] = four.astype(np.float32) @ QUARTERS
    return grey


def _mean(plane: NDArray[np.float32]) -> NDArray[np.float64]:
    """Mean over `WINDOW` x `WINDOW` around each pixel, the border repeated."""
    edge = WINDOW // 2
    sums: NDArray[np.float64] = np.pad(plane.astype(np.float64), edge, mode="edge")
    for axis in (0, 1):
        sums = np.cumsum(sums, axis=axis)
        before = np.insert(sums, 0, 0.0, axis=axis)
        length = plane.shape[axis]
        sums = np.take(before, np.arange(WINDOW, WINDOW + length), axis=axis) - np.take(
            before, np.arange(length), axis=axis
        )
    means: NDArray[np.float64] = sums / WINDOW**2
    return means


def _widened(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Each pixel and its eight neighbours."""
    wide: Any = mask.copy()
    wide[1:] |= mask[:-1]
    wide[:-1] |= mask[1:]
    tall = wide.copy()
    wide[:, 1:] |= tall[:, :-1]
    wide[:, :-1] |= tall[:, 1:]
    found: NDArray[np.bool_] = wide
    return found
