"""The MCAP file, read back by Foxglove's own reader."""

import base64
import json
import stat
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("mcap")

from mcap.reader import make_reader

from hdguard.observe.incidents.mcap_clip import log_time, write_mcap
from hdguard.observe.incidents.record import Happening, Incident
from tests.observe.incidents.support import INCIDENT, picture

HAPPENED = (
    Happening(
        at=20.05, after=0.05, what="FastVerdict", of={"light": 2, "brain": "reflex"}, words="RED"
    ),
    Happening(at=20.05, after=0.05, what="Halt", of={"halt_class": "danger"}, words="HALT 7-1"),
    Happening(at=20.5, after=0.5, what="RobotSeen", of={}, words="the robot stands"),
)
WHOLE = msgspec.structs.replace(INCIDENT, complete=True, happened=HAPPENED, mcap="clip.mcap")
PICTURES = [picture(20.0), picture(20.2, "arm"), picture(20.4)]


def test_pictures_words_and_record_come_back_with_their_times(tmp_path: Path) -> None:
    path = tmp_path / "clip.mcap"
    write_mcap(path, WHOLE, PICTURES)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open("rb") as file:
        reader = make_reader(file)
        read = [(s, c, m) for s, c, m in reader.iter_messages() if s is not None]
        attachments = list(reader.iter_attachments())
        metadata = list(reader.iter_metadata())
    offset = INCIDENT.wall.offset_ns
    images = [(c.topic, m) for s, c, m in read if s.name == "foxglove.CompressedImage"]
    assert [(topic, m.log_time - offset) for topic, m in images] == [
        ("/camera/hall", 20_000_000_000),
        ("/camera/arm", 20_200_000_000),
        ("/camera/hall", 20_400_000_000),
    ]
    first = json.loads(images[0][1].data)
    assert base64.b64decode(first["data"]) == PICTURES[0].jpeg
    assert (first["format"], first["frame_id"]) == ("jpeg", "hall")
    at = images[0][1].log_time
    assert first["timestamp"] == {"sec": at // 10**9, "nsec": at % 10**9}
    said = [json.loads(m.data) | {"at": m.log_time} for s, _, m in read if s.name == "foxglove.Log"]
    assert [(log["at"] - offset, log["level"], log["message"], log["name"]) for log in said] == [
        (20_050_000_000, 4, "RED", "FastVerdict"),
        (20_050_000_000, 4, "HALT 7-1", "Halt"),
        (20_500_000_000, 1, "the robot stands", "RobotSeen"),
    ]
    (attached,) = attachments
    assert attached.name == "incident.json"
    assert msgspec.json.decode(attached.data, type=Incident) == WHOLE
    assert metadata[0].metadata["offset_ns"] == str(offset)


def test_the_offset_leads_to_the_wall_clock_without_a_rounding_of_its_own() -> None:
    at = 24261.843
    assert log_time(WHOLE, at) - INCIDENT.wall.offset_ns == 24_261_843_000_000
