"""The child that makes an incident whole: clips from the spooled pictures, the record from the log.

`python -m hdguard.observe.incidents.encode [--mcap] FOLDER.part`. It may be killed anywhere and
started again: every file is made beside its place and moved there, the record says last that all is
there, and only then the spool goes and the folder gets its name.
"""

import argparse
import fcntl
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import av
import msgspec

from hdguard.core.types import FrameRef
from hdguard.observe.incidents import notebook, record, spool, story
from hdguard.observe.incidents.clip import write_clip
from hdguard.observe.incidents.finisher import DROPPED
from hdguard.observe.incidents.record import Clip, Incident, RecordError
from hdguard.observe.incidents.shelf import PART
from hdguard.observe.incidents.spool import Picture, read_spool
from hdguard.runtime.journal import JournalError, Written, read_journal

NICENESS = 19
"""The most there is: everything else on the machine comes first, the guard above all."""

UNUSABLE = 4
MCAP = "clip.mcap"

Passed = Callable[[str], None]


def finish(part: Path, *, mcap: bool = False, passed: Passed = lambda _: None) -> Path:
    """Make the incident in that folder whole; returns the folder under its last name.

    Args:
        part: the folder, called `ID.part`.
        mcap: make an MCAP file too.
        passed: hears of every step that is done.

    Raises:
        RecordError, JournalError: what the folder holds cannot be understood.
        OSError: the disk does not take it.
        av.FFmpegError, ValueError: a picture cannot be encoded.
    """
    whole = part.with_name(part.name.removesuffix(PART))
    with _alone(part) as there:
        if not there:  # another child has made it whole meanwhile
            return whole
        incident = record.read_incident(part)
        if not incident.complete:
            incident = _completed(part, incident, mcap, passed)
            record.write_private(part / record.FILE, record.encode(incident))
            passed("record")
        for name in (spool.FILE, notebook.FILE):
            (part / name).unlink(missing_ok=True)
            passed(f"without {name}")
        record.sync_folder(part)
        part.rename(whole)
        passed("name")
        record.sync_folder(whole.parent)
    return whole


@contextmanager
def _alone(part: Path) -> Iterator[bool]:
    """One child at a time, though the guard that started the other is gone; False: it is done."""
    try:
        folder = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield part.exists()
    finally:
        os.close(folder)


def _completed(part: Path, incident: Incident, mcap: bool, passed: Passed) -> Incident:
    written = _written(part)
    zero = incident.decision.zero
    clips = tuple(_clips(part, incident, passed))
    told = None if written is None else story.told(written, incident)
    incident = msgspec.structs.replace(
        incident,
        complete=True,
        story=told,
        stamps={} if written is None else story.stamps(written, incident.decision, told),
        happened=() if written is None else story.happenings(written, zero),
        clips=clips,
        mcap=MCAP if mcap else None,
    )
    if mcap:
        # Loaded only where it is asked for: it is an extra.
        from hdguard.observe.incidents.mcap_clip import write_mcap  # noqa: PLC0415

        pictures = (p for refs in _by_camera(part, incident).values() for p in _of(part, refs))
        write_mcap(part / MCAP, incident, pictures)
        passed(MCAP)
    return incident


def _written(part: Path) -> Written | None:
    """The excerpt; None where the guard died before its first line was whole."""
    path = part / notebook.FILE
    try:
        if b"\n" not in path.read_bytes():
            return None
    except FileNotFoundError:
        return None
    return read_journal(path)


def _clips(part: Path, incident: Incident, passed: Passed) -> Iterator[Clip]:
    for number, (camera, refs) in enumerate(_by_camera(part, incident).items()):
        name = "clip.mp4" if number == 0 else f"clip-{re.sub('[^A-Za-z0-9_-]', '_', camera)}.mp4"
        yield write_clip(part / name, camera, refs, _of(part, refs), incident.decision.zero)
        passed(name)


def _by_camera(part: Path, incident: Incident) -> dict[str, list[FrameRef]]:
    """The frames of every camera in order of capture; the one concerned first, then by name."""
    found: dict[str, set[FrameRef]] = {}
    if (part / spool.FILE).exists():
        for picture in read_spool(part / spool.FILE):
            found.setdefault(picture.ref.source_id, set()).add(picture.ref)
    concerned = incident.decision.source
    cameras = sorted(found, key=lambda camera: (camera != concerned, camera))
    return {c: sorted(found[c], key=lambda ref: (ref.captured_at, ref.seq)) for c in cameras}


def _of(part: Path, refs: Sequence[FrameRef]) -> Iterator[Picture]:
    """A camera's pictures in that order, which is nearly that of the spool, one by one."""
    waiting: dict[FrameRef, Picture] = {}
    wanted = iter(refs)
    ref = next(wanted, None)
    known = set(refs)
    for picture in read_spool(part / spool.FILE):
        if picture.ref in known:
            waiting[picture.ref] = picture
        while ref is not None and ref in waiting:
            yield waiting.pop(ref)
            ref = next(wanted, None)


def _make_room() -> None:
    """Run when nobody else wants to: one that is only niced keeps a core until its slice ends."""
    with suppress(OSError):  # a container may forbid it: better a clip than none
        os.nice(NICENESS)
        if hasattr(os, "SCHED_IDLE"):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main(words: Sequence[str]) -> int:
    """Do it; returns the exit code, and says on stderr what is wrong."""
    parser = argparse.ArgumentParser(prog="hdguard.observe.incidents.encode")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mcap", action="store_true")
    given = parser.parse_args(words)
    os.umask(0o077)
    _make_room()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the guard ends us when it has ended itself
    try:
        finish(given.folder, mcap=given.mcap)
    except (RecordError, JournalError) as error:
        sys.stderr.write(f"{error}\n")
        return UNUSABLE
    except OSError as error:  # av.FFmpegError of a full disk is one
        sys.stderr.write(f"{error.strerror or error}\n")
        return DROPPED
    except (av.FFmpegError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return UNUSABLE
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
