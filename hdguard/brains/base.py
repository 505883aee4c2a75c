"""What a brain looks like: plain synchronous code that knows no process, loop or clock."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, ImageSpec, Scores

Rgb = NDArray[np.uint8]


CANCELLED = "cancelled"
"""The whole reason of a review that was broken off because nobody waited for it any more."""


@dataclass(eq=False, repr=False)
class BrainError(Exception):
    """A brain has no usable answer; the message says why. The brain itself lives on.

    `scores` are given where a model answered but its answer meant no light, so that the limit
    that it missed can be tuned.
    """

    message: str
    scores: Scores | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Shot:
    """One frame as a brain sees it: its name and RGB pixels of the brain's own spec."""

    ref: FrameRef
    rgb: Rgb


@dataclass(frozen=True, slots=True)
class Remark:
    """What a FastBrain adds about a frame after its verdict.

    Attributes:
        hazard: the danger in words, category and severity; empty fields are "not given".
        sights: the persons and objects that it names in the frame.
    """

    hazard: Hazard = NO_HAZARD
    sights: tuple[str, ...] = ()


class FastBrain(Protocol):
    """Judges one frame at a time.

    A class that stands in the table of brains also has `Settings`, its settings' class, and
    `adaptive`: whether it bears to be shown 1 frame a second in GREEN. A brain of either kind may
    have `fingerprint`, words that change with whatever its scores depend on (weights, precision,
    prompt), and `warm_p99`, the 99th percentile in seconds of its calls in the warm-up. A
    FastBrain may be a `RemarkingBrain` as well. `own_process = True` keeps it out of the daemon's
    threads; `argument` names the setting of `--fast NAME:VALUE` where that is not `path`.
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


@runtime_checkable
class RemarkingBrain(Protocol):
    """A FastBrain that goes on thinking about a frame when its verdict has left."""

    def afterthought(self) -> Generator[Remark | None, None, None]:
        """Think about the frame just judged, in steps; a generator.

        Every `next` is a short step, one token of a model, and yields None, or a Remark once it
        has something to say. The next frame closes it between two steps, so a step is what an
        afterthought can cost that frame. Only a brain in a process of its own is asked.

        Raises:
            BrainError: nothing to add; it is logged and forgotten.
        """
        ...


class SlowBrain(Protocol):
    """Reasons over a window of frames.

    A class may declare `interruptible = True`: then a review that nobody waits for is broken off
    by an exception, which is no `Exception`, at any point of `review`; the brain must let it pass
    and be fit for the next call. Without it the brain is busy until it has answered.
    """

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
