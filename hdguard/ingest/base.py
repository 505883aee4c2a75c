"""What every source of frames looks like to the rest of the house."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hdguard.core.types import FrameRef, ImageSpec

Rgb = NDArray[np.uint8]


class SourceError(Exception):
    """A source cannot deliver: names the source or file and says what is wrong with it."""


class Image(Protocol):
    """A decoded picture that is converted only when somebody asks for it."""

    def rgb(self, spec: ImageSpec) -> Rgb:
        """The picture as RGB, shape (height, width, 3), uint8, C-contiguous, read-only.

        Converts on first use and keeps the result, one per spec.

        Raises:
            SourceError: the picture cannot be converted.
        """
        ...


@dataclass(frozen=True, slots=True)
class Frame:
    """One decoded frame: its name and its picture."""

    ref: FrameRef
    image: Image


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What a source saw so far.

    Attributes:
        frames: clean frames handed over.
        corrupt: frames or packets that were left out because they did not decode cleanly.
        repaired: frames used although their stamp was missing, repeated or went backwards.
        problems: one line per kind of trouble, for people, bounded.
    """

    frames: int = 0
    corrupt: int = 0
    repaired: int = 0
    problems: tuple[str, ...] = ()


class FrameSource(Protocol):
    """A camera, a stream or a file."""

    @property
    def source_id(self) -> str:
        """The name that every ref of this source carries."""
        ...

    @property
    def interval(self) -> float:
        """Declared time between frames in seconds, 0.0 if not known."""
        ...

    @property
    def report(self) -> SourceReport:
        """What it saw so far."""
        ...

    def frames(self) -> AsyncIterator[Frame]:
        """Clean frames in order of capture, until the source ends.

        Closing the iterator (`aclose`) releases file, decoder and thread.

        Raises:
            SourceError: the source cannot be opened, or broke before its end. What it says is
                shown to people and holds no credentials.
        """
        ...

    def retry_after(self) -> float | None:
        """Seconds to wait before `frames` is worth calling again, asked each time it has ended.

        None: it has ended for good, as files do. What is waited for, and how much longer each
        time, is the source's business.
        """
        ...
