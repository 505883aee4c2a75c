"""The halt in force, on disk, so that a guard that dies halted comes back halted.

The decision step only notes what is to be kept; a task has it written by a thread, so that no
decision ever waits for a disk. What cannot be written is tried again until it can.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from hdguard.core import actions
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.runtime.observer import Judged, Reviewed

log = logging.getLogger(__name__)

RETRY_AFTER = 1.0
"""Seconds before a write that failed is tried again."""

WRITTEN_WITHIN = 2.0
"""Seconds after which a write that has not ended counts as failed, though it is waited for: a
choice, above what a slow memory card should take."""


class StateFileError(Exception):
    """The file cannot be read or is none of ours: names it and says what to do."""


class Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds.

    Attributes:
        format: of this file.
        robot: whose guard wrote it.
        halt: the halt in force, or null. Its times are those of a clock that is gone.
        newest: the id of the newest halt that was ever in force, or empty.
    """

    format: Literal["hdguard-state/1"] = "hdguard-state/1"
    robot: str
    halt: Halt | None = None
    newest: str = ""

    def knows(self, halt_id: str) -> bool:
        """True if this file was written when that halt, or a later one, was in force."""
        return number_of(halt_id) <= number_of(self.newest)

    def restored(self, now: float) -> Halt | None:
        """The halt in force, for a guard that starts `now`."""
        if self.halt is None:
            return None
        return replace(self.halt, ref=None, decided_at=now, repeat=0)


def number_of(halt_id: str) -> tuple[int, int]:
    """The boot and the count that an id is made of; a later halt's is greater."""
    boot, _, count = halt_id.partition("-")
    return (int(boot), int(count)) if halt_id else (-1, -1)


def read_state(path: Path, robot: str) -> Kept | None:
    """What an earlier life kept; None if there was none.

    Raises:
        StateFileError: it cannot be told whether a halt was in force.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateFileError(f"{path}: {error.strerror}") from error
    advice = (
        "whether the robot was halted cannot be told; look at the robot, then delete the file: the "
        "halt that the broker keeps is restored all the same"
    )
    try:
        kept = msgspec.json.decode(data, type=Kept)
        number_of(kept.newest)
        if kept.halt is not None:
            number_of(kept.halt.halt_id)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StateFileError(f"{path}: not a state file: {error}; {advice}") from error
    if kept.robot != robot:
        msg = f"{path}: is of the robot {kept.robot!r}, not of {robot!r}; {advice}"
        raise StateFileError(msg)
    return kept


def write_state(path: Path, kept: Kept) -> None:
    """Replace the file as a whole; blocks until it is on disk.

    Raises:
        OSError: it could not be written; the old one is still there.
    """
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        beside.chmod(0o600)
        file.write(msgspec.json.encode(kept) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class StateKeeper:
    """An observer, and the task that writes what it notes.

    Args:
        path: of the file.
        kept: what is in force at the start.
        write: how it is written.

    Attributes:
        failures: writes that failed.
        failing: the last write failed, or hangs.
    """

    def __init__(
        self, path: Path, kept: Kept, write: Callable[[Path, Kept], None] = write_state
    ) -> None:
        self.failures = 0
        self.failing = False
        self._path = path
        self._kept = kept
        self._write = write
        self._written: Kept | None = None
        self._woken = asyncio.Event()
        self._all_written = asyncio.Event()

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing that is kept."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note halts and releases."""
        for action in actions:
            self._decided(action)

    def _decided(self, action: Action) -> None:
        match action:
            case Halt(repeat=0):
                newest = max(action.halt_id, self._kept.newest, key=number_of)
                self._keep(halt=action, newest=newest)
            case actions.Release():
                newest = max(action.halt_id, self._kept.newest, key=number_of)
                self._keep(halt=None, newest=newest)
            case _:
                pass

    def _keep(self, halt: Halt | None, newest: str) -> None:
        self._kept = msgspec.structs.replace(self._kept, halt=halt, newest=newest)
        self._all_written.clear()
        self._woken.set()

    async def written(self) -> None:
        """Wait until all that was noted is on disk."""
        await self._all_written.wait()

    async def work(self) -> None:
        """Write whenever something was noted, until cancelled."""
        while True:
            self._woken.clear()
            kept = self._kept
            if kept == self._written:
                self._all_written.set()
                await self._woken.wait()
                continue
            try:
                await self._by_thread(kept)
            except OSError as error:
                self._on_failure(error.strerror or str(error))
                await asyncio.sleep(RETRY_AFTER)
            else:
                self._written = kept
                self.failing = False

    async def _by_thread(self, kept: Kept) -> None:
        late = f"not written in {WRITTEN_WITHIN:g} s"
        timer = asyncio.get_running_loop().call_later(WRITTEN_WITHIN, self._on_failure, late)
        try:
            await asyncio.to_thread(self._write, self._path, kept)
        finally:
            timer.cancel()

    def _on_failure(self, why: str) -> None:
        self.failures += 1
        if not self.failing:
            self.failing = True
            log.error("%s: %s; the halt in force is not kept on disk yet", self._path, why)
