"""Which frames a brain is given: a grid on capture time, never "last plus a period".

A frame that comes late therefore does not push all later samples back.
"""

import math

from hdguard.core.policy import Resample
from hdguard.core.types import FrameRef

TOLERANCE = 1e-4
"""Seconds; stamps are sums of floats, and a frame 0.1 ms before its grid point is that frame."""


class FrameSampler:
    """Takes the first frame at or after each multiple of the period."""

    def __init__(self, fps: float) -> None:
        self._fps = fps
        self._origin: float | None = None
        self._due = -math.inf

    @property
    def fps(self) -> float:
        """Samples a second."""
        return self._fps

    def offer(self, ref: FrameRef) -> bool:
        """True if this frame is to be judged. Offer every frame once, in order of capture."""
        if ref.captured_at < self._due - TOLERANCE:
            return False
        if self._origin is None:
            self._origin = ref.captured_at
        self._due = self._next_multiple(ref.captured_at)
        return True

    def set_rate(self, fps: float, cause: FrameRef | None, resample: Resample) -> None:
        """Change the rate.

        Args:
            fps: the new rate.
            cause: the frame whose verdict changed it, if a verdict did.
            resample: `at_once`: a rise takes the next frame and restarts the grid there, a fall
                restarts it at the cause; `released`: any change restarts it at the cause.
        """
        rises = fps > self._fps
        self._fps = fps
        if cause is None or (rises and resample == "at_once"):
            self._origin = None
            self._due = -math.inf
            return
        self._origin = cause.captured_at
        self._due = cause.captured_at + 1.0 / fps

    def _next_multiple(self, at: float) -> float:
        origin = self._origin if self._origin is not None else at
        period = 1.0 / self._fps
        return origin + (math.floor((at - origin + TOLERANCE) / period) + 1) * period
