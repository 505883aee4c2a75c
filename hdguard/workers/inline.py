"""Brains called inline, for the virtual pace: the answer comes at start + cost.

While the brain computes virtual time stands still; then the seat waits for as long as the work is
declared to take, or took. Frames that are due meanwhile are dropped as they would be live.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from hdguard.brains.base import CANCELLED, BrainError, FastBrain, Shot, SlowBrain
from hdguard.core.events import BrainDown, BrainUp, CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.workers.base import Listener, Notice

Cost = Literal["fixed", "trace", "measured", "none"]
BrainT = TypeVar("BrainT", bound=FastBrain | SlowBrain)
AnswerT = TypeVar("AnswerT")


class _InlineSeat(Generic[BrainT]):
    """What both seats share.

    The brain is built at once, so its name and spec are known before `start`.
    """

    def __init__(
        self, brain_factory: Callable[[], BrainT], cost: Cost, fixed: float | None = None
    ) -> None:
        self._factory = brain_factory
        self._cost = cost
        self._fixed = fixed
        self._brain = brain_factory()
        self._listener: Listener | None = None

    @property
    def name(self) -> str:
        """The brain's name."""
        return self._brain.name

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain wants."""
        return self._brain.spec

    @property
    def fingerprint(self) -> str:
        """What the brain's scores depend on, in words; empty if it does not tell."""
        return str(getattr(self._brain, "fingerprint", ""))

    @property
    def warm_p99(self) -> float | None:
        """Seconds, the warm-up's 99th percentile; 0: it was not to measure, None: it never does."""
        return getattr(self._brain, "warm_p99", None)

    async def start(self) -> None:
        """Nothing to wait for: the brain is there."""

    def listen(self, listener: Listener | None) -> None:
        """Send BrainDown and BrainUp there from now on; None: nowhere. It makes no remarks.

        It is down only within `kill`, so whoever comes has missed nothing.
        """
        self._listener = listener

    async def kill(self, reason: str) -> None:
        """Replace the brain. A call that still waits out its cost is the caller's to cancel."""
        self._tell(BrainDown(self.name))
        self._brain = self._factory()
        self._tell(BrainUp(self.name))

    async def close(self) -> None:
        """Nothing is left to end."""

    def _tell(self, event: Notice) -> None:
        if self._listener is not None:
            self._listener(event)

    async def _answer(self, work: Callable[[], AnswerT], declared: Callable[[], float]) -> AnswerT:
        failure: BrainError | None = None
        # Measures the processor's work, which virtual time does not see; it decides nothing.
        started = time.perf_counter()
        try:
            answer = work()
        except BrainError as error:
            failure = error
        took = time.perf_counter() - started
        await self._wait(took if self._cost == "measured" else declared())
        if failure is not None:
            raise failure
        return answer

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def _declared(self, by_brain: Callable[[], float]) -> float:
        if self._cost == "fixed" and self._fixed is not None:
            return self._fixed
        return by_brain()


class InlineFastSeat(_InlineSeat[FastBrain]):
    """A FastBrain called inline.

    Args:
        brain_factory: builds the brain; called now and after every `kill`.
        cost: `fixed`: `fixed` seconds if given, else what the brain declares; `trace`: what the
            brain declares; `measured`: what the call really took; `none`: no time at all.
        fixed: seconds.
    """

    async def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame; the answer, or the failure, comes when its cost has passed.

        Raises:
            BrainError: no usable answer.
        """
        brain = self._brain

        def declared() -> float:
            return 0.0 if self._cost == "none" else self._declared(lambda: brain.cost(shot.ref))

        return await self._answer(lambda: brain.assess(shot), declared)


class InlineSlowSeat(_InlineSeat[SlowBrain]):
    """A SlowBrain called inline; arguments as for `InlineFastSeat`.

    A review takes what the brain declares even where the cost is `none`: only the FastBrains'
    judgements are free there.
    """

    _reviewing: int | None = None  # the review in hand

    def __init__(
        self, brain_factory: Callable[[], SlowBrain], cost: Cost, fixed: float | None = None
    ) -> None:
        super().__init__(brain_factory, cost, fixed)
        self._cancelled = asyncio.Event()

    @property
    def interruptible(self) -> bool:
        """Whether a review that is cancelled is broken off."""
        return bool(getattr(self._brain, "interruptible", False))

    async def review(
        self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]
    ) -> SlowVerdict:
        """Answer the review; the answer, or the failure, comes when its cost has passed.

        Raises:
            BrainError: no usable answer.
        """
        brain = self._brain
        self._reviewing = review_id
        self._cancelled.clear()
        try:
            return await self._answer(
                lambda: brain.review(review_id, trigger, shots),
                lambda: self._declared(lambda: brain.cost(trigger)),
            )
        finally:
            self._reviewing = None

    def cancel(self, review_id: int) -> None:
        """Break off this review now, if it is in hand and the brain bears to be interrupted."""
        if review_id == self._reviewing:
            self._cancelled.set()

    async def _wait(self, seconds: float) -> None:
        if not self.interruptible:
            await super()._wait(seconds)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._cancelled.wait()
        except TimeoutError:
            return
        raise BrainError(CANCELLED)
