"""Brains that do what a frame's media time tells them, in whatever seat they sit."""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NoReturn

from hdguard.brains.base import BrainError, Remark, Shot
from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, Hazard, ImageSpec, Light, Scores

GREEN, RED, DARK, UNPARSED, HANG, EXIT, RAISE, GATE, WHERE = map(float, range(9))
WORK, LISTEN, SWALLOW, LOW_MASS, PONDER = map(float, range(9, 14))
SCORES = Scores(-0.25, -2.0, -3.0)
SPEC = ImageSpec(8, 6)
FAST = "tests.workers.command_brain:CommandFastBrain"
SLOW = "tests.workers.command_brain:CommandSlowBrain"
PENSIVE = "tests.workers.command_brain:PensiveFastBrain"
INTERRUPTIBLE = "tests.workers.command_brain:InterruptibleSlowBrain"
RELEASE = threading.Event()  # lets a hung thread go; nothing lets a hung process go


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """How to load: `once` is a file that the first loading makes and that stops all others.

    `closed` is a file that an afterthought makes when it is dropped; it fails if it cannot.
    """

    name: str = "command"
    load: str = ""
    once: str = ""
    gate: str = ""
    closed: str = ""


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
            case t if t == LOW_MASS:
                raise BrainError("no label", scores=SCORES)
            case t if t == WORK:
                while True:
                    pass
            case t if t == LISTEN:
                Path(self.settings.gate).write_text("listening")  # a FIFO: waits for a reader
                ours, _theirs = socket.socketpair()
                return ours.recv(1).decode()  # nobody ever writes
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


class InterruptibleSlowBrain(CommandSlowBrain):
    """One that can be interrupted; at SWALLOW it does not let the interruption pass."""

    interruptible: ClassVar[bool] = True

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        if trigger.media_time == SWALLOW:
            try:
                self.obey(replace(trigger, media_time=LISTEN))
            except BaseException:  # noqa: BLE001 - a brain that should not be interruptible
                return SlowVerdict(review_id, danger=False, hazard=Hazard(text="swallowed"))
        return super().review(review_id, trigger, shots)


class PensiveFastBrain(CommandFastBrain):
    """What it adds goes by the frame: RED has a reason, WORK and LISTEN never come to an end.

    At PONDER one step of it lasts until somebody writes to the gate.
    """

    fingerprint = "weights 1, prompt 2"
    warm_p99 = 0.125

    def __init__(self, settings: CommandSettings) -> None:
        super().__init__(settings)
        self._judged = GREEN

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        self._judged = shot.ref.media_time
        if self._judged in {WORK, LISTEN, GATE, PONDER}:
            return FastVerdict(shot.ref, self.name, Light.YELLOW, scores=SCORES)
        return super().assess(shot)

    def afterthought(self) -> Iterator[Remark | None]:
        yield None
        if self._judged == RED:
            yield Remark(Hazard("C3", "L2", "x" * 1000), tuple(f"thing {n}" for n in range(99)))
        if self._judged == PONDER:
            yield Remark(Hazard("C1", text=Path(self.settings.gate).read_text()))
        if self._judged == GREEN:
            raise BrainError("nothing to add")
        if self._judged == GATE:
            raise ZeroDivisionError("a defect of the afterthought")
        try:
            while self._judged in {WORK, LISTEN}:
                yield Remark(sights=("still thinking",)) if self._judged == LISTEN else None
        finally:
            if self.settings.closed:
                try:
                    Path(self.settings.closed).touch()
                except OSError as error:
                    raise BrainError("cannot close") from error
