"""The incidents on disk: their folders' names, what is deleted and when.

A folder is `ID.part` while it is recorded or its clips are made, `ID` when it is whole, `ID.broken`
when it cannot be made whole, and `ID.gone` for the moment in which it is deleted: after a crash at
any point its name says what to do with it.
"""

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hdguard.observe.incidents.record import FILE, RecordError, Summary, read_summary, write_private

FREE_FLOOR = 256 << 20
"""Bytes that must stay free on the disk, for the state file and the audit log; a choice."""

DAY = 86400.0
PART, BROKEN, GONE = ".part", ".broken", ".gone"
WHY = "why.txt"

BELIEVED_AFTER = 3600.0
"""Seconds for which the wall clock must have gone like the loop's before anything is deleted for
its age; a choice: time in which a machine that woke with a wrong clock has asked for the right one.
"""
JUMP = 60.0
"""Seconds by which it may drift off meanwhile; a choice."""

_NAME = re.compile(r"[^/\x00-\x1f]{1,255}")


class ShelfError(Exception):
    """Nothing can be recorded just now: says why."""


@dataclass(frozen=True, slots=True)
class Item:
    """A folder on the shelf; `summary` is None where its record cannot be read.

    `decided` is unix time, of the folder itself where there is no record.
    """

    path: Path
    size: int
    decided: float
    summary: Summary | None = None

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name


Known = dict[Path, tuple[int, Item]]
"""What was read before, with the time of change of its folder."""


def items(folder: Path, known: Known | None = None) -> list[Item]:
    """Every incident there, also broken ones and those in progress, oldest first.

    Args:
        folder: of all incidents; one that does not exist is empty.
        known: what need not be read again, and is brought up to date.

    Raises:
        OSError: the folder cannot be read.
    """
    known = {} if known is None else known
    try:
        paths = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
    except FileNotFoundError:
        return []
    found = [item for p in paths if _is_ours(p) and (item := _item(p, known)) is not None]
    for path in known.keys() - {item.path for item in found}:
        del known[path]
    return sorted(found, key=lambda item: item.decided)


def _is_ours(path: Path) -> bool:
    """Somebody may name a folder of other things, and have everything deleted."""
    if path.suffix == GONE:
        return False
    return path.suffix in {PART, BROKEN} or (path / FILE).is_file()


def _item(path: Path, known: Known) -> Item | None:
    """The folder; None: it was renamed or deleted meanwhile."""
    try:
        changed = path.stat().st_mtime_ns
        # What is being recorded grows without a change of its folder.
        if path.suffix != PART and path in known and known[path][0] == changed:
            return known[path][1]
        known[path] = changed, _read(path)
    except FileNotFoundError:
        return None
    return known[path][1]


def _read(path: Path) -> Item:
    try:
        summary = read_summary(path)
        decided = datetime.fromisoformat(summary.wall.decided).timestamp()
    except (RecordError, ValueError):
        summary = None
        decided = path.stat().st_mtime
    return Item(path, size_of(path), decided, summary)


def size_of(path: Path) -> int:
    """Bytes that a folder's files take on disk."""
    return sum(p.lstat().st_blocks * 512 for p in path.iterdir())


def remove(path: Path) -> None:
    """Delete a folder; if that is broken off, its name says that it was to go.

    Raises:
        OSError: it could not be deleted.
    """
    gone = path if path.suffix == GONE else path.with_name(path.name + GONE)
    if gone != path:
        path.rename(gone)
    shutil.rmtree(gone)


def wall_clock() -> float:
    """Unix time."""
    return datetime.now(UTC).timestamp()  # noqa: TID251 - the age of what people keep


class ClockWatch:
    """Whether the wall clock may be believed: it has gone like the loop's for an hour."""

    def __init__(self) -> None:
        self._offset = float("nan")
        self._since = 0.0

    def believes(self, now: float, wall: float) -> bool:
        """Look at both: seconds on the loop's clock, and unix time."""
        offset = wall - now
        if not abs(offset - self._offset) <= JUMP:
            self._offset, self._since = offset, now
        return now - self._since >= BELIEVED_AFTER


class Shelf:
    """The folder in which incidents are kept; used from one thread at a time.

    Args:
        folder: made when the first incident is.
        max_bytes, keep_days: see `IncidentSettings`.
        floor: bytes that must stay free on the disk.
        wall: tells unix time; whether it is right is found out.

    Attributes:
        bytes: what everything on it took when that was last looked at.
    """

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        keep_days: float,
        floor: int = FREE_FLOOR,
        wall: Callable[[], float] = wall_clock,
    ) -> None:
        self.folder = folder
        self.bytes = 0
        self._max_bytes = max_bytes
        self._keep = keep_days * DAY
        self._floor = floor
        self._wall = wall
        self._clock = ClockWatch()
        self._known: Known = {}

    def leftovers(self) -> list[Path]:
        """What an earlier life has begun and not made whole; what it was deleting is deleted.

        Raises:
            OSError: the folder cannot be used.
        """
        if not self.folder.exists():
            return []
        for path in self.folder.iterdir():
            if path.suffix == GONE and path.is_dir() and not path.is_symlink():
                remove(path)
        return [item.path for item in items(self.folder) if item.path.suffix == PART]

    def begin(self, name: str) -> Path:
        """An empty folder for a new incident, whose name may get a number behind it.

        Raises:
            ShelfError: the disk is too full.
            OSError: the folder cannot be made.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < self._floor:
            msg = f"{self.folder}: {free >> 20} MiB free, less than the {self._floor >> 20} to stay"
            raise ShelfError(msg)
        taken = {re.sub(r"\.(part|broken|gone)$", "", p.name) for p in self.folder.iterdir()}
        number, free_name = 1, name
        while free_name in taken:
            number += 1
            free_name = f"{name}_{number}"
        path = self.folder / (free_name + PART)
        path.mkdir(mode=0o700)
        return path

    def sweep(self, now: float) -> None:
        """Delete the oldest while there is too much, and what is too old.

        Never more than is needed for its size; for its age only while the wall clock is believed.
        What is being recorded stays.

        Args:
            now: seconds on the loop's clock.

        Raises:
            OSError: something could not be read or deleted.
        """
        wall = self._wall()
        believed = self._clock.believes(now, wall)
        found = items(self.folder, self._known)
        total = sum(item.size for item in found)
        for item in found:
            old = believed and wall - item.decided > self._keep
            if (total > self._max_bytes or old) and item.path.suffix != PART:
                remove(item.path)
                total -= item.size
        self.bytes = total


def set_aside(part: Path, why: str) -> None:
    """Keep a folder that cannot be made whole, with the reason, until it is too old.

    Raises:
        OSError: it could not be renamed.
    """
    with suppress(OSError):  # a full disk; the log says why too
        write_private(part / WHY, why.encode() + b"\n")
    part.rename(part.with_name(part.name.removesuffix(PART) + BROKEN))


def check_name(name: str) -> None:
    """Refuse what is no incident's name.

    Raises:
        ShelfError: it might lead out of the folder, or is in progress.
    """
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise ShelfError(f"{name!r}: is no incident's id")
    if name.endswith((PART, GONE)):
        raise ShelfError(f"{name}: is in progress; the guard finishes it, now or when it starts")
