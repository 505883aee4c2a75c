"""Open flame by colour and flicker: hot colour alone is also a poster, a heater, a jumper."""

from collections import deque
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from hdguard.brains.base import Rgb
from hdguard.brains.flow import Grey, Similarity, carried

# `embedded.md`, sections 3 and 7.
LEAST = 0.001  # of the frame
FLICKER = 0.15  # of the largest hot area
FRAMES = 5  # in a row
HISTORY = 5  # changes of a pixel, of which `OFTEN` must be strong
STRONG = 12  # levels of red from frame to frame
OFTEN = 3


def small(rgb: Rgb) -> Rgb:
    """The picture at half size, shape (h/2, w/2, 3)."""
    size = (rgb.shape[1] // 2, rgb.shape[0] // 2)
    return cast("Rgb", cv2.resize(rgb, size, interpolation=cv2.INTER_AREA))


def hot(rgb: Rgb) -> NDArray[np.bool_]:
    """Where the colour is that of fire."""
    # Signed differences: uint8 would wrap round.
    red, green, blue = (rgb[..., i].astype(np.int16) for i in range(3))
    return (red > 190) & (red - blue > 70) & (red - green > 45)


class FlameWatch:
    """Follows one source's hot colours; pictures come at half size, all of one shape.

    `frames`: in how many frames in a row it must flicker to be a flame.
    """

    def __init__(self, frames: int = FRAMES) -> None:
        self._frames = frames
        self._red: Grey | None = None
        self._changes: deque[NDArray[np.bool_]] = deque(maxlen=HISTORY)
        self._run = 0

    def start(self, rgb: Rgb) -> None:
        """Start afresh with this frame, the first one or the first after a cut or a gap."""
        self._red = np.ascontiguousarray(rgb[..., 0])
        self._changes.clear()
        self._run = 0

    def update(self, rgb: Rgb, ego: Similarity) -> float | None:
        """The flame's share of the frame once it has burnt for long enough, else None.

        Args:
            rgb: this frame at half size.
            ego: the camera's motion since the frame before; what that explains does not flicker.
        """
        before, self._red = self._red, np.ascontiguousarray(rgb[..., 0])
        if before is None:
            return None
        where = hot(rgb)
        share = float(np.count_nonzero(where)) / where.size
        if share <= LEAST:
            self._changes.clear()
            self._run = 0
            return None
        self._changes.append(cv2.absdiff(self._red, carried(before, ego)) > STRONG)
        often = np.sum(self._changes, axis=0) >= OFTEN
        burns = float(np.mean(often[_largest(where)])) > FLICKER
        self._run = self._run + 1 if burns else 0
        return share if self._run >= self._frames else None


def _largest(where: NDArray[np.bool_]) -> NDArray[np.bool_]:
    _, labels, stats, _ = cv2.connectedComponentsWithStats(where.astype(np.uint8))
    return cast("NDArray[np.bool_]", labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA])))
