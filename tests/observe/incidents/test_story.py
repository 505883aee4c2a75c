"""What the record tells of an excerpt: in order, by stage, in words."""

from pathlib import Path

import msgspec

from hdguard.core import actions, events
from hdguard.core.types import HaltCause, HaltClass, Hazard, Light, State
from hdguard.observe.incidents.notebook import Notebook, excerpt_header
from hdguard.observe.incidents.story import happenings, stamps, told, words
from hdguard.runtime.journal import Written, read_journal
from hdguard.runtime.observer import Judged, Reviewed
from tests.observe.incidents.support import (
    DECISION,
    INCIDENT,
    MOVING,
    NOT_MOVING,
    POLICY,
    a_halt,
    halt,
    judged,
    red,
    ref,
)


def written(folder: Path, book: Notebook) -> Written:
    path = folder / "steps.jsonl"
    path.write_bytes(
        excerpt_header(POLICY, 7, 0.0) + b"".join(note.line() for note in book.since(0.0))
    )
    return read_journal(path)


def test_everything_is_told_in_order_with_times_to_the_digit(tmp_path: Path) -> None:
    book = Notebook(60.0)
    a_halt(book)
    found = happenings(written(tmp_path, book), 20.0)
    assert [(h.what, h.at, h.after) for h in found[-8:]] == [
        ("Judged", 20.05, 0.05),
        ("FastVerdict", 20.05, 0.05),
        ("Halt", 20.05, 0.05),
        ("Permit", 20.05, 0.05),
        ("HaltDelivered", 20.053, 0.053),
        ("HaltAcknowledged", 20.06, 0.06),
        ("RobotSeen", 20.5, 0.5),
        ("HaltConfirmed", 20.55, 0.55),
    ]
    verdict = found[-7]
    assert msgspec.convert(verdict.of, events.FastVerdict) == red()


def test_a_halt_has_its_story_and_each_stage_its_time(tmp_path: Path) -> None:
    book = Notebook(60.0)
    a_halt(book)
    read = written(tmp_path, book)
    story = told(read, INCIDENT)
    assert story is not None
    assert (story.halt_id, story.at, story.called_by) == ("7-1", INCIDENT.wall.decided, "reflex")
    found = stamps(read, DECISION, story)
    assert {name: moment.at for name, moment in found.items()} == {
        "captured": 20.0,
        "sampled": judged().sampled,
        "given": judged().given,
        "assessed": judged().assessed,
        "decided": 20.05,
        "delivered": 20.053,
        "acknowledged": 20.06,
        "confirmed": 20.55,
    }
    assert found["delivered"].after == 0.053
    assert list(found)[-1] == "confirmed"  # in the order of the stages


def test_a_silent_camera_is_told_since_when(tmp_path: Path) -> None:
    book = Notebook(60.0)
    book.stepped(19.0, events.FrameSeen(ref(19.0)), ())
    fault = halt(halt_class=HaltClass.FAULT, cause=HaltCause.STALE_FRAME, ref=None, light=None)
    book.stepped(20.05, events.DeadlineReached(), (fault,))
    read = written(tmp_path, book)
    story = told(read, INCIDENT)
    assert story is not None
    assert story.since == 19.0
    decision = msgspec.structs.replace(DECISION, trigger=None)
    assert {k: v.after for k, v in stamps(read, decision, story).items()} == {"decided": 0.0}
    assert [h.what for h in happenings(read, 20.05)] == ["Halt"]


def test_a_review_without_a_halt_has_the_stages_of_a_review(tmp_path: Path) -> None:
    book = Notebook(60.0)
    asked = actions.RequestReview(3, "hall", ref(20.0), (ref(20.0),))
    book.stepped(20.05, red(), (asked,))
    book.judged(20.9, Reviewed("thinker", 3, ref(20.0), 20.06, 20.9))
    book.stepped(20.9, events.SlowVerdict(3, True), ())
    read = written(tmp_path, book)
    decision = msgspec.structs.replace(
        DECISION, kind="review", review_id=3, halt_id="", decided=20.9
    )
    assert told(read, msgspec.structs.replace(INCIDENT, decision=decision)) is None
    found = stamps(read, decision, None)
    assert {name: moment.at for name, moment in found.items()} == {
        "captured": 20.0,
        "asked": 20.05,
        "answered": 20.9,
        "decided": 20.9,
    }


def test_everything_has_words_for_people() -> None:
    late = events.FastVerdict(ref(1.0), "reflex", Light.RED, late=True)
    remark = events.Remarked(ref(1.0), "vlm", Hazard(text="a knife"), ("child", "dog"))
    for value, said in {
        red(): "reflex: RED frame 100 of hall: C2 L2 contact in 0.3 s",
        late: "reflex: RED (late) frame 5 of hall",
        remark: "vlm adds frame 5 of hall: a knife; sees child, dog",
        events.CannotSee(ref(1.0), "reflex", "dark"): "reflex cannot see frame 5 of hall: dark",
        events.BrainFailed("hall", "vlm", "late"): "vlm failed: late",
        events.SlowVerdict(3, True, Hazard(text="fire")): "review 3: danger: fire",
        events.RobotSeen(1, 2, moving=True, speed=0.5): "the robot moves at 0.5 m/s",
        events.RobotSeen(1, 2, moving=False): "the robot stands",
        events.HaltConfirmed("7-1"): "halt confirmed: 7-1",
        events.SourceLost("hall", "no route"): "source lost: hall no route",
        events.SelfTestPassed(): "self test passed",
        MOVING: "the robot may move at full speed",
        NOT_MOVING: "the robot may not move",
        halt(): "HALT 7-1 (danger, fast_red): C2 L2 contact in 0.3 s",
        actions.Notify(State.HALTED, "stale"): "halted: stale",
        actions.Notify(State.HALTED, "halted: stale"): "halted: stale",
        actions.Notify(State.MONITORING, ""): "monitoring",
        actions.RequestReview(3, "hall", ref(1.0), ()): "review 3 asked for frame 5 of hall",
        Judged("vlm", ref(1.0), 1.0, 1.1, 1.35): "vlm took 250 ms for frame 5 of hall",
    }.items():
        assert words(value) == said
