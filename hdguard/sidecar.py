"""The daemon: the parts of a `LivePlan`, run beside a robot until somebody ends it.

What must be true before the robot may move is done in this order: the configuration is right, no
other guard runs, the boot number is on disk, the brains are loaded and have answered their
canaries, a halt of an earlier life is in force again, and the broker has brought back our own
permit.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType

import uvloop

from hdguard.actuators.mqtt import MqttActuator
from hdguard.live import LivePlan
from hdguard.observe.settings import HttpError
from hdguard.past import Life, Past, claimed
from hdguard.recording import make_recorder
from hdguard.replay.runner import Crew
from hdguard.runtime.error_groups import leaves
from hdguard.runtime.garbage import set_aside
from hdguard.runtime.watchdog import Systemd
from hdguard.watch import Aides, Watch

log = logging.getLogger(__name__)

BROKER_WITHIN = 1.0
"""Seconds that the start waits for a broker, which then tells of a halt that the state file does
not know. One that comes later is asked all the same, before the robot may move."""

GONE_WITHIN = 2.7
"""Seconds from the signal to the end, whatever a mute camera or a frozen broker holds up: DESIGN
section 6 allows 3."""

SAID_WITHIN = 0.2
"""Seconds to say that we leave: whoever reads the log may be what holds us up."""

AUDITED_WITHIN = 0.5
"""Seconds for the last lines to reach the audit log: field.md, F33."""


def run_sidecar(plan: LivePlan) -> None:
    """Guard the robot until SIGTERM or SIGINT; blocks.

    Raises:
        ConfigError: as `LivePlan.check` and `claimed`, before anything is opened; or a brain is too
            slow here.
        BrainError: a brain cannot be loaded.
        HttpError: the HTTP port cannot be opened.
        ExceptionGroup: a part failed in a way that it is not allowed to.
    """
    plan.check()
    with (
        claimed(plan) as life,
        closing(Systemd.of_environment()) as systemd,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        try:
            runner.run(_live(plan, life, systemd))
        except ExceptionGroup as failed:
            # The first of these says more to people than the group that it came in.
            raise next((e for e in leaves(failed) if isinstance(e, HttpError)), failed) from None


async def _live(plan: LivePlan, life: Life, systemd: Systemd) -> None:
    systemd.status("loading the brains")
    stop = Stop()
    with stop.on_signals():
        async with plan.seating.crew() as crew:
            plan.seating.check_live(crew)
            await _guard(plan, life, systemd, crew, stop)


async def _guard(plan: LivePlan, life: Life, systemd: Systemd, crew: Crew, stop: "Stop") -> None:
    policy = plan.policy
    recorder = None
    if plan.config.incidents.is_on:
        folder = plan.state_file("incidents")
        recorder = make_recorder(plan.seating, policy, crew, folder, boot=life.boot)
    aides = Aides(plan, life, systemd, recorder)
    actuator = MqttActuator(
        plan.config.mqtt,
        life.boot,
        sources=tuple(source.source_id for source in policy.sources),
        brains=(*(brain.name for brain in policy.brains), *filter(None, [policy.slow])),
        on_rejected=aides.audit.rejected,
    )
    try:
        async with actuator, asyncio.TaskGroup() as group:
            past = Past(actuator, life.kept)
            await past.asked(BROKER_WITHIN)
            tasks = aides.start(group)
            with set_aside(), stop.awaited():
                while not stop.asked.is_set():
                    await Watch(plan, crew, actuator, aides, life, past).run(stop.asked)
            for task in tasks:
                task.cancel()
    finally:
        stop.leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(AUDITED_WITHIN):
                await asyncio.to_thread(aides.audit.flush)
                await aides.halts.flush()
                if recorder is not None:
                    await recorder.save()
                    await recorder.close()


def leave_in_time(code: int) -> None:
    """End this process in `GONE_WITHIN` seconds, if it has not ended by then.

    The robot stands by then, its lease has ended: there is nothing to wait for. This needs no event
    loop: what holds us up may be the loop itself, or, after it, the threads that the interpreter
    waits for.
    """

    def give_up(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends us even if the next line hangs
        signal.setitimer(signal.ITIMER_REAL, SAID_WITHIN)
        log.error("something does not end in %g s; leaving it", GONE_WITHIN)
        os._exit(code)

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, GONE_WITHIN)


class Stop:
    """Whether we are asked to end.

    While nobody awaits `asked`, as when the brains are loading, the work is broken off.

    Args:
        leave_in_time: called once when the end begins, with the exit code; ends the process if it
            has not ended by itself.
    """

    def __init__(self, leave_in_time: Callable[[int], None] = leave_in_time) -> None:
        self._leave_in_time = leave_in_time
        self._leaving = False
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._awaited = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT ask."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            self._loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        except asyncio.CancelledError:
            if not self.asked.is_set():
                raise
            assert self._task is not None  # made by a task
            self._task.uncancel()
        finally:
            for number in numbers:
                self._loop.remove_signal_handler(number)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Whoever does this watches `asked` itself."""
        self._awaited = True
        yield

    def leave(self) -> None:
        """The end begins, asked for or not."""
        if not self._leaving:
            self._leaving = True
            self._leave_in_time(0 if self.asked.is_set() else 1)

    def _on_signal(self) -> None:
        if self.asked.is_set():
            return
        self.asked.set()
        self.leave()
        if not self._awaited and self._task is not None:
            self._task.cancel()
