"""An incident as MCAP, which Foxglove opens: pictures, what was said and decided, and the record.

Messages are JSON in Foxglove's well-known shapes (CompressedImage, Log). Their log time is the
loop's, mapped to the wall clock by the one offset that the record gives.
"""

import base64
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from mcap.writer import Writer

from hdguard.core.types import HaltClass, Light
from hdguard.observe.incidents.record import FILE, Happening, Incident, encode, sync_folder
from hdguard.observe.incidents.spool import Picture

LOG_TOPIC = "/guard"
PROFILE = ""
_TIME = {"type": "object", "properties": {n: {"type": "integer"} for n in ("sec", "nsec")}}
_TEXT = {"type": "string"}
IMAGE_SCHEMA = {
    "title": "foxglove.CompressedImage",
    "type": "object",
    "properties": {
        "timestamp": _TIME,
        "frame_id": _TEXT,
        "data": {"type": "string", "contentEncoding": "base64"},
        "format": _TEXT,
    },
}
LOG_SCHEMA = {
    "title": "foxglove.Log",
    "type": "object",
    "properties": {
        "timestamp": _TIME,
        "level": {"type": "integer"},
        "message": _TEXT,
        "name": _TEXT,
        "file": _TEXT,
        "line": {"type": "integer"},
    },
}
DEBUG, INFO, WARNING, ERROR = 1, 2, 3, 4
"""Levels of foxglove.Log."""


def log_time(incident: Incident, at: float) -> int:
    """Unix time in nanoseconds of a time on the loop's clock."""
    return round(at * 1e9) + incident.wall.offset_ns


def write_mcap(path: Path, incident: Incident, pictures: Iterable[Picture]) -> None:
    """Make the file, whole or not at all; blocks until it is on disk.

    Args:
        path: of the file.
        incident: complete.
        pictures: of its clips.

    Raises:
        OSError: the disk does not take it.
    """
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        writer = Writer(file)
        writer.start(profile=PROFILE, library=f"hdguard {incident.about.hdguard}")
        _write_record(writer, incident)
        image = writer.register_schema(*_schema(IMAGE_SCHEMA))
        topics: dict[str, int] = {}
        for picture in pictures:
            camera = picture.ref.source_id
            if camera not in topics:
                topic = f"/camera/{camera}"
                topics[camera] = writer.register_channel(topic, "json", image)
            at = log_time(incident, picture.ref.captured_at)
            data = msgspec.json.encode(_image(picture, at))
            writer.add_message(topics[camera], at, data, at, picture.ref.seq)
        said = writer.register_channel(
            LOG_TOPIC, "json", writer.register_schema(*_schema(LOG_SCHEMA))
        )
        for number, happening in enumerate(incident.happened):
            at = log_time(incident, happening.at)
            writer.add_message(said, at, msgspec.json.encode(_log(happening, at)), at, number)
        writer.finish()  # type: ignore[no-untyped-call]
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent)


def _write_record(writer: Writer, incident: Incident) -> None:
    at = log_time(incident, incident.decision.decided)
    writer.add_attachment(at, at, FILE, "application/json", encode(incident))
    decision = incident.decision
    known = {
        "incident_id": incident.incident_id,
        "halt_id": decision.halt_id,
        "class": decision.halt_class,
        "cause": decision.cause,
        "source": decision.source,
        "brain": decision.brain,
        "offset_ns": str(incident.wall.offset_ns),
        "configuration": incident.about.configuration,
        "hdguard": incident.about.hdguard,
    }
    writer.add_metadata("hdguard.incident", known)


def _schema(schema: dict[str, Any]) -> tuple[str, str, bytes]:
    return str(schema["title"]), "jsonschema", msgspec.json.encode(schema)


def _stamp(at: int) -> dict[str, int]:
    return {"sec": at // 10**9, "nsec": at % 10**9}


def _image(picture: Picture, at: int) -> dict[str, Any]:
    return {
        "timestamp": _stamp(at),
        "frame_id": picture.ref.source_id,
        "data": base64.b64encode(picture.jpeg).decode(),
        "format": "jpeg",
    }


def _log(happening: Happening, at: int) -> dict[str, Any]:
    return {
        "timestamp": _stamp(at),
        "level": _level(happening),
        "message": happening.words,
        "name": happening.what,
        "file": str(happening.of.get("brain", "")),
        "line": 0,
    }


def _level(happening: Happening) -> int:
    of = happening.of
    match happening.what:
        case "Judged" | "Reviewed" | "RobotSeen" | "SetSampleRate":
            return DEBUG
        case "Halt":
            return ERROR if of["halt_class"] == HaltClass.DANGER else WARNING
        case "FastVerdict" if of["light"] == Light.RED:
            return ERROR
        case "FastVerdict" if of["light"] == Light.YELLOW:
            return WARNING
        case "SlowVerdict" if of["danger"]:
            return ERROR
        case "Escalate" | "BrainFailed" | "BrainDown" | "SourceLost" | "LinkLost" | "CannotSee":
            return WARNING
        case _:
            return INFO
