"""The recorder's hands: batches of work on pictures and disk."""

import errno
import os
from pathlib import Path

import msgspec
import pytest

from hdguard.core import events
from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, Rgb, SourceError
from hdguard.observe.incidents import notebook, record, spool, writer
from hdguard.observe.incidents.notebook import Note, Notebook, excerpt_header
from hdguard.observe.incidents.reel import Developer, Reels
from hdguard.observe.incidents.shelf import Shelf
from hdguard.observe.incidents.spool import SpoolFile
from hdguard.observe.incidents.writer import Batch, Ending, Opening, Writer
from hdguard.runtime.journal import read_journal
from tests.observe.incidents.support import DECISION, INCIDENT, POLICY, a_halt, frame, ref

NOW = 21.0
HEADER = excerpt_header(POLICY, 7, 0.0)


def made(folder: Path, floor: int = 0) -> Writer:
    return Writer(Shelf(folder, 1 << 30, 1.0, floor), Developer(64), Reels(10.0))


def opening(name: str = "7-1", only: str | None = "hall", source: str = "hall") -> Opening:
    book = Notebook(60.0)
    a_halt(book)
    decision = msgspec.structs.replace(DECISION, source=source)
    incident = msgspec.structs.replace(INCIDENT, incident_id=name, decision=decision)
    return Opening(incident, HEADER, book.since(0.0), only)


def frames(*times: float, source: str = "hall") -> Batch:
    return Batch(frames=tuple(frame(at, source) for at in times))


def spooled(folder: Path) -> list[tuple[str, float]]:
    pictures = spool.read_spool(folder / spool.FILE)
    return [(p.ref.source_id, p.ref.captured_at) for p in pictures]


def test_an_incident_has_what_came_before_it_and_what_came_after(tmp_path: Path) -> None:
    hands = made(tmp_path)
    hands.work(frames(17.0, 18.2, 19.8), NOW)  # the first is before its window
    hands.work(Batch(openings=(opening(),)), NOW)
    hands.work(frames(20.2, 20.4, 21.2), NOW)  # the last is past it
    hands.work(Batch(notes=(Note(20.7, events.HaltConfirmed("7-1")),)), NOW)
    done = hands.work(Batch(endings=(Ending("7-1", 4),)), NOW)
    (folder,) = done.ended
    assert folder.name == "7-1.part"
    assert [at for _, at in spooled(folder)] == [18.2, 19.8, 20.2, 20.4]
    written = read_journal(folder / notebook.FILE)
    assert written.steps[-1].event == events.HaltConfirmed("7-1")
    assert len(written.steps) == 16
    incident = record.read_incident(folder)
    assert (incident.complete, incident.interrupted, incident.lost) == (False, False, 4)
    assert {p.stat().st_mode & 0o777 for p in folder.iterdir()} == {0o600}


def test_if_nobody_ends_it_it_says_so(tmp_path: Path) -> None:
    made(tmp_path).work(Batch(openings=(opening(),)), NOW)
    assert record.read_incident(tmp_path / "7-1.part").interrupted


def test_overlapping_incidents_share_frames_and_have_each_their_own_clip(tmp_path: Path) -> None:
    hands = made(tmp_path)
    hands.work(frames(19.0), NOW)
    hands.work(Batch(openings=(opening("7-1"), opening("7-2"))), NOW)
    hands.work(frames(20.2), NOW)
    done = hands.work(Batch(endings=(Ending("7-1", 0), Ending("7-2", 0))), NOW)
    assert [spooled(folder) for folder in done.ended] == [[("hall", 19.0), ("hall", 20.2)]] * 2


def test_a_danger_shows_its_camera_alone(tmp_path: Path) -> None:
    hands = made(tmp_path)
    hands.work(frames(19.0, source="arm"), NOW)
    hands.work(Batch(openings=(opening(),)), NOW)
    hands.work(frames(20.2), NOW)
    hands.work(frames(20.3, source="arm"), NOW)
    assert {camera for camera, _ in spooled(tmp_path / "7-1.part")} == {"hall"}


def test_a_fault_shows_others_too_up_to_four_and_the_dead_camera_has_its_place(
    tmp_path: Path,
) -> None:
    hands = made(tmp_path)
    for camera in "abcde":
        hands.work(frames(19.0, source=camera), NOW)
    hands.work(frames(18.5, source="dead"), NOW)
    hands.work(Batch(openings=(opening(only=None, source="dead"),)), NOW)
    hands.work(frames(20.2, source="e"), NOW)
    found = [camera for camera, _ in spooled(tmp_path / "7-1.part")]
    assert found == ["dead", "a", "b", "c"]


class Broken:
    """A picture that cannot be converted."""

    def rgb(self, spec: ImageSpec) -> Rgb:
        raise SourceError("no colours")


def test_a_picture_that_cannot_be_converted_is_left_out(tmp_path: Path) -> None:
    hands = made(tmp_path)
    done = hands.work(Batch(openings=(opening(),), frames=(Frame(ref(20.1), Broken()),)), NOW)
    assert (done.dropped, spooled(tmp_path / "7-1.part")) == (0, [])


def test_one_incident_takes_only_so_much_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_SPOOLED", 1500)
    hands = made(tmp_path)
    hands.work(Batch(openings=(opening(),)), NOW)
    hands.work(frames(*(20.0 + n / 10 for n in range(10))), NOW)
    (folder,) = hands.work(Batch(endings=(Ending("7-1", 0),)), NOW).ended
    there = len(spooled(folder))
    assert 0 < there < 10
    assert record.read_incident(folder).lost == 10 - there


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_costs_the_incident_is_said_once_and_the_next_one_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    hands = made(tmp_path)
    hands.work(Batch(openings=(opening(),)), NOW)
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        assert hands.work(frames(20.1), NOW).dropped == 1
        assert hands.work(Batch(openings=(opening("7-2"), opening("7-3"))), NOW).dropped == 2
    assert list(tmp_path.iterdir()) == []
    assert hands.work(Batch(openings=(opening("7-4"),)), NOW).dropped == 0
    assert hands.work(Batch(endings=(Ending("7-1", 0),)), NOW).ended == []
    said = [r.message for r in caplog.records]
    assert len([s for s in said if "No space left on device" in s]) == 1
    assert said[-1] == "incidents: recorded again"


def test_a_disk_with_too_little_room_left_is_left_alone(tmp_path: Path) -> None:
    done = made(tmp_path / "incidents", floor=1 << 60).work(Batch(openings=(opening(),)), NOW)
    assert (done.dropped, done.ended) == (1, [])
    assert list((tmp_path / "incidents").iterdir()) == []


def test_a_shelf_that_cannot_be_read_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    hands = made(tmp_path / "file")
    assert hands.leftovers() == []
    hands.sweep(0.0)
    assert hands.work(Batch(openings=(opening(),)), NOW).dropped == 1


@pytest.mark.parametrize("what", ["steps", "pictures"])
def test_a_disk_that_says_at_last_that_it_has_not_taken_it_costs_the_incident(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """As one in the network does, when a file is closed."""
    hands = made(tmp_path)
    hands.work(Batch(openings=(opening(),)), NOW)
    file = getattr(hands._open["7-1"], what)
    close = type(file).close

    def refused(this: SpoolFile) -> None:
        close(this)
        if this is file:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(SpoolFile, "close", refused)
    done = hands.work(Batch(endings=(Ending("7-1", 0),)), NOW)
    assert (done.dropped, done.ended, [*tmp_path.iterdir()]) == (1, [], [])


def test_while_the_disk_is_nearly_full_no_picture_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands = made(tmp_path)
    hands.work(Batch(openings=(opening(),)), NOW)
    with monkeypatch.context() as disk:
        disk.setattr(Shelf, "has_room", lambda _: False)
        hands.work(frames(20.1), NOW)
    hands.work(frames(20.3), NOW)
    (folder,) = hands.work(Batch(endings=(Ending("7-1", 0),)), NOW).ended
    assert [at for _, at in spooled(folder)] == [20.3]
    assert record.read_incident(folder).lost == 1
