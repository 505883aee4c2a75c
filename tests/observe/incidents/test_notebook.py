"""What is noted of a guard's steps, and what is not worth a line."""

from pathlib import Path

from hdguard.core import actions, events
from hdguard.core.types import HaltCause, HaltClass, State
from hdguard.observe.incidents.notebook import Notebook, excerpt_header
from hdguard.runtime.journal import read_journal
from tests.observe.incidents.support import MOVING, NOT_MOVING, POLICY, a_halt, halt, judged, ref


def said(book: Notebook) -> list[str]:
    return [type(note.event or note.stamps).__name__ for note in book.since(0.0)]


def test_a_frame_or_a_deadline_is_noted_only_where_something_follows() -> None:
    book = Notebook(10.0)
    assert book.stepped(1.0, events.FrameSeen(ref(1.0)), ()) is None
    assert book.stepped(1.1, events.DeadlineReached(), ()) is None
    noted = book.stepped(1.2, events.DeadlineReached(), (actions.Notify(State.HALTED, "stale"),))
    assert noted is not None
    assert said(book) == ["DeadlineReached"]


def test_permits_are_noted_where_they_change_and_a_halt_once() -> None:
    book = Notebook(10.0)
    steps = [(MOVING,), (MOVING,), (halt(), NOT_MOVING), (halt(repeat=1), NOT_MOVING), (MOVING,)]
    for n, decided in enumerate(steps):
        book.stepped(float(n), events.DeadlineReached(), decided)
    assert [note.actions for note in book.since(0.0)] == [
        (MOVING,),
        (halt(), NOT_MOVING),
        (MOVING,),
    ]


def test_the_robots_reports_are_thinned_but_a_change_is_noted_at_once() -> None:
    book = Notebook(10.0)
    for n in range(20):
        book.stepped(n * 0.1, events.RobotSeen(1, n, moving=n < 13), ())
    assert [round(note.at, 1) for note in book.since(0.0)] == [0.0, 0.5, 1.0, 1.3, 1.8]


def test_receipts_of_repeated_halts_are_noted_once_a_halt() -> None:
    book = Notebook(10.0)
    for at, halt_id in enumerate(["7-1", "7-1", "7-2"]):
        book.stepped(float(at), events.HaltDelivered(halt_id), ())
        book.stepped(float(at), events.HaltAcknowledged(halt_id), ())
    assert said(book) == ["HaltDelivered", "HaltAcknowledged"] * 2


def test_it_goes_only_so_far_back() -> None:
    book = Notebook(2.0)
    for n in range(10):
        book.judged(float(n), judged(float(n)))
    assert [note.at for note in book.since(0.0)] == [7.0, 8.0, 9.0]
    assert [note.at for note in book.since(8.5)] == [9.0]


def test_a_halt_for_silence_brings_the_last_frame_with_it() -> None:
    book = Notebook(10.0)
    last = events.FrameSeen(ref(19.0))
    book.stepped(19.0, last, ())
    stale = halt(halt_class=HaltClass.FAULT, cause=HaltCause.STALE_FRAME, ref=None)
    book.stepped(20.05, events.DeadlineReached(), (stale,))
    assert [(note.at, note.event) for note in book.since(0.0)] == [
        (19.0, last),
        (20.05, events.DeadlineReached()),
    ]


def test_what_is_written_is_a_journal_to_the_digit(tmp_path: Path) -> None:
    book = Notebook(60.0)
    a_halt(book)
    path = tmp_path / "steps.jsonl"
    lines = [note.line() for note in book.since(0.0)]
    path.write_bytes(excerpt_header(POLICY, 7, 1.5) + b"".join(lines))
    written = read_journal(path)
    assert (written.boot, written.began, written.policy) == (7, 1.5, POLICY)
    notes = book.since(0.0)
    assert [(s.now, s.event, s.actions) for s in written.steps] == [
        (n.at, n.event, n.actions) for n in notes if n.event is not None
    ]
    assert list(written.stamps) == [n.stamps for n in notes if n.stamps is not None]
