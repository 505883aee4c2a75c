"""What a brain looks like: plain synchronous code that knows no process, loop or clock."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, ImageSpec

Rgb = NDArray[np.uint8]


class BrainError(Exception):
    """A brain has no usable answer; the message says why. The brain itself lives on."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One frame as a brain sees it: its name and RGB pixels of the brain's own spec."""

    ref: FrameRef
    rgb: Rgb


class FastBrain(Protocol):
    """Judges one frame at a time.

    A class that stands in the table of brains also has `Settings`, its settings' class, and
    `adaptive`: whether it bears to be shown 1 frame a second in GREEN.
    """

    @property
    def name(self) -> str:
        """The name that verdicts carry."""
        ...

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        ...

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame.

        Raises:
            BrainError: no usable answer; the caller reports a failure.
        """
        ...

    def cost(self, ref: FrameRef) -> float:
        """Seconds that judging this frame is declared to take, for the virtual pace."""
        ...


class SlowBrain(Protocol):
    """Reasons over a window of frames."""

    @property
    def name(self) -> str:
        """The name that warnings carry."""
        ...

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        ...

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        """Answer the review; shots are oldest first.

        Raises:
            BrainError: no usable answer; the caller reports the review as failed.
        """
        ...

    def cost(self, trigger: FrameRef) -> float:
        """Seconds that this review is declared to take, for the virtual pace."""
        ...
