"""Who stopped the robot, who let it go, and who tried: JSON lines that people read afterwards.

The decision step only adds a line in memory; a task has it written by a thread. What is
refused is counted beyond a few a minute, so that a flood of bad commands fills no disk.
"""

import asyncio
import os
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.structured import get_logger

log = get_logger(__name__)

REFUSED_PER_MINUTE = 10
"""Refusals of one topic that get a line of their own; a choice. The rest is counted."""

MOST_WAITING = 1000
"""Lines in memory while the disk does not take them; further ones are dropped and counted."""

MOST_BYTES = 10 << 20
"""Size at which the file becomes `.1` and a new one begins, so that there are two at most."""


class AuditLog:
    """An observer, and the task that writes what it notes.

    Attributes:
        refused: messages refused, by topic.
        dropped: lines lost because the disk did not take them in time.
        failures: writes that failed.
        failing: the last write failed.
    """

    def __init__(self, path: Path) -> None:
        self.refused: Counter[str] = Counter()
        self.dropped = self.failures = 0
        self._path = path
        self._lines: list[bytes] = []
        self._writing = threading.Lock()
        self.failing = False
        self._minute = -1
        self._this_minute: Counter[str] = Counter()
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing that is audited."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what operators asked for, and what became of halts."""
        match event:
            case events.ResetRequested():
                self._add("reset asked", halt_id=event.halt_id, operator=event.operator)
            case events.HaltRequested():
                self._add("halt asked", operator=event.operator)
            case events.StopRequested():
                self._add("stopping")
            case events.HaltConfirmed():
                self._add("confirmed", halt_id=event.halt_id)
            case _:
                pass
        for action in actions:
            self._decided(action)

    def _decided(self, action: Action) -> None:
        match action:
            case Halt(repeat=0):
                said = {"source": action.source_id, "brain": action.brain}
                words = {**said, "hazard": action.hazard.text}
                self._add(
                    "halt",
                    halt_id=action.halt_id,
                    **{"class": action.halt_class, "cause": action.cause},
                    **{k: v for k, v in words.items() if v},
                )
            case actions.Release():
                self._add("released", halt_id=action.halt_id)
            case actions.Escalate():
                self._add("escalated", halt_id=action.halt_id)
            case _:
                pass

    def rejected(self, topic: str, reason: str) -> None:
        """A message was refused."""
        self.refused[topic] += 1
        minute = int(self._loop.time() // 60)
        if minute != self._minute:
            self._minute = minute
            self._this_minute.clear()
        self._this_minute[topic] += 1
        if self._this_minute[topic] <= REFUSED_PER_MINUTE:
            words = {"topic": topic, "reason": reason, "so_far": self.refused[topic]}
            log.warning("refused", **words)
            self._add("refused", **words)

    def note(self, what: str, **words: Any) -> None:
        """Add a line, and say it in the log. What is decided, `DecisionLog` says."""
        log.info(what, **words)
        self._add(what, **words)

    def _add(self, what: str, **words: Any) -> None:
        if len(self._lines) >= MOST_WAITING:
            self.dropped += 1
            return
        at = datetime.now(UTC).isoformat()  # noqa: TID251 - for people; nothing is decided by it
        self._lines.append(msgspec.json.encode({"at": at, "what": what, **words}) + b"\n")
        self._woken.set()

    async def work(self) -> None:
        """Write until cancelled; what is left then is lost unless `flush` is called."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            await asyncio.to_thread(self.flush)

    def flush(self) -> None:
        """Append what waits; blocks. What cannot be written waits for the next time.

        May run in two threads at once, and while lines are added.
        """
        with self._writing:
            try:
                self._append()
            except OSError as error:
                self.failures += 1
                if not self.failing:
                    log.warning("%s: %s; nothing is audited", self._path, error.strerror or error)
                self.failing = True
            else:
                if self.failing:
                    log.info("%s: audited again", self._path)
                self.failing = False

    def _append(self) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            while waiting := b"".join(self._lines):
                self._took(os.write(file, waiting))
            full = os.fstat(file).st_size >= MOST_BYTES
        finally:
            os.close(file)
        if full:
            self._path.replace(self._path.with_name(self._path.name + ".1"))

    def _took(self, count: int) -> None:
        """Forget so many bytes: a disk that is almost full takes a part, even of a line."""
        while count > 0:
            first = self._lines[0]
            if count < len(first):
                self._lines[0] = first[count:]
            else:
                del self._lines[0]
            count -= len(first)
