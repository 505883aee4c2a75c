"""A SlowBrain that does nothing but work: it keeps a core busy for as long as it is asked to."""

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hdguard.brains.base import Shot
from hdguard.core.events import SlowVerdict
from hdguard.core.types import FrameRef, ImageSpec


@dataclass(frozen=True, slots=True)
class BusySettings:
    """Settings: its name, and seconds of processor time per review."""

    name: str = "busy"
    seconds: float = 1.0

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return ImageSpec(448, 448)


class BusySlowBrain:
    """Multiplies matrices, then says "safe"."""

    Settings: ClassVar[type] = BusySettings

    def __init__(self, settings: BusySettings) -> None:
        self._settings = settings
        self.name = settings.name
        self.spec = settings.spec

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        """Work for the seconds that the settings ask for."""
        matrix = np.ones((256, 256), np.float32)
        end = time.process_time() + self._settings.seconds
        while time.process_time() < end:
            matrix = matrix @ matrix / 256.0
        return SlowVerdict(review_id, danger=False)

    def cost(self, trigger: FrameRef) -> float:
        """Seconds of processor time."""
        return self._settings.seconds
