"""`incident.json`: what is known of an incident, begun at the decision and completed afterwards.

Times are seconds on the guard's loop clock, as in the journal; beside each stands `after`, the same
moment in seconds after the trigger frame was captured (after the decision, where no frame was the
trigger). `wall` maps the loop's clock to the wall clock as it was at the decision: unix time in
nanoseconds = time x 1e9 + `offset_ns`.
"""

import os
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from hdguard.core.types import NO_HAZARD, FrameRef, Hazard
from hdguard.runtime.halt_story import HaltStory

T = TypeVar("T")

FORMAT: Literal["hdguard-incident/1"] = "hdguard-incident/1"
FILE = "incident.json"

Kind = Literal["halt", "review"]


class RecordError(Exception):
    """An incident's folder cannot be used: names it and says why."""


class BrainMade(msgspec.Struct, frozen=True, kw_only=True):
    """What a brain is made of: its model's fingerprint, and the hashes of its files by setting."""

    fingerprint: str = ""
    files: dict[str, str] = {}


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Who recorded.

    Attributes:
        hdguard: version.
        robot: its name; of a replay, the video.
        configuration: SHA-256 of the effective configuration as JSON, without its secrets.
        brains: by name.
    """

    hdguard: str
    robot: str
    configuration: str
    brains: dict[str, BrainMade]


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename={"halt_class": "class"}):
    """What the recording is about.

    Attributes:
        kind: a halt, or a review that found danger and made no new halt.
        halt_id: of the halt, or empty.
        review_id: of the review, or None.
        halt_class: the halt's class; `review` where there is no halt.
        cause: the halt's cause.
        source: the camera concerned, or empty.
        brain: the brain concerned, or empty.
        light: GREEN, YELLOW, RED, or None.
        hazard: what the brain said.
        latched: a fault that only a reset ends.
        trigger: the RED frame, or the YELLOW frame that opened the review; None: there is none.
        decided: when.
    """

    kind: Kind
    halt_id: str = ""
    review_id: int | None = None
    halt_class: str
    cause: str
    source: str = ""
    brain: str = ""
    light: str | None = None
    hazard: Hazard = NO_HAZARD
    latched: bool = False
    trigger: FrameRef | None = None
    decided: float

    @property
    def zero(self) -> float:
        """The moment that `after` counts from."""
        return self.decided if self.trigger is None else self.trigger.captured_at


class Wall(msgspec.Struct, frozen=True, kw_only=True):
    """The wall clock at the decision: ISO 8601 in UTC, and what leads from the loop's clock."""

    decided: str
    offset_ns: int


class Moment(msgspec.Struct, frozen=True):
    """A time on the loop's clock, and the same in seconds after the trigger."""

    at: float
    after: float


def moment(at: float, zero: float) -> Moment:
    """A time, and how long after the trigger it was, to the microsecond."""
    return Moment(at, round(at - zero, 6))


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """An event or an action in the window.

    Attributes:
        at, after: as `Moment`; of the step in which it came.
        what: its name in the journal.
        of: its fields, as in the journal.
        words: for people.
    """

    at: float
    after: float
    what: str
    of: dict[str, Any]
    words: str


class ClipFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame of a clip; `pts` is its time in the clip in seconds."""

    index: int
    seq: int
    captured_at: float
    after: float
    media_time: float
    pts: float


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """A camera's pictures, in a file of this folder."""

    file: str
    camera: str
    width: int
    height: int
    seconds: float
    frames: tuple[ClipFrame, ...]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """From when to when was to be recorded; see `Moment`."""

    begin: float
    end: float


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file.

    Attributes:
        format: of this file.
        incident_id: name of the folder.
        about: who recorded.
        decision: what about.
        wall: the wall clock then.
        window: what was to be recorded.
        complete: the clips are made; False while it is being recorded.
        interrupted: the recording ended before its window, with the guard.
        story: of the halt, as `hdguard explain` tells it; None for a review without a halt.
        stamps: one per stage that was reached: captured, sampled, given, assessed, asked, answered,
            decided, delivered, acknowledged, confirmed, escalated, released.
        happened: what was seen and decided, in order.
        clips: one per camera; the first is the one concerned, if it gave pictures.
        mcap: name of the MCAP file, or None.
        lost: pictures that were not recorded because disk or processor were too slow.
    """

    format: Literal["hdguard-incident/1"] = FORMAT
    incident_id: str
    about: About
    decision: Decision
    wall: Wall
    window: Window
    complete: bool = False
    interrupted: bool = False
    story: HaltStory | None = None
    stamps: dict[str, Moment] = {}
    happened: tuple[Happening, ...] = ()
    clips: tuple[Clip, ...] = ()
    mcap: str | None = None
    lost: int = 0


class ClipSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Of a clip."""

    file: str
    camera: str
    seconds: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A part of `Incident` that is read fast: a record has hundreds of happenings."""

    format: Literal["hdguard-incident/1"]
    incident_id: str
    decision: Decision
    wall: Wall
    complete: bool
    interrupted: bool = False
    clips: tuple[ClipSummary, ...] = ()
    mcap: str | None = None


def write_private(path: Path, data: bytes) -> None:
    """Replace a file as a whole, for the owner alone (0600); blocks until it is on disk.

    Raises:
        OSError: it could not be written.
    """
    beside = path.with_name(path.name + ".new")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
    finally:
        os.close(file)
    beside.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Bring a folder's names to disk.

    Raises:
        OSError: it could not be done.
    """
    folder = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def encode(incident: Incident) -> bytes:
    """The file's content."""
    return msgspec.json.format(msgspec.json.encode(incident), indent=1) + b"\n"


def read_incident(folder: Path) -> Incident:
    """The record in an incident's folder.

    Raises:
        RecordError: it is not there, or none of ours.
    """
    return _read(folder, Incident)


def read_summary(folder: Path) -> Summary:
    """What a list shows of it.

    Raises:
        RecordError: as `read_incident`.
    """
    return _read(folder, Summary)


def _read(folder: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=kind)
    except OSError as error:
        raise RecordError(f"{folder / FILE}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise RecordError(f"{folder / FILE}: not a record of an incident: {error}") from error
