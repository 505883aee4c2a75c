"""Doubles with the domain's verbs, for the pipeline in virtual time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.recording import RecordingActuator
from hdguard.brains.base import Shot
from hdguard.core.actions import Escalate, Halt, Notify, Permit, Release
from hdguard.core.events import BrainDown, BrainUp, CannotSee, Event, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, Hazard, ImageSpec, Light
from hdguard.ingest.base import Frame, Rgb, SourceError, SourceReport
from hdguard.workers.base import Listener, Notice

GREEN, YELLOW, RED = Light.GREEN, Light.YELLOW, Light.RED
SPEC = ImageSpec(4, 3)
AnswerT = TypeVar("AnswerT")


def every(period: float, until: float, start: float = 0.0) -> list[float]:
    """Media times from `start` up to and including `until`."""
    count = round((until - start) / period)
    return [round(start + n * period, 6) for n in range(count + 1)]


class FakeImage:
    """A black picture; it counts how often it is asked for, and may be broken."""

    def __init__(self, *, broken: bool = False) -> None:
        self.asked = 0
        self._broken = broken

    def rgb(self, spec: ImageSpec) -> Rgb:
        self.asked += 1
        if self._broken:
            raise SourceError("the picture is broken")
        return np.zeros((spec.height or 1, spec.width, 3), np.uint8)


class ListSource:
    """Hands over frames of the given media times, each at its time.

    Args:
        times: media times in seconds.
        late: media time -> seconds by which that frame comes late; those behind it then catch up.
        fails: it breaks, with this message, when all frames are handed over.
        stays: it goes on without a frame, and does not end.
        broken: media times of the frames whose picture cannot be converted.
    """

    def __init__(
        self,
        times: Sequence[float],
        source_id: str = "cam",
        *,
        late: Mapping[float, float] | None = None,
        fails: str = "",
        stays: bool = False,
        broken: Sequence[float] = (),
        interval: float = 0.0,
    ) -> None:
        self.source_id = source_id
        self.interval = interval
        self.handed: list[Frame] = []
        self.closed = False
        self._times = times
        self._late = late or {}
        self._fails = fails
        self._stays = stays
        self._broken = broken

    @property
    def report(self) -> SourceReport:
        return SourceReport(frames=len(self.handed))

    async def frames(self) -> AsyncGenerator[Frame, None]:
        loop = asyncio.get_running_loop()
        origin = loop.time()
        try:
            for seq, t in enumerate(self._times):
                late = self._late.get(t, 0.0)
                await asyncio.sleep(max(0.0, origin + t + late - loop.time()))
                ref = FrameRef(self.source_id, seq, origin + t, t)
                self.handed.append(Frame(ref, FakeImage(broken=t in self._broken)))
                yield self.handed[-1]
            if self._fails:
                raise SourceError(self._fails)
            if self._stays:
                await asyncio.Event().wait()
        finally:
            self.closed = True

    def retry_after(self) -> float | None:
        return None


@dataclass(frozen=True)
class Says(Generic[AnswerT]):
    """What a brain says from some media time on, and how long it takes for it."""

    answer: AnswerT
    latency: float | None = None
    hangs: bool = False


class _ScriptedSeat(Generic[AnswerT]):
    """A seat whose brain follows a script: media time -> what it says from then on.

    `cut_off` counts calls that were given up; `loads_for` is how long its brain takes to load
    again after a kill, None if it never comes back.
    """

    def __init__(
        self, name: str, script: Mapping[float, AnswerT | Says[AnswerT]], latency: float
    ) -> None:
        self.name = name
        self.spec = SPEC
        self.fingerprint = ""
        self.warm_p99: float | None = None
        self.listener: Listener | None = None
        self.killed: list[tuple[float, str]] = []
        self.busy = 0
        self.most_busy = 0
        self.cut_off = 0
        self.loads_for: float | None = 0.0
        self._script = script
        self._latency = latency

    async def start(self) -> None:
        return

    def listen(self, listener: Listener | None) -> None:
        self.listener = listener

    async def kill(self, reason: str) -> None:
        self.killed.append((asyncio.get_running_loop().time(), reason))
        latched = self.loads_for is None
        self.tell(BrainDown(self.name, latched=latched))
        await asyncio.sleep(0)
        if self.loads_for is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(self.loads_for, self.tell, BrainUp(self.name))

    def tell(self, event: Notice) -> None:
        if self.listener is not None:
            self.listener(event)

    async def close(self) -> None:
        return

    async def _follow(self, t: float) -> AnswerT:
        said = self._script[max(at for at in self._script if at <= t + 1e-6)]
        line = said if isinstance(said, Says) else Says(said)
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        try:
            if line.hangs:
                await asyncio.Event().wait()
            await asyncio.sleep(self._latency if line.latency is None else line.latency)
        except asyncio.CancelledError:
            self.cut_off += 1
            raise
        finally:
            self.busy -= 1
        if isinstance(line.answer, Exception):
            raise line.answer
        return line.answer


FastLine = Light | str | Exception
"""A light; words why it cannot see; or what it raises."""


class ScriptedFastSeat(_ScriptedSeat[FastLine]):
    """A FastBrain that says what the frame's media time tells it."""

    def __init__(
        self,
        script: Mapping[float, FastLine | Says[FastLine]] | None = None,
        *,
        name: str = "fast",
        latency: float = 0.01,
    ) -> None:
        super().__init__(name, script or {0.0: GREEN}, latency)
        self.given: list[tuple[float, float]] = []

    async def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        now = asyncio.get_running_loop().time()
        self.given.append((round(now, 6), shot.ref.media_time))
        answer = await self._follow(shot.ref.media_time)
        if isinstance(answer, Light):
            return FastVerdict(shot.ref, self.name, answer)
        return CannotSee(shot.ref, self.name, str(answer))

    @property
    def seen(self) -> list[float]:
        """Media times of the frames that it was given."""
        return [t for _, t in self.given]


class HangingBrain(ScriptedFastSeat):
    """GREEN until that media time, and from then on never a word again."""

    def __init__(self, since: float = 0.0, *, name: str = "fast") -> None:
        super().__init__({-1.0: GREEN, since: Says(GREEN, hangs=True)}, name=name)


@dataclass(frozen=True)
class Asked:
    """A review as the SlowBrain got it: at what time, about what, with which pictures."""

    at: float
    review_id: int
    trigger: float
    shown: tuple[float, ...]


class ScriptedSlowSeat(_ScriptedSeat[bool | Exception]):
    """A SlowBrain: True is danger. The script goes by the trigger's media time."""

    def __init__(
        self,
        script: Mapping[float, bool | Exception | Says[bool | Exception]] | None = None,
        *,
        name: str = "slow",
        latency: float = 0.3,
    ) -> None:
        super().__init__(name, script or {0.0: False}, latency)
        self.interruptible = False
        self.asked: list[Asked] = []
        self.cancelled: list[int] = []

    async def review(
        self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]
    ) -> SlowVerdict:
        now = round(asyncio.get_running_loop().time(), 6)
        shown = tuple(shot.ref.media_time for shot in shots)
        self.asked.append(Asked(now, review_id, trigger.media_time, shown))
        answer = await self._follow(trigger.media_time)
        hazard = Hazard("C3", "L2", "a pan on fire")
        return SlowVerdict(review_id, danger=bool(answer), hazard=hazard)

    def cancel(self, review_id: int) -> None:
        self.cancelled.append(review_id)


class DroppingActuator(RecordingActuator):
    """A way to the robot that can be made to drop or to block what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[tuple[float, str]] = []
        self._drops: set[str] = set()
        self._blocks: set[str] = set()

    def drop_halts(self) -> None:
        """Halts fail to leave from now on."""
        self._drops.add("halt")

    def pass_halts(self) -> None:
        """Halts leave again."""
        self._drops.discard("halt")

    def block_halts(self) -> None:
        """Publishing a halt takes for ever from now on."""
        self._blocks.add("halt")

    def block_permits(self) -> None:
        """Publishing a permit takes for ever from now on."""
        self._blocks.add("permit")

    def block_notes(self) -> None:
        """Publishing a state takes for ever from now on; an escalation does not."""
        self._blocks.add("note")

    async def notify(self, action: Notify | Escalate) -> None:
        if isinstance(action, Notify):
            await self._edge("note")
        await super().notify(action)

    async def halt(self, action: Halt | Release) -> None:
        await self._edge("halt")
        await super().halt(action)

    async def permit(self, action: Permit) -> None:
        await self._edge("permit")
        await super().permit(action)

    async def _edge(self, what: str) -> None:
        self.tried.append((round(asyncio.get_running_loop().time(), 6), what))
        if what in self._blocks:
            await asyncio.Event().wait()
        if what in self._drops:
            raise ActuatorError(f"{what}: the broker is away")


class SilentActuator(RecordingActuator):
    """Delivers everything; the robot behind it never says a word."""

    async def events(self) -> AsyncIterator[Event]:
        for nothing in tuple[Event, ...]():
            yield nothing
        await asyncio.Event().wait()


@dataclass
class Witness:
    """An observer that remembers, with the times rounded to a microsecond."""

    steps: list[tuple[float, Event, tuple[object, ...]]] = field(default_factory=list)
    stamps: list[object] = field(default_factory=list)

    def judged(self, stamps: object) -> None:
        self.stamps.append(stamps)

    def stepped(self, now: float, event: Event, actions: tuple[object, ...]) -> None:
        self.steps.append((round(now, 6), event, actions))
