"""The incidents on disk: their folders' names, what is deleted and when.

A folder is `ID.part` while it is recorded or its clips are made, `ID` when it is whole, `ID.broken`
when it cannot be made whole, and `ID.gone` for the moment in which it is deleted: after a crash at
any point its name says what to do with it.
"""

import fcntl
import os
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


def closed(folder: Path) -> list[Path]:
    """Folders there that we may not look into, as those of a guard that root has started.

    Raises:
        OSError: the folder cannot be read.
    """
    if not folder.exists():
        return []
    return sorted(p for p in folder.iterdir() if p.is_dir() and not os.access(p, os.R_OK | os.X_OK))


def _is_ours(path: Path) -> bool:
    """Somebody may name a folder of other things, and have everything deleted."""
    if path.suffix == GONE:
        return False
    if path.suffix in {PART, BROKEN}:
        return True
    try:
        return (path / FILE).is_file()
    except PermissionError:
        return False


def _item(path: Path, known: Known) -> Item | None:
    """The folder; None: it was renamed or deleted meanwhile, or we may not look into it.

    One that another user's guard has made must not keep us from all others.
    """
    try:
        changed = path.stat().st_mtime_ns
        # What is being recorded grows without a change of its folder.
        if path.suffix != PART and path in known and known[path][0] == changed:
            return known[path][1]
        known[path] = changed, _read(path)
    except (FileNotFoundError, PermissionError):
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
        self._now = 0.0
        self._begun: dict[str, float] = {}  # by name, on the loop's clock

    def leftovers(self) -> list[Path]:
        """What an earlier life has begun and not made whole; what it was deleting is deleted.

        Raises:
            OSError: the folder cannot be used.
        """
        if not self.folder.exists():
            return []
        for path in self.folder.iterdir():
            if path.suffix == GONE and path.is_dir() and not path.is_symlink():
                with suppress(OSError):  # it is tried again, and stands in nobody's way
                    remove(path)
        return [item.path for item in items(self.folder) if item.path.suffix == PART]

    def begin(self, name: str) -> Path:
        """An empty folder for a new incident, whose name may get a number behind it.

        Raises:
            ShelfError: the disk is too full.
            OSError: the folder cannot be made.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.has_room():
            msg = f"{self.folder}: less than {self._floor >> 20} MiB are free, and they are to stay"
            raise ShelfError(msg)
        if self.bytes > self._max_bytes:  # all that is whole was deleted for it
            msg = f"{self.folder}: all of max_bytes is taken by what cannot be deleted yet"
            raise ShelfError(msg)
        taken = {re.sub(r"\.(part|broken|gone)$", "", p.name) for p in self.folder.iterdir()}
        number, free_name = 1, name
        while free_name in taken:
            number += 1
            free_name = f"{name}_{number}"
        path = self.folder / (free_name + PART)
        path.mkdir(mode=0o700)
        self._begun[free_name] = self._now
        return path

    def has_room(self) -> bool:
        """Whether more than what must stay is free on the disk.

        Raises:
            OSError: the disk cannot be asked.
        """
        return shutil.disk_usage(self.folder).free >= self._floor

    def sweep(self, now: float) -> None:
        """Delete the oldest while there is too much, and what is too old.

        Never more than is needed for its size; for its age only while the wall clock is believed.
        What is being recorded stays. What was begun in this life is as old as the loop's clock
        says: a machine without a clock of its own boots with the time at which it was put off, and
        what it records before it is told the right one would seem to be days old.

        Args:
            now: seconds on the loop's clock.

        Raises:
            OSError: something could not be read or deleted; all else was.
        """
        self._now, wall = now, self._wall()
        believed = self._clock.believes(now, wall)
        aged = [(self._age(item, wall), item) for item in items(self.folder, self._known)]
        found = [item for _, item in aged]
        self._begun = {n: self._begun[n] for item in found if (n := _stem(item)) in self._begun}
        total = sum(item.size for item in found)
        failed: OSError | None = None
        for age, item in sorted(aged, key=lambda each: each[0], reverse=True):
            old = believed and age > self._keep
            if (total > self._max_bytes or old) and item.path.suffix != PART:
                try:
                    remove(item.path)
                except OSError as error:
                    failed = error
                else:
                    total -= item.size
        self.bytes = total
        if failed is not None:
            raise failed

    def _age(self, item: Item, wall: float) -> float:
        begun = self._begun.get(_stem(item))
        return wall - item.decided if begun is None else self._now - begun


def _stem(item: Item) -> str:
    """Its name before and after its last change of name."""
    return re.sub(rf"\{PART}$|\{BROKEN}$", "", item.name)


def in_hand(part: Path) -> bool:
    """Whether somebody records it or makes its clips: then the folder, or a file in it, is locked.

    Raises:
        OSError: it cannot be told.
    """
    for path in (part, *part.glob("*.spool")):
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it is whole, or deleted, meanwhile
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
    return False


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
        ShelfError: it might lead out of the folder.
    """
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise ShelfError(f"{name!r}: is no incident's id")
