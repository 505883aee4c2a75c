"""A FastBrain that always says RED, works for as long as it is told, and says how long it took."""

import time
from dataclasses import dataclass
from typing import ClassVar

from hdguard.brains.base import Shot
from hdguard.core.events import FastVerdict
from hdguard.core.types import FrameRef, Hazard, ImageSpec, Light


@dataclass(frozen=True, slots=True)
class TimedSettings:
    """Settings: its name, and seconds of processor time per frame."""

    name: str = "timed"
    seconds: float = 0.0

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return ImageSpec(448, 448)


class TimedFastBrain:
    """RED; the hazard's text is the seconds for which it had the picture."""

    Settings: ClassVar[type] = TimedSettings

    def __init__(self, settings: TimedSettings) -> None:
        self._settings = settings
        self.name = settings.name
        self.spec = settings.spec

    def assess(self, shot: Shot) -> FastVerdict:
        """Work, then say RED."""
        start, end = time.perf_counter(), time.process_time() + self._settings.seconds
        while time.process_time() < end:
            pass
        took = Hazard(text=f"{time.perf_counter() - start:.6f}")
        return FastVerdict(shot.ref, self.name, Light.RED, took)

    def cost(self, ref: FrameRef) -> float:
        """Seconds of processor time."""
        return self._settings.seconds
