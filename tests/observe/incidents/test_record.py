"""The record: written whole and for the owner alone, and read back."""

import stat
from pathlib import Path

import msgspec
import pytest

from hdguard.core.types import FrameRef
from hdguard.observe.incidents import record
from hdguard.observe.incidents.record import RecordError, read_incident, read_summary
from tests.observe.incidents.support import DECISION, INCIDENT


def write(folder: Path) -> None:
    record.write_private(folder / record.FILE, record.encode(INCIDENT))


def test_it_is_read_back_as_it_was_and_nobody_else_may_look(tmp_path: Path) -> None:
    write(tmp_path)
    assert read_incident(tmp_path) == INCIDENT
    assert stat.S_IMODE((tmp_path / record.FILE).stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == [record.FILE]


def test_a_list_needs_only_a_part_of_it(tmp_path: Path) -> None:
    write(tmp_path)
    summary = read_summary(tmp_path)
    assert (summary.incident_id, summary.decision, summary.complete) == ("7-1", DECISION, False)


def test_times_keep_every_digit(tmp_path: Path) -> None:
    at = 24261.843000000001 + 1e-9
    trigger = FrameRef("hall", 1, at, at / 3)
    decision = msgspec.structs.replace(DECISION, trigger=trigger, decided=at + 1e-7)
    incident = msgspec.structs.replace(INCIDENT, decision=decision)
    record.write_private(tmp_path / record.FILE, record.encode(incident))
    assert read_incident(tmp_path).decision.trigger == trigger
    assert read_incident(tmp_path).decision.zero == at


def test_without_a_trigger_frame_time_counts_from_the_decision() -> None:
    assert msgspec.structs.replace(DECISION, trigger=None).zero == DECISION.decided
    assert record.moment(20.1, 20.0) == record.Moment(20.1, 0.1)


@pytest.mark.parametrize("text", ["", "{", '{"format": "other/1"}', "[]"])
def test_what_is_no_record_is_said_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / record.FILE).write_text(text)
    with pytest.raises(RecordError, match=r"incident\.json: not a record of an incident"):
        read_incident(tmp_path)
    with pytest.raises(RecordError, match="No such file"):
        read_summary(tmp_path / "nowhere")
