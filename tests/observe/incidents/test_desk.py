"""The recorder's state on the loop: when an incident begins, what it gets, when it ends."""

from datetime import datetime

import pytest

from hdguard.core import events
from hdguard.core.actions import Halt
from hdguard.core.types import HaltCause, HaltClass
from hdguard.observe.incidents.desk import BEGIN_AFTER, END_AFTER, MOST_OPEN, MOST_WAITING, Desk
from hdguard.observe.incidents.writer import Batch
from tests.observe.incidents.support import ABOUT, desk, frame, halt, judged, red


def halted(made_halt: Halt | None = None) -> Desk:
    made = desk()
    made.judged(judged())
    assert made.stepped(20.05, red(), (made_halt or halt(),))
    return made


def test_the_disk_is_not_touched_until_the_halt_has_left() -> None:
    made = halted()
    assert made.due == pytest.approx(20.05 + BEGIN_AFTER)
    assert made.batch(20.06).openings == ()
    (opening,) = made.batch(made.due).openings
    assert opening.incident.incident_id == "7-1"
    assert opening.incident.window.begin == 18.0  # two seconds before the frame
    assert opening.incident.window.end == pytest.approx(21.05)  # one after the decision
    assert [type(n.event or n.stamps).__name__ for n in opening.history] == [
        "Judged",
        "FastVerdict",
    ]


def test_it_ends_when_the_frames_of_its_window_can_have_come() -> None:
    made = halted()
    made.batch(made.due)
    assert made.due == pytest.approx(21.05 + END_AFTER)
    assert made.batch(21.05).endings == ()
    (ending,) = made.batch(made.due).endings
    assert (ending.incident_id, ending.lost, ending.interrupted) == ("7-1", 0, False)
    assert made.due == float("inf")


def test_what_is_noted_meanwhile_follows_and_nothing_is_told_twice() -> None:
    made = halted()
    made.stepped(20.1, events.HaltDelivered("7-1"), ())
    batch = made.batch(made.due)
    assert batch.notes == ()
    assert len(batch.openings[0].history) == 3
    made.stepped(20.5, events.HaltConfirmed("7-1"), ())
    assert [note.event for note in made.batch(20.6).notes] == [events.HaltConfirmed("7-1")]
    assert made.batch(20.7).notes == ()


def test_without_an_incident_nothing_is_handed_on_but_frames() -> None:
    made = desk()
    made.stepped(20.0, red(), ())
    made.saw(frame(20.0))
    batch = made.batch(20.1)
    assert (batch.notes, len(batch.frames)) == ((), 1)


def test_a_slow_thread_costs_the_oldest_frames_and_they_are_counted() -> None:
    made = halted()
    for n in range(MOST_WAITING + 3):
        made.saw(frame(20.1 + n))
    batch = made.batch(made.due)
    assert [f.ref.captured_at for f in batch.frames] == [20.1 + n for n in range(3, 19)]
    assert made.lost == 3
    (ending,) = made.batch(99.0).endings
    assert ending.lost == 3


def test_the_ninth_incident_at_a_time_is_dropped_and_counted() -> None:
    made = desk()
    for n in range(MOST_OPEN + 2):
        made.stepped(20.05, red(), (halt(n),))
    assert made.dropped == 2
    assert len(made.batch(21.0).openings) == MOST_OPEN


def test_a_danger_is_recorded_where_it_was_seen_and_a_fault_everywhere() -> None:
    def only(made: Halt) -> str | None:
        return halted(made).batch(21.0).openings[0].only

    assert only(halt()) == "hall"
    assert only(halt(halt_class=HaltClass.FAULT, cause=HaltCause.STALE_FRAME, ref=None)) is None
    by_operator = halt(halt_class=HaltClass.OPERATOR, cause=HaltCause.OPERATOR, source_id="")
    assert only(by_operator) is None


def test_at_the_end_everything_is_begun_and_ended() -> None:
    made = halted()
    batch = made.last_batch()
    assert [o.incident.incident_id for o in batch.openings] == ["7-1"]
    assert [(e.incident_id, e.interrupted) for e in batch.endings] == [("7-1", True)]
    assert made.last_batch() == Batch()


def test_the_wall_clock_is_noted_by_one_offset() -> None:
    incident = halted().batch(21.0).openings[0].incident
    decided = datetime.fromisoformat(incident.wall.decided)
    assert decided.tzinfo is not None
    unix = (round(20.05 * 1e9) + incident.wall.offset_ns) / 1e9
    assert unix == pytest.approx(decided.timestamp(), abs=1e-6)


def test_videos_of_a_replay_are_told_apart_by_a_prefix() -> None:
    made = desk()
    made.stepped(18.5, red(18.4), ())
    made.begin(ABOUT, "clip.mp4-", 19.0)
    made.stepped(20.05, red(), (halt(),))
    (opening,) = made.batch(21.0).openings
    assert opening.incident.incident_id == "clip.mp4-7-1"
    assert opening.incident.window.begin == 19.0
    assert [note.at for note in opening.history] == [20.05]
