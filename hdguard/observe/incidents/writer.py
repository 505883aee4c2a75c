"""The recorder's hands: what its one thread does with pictures and disk, batch by batch.

The loop makes a `Batch` of what has come; nothing here is called on the loop. A disk that fails
costs the incidents that are being recorded, is said once, and is tried again with the next.
"""

import contextlib
import logging
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hdguard.ingest.base import Frame, SourceError
from hdguard.observe.incidents import notebook, record, spool
from hdguard.observe.incidents.notebook import Note
from hdguard.observe.incidents.record import Incident
from hdguard.observe.incidents.reel import Developer, Reels
from hdguard.observe.incidents.shelf import Shelf, ShelfError
from hdguard.observe.incidents.spool import Picture, SpoolFile, packed

log = logging.getLogger(__name__)

MOST_SPOOLED = 128 << 20
"""Bytes of pictures for one incident; a choice, eight times what a camera's reel may hold. What
comes after it is lost, and counted in the record, as is what comes while the disk is nearly full.
"""

MOST_CAMERAS = 4
"""Of one incident that concerns more than one camera; a choice. The one concerned comes first."""


@dataclass(frozen=True, slots=True)
class Opening:
    """An incident to be begun.

    Attributes:
        incident: its record so far; its id is what the folder should be called.
        header: of the journal's excerpt.
        history: what was noted before.
        only: no other camera is recorded; None: up to `MOST_CAMERAS`.
    """

    incident: Incident
    header: bytes
    history: tuple[Note, ...]
    only: str | None


@dataclass(frozen=True, slots=True)
class Ending:
    """An incident to be ended, by its wanted id."""

    incident_id: str
    lost: int
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """What has come since the last one, in the order in which it is done."""

    notes: tuple[Note, ...] = ()
    openings: tuple[Opening, ...] = ()
    frames: tuple[Frame, ...] = ()
    endings: tuple[Ending, ...] = ()


@dataclass(slots=True)
class Done:
    """What became of a batch: folders to make clips in, and incidents that were given up."""

    ended: list[Path] = field(default_factory=list)
    dropped: int = 0


@dataclass(slots=True)
class _Open:
    """An incident that is being recorded."""

    folder: Path
    incident: Incident
    only: str | None
    steps: SpoolFile
    pictures: SpoolFile
    cameras: set[str] = field(default_factory=set)
    lost: int = 0

    def admits(self, picture: Picture) -> bool:
        camera, window = picture.ref.source_id, self.incident.window
        if not window.begin <= picture.ref.captured_at <= window.end:
            return False
        if self.only is not None:
            return camera == self.only
        # A place is kept for the camera concerned, though it may be dead.
        others = self.cameras - {self.incident.decision.source}
        wanted = camera == self.incident.decision.source or camera in self.cameras
        return wanted or len(others) < MOST_CAMERAS - 1

    def close(self) -> None:
        try:
            self.steps.close()
        finally:
            self.pictures.close()


class Writer:
    """Everything that takes time.

    Args:
        shelf: where the folders are.
        developer: makes the JPEGs.
        reels: keeps the newest ones.
    """

    def __init__(self, shelf: Shelf, developer: Developer, reels: Reels) -> None:
        self._shelf = shelf
        self._developer = developer
        self._reels = reels
        self._open: dict[str, _Open] = {}
        self._failing = False

    def leftovers(self) -> list[Path]:
        """See `Shelf.leftovers`; none where the folder cannot be read."""
        try:
            return self._shelf.leftovers()
        except OSError as error:
            self._say(str(error))
            return []

    def sweep(self, now: float) -> None:
        """See `Shelf.sweep`."""
        try:
            self._shelf.sweep(now)
        except OSError as error:
            self._say(str(error))

    def work(self, batch: Batch, now: float) -> Done:
        """Do all that is in it; `now` is seconds on the loop's clock."""
        if batch.openings:
            self.sweep(now)
        done = Done()
        for note in batch.notes:
            line = note.line()
            for name in [*self._open]:
                self._append(name, "steps", line, done)
        for opening in batch.openings:
            self._begin(opening, done)
        room = not self._open or self._has_room()
        for frame in batch.frames:
            self._take(frame, room, done)
        for ending in batch.endings:
            self._end(ending, done)
        return done

    def _has_room(self) -> bool:
        try:
            return self._shelf.has_room()
        except OSError:
            return False  # whoever writes there next says why

    def _take(self, frame: Frame, room: bool, done: Done) -> None:
        try:
            picture = self._developer.developed(frame)
        except SourceError:
            return  # the brains, who look at it too, have said so
        self._reels.add(picture)
        self._record(picture, [*self._open], room, done)

    def _record(self, picture: Picture, names: list[str], room: bool, done: Done) -> None:
        data = b""
        for name in names:
            each = self._open.get(name)
            if each is None or not each.admits(picture):
                continue
            if not room or each.pictures.size + len(picture.jpeg) > MOST_SPOOLED:
                each.lost += 1
                continue
            each.cameras.add(picture.ref.source_id)
            data = data or packed(picture)
            self._append(name, "pictures", data, done)

    def _append(self, name: str, what: str, data: bytes, done: Done) -> None:
        try:
            file: SpoolFile = getattr(self._open[name], what)
            file.append(data)
        except OSError as error:
            self._give_up(name, error, done)

    def _begin(self, opening: Opening, done: Done) -> None:
        wanted = opening.incident.incident_id
        folder = None
        try:
            folder = self._shelf.begin(wanted)
            incident = msgspec.structs.replace(
                opening.incident, incident_id=folder.stem, interrupted=True
            )  # until it is ended by us
            record.write_private(folder / record.FILE, record.encode(incident))
            steps = SpoolFile(folder / notebook.FILE)
            try:
                pictures = SpoolFile(folder / spool.FILE)
            except OSError:
                steps.close()
                raise
        except (OSError, ShelfError) as error:
            done.dropped += 1
            self._say(f"incident {wanted}: {error}")
            if folder is not None:
                _discard(folder)
            return
        self._open[wanted] = _Open(folder, incident, opening.only, steps, pictures)
        # One small write after another: each lets the decisions have the interpreter in between.
        for data in (opening.header, *(note.line() for note in opening.history)):
            if wanted in self._open:
                self._append(wanted, "steps", data, done)
        for picture in self._in_order(opening):
            self._record(picture, [wanted], True, done)
        if wanted in self._open and self._failing:
            self._failing = False
            log.info("incidents: recorded again")

    def _in_order(self, opening: Opening) -> list[Picture]:
        """The camera concerned first, so that it has its place."""
        found = self._reels.since(opening.incident.window.begin)
        concerned = opening.incident.decision.source
        return sorted(found, key=lambda picture: picture.ref.source_id != concerned)

    def _end(self, ending: Ending, done: Done) -> None:
        ended = self._open.pop(ending.incident_id, None)
        if ended is None:
            return
        try:
            ended.close()
        except OSError as error:
            self._lose(ended, error, done)
            return
        changed = msgspec.structs.replace(
            ended.incident, lost=ended.lost + ending.lost, interrupted=ending.interrupted
        )
        with contextlib.suppress(OSError):  # the child will say what is wrong with the disk
            record.write_private(ended.folder / record.FILE, record.encode(changed))
        done.ended.append(ended.folder)

    def _give_up(self, name: str, error: OSError, done: Done) -> None:
        given_up = self._open.pop(name)
        with contextlib.suppress(OSError):  # of the same disk, which is lost already
            given_up.close()
        self._lose(given_up, error, done)

    def _lose(self, given_up: _Open, error: OSError, done: Done) -> None:
        done.dropped += 1
        self._say(f"incident {given_up.folder.stem}: {error.strerror or error}")
        _discard(given_up.folder)

    def _say(self, why: str) -> None:
        """Once, until it goes well again."""
        if not self._failing:
            log.warning("%s; incidents may be lost, halts are not concerned", why)
        self._failing = True


def _discard(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
