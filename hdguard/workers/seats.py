"""Brains that sit in a process of their own, as the runtime sees them.

Name and spec are known from the settings before anything is loaded; the worker must agree with
them when it is ready. The brain is named by a string: this side never imports it.
"""

import asyncio
from collections.abc import Mapping

from hdguard.brains.base import CANCELLED, BrainError, Shot
from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.workers import wire
from hdguard.workers.base import Listener
from hdguard.workers.supervisor import Supervisor, WorkerSettings

FAST_SLOTS = 2
SLOW_SLOTS = 32  # also the most pictures that one review can have


class _WorkerSeat:
    """What both seats share: a supervisor, and the pictures' way into the ring.

    Args:
        target: `module:Class` of the brain; the class names its settings class as `Settings`.
        settings: the fields of that settings class, plain data.
        name: the brain's name, as its settings say.
        spec: the picture that it wants, as its settings say.
        worker: the process's own settings.
    """

    _role: wire.Role
    _slots: int

    def __init__(
        self,
        target: str,
        settings: Mapping[str, object],
        name: str,
        spec: ImageSpec,
        worker: WorkerSettings,
    ) -> None:
        load = wire.Load(self._role, target, dict(settings), self._slots, spec.max_bytes)
        self._expected = wire.Ready(name, spec)
        self._supervisor = Supervisor(load, self._expected, worker)
        self._slot = 0

    @property
    def name(self) -> str:
        """The brain's name."""
        return self._expected.name

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain wants."""
        return self._expected.spec

    @property
    def fingerprint(self) -> str:
        """What the brain's scores depend on, in words; known after `start`, empty if not told."""
        return self._supervisor.ready.fingerprint

    @property
    def warm_p99(self) -> float | None:
        """Seconds, the warm-up's 99th percentile; 0: it was not to measure, None: it never does."""
        return self._supervisor.ready.warm_p99

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while it is down."""
        return self._supervisor.pid

    @property
    def numbers(self) -> wire.Numbers | None:
        """What the worker takes; None before its first pong, and while it is down."""
        return self._supervisor.numbers

    async def start(self) -> None:
        """Start the worker; returns when its brain is loaded. A failure is not tried again.

        Raises:
            BrainError: it cannot be started or loaded, or is not what the settings say.
        """
        await self._supervisor.start()

    def listen(self, listener: Listener | None) -> None:
        """Send BrainDown, BrainUp and Remarked there from now on; None: nowhere."""
        self._supervisor.listen(listener)

    async def kill(self, reason: str) -> None:
        """Kill the worker; returns when it is gone, while its successor is still loading."""
        await self._supervisor.kill(reason)

    async def close(self) -> None:
        """End the worker for good."""
        await self._supervisor.close()

    def _picture(self, shot: Shot) -> wire.Picture:
        slot, self._slot = self._slot, (self._slot + 1) % self._slots
        self._supervisor.ring.write(slot, shot.rgb)
        height, width, _ = shot.rgb.shape
        return wire.Picture(shot.ref, slot, height, width)


class WorkerFastBrain(_WorkerSeat):
    """A FastBrain in a process of its own."""

    _role = "fast"
    _slots = FAST_SLOTS

    async def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame.

        Raises:
            BrainError: no usable answer, or the worker is down or died meanwhile.
        """
        answer = await self._supervisor.call(lambda n: wire.Assess(n, self._picture(shot)))
        match answer:
            case wire.Assessed():
                return answer.verdict
            case wire.Unseen():
                return answer.blind
            case _:
                raise BrainError(f"worker {self.name} answered {type(answer).__name__} to a frame")


class WorkerSlowBrain(_WorkerSeat):
    """A SlowBrain in a process of its own; a review can have 32 pictures at most."""

    _role = "slow"
    _slots = SLOW_SLOTS
    _reviewing: int | None = None  # the review in hand, its pictures on their way or there

    @property
    def interruptible(self) -> bool:
        """Whether a review that is cancelled is broken off; known after `start`."""
        return self._supervisor.ready.interruptible

    async def review(
        self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]
    ) -> SlowVerdict:
        """Answer the review.

        Raises:
            BrainError: no usable answer, too many pictures, or the worker is down or died.
        """
        if len(shots) > self._slots:
            raise BrainError(f"a review of {len(shots)} pictures; at most {self._slots} fit")
        self._reviewing = review_id
        pictures: list[wire.Picture] = []
        for shot in shots:
            pictures.append(self._picture(shot))
            await asyncio.sleep(0)  # to copy a picture takes about 0.3 ms: let verdicts pass
        if self._reviewing != review_id:
            raise BrainError(CANCELLED)
        answer = await self._supervisor.call(
            lambda n: wire.Review(n, review_id, trigger, tuple(pictures))
        )
        if not isinstance(answer, wire.Reviewed):
            raise BrainError(f"worker {self.name} answered {type(answer).__name__} to a review")
        return answer.verdict

    def cancel(self, review_id: int) -> None:
        """Break off this review, if it is not asked yet or the brain bears to be interrupted."""
        if review_id == self._reviewing:
            self._reviewing = None
            self._supervisor.interrupt()
