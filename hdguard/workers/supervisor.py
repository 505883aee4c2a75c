"""Keeps one brain's worker process alive, and says when it is not.

It never repeats a call: who asked has a deadline for it. A restart counts as done when the new
worker's brain is loaded, not when its process runs. When the restarts of a minute are spent the
worker stays down, latched: a model that keeps dying needs a person.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from hdguard.brains.base import BrainError
from hdguard.core.events import BrainDown, BrainUp
from hdguard.workers import wire
from hdguard.workers.base import Listener, Notice
from hdguard.workers.budget import RestartBudget
from hdguard.workers.process import WorkerProcess
from hdguard.workers.ring import Ring

log = logging.getLogger(__name__)
STOP_GRACE = 1.0  # seconds for an idle worker to end by itself


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Settings of one worker process.

    Attributes:
        python: the interpreter, of this or another environment with hdguard in it; empty: this.
        ready_timeout: seconds in which the brain must be loaded.
        ping_interval: seconds between two pings of an idle worker, and in which it must answer.
        restarts_per_minute: so many, then latched.
    """

    python: str = ""
    ready_timeout: float = 30.0
    ping_interval: float = 1.0
    restarts_per_minute: int = 3


class Supervisor:
    """One brain's worker: started, watched, called, replaced, ended.

    Its one long task is made by `start` and awaited by `close`; everything else that runs belongs
    to it. Whoever called `start` must call `close`.
    """

    def __init__(self, load: wire.Load, expected: wire.Ready, settings: WorkerSettings) -> None:
        self._load = load
        self._expected = expected
        self._settings = settings
        self._budget = RestartBudget(settings.restarts_per_minute)
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None
        self._ring: Ring | None = None
        self._worker: WorkerProcess | None = None  # the process that is there, usable or not
        self._down = "not started"  # why calls are refused; empty while they are not
        self._may_restart = False
        self._waiting: dict[int, asyncio.Future[wire.Answer]] = {}
        self._calls = 0
        self.ready = expected  # what the brain said of itself when it was loaded last

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while it is down."""
        return None if self._down or self._worker is None else self._worker.pid

    @property
    def numbers(self) -> wire.Numbers | None:
        """What the worker took at its last pong; None before it, and while the worker is down."""
        return None if self._down or self._worker is None else self._worker.numbers

    @property
    def ring(self) -> Ring:
        """The memory that the worker shares.

        Raises:
            BrainError: there is none before `start` and after `close`.
        """
        if self._ring is None:
            raise BrainError(f"worker is down: {self._name}: {self._down}")
        return self._ring

    def listen(self, listener: Listener | None) -> None:
        """Send BrainDown, BrainUp and Remarked there from now on; None: nowhere.

        Whoever comes while a worker that was started is down hears that at once.
        """
        self._listener = listener
        if self._task is not None and self._down:
            self._tell(BrainDown(self._name, latched=not self._may_restart))

    async def start(self) -> None:
        """Start the worker; returns when its brain is loaded. A failure is not tried again.

        Raises:
            BrainError: it cannot be started or loaded, or is not what the settings say.
        """
        if self._ring is not None:
            raise BrainError(f"worker {self._name} was started before")
        self._ring = Ring.create(self._load.slots, self._load.slot_bytes)
        try:
            worker = await self._spawn()
        except BaseException:
            self._ring.close()
            self._ring = None
            raise
        self._use(worker)
        run = self._run(worker)
        self._task = asyncio.get_running_loop().create_task(run, name=f"worker {self._name}")

    async def call(self, make: Callable[[int], wire.Call]) -> wire.Answer:
        """Send what `make` makes of the call's id and await its answer.

        A caller that is cancelled leaves the worker at work; its answer will be dropped.

        Raises:
            BrainError: the brain's own, or the worker is down or died meanwhile.
        """
        worker = self._worker
        if self._down or worker is None:
            raise BrainError(f"worker is down: {self._name}: {self._down}")
        self._calls += 1
        call_id = self._calls
        waiting: asyncio.Future[wire.Answer] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = waiting
        try:
            await worker.send(make(call_id))
            answer = await waiting
        finally:
            del self._waiting[call_id]
        if isinstance(answer, wire.Failed):
            raise BrainError(answer.reason, scores=answer.scores)
        return answer

    def interrupt(self) -> None:
        """Break off the newest call, if it is not answered and the brain bears it.

        The call ends in the BrainError that the brain's answer then is.
        """
        worker = self._worker
        if self.ready.interruptible and worker is not None and self._calls in worker.unanswered:
            self.ring.cancel(self._calls)  # first, so that whoever is nudged finds it
            worker.nudge()

    async def kill(self, reason: str) -> None:
        """Kill the worker; returns when it is gone, while its successor is still loading.

        Without a worker there is nothing to kill: it is being replaced, latched or closed.
        """
        worker = self._worker
        if self._down or worker is None:
            return
        worker.kill()
        self._lose(f"killed: {reason}")
        await worker.reaped()

    async def close(self) -> None:
        """End the worker for good; nobody is told."""
        self._listener = None
        self._may_restart = False
        was_up, worker, task = not self._down, self._worker, self._task
        self._refuse("closed")
        if worker is not None:
            if was_up:
                await worker.stop(STOP_GRACE)
            worker.kill()
            await worker.reaped()
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if self._ring is not None:
            self._ring.close()
            self._ring = None
        if task is not None and not task.cancelled():
            task.result()  # a defect of this file is not to be swallowed

    @property
    def _name(self) -> str:
        return self._expected.name

    async def _run(self, first: WorkerProcess) -> None:
        worker: WorkerProcess | None = first
        try:
            while worker is not None:
                try:
                    if worker is not first:  # which `start` has put to use
                        self._use(worker)
                        self._tell(BrainUp(self._name))
                    why = await worker.attend(self._settings.ping_interval, self._on_word)
                    if not self._down:
                        self._lose(f"died: {why}")
                finally:
                    await worker.reap()
                    self._worker = None
                worker = await self._respawn()
        except Exception as error:  # a defect here: nobody replaces workers any more
            self._may_restart = False
            self._refuse(f"supervisor failed: {error!r}")
            self._tell(BrainDown(self._name, latched=True))
            raise

    async def _respawn(self) -> WorkerProcess | None:
        """A new worker; None when the restarts are spent, or nobody wants one."""
        while self._may_restart:
            try:
                worker = await self._spawn()
            except BrainError as error:
                log.warning("worker %s cannot be restarted: %s", self._name, error)
                self._down = f"cannot be restarted: {error}"
                self._may_restart = self._budget.spend(asyncio.get_running_loop().time())
                if not self._may_restart:
                    self._tell(BrainDown(self._name, latched=True))
            else:
                self._budget.ready()
                return worker
        return None

    async def _spawn(self) -> WorkerProcess:
        worker = await WorkerProcess.spawn(self._settings.python, self.ring)
        try:
            ready = await worker.introduce(self._load, self._settings.ready_timeout)
            self._check(ready)
            self.ready = ready
        except BaseException:
            await worker.reap()
            raise
        return worker

    def _check(self, ready: wire.Ready) -> None:
        if (ready.name, ready.spec) != (self._expected.name, self._expected.spec):
            is_, said = (f"{r.name!r}, {r.spec}" for r in (ready, self._expected))
            raise BrainError(f"{self._load.target} is {is_}; its settings say {said}")

    def _use(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._down = ""

    def _lose(self, why: str) -> None:
        """The worker is of no more use: whoever waits hears it now, the listener too."""
        log.warning("worker %s %s", self._name, why)
        self._may_restart = self._budget.spend(asyncio.get_running_loop().time())
        self._refuse(why)
        self._tell(BrainDown(self._name, latched=not self._may_restart))

    def _refuse(self, why: str) -> None:
        self._down = why
        for call_id, waiting in self._waiting.items():
            if not waiting.done():
                waiting.set_result(wire.Failed(call_id, f"worker {why}"))

    def _on_word(self, word: wire.Word) -> None:
        if isinstance(word, wire.Remarked):
            self._tell(word.remark)
            return
        waiting = self._waiting.get(word.call_id)
        if waiting is not None and not waiting.done():  # else its caller was cancelled
            waiting.set_result(word)

    def _tell(self, event: Notice) -> None:
        if self._listener is not None:
            self._listener(event)
