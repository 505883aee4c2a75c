"""A FastBrain on a thread of its own, for the realtime pace without a second process.

A thread cannot be killed. One that hangs is abandoned: it is a daemon, so that it does not keep
the interpreter, and what it may still say is not listened to. Its memory stays taken; a brain
that can hang for good belongs into a process.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable

from hdguard.brains.base import BrainError, FastBrain, Shot
from hdguard.core.events import BrainDown, BrainUp, CannotSee, FastVerdict
from hdguard.core.types import ImageSpec
from hdguard.workers.base import Listener
from hdguard.workers.budget import RestartBudget

log = logging.getLogger(__name__)

_Outcome = FastVerdict | CannotSee | BrainError


class _BrainThread:
    """One thread and its brain, which it builds if it is not given one.

    Everything it says arrives on the loop: `on_ready` once, `on_answer` per call, or `on_death`
    once, with the thread itself as the first argument.
    """

    def __init__(self, seat: "ThreadFastSeat", brain: FastBrain | None) -> None:
        self._seat = seat
        self._brain = brain
        self._loop = asyncio.get_running_loop()
        self._calls: queue.SimpleQueue[tuple[int, Shot] | None] = queue.SimpleQueue()
        self.busy = {0}  # calls sent and not answered; 0 is the building of the brain
        self._thread = threading.Thread(  # noqa: TID251 - the one thread for an inline brain
            target=self._serve, name=f"brain {seat.name}", daemon=True
        )
        self._thread.start()

    def send(self, call_id: int, shot: Shot) -> None:
        self.busy.add(call_id)
        self._calls.put((call_id, shot))

    def end(self) -> None:
        """Have it end, now if it is idle; if not it is abandoned."""
        self._calls.put(None)
        if not self.busy:
            self._thread.join()

    def _serve(self) -> None:
        try:
            self._answer_calls()
        except BaseException as error:  # the thread ends with it, and says so
            log.exception("brain %s raised", self._seat.name)
            self._say(self._seat.on_death, f"raised {error!r}")

    def _answer_calls(self) -> None:
        try:
            brain = self._seat.build() if self._brain is None else self._brain
        except BrainError as error:
            self._say(self._seat.on_death, str(error))
            return
        self._say(self._seat.on_ready)
        while (call := self._calls.get()) is not None:
            call_id, shot = call
            try:
                outcome: _Outcome = brain.assess(shot)
            except BrainError as error:
                outcome = error
            self._say(self._seat.on_answer, call_id, outcome)

    def _say(self, what: Callable[..., None], *values: object) -> None:
        try:
            self._loop.call_soon_threadsafe(what, self, *values)
        except RuntimeError:  # the loop is closed: nobody is left to hear an abandoned thread
            return


class ThreadFastSeat:
    """A FastBrain on one thread of its own.

    A brain that raises anything but a BrainError loses its thread and is built anew, as one in a
    process would be.

    Args:
        brain_factory: builds the brain; called now, so that name and spec are known, and on the
            new thread whenever the brain is replaced.
        restarts_per_minute: so many, then latched.
    """

    def __init__(
        self, brain_factory: Callable[[], FastBrain], restarts_per_minute: int = 3
    ) -> None:
        self.build = brain_factory
        self._first: FastBrain | None = brain_factory()
        self._name = self._first.name
        self._spec = self._first.spec
        self._fingerprint = str(getattr(self._first, "fingerprint", ""))
        self._warm_p99: float | None = getattr(self._first, "warm_p99", None)
        self._budget = RestartBudget(restarts_per_minute)
        self._listener: Listener | None = None
        self._thread: _BrainThread | None = None
        self._down = "not started"  # why calls are refused; empty while they are not
        self._waiting: dict[int, asyncio.Future[_Outcome]] = {}
        self._calls = 0

    @property
    def name(self) -> str:
        """The brain's name."""
        return self._name

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain wants."""
        return self._spec

    @property
    def fingerprint(self) -> str:
        """What the brain's scores depend on, in words; empty if it does not tell."""
        return self._fingerprint

    @property
    def warm_p99(self) -> float | None:
        """Seconds, the warm-up's 99th percentile; 0: it was not to measure, None: it never does."""
        return self._warm_p99

    def listen(self, listener: Listener | None) -> None:
        """Send BrainDown and BrainUp there from now on; None: nowhere. It makes no remarks.

        Whoever comes while a thread that was started is down hears that at once.
        """
        self._listener = listener
        if self._first is None and self._down:
            self._tell(BrainDown(self._name, latched=self._thread is None))

    async def start(self) -> None:
        """Start the thread; the brain is there already.

        Raises:
            BrainError: it was started before.
        """
        if self._first is None:
            raise BrainError(f"brain {self._name} was started before")
        self._thread = _BrainThread(self, self._first)
        self._thread.busy.clear()
        self._first = None
        self._down = ""

    async def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame. The answer to a cancelled call is dropped.

        Raises:
            BrainError: no usable answer, or the thread is down or was given up meanwhile.
        """
        thread = self._thread
        if self._down or thread is None:
            raise BrainError(f"worker is down: {self._name}: {self._down}")
        self._calls += 1
        call_id = self._calls
        waiting: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = waiting
        thread.send(call_id, shot)
        try:
            outcome = await waiting
        finally:
            del self._waiting[call_id]
        if isinstance(outcome, BrainError):
            raise outcome
        return outcome

    async def kill(self, reason: str) -> None:
        """Give up the thread and the call in progress; a new one builds a new brain."""
        if not self._down:
            self._replace(f"killed: {reason}", told=False)

    async def close(self) -> None:
        """End the thread if it is idle, else abandon it; nobody is told."""
        self._listener = None
        self._first = None
        self._refuse("closed")
        self._abandon()

    def on_ready(self, thread: _BrainThread) -> None:
        """Its brain is built (called by the thread, on the loop)."""
        if thread is not self._thread:
            return
        thread.busy.discard(0)
        if self._down:
            self._budget.ready()
            self._down = ""
            self._tell(BrainUp(self._name))

    def on_answer(self, thread: _BrainThread, call_id: int, outcome: _Outcome) -> None:
        """It has answered (called by the thread, on the loop)."""
        thread.busy.discard(call_id)
        waiting = self._waiting.get(call_id)
        if waiting is not None and not waiting.done():  # else cancelled, or given up
            waiting.set_result(outcome)

    def on_death(self, thread: _BrainThread, why: str) -> None:
        """It has ended by itself (called by the thread, on the loop)."""
        if thread is not self._thread:
            return
        thread.busy.clear()
        building_anew = bool(self._down)
        what = "cannot be restarted" if building_anew else "died"
        self._replace(f"{what}: {why}", told=building_anew)

    def _replace(self, why: str, *, told: bool) -> None:
        log.warning("brain %s %s", self._name, why)
        may_restart = self._budget.spend(asyncio.get_running_loop().time())
        self._refuse(why)
        self._abandon()
        if not (told and may_restart):
            self._tell(BrainDown(self._name, latched=not may_restart))
        if may_restart:
            self._thread = _BrainThread(self, None)

    def _abandon(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()

    def _refuse(self, why: str) -> None:
        self._down = why
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(BrainError(f"worker {why}"))

    def _tell(self, event: BrainDown | BrainUp) -> None:
        if self._listener is not None:
            self._listener(event)
