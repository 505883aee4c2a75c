"""Notices that a picture stands still although frames go on coming: the camera may be stuck.

A stuck picture that is encoded anew is never quite the same, and a live one of a quiet room nearly
is, so equality proves nothing in either direction. What counts is how much of a tiny picture has
changed by more than codecs do: little in both, and much wherever the camera itself moves. So the
guard takes a still picture for a stuck one only together with the robot's motion.

Each frame is compared with the one in which the rest began, not with the frame before: a slow
motion changes little from frame to frame.
"""

import numpy as np
from numpy.typing import NDArray

from hdguard.core.policy import HIGH_FPS
from hdguard.core.sampling import FrameSampler
from hdguard.ingest.base import Frame, Image, SourceError
from hdguard.runtime.scenes import THUMBNAIL

LEVELS = 6.0
"""Grey levels by which a cell of the thumbnail must change to count."""

SHARE = 0.02
"""The part of all cells that must change. Measured: of one still encoded for 3 s, with H.264 (crf
18, 28, 38), MPEG-4 (q 20) and MJPEG (q 8), with and without sensor noise of 8 levels, at 360p and
720p, at most 0.004 of the cells differ by over `LEVELS` between any two frames (at 200 kbit/s,
where the picture falls apart, 0.06). In HomeSafe-Bench's video 421, filmed by a walking robot, at
least 0.027 differ after 0.2 s, and at least 0.17 after 1 s. The seconds of a clock that the camera
writes into its picture cover less than 0.01."""


class FrozenWatch:
    """Looks at the frames of one source, in order, at most five a second: a thumbnail has a price.

    The thumbnail is the one that `SceneWatch` uses: of a frame that both look at, it is made once.
    """

    def __init__(self) -> None:
        self._grid = FrameSampler(HIGH_FPS)
        self._began: NDArray[np.float32] | None = None
        self._frozen = False

    def frozen(self, frame: Frame) -> bool:
        """True if nothing has changed since the last frame of which this was False.

        A frame between two that are looked at is what the one before it was. A picture that cannot
        be converted shows no change.
        """
        if self._grid.offer(frame.ref):
            self._frozen = not self._changed(frame.image)
        return self._frozen

    def _changed(self, image: Image) -> bool:
        try:
            grey = image.rgb(THUMBNAIL).mean(axis=2, dtype=np.float32)
        except SourceError:
            return False
        if self._began is not None:
            moved = np.abs(grey - self._began) > LEVELS
            if np.count_nonzero(moved) < SHARE * moved.size:
                return False
        self._began = grey
        return True
