"""The halts' stories on disk, so that any halt of any earlier life can be explained.

JSON lines, one for each change of a story; of a halt that one life tells, the newest line counts.
The decision step only notes what is new; a task has it written by a thread. It is bounded: a file
that is full becomes `.1`, and a new one begins.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hdguard.runtime.halt_story import HaltStory, StoryError, decode, encode

log = logging.getLogger(__name__)

MOST_WAITING = 100
"""Stories in memory while the disk does not take them; older ones are dropped and counted."""

MOST_BYTES = 4 << 20
"""Size at which the file becomes `.1`: some 800 halts of five lines each. A choice."""

Key = tuple[str, int]
"""A halt, and the boot of the guard that tells it."""


class HaltLog:
    """Writes what `note` is told.

    Attributes:
        dropped: stories lost because the disk did not take them in time.
        failures: writes that failed.
        failing: the last write failed.
    """

    def __init__(self, path: Path) -> None:
        self.dropped = self.failures = 0
        self.failing = False
        self._path = path
        self._waiting: dict[Key, HaltStory] = {}
        self._writing = threading.Lock()
        self._woken = asyncio.Event()

    def note(self, story: HaltStory) -> None:
        """It is new, or has changed; what waits of it is replaced."""
        key = (story.halt_id, story.boot)
        self._waiting.pop(key, None)
        self._waiting[key] = story
        self._let_go()
        self._woken.set()

    def _let_go(self) -> None:
        while len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
            self.dropped += 1

    async def work(self) -> None:
        """Write until cancelled; what is left then is lost unless `flush` is called."""
        while True:
            await self._woken.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write what waits. What cannot be written waits for the next time."""
        self._woken.clear()
        taken, self._waiting = self._waiting, {}
        try:
            await asyncio.to_thread(self._append, taken.values())
        except OSError as error:
            self.failures += 1
            if not self.failing:
                why = error.strerror or error
                log.warning("%s: %s; no halt is written down", self._path, why)
            self.failing = True
            self._waiting = {**taken, **self._waiting}  # a newer story replaces what it was
            self._let_go()
        else:
            if self.failing:
                log.info("%s: halts are written down again", self._path)
            self.failing = False

    def _append(self, stories: Iterable[HaltStory]) -> None:
        """Blocks. A line that was cut short before ends first, so that it costs no other."""
        lines = b"".join(encode(story) + b"\n" for story in stories)
        if not lines:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with self._writing:
            file = os.open(self._path, flags, 0o600)
            try:
                size = os.fstat(file).st_size
                if size and os.pread(file, 1, size - 1) != b"\n":
                    lines = b"\n" + lines
                left = memoryview(lines)
                while left:
                    left = left[os.write(file, left) :]
            finally:
                os.close(file)
            if size + len(lines) >= MOST_BYTES:
                self._path.replace(older(self._path))


def older(path: Path) -> Path:
    """Where a full log goes."""
    return path.with_name(path.name + ".1")


@dataclass(frozen=True, slots=True)
class Logged:
    """What a halt log holds.

    Attributes:
        stories: oldest first; a halt that several lives had in force is there once for each.
        left_out: lines that cannot be read, as the one that a process died writing.
    """

    stories: tuple[HaltStory, ...]
    left_out: int


def read_halt_log(path: Path) -> Logged:
    """The log, and what was in it before it was last full.

    Raises:
        StoryError: there is none, or it cannot be read.
    """
    found: dict[Key, HaltStory] = {}
    left_out = 0
    for line in _lines(path):
        try:
            story = decode(line)
        except msgspec.MsgspecError:
            left_out += 1
        else:
            found[story.halt_id, story.boot] = story
    return Logged(tuple(found.values()), left_out)


def _lines(path: Path) -> Iterable[bytes]:
    there = [file for file in (older(path), path) if file.exists()]
    if not there:
        raise StoryError(f"{path}: no such file; `hdguard run` begins it with its first halt")
    for file in there:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise StoryError(f"{file}: {error.strerror}") from error
        yield from filter(None, data.split(b"\n"))
