"""Brains that do what a frame's media time tells them, in whatever seat they sit."""

import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

from hdguard.brains.base import BrainError, Shot
from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, Hazard, ImageSpec, Light

GREEN, RED, DARK, UNPARSED, HANG, EXIT, RAISE, GATE, WHERE = map(float, range(9))
SPEC = ImageSpec(8, 6)
FAST = "tests.workers.command_brain:CommandFastBrain"
SLOW = "tests.workers.command_brain:CommandSlowBrain"
RELEASE = threading.Event()  # lets a hung thread go; nothing lets a hung process go


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """How to load: `once` is a file that the first loading makes and that stops all others."""

    name: str = "command"
    load: str = ""
    once: str = ""
    gate: str = ""


def _hang() -> NoReturn:
    RELEASE.wait()
    raise BrainError("released")


class _CommandBrain:
    Settings: ClassVar[type] = CommandSettings

    def __init__(self, settings: CommandSettings) -> None:
        self.settings = settings
        if settings.load == "refuse":
            raise BrainError("no weights here")
        if settings.load == "hang":
            _hang()
        if settings.load == "exit":
            os._exit(9)
        if settings.once:
            try:
                Path(settings.once).touch(exist_ok=False)
            except FileExistsError:
                raise BrainError("loaded once already") from None

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def spec(self) -> ImageSpec:
        return SPEC

    def cost(self, _ref: FrameRef) -> float:
        return 0.25

    def obey(self, ref: FrameRef) -> str:
        match ref.media_time:
            case t if t == UNPARSED:
                raise BrainError("unparsed")
            case t if t == HANG:
                _hang()
            case t if t == EXIT:
                os._exit(7)
            case t if t == RAISE:
                raise ZeroDivisionError("a defect of the brain")
            case t if t == GATE:
                return Path(self.settings.gate).read_text()  # a FIFO: waits for a writer
            case t if t == WHERE:
                return sys.executable
        return ""


class CommandFastBrain(_CommandBrain):
    """RED carries the sum of the pixels as its text."""

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        text = self.obey(shot.ref)
        match shot.ref.media_time:
            case t if t == RED:
                text = f"sum {shot.rgb.sum()} of {shot.rgb.shape}"
                return FastVerdict(shot.ref, self.name, Light.RED, Hazard("C4", "L1", text))
            case t if t == DARK:
                return CannotSee(shot.ref, self.name, "dark")
        return FastVerdict(shot.ref, self.name, Light.GREEN, Hazard(text=text))


class CommandSlowBrain(_CommandBrain):
    """Danger carries the sums of the pixels as its text."""

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        text = self.obey(trigger)
        if trigger.media_time != RED:
            return SlowVerdict(review_id, danger=False, hazard=Hazard(text=text))
        text = f"sums {[int(shot.rgb.sum()) for shot in shots]}"
        return SlowVerdict(review_id, danger=True, hazard=Hazard("C1", "", text))
