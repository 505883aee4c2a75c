"""What happened, append-only: enough to step the guard again and get the same decisions.

One JSON object a line. The first is the header: format, wall-clock time, policy, boot, and the
time at which the guard began. Then one line per step: `t` (seconds on the loop's clock), `event`
and its fields, and the actions that followed. Stamps stand in lines of their own.
"""

import dataclasses
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec

from hdguard.core import actions, events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import Policy
from hdguard.runtime.observer import Judged, Reviewed

FORMAT = "hdguard-journal/1"

_EVENTS = {kind.__name__: kind for kind in get_args(events.Event)}
_ACTIONS = {kind.__name__: kind for kind in get_args(actions.Action)}
_STAMPS: dict[str, type[Judged | Reviewed]] = {"Judged": Judged, "Reviewed": Reviewed}


class JournalError(Exception):
    """A journal cannot be read: names the file and the line."""


class Journal:
    """Collects lines in memory; `flush` writes them, and never from the decision step.

    `flush` may run in another thread while lines are added, and twice at once.
    """

    def __init__(self, path: Path, guard: Guard, began: float, about: dict[str, object]) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        self._lines: list[bytes] = []
        self._writing = threading.Lock()
        header = {
            "format": FORMAT,
            "written": datetime.now(UTC).isoformat(),  # noqa: TID251 - the header's wall clock
            "began": began,
            "boot": guard.boot,
            "policy": guard.policy,
            **about,
        }
        self._path.write_bytes(self._encoder.encode(header) + b"\n")

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Note when a frame or a review went through a brain."""
        self._lines.append(self._encoder.encode({"stamps": type(stamps).__name__, "of": stamps}))

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note a decision."""
        line = {
            "t": now,
            "event": type(event).__name__,
            "of": event,
            "actions": [{"action": type(a).__name__, "of": a} for a in actions],
        }
        self._lines.append(self._encoder.encode(line))

    def flush(self) -> None:
        """Append what has come since the last flush."""
        with self._writing, self._path.open("ab") as file:
            # The list itself stays: a line that is added meanwhile must not go to one thrown away.
            lines = self._lines[:]
            del self._lines[: len(lines)]
            file.write(b"".join(line + b"\n" for line in lines))


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a journal: what happened, and what was decided."""

    line: int
    now: float
    event: Event
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A journal read back."""

    header: dict[str, Any]
    policy: Policy
    boot: int
    began: float
    steps: tuple[Step, ...]
    stamps: tuple[Judged | Reviewed, ...]
    torn: bool = False
    """The last line is cut short: the process died while it wrote."""


class _Known(msgspec.Struct):
    """What a header must say to step the guard again."""

    written: str
    began: float
    boot: int
    policy: Policy


def read_journal(path: Path) -> Written:
    """Read a journal; a torn last line is left out.

    Raises:
        JournalError: the file is no journal, or a line in it cannot be understood.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise JournalError(msg) from error
    torn = lines.pop() != b""
    header, known = _header(path, lines[0] if lines else b"")
    steps: list[Step] = []
    stamps: list[Judged | Reviewed] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            read = _decode(number, line)
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            what = f"unknown or missing {error}" if isinstance(error, KeyError) else str(error)
            msg = f"{path}: line {number}: {what}"
            raise JournalError(msg) from error
        if isinstance(read, Step):
            steps.append(read)
        else:
            stamps.append(read)
    policy, boot, began = known.policy, known.boot, known.began
    return Written(header, policy, boot, began, tuple(steps), tuple(stamps), torn)


def _header(path: Path, line: bytes) -> tuple[dict[str, Any], _Known]:
    try:
        header = msgspec.json.decode(line)
    except msgspec.DecodeError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        msg = f"{path}: not a journal ({FORMAT} is what this version reads)"
        raise JournalError(msg)
    try:
        return header, msgspec.convert(header, _Known)
    except msgspec.ValidationError as error:
        msg = f"{path}: line 1: {error}"
        raise JournalError(msg) from error


def _decode(number: int, line: bytes) -> Step | Judged | Reviewed:
    raw = msgspec.json.decode(line, type=dict[str, Any])
    if "stamps" in raw:
        return msgspec.convert(raw["of"], _STAMPS[raw["stamps"]])
    event = msgspec.convert(raw["of"], _EVENTS[raw["event"]])
    decided = tuple(msgspec.convert(a["of"], _ACTIONS[a["action"]]) for a in raw["actions"])
    return Step(number, msgspec.convert(raw["t"], float), event, decided)


def step_again(written: Written) -> Iterator[tuple[Step, tuple[Action, ...]]]:
    """Give the events to a new guard; yields each step with what the guard decides now."""
    guard = Guard(written.policy, written.began, boot=written.boot)
    for step in written.steps:
        yield step, guard.step(step.event, step.now)


def fields(value: object) -> dict[str, Any]:
    """The fields of an event or action that say something, for people."""
    assert dataclasses.is_dataclass(value)
    found = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    said = {k: v for k, v in found.items() if v is not None and v is not False}
    return {k: v for k, v in said.items() if v not in ("", ())}
