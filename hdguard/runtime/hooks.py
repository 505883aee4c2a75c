"""The other means: what is called when the broker or the robot does not answer.

A command, or a file such as a GPIO line's `value`, that a robot team wires to its own protective
stop. It is switched on by an escalated halt and by a lost link, and off once the robot stands and
the link is back: never while a halt is in force that the robot has not confirmed, for it may be on
because of that very halt since an earlier life. The decision step only notes what is wanted; the
work is done by a task, one call at a time, and the newest wish wins: "on" waits for no "off". A
call that failed may have taken effect all the same, so after it whatever is wanted is called for.
"""

import asyncio
import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hdguard.core import actions, events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.runtime.observer import Judged, Reviewed

log = logging.getLogger(__name__)

HOOK_WITHIN = 2.0
"""Seconds for one call; a command that takes longer is killed and counts as failed."""

KILLED_WITHIN = 0.2
"""Seconds to wait for the end of a command that was killed; a choice. One that the kernel does not
let go, as with a driver that hangs, is left."""

STARTED_WITHIN = 0.001
"""Seconds after which to look again whether a command has been started; a choice."""

RETRY_AFTER = 1.0
"""Seconds before a call that failed is made again; less if another is wanted meanwhile."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    """What is called; neither: nothing.

    Attributes:
        command: program and arguments; `on REASON` or `off` are added. No shell is involved.
        gpio: a file that gets "1" for on and "0" for off. It must be there: where a name is wrong,
            a file of that name would be wired to nothing.
    """

    command: tuple[str, ...] = ()
    gpio: str = ""

    def __post_init__(self) -> None:
        if self.command and not self.command[0]:
            msg = "command: must begin with a program"
            raise ValueError(msg)

    @property
    def is_set(self) -> bool:
        """There is something to call."""
        return bool(self.command or self.gpio)


class FallBackHook:
    """An observer, and the task that does what it notes.

    Attributes:
        is_on: what the last call has set; None before the first and after one that failed.
        calls: how many were made.
        failures: how many of them failed, took too long or were broken off.
    """

    def __init__(self, settings: HookSettings) -> None:
        self.is_on: bool | None = None
        self.calls = self.failures = 0
        self._command = settings.command
        self._line = _Line(settings.gpio) if settings.gpio else None
        self._starting = False
        self._switching_off: asyncio.Timeout | None = None
        self._link_lost = False
        self._halt: str | None = None  # in force, and not confirmed by the robot
        self._escalated = False  # it, or the one whose place it took
        self._tested = False
        self._woken = asyncio.Event()

    @property
    def reason(self) -> str:
        """Why it should be on, in words; empty: it should be off."""
        found = []
        if self._escalated:
            found.append(f"the robot has not acknowledged halt {self._halt}")
        if self._link_lost:
            found.append("the broker does not return our permits")
        return "; ".join(found)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing that concerns us."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what is wanted from now on."""
        before = (self.reason, self._may_be_off)
        for action in actions:
            self._decided(action)
        # Not before them: what was due by now, an escalation, was decided before the event.
        match event:
            case events.LinkLost() | events.LinkUp():
                self._link_lost = isinstance(event, events.LinkLost)
            case events.HaltConfirmed() if event.halt_id == self._halt:
                self._halt, self._escalated = None, False
            case events.SelfTestPassed():
                self._tested = True
            case _:
                pass
        if (self.reason, self._may_be_off) != before:
            self._woken.set()
            if self.reason:
                self._break_off()

    @property
    def _may_be_off(self) -> bool:
        return self._tested and self._halt is None

    def _break_off(self) -> None:
        """An "off" that is under way is in the way of an "on"."""
        limit, loop = self._switching_off, asyncio.get_running_loop()
        if limit is None or limit.expired() or not self.reason:
            return
        if self._starting:  # until it has an id, its children could not be killed with it
            loop.call_later(STARTED_WITHIN, self._break_off)
        else:
            limit.reschedule(loop.time())

    def _decided(self, action: Action) -> None:
        match action:
            case actions.Halt():
                self._halt = action.halt_id  # it takes another's place, not confirmed yet
            case actions.Escalate():
                self._escalated = self._halt is not None  # else it ended in this very step
            case actions.Release():
                self._halt, self._escalated = None, False
            case _:
                pass

    async def work(self) -> None:
        """Switch it on and off until cancelled.

        An earlier life may have left it on, so it is switched off for the first time when the
        self-test has passed and a halt that was restored is confirmed, and not before.
        """
        while True:
            self._woken.clear()
            reason = self.reason
            wanted = bool(reason)
            if wanted is self.is_on or not (wanted or self._may_be_off):
                await self._woken.wait()
            elif await (self._call(reason) if wanted else self._off()):
                self.is_on = wanted
            else:
                self.failures += 1
                self.is_on = None
                await self._pause()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_AFTER):
                await self._woken.wait()

    async def _off(self) -> bool:
        """Switch it off; False too if that was broken off."""
        try:
            async with asyncio.timeout(None) as self._switching_off:
                return await self._call("")
        except TimeoutError:
            log.warning("fall-back hook: off: broken off")
            return False
        finally:
            self._switching_off = None

    async def _call(self, reason: str) -> bool:
        """Do both; True if both were done in time."""
        self.calls += 1
        log.log(
            logging.WARNING if reason else logging.INFO,
            "fall-back hook: %s",
            f"on: {reason}" if reason else "off",
        )
        words = ("on", reason) if reason else ("off",)
        self._starting = bool(self._command)
        async with asyncio.TaskGroup() as group:
            calls = []
            if self._command:
                calls.append(group.create_task(self._run((*self._command, *words))))
            if self._line is not None:
                calls.append(group.create_task(self._line.write("1" if reason else "0")))
        return all(call.result() for call in calls)

    async def _run(self, command: tuple[str, ...]) -> bool:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            log.warning("fall-back hook: %s: %s", command[0], error.strerror)
            return False
        finally:
            self._starting = False
        return await _ended(process, command[0])


async def _ended(process: asyncio.subprocess.Process, program: str) -> bool:
    try:
        async with asyncio.timeout(HOOK_WITHIN):
            code = await process.wait()
    except TimeoutError:
        log.warning("fall-back hook: %s: not done in %g s; killing it", program, HOOK_WITHIN)
        return False
    finally:
        if process.returncode is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # its own children too
            except OSError as error:  # it became another user's, as with sudo, or is gone
                log.warning("fall-back hook: %s: not killed: %s", program, error.strerror)
            with suppress(TimeoutError):
                async with asyncio.timeout(KILLED_WITHIN):
                    await process.wait()
    if code != 0:
        log.warning("fall-back hook: %s: exit code %d", program, code)
    return code == 0


class _Line:
    """A file that is written by a thread: a driver may take its time, or hang.

    It is one thread at most, so that a driver that hangs leaves the others to who writes to disk.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._last: asyncio.Future[OSError | None] | None = None

    async def write(self, word: str) -> bool:
        """Write once the last write has ended, so that the two cannot change places."""
        try:
            async with asyncio.timeout(HOOK_WITHIN):
                if self._last is not None:
                    await asyncio.wait({self._last})
                loop = asyncio.get_running_loop()
                self._last = loop.run_in_executor(None, self._write, word)
                await asyncio.wait({self._last})  # cancels nothing: a hanging write stays the last
        except TimeoutError:
            log.warning("fall-back hook: %s: not written in %g s", self._path, HOOK_WITHIN)
            return False
        error = self._last.result()
        if error is not None:
            log.warning("fall-back hook: %s: %s", self._path, error.strerror)
        return error is None

    def _write(self, word: str) -> OSError | None:
        try:
            with open(self._path, "w", encoding="ascii", opener=_existing) as file:
                file.write(word)
        except OSError as error:
            return error
        return None


def _existing(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_CREAT)
