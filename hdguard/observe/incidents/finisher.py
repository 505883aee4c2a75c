"""Has clips made in a child process, one at a time, and sees what became of them.

The child is niced. It is killed by its own id if it is late, and has failed then, or if the guard
ends: then the folder keeps its `.part`, and the next start goes on with it.
"""

import asyncio
import logging
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from hdguard.observe.incidents.shelf import set_aside

log = logging.getLogger(__name__)

CHILD = "hdguard.observe.incidents.encode"
"""Named and not imported: it loads the encoder."""

MADE_WITHIN = 600.0
"""Seconds for one incident's clips; a choice. It is a second's work for an idle core, but the child
yields to everybody."""

DROPPED = 3
"""Exit code of the child where the disk did not take it; any other but 0: it is no incident."""

Outcome = Literal["kept", "dropped", "failed"]


class Finisher:
    """The queue of folders, and the task that works it off.

    Args:
        ended: hears what became of each.
        mcap: an MCAP file is made too.
        within: seconds for one.
    """

    def __init__(
        self,
        ended: Callable[[Outcome], Awaitable[None]],
        *,
        mcap: bool = False,
        within: float = MADE_WITHIN,
    ) -> None:
        self._ended = ended
        self._words = ("--mcap",) if mcap else ()
        self._within = within
        self._queue: asyncio.Queue[Path] = asyncio.Queue()
        self._child: subprocess.Popen[str] | None = None
        self._closing = False

    def put(self, part: Path) -> None:
        """Have its clips made."""
        self._queue.put_nowait(part)

    async def idle(self) -> None:
        """Wait until all are made."""
        await self._queue.join()

    async def work(self) -> None:
        """Make clips until cancelled."""
        try:
            while True:
                part = await self._queue.get()
                outcome = await asyncio.to_thread(self._made, part)
                if outcome is not None:
                    await self._ended(outcome)
                self._queue.task_done()
        finally:
            self._closing = True
            if (child := self._child) is not None:
                child.kill()

    def _made(self, part: Path) -> Outcome | None:
        """Blocks until the child has ended; None: it was told to, and the folder stays as it is."""
        command = [sys.executable, "-m", CHILD, *self._words, str(part)]
        try:
            with subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C is for the guard, which then ends it
            ) as child:
                self._child = child
                if self._closing:  # it ended while the child was being started
                    child.kill()
                try:
                    _, said = child.communicate(timeout=self._within)
                except subprocess.TimeoutExpired:
                    child.kill()
                    _, said = "", f"not made in {self._within:g} s, killed"
                    child.communicate()
                finally:
                    self._child = None
        except OSError as error:
            return _dropped(part, f"the encoder cannot be started: {error.strerror}")
        if child.returncode == 0:
            return "kept"
        if self._closing or child.returncode == -signal.SIGTERM:  # as systemd tells all of us
            return None
        last = said.strip().rpartition("\n")[2]
        why = last or f"the encoder ended with {child.returncode}"
        return _dropped(part, why) if child.returncode == DROPPED else _failed(part, why)


def _dropped(part: Path, why: str) -> Outcome:
    log.warning("incident %s: dropped: %s", part.stem, why)
    shutil.rmtree(part, ignore_errors=True)
    return "dropped"


def _failed(part: Path, why: str) -> Outcome:
    log.warning("incident %s: set aside: %s", part.stem, why)
    try:
        set_aside(part, why)
    except OSError as error:
        log.warning("incident %s: %s", part.stem, error.strerror)
    return "failed"
