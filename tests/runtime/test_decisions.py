"""A person reads the log and knows what was decided, why, and how long it took."""

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from hdguard.core import events
from hdguard.core.actions import Action, Halt, Release
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import SourcePlan
from hdguard.core.types import HaltCause, HaltClass, Hazard, Light
from hdguard.runtime.decisions import DecisionLog
from hdguard.runtime.happenings import MOST_REASONS
from hdguard.runtime.observer import Judged, Reviewed
from tests.core.story import GREEN, RED, YELLOW, Story, frame, watching


class Told(Story):
    """A story whose guard has a decision log."""

    def __init__(self, guard: Guard | None = None, numbers: Iterator[int] | None = None) -> None:
        super().__init__(guard=guard)
        self.log = DecisionLog(self.guard, numbers or itertools.count(1))

    def up(self) -> "Told":
        """Come to MONITORING, and to the first permit after it."""
        self.monitoring()
        self.until(0.8)
        return self

    def _step(self, event: Event, time: float) -> tuple[Action, ...]:
        out = super()._step(event, time)
        self.log.stepped(time, event, out)
        return out


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """What was said since the last time."""
    found: list[dict[str, Any]] = []
    for record in caplog.records:
        assert isinstance(record.msg, dict)
        found.append({"level": record.levelname, **record.msg})
    caplog.clear()
    return found


def names(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line["event"] for line in lines(caplog)]


def test_a_start_is_told_once_and_green_after_green_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    assert [(x["decision"], x["event"]) for x in lines(caplog)] == [
        ("7.1", "source up"),
        ("7.2", "self-test passed"),
        ("7.3", "light changed"),
        ("7.4", "state changed"),
        ("7.5", "speed changed"),
    ]
    story.watch(30.0)
    assert lines(caplog) == []


def test_a_red_is_one_line_with_cause_hazard_and_latency(caplog: pytest.LogCaptureFixture) -> None:
    story = Told().up()
    lines(caplog)
    hazard = Hazard("C1", "L3", "a knife moves toward a hand")
    story.log.judged(Judged("fast", frame(0.8), 0.8, 0.81, 0.93))
    story.at(0.95, events.FrameSeen(frame(0.8)))
    story.at(0.95, events.FastVerdict(frame(0.8), "fast", RED, hazard))
    (line,) = lines(caplog)
    assert "halted: fast_red" in line.pop("why")
    assert line == {
        "level": "WARNING",
        "event": "halt",
        "decision": "7.6",
        "halt_id": "7-1",
        "class": "danger",
        "cause": "fast_red",
        "source": "cam",
        "brain": "fast",
        "light": "RED",
        "verdict": "RED",
        "was": "GREEN",
        "hazard": "a knife moves toward a hand",
        "category": "C1",
        "severity": "L3",
        "age": 0.15,
        "judged_in": 0.12,
        "capture_to_halt": 0.15,
        "frame_age": 0.15,
        "verdict_age": 0.15,
        "from_state": "monitoring",
        "from_speed": "full",
        "state": "halted",
        "speed": "none",
    }


def test_of_a_halts_repeats_only_the_first_of_each_answer_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    story.verdict(0.8, RED)
    lines(caplog)
    for at in (0.81, 0.91, 1.01):
        story.at(at, events.HaltDelivered("7-1"), events.HaltFailed("7-1", "no receipt"))
    story.until(1.45)
    story.at(1.5, events.HaltAcknowledged("7-1"), events.HaltAcknowledged("7-1"))
    story.at(2.0, events.HaltConfirmed("7-1"), events.HaltDelivered("6-9"))
    told = lines(caplog)
    assert [(x["level"], x["event"], x["halt_id"]) for x in told] == [
        ("INFO", "halt delivered", "7-1"),
        ("WARNING", "halt not delivered", "7-1"),
        ("ERROR", "escalated", "7-1"),
        ("INFO", "halt acknowledged", "7-1"),
        ("INFO", "halt confirmed", "7-1"),
    ]
    assert [x.get("after") for x in told] == [0.01, 0.01, None, 0.7, 1.2]
    assert told[2]["reason"] == "the robot has not acknowledged it"


def test_a_reset_is_told_with_who_asked_and_why_it_was_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    story.verdict(0.8, RED)
    story.at(0.9, events.HaltConfirmed("7-1"))
    lines(caplog)
    story.at(0.95, events.ResetRequested("7-1", "ada"))
    story.at(0.96, events.ResetRequested("6-1", "ada"))
    refused = lines(caplog)
    assert [x["event"] for x in refused] == ["reset refused"] * 2
    assert refused[0]["level"] == "WARNING"
    assert (refused[1]["halt_id"], refused[1]["in_force"]) == ("6-1", "7-1")
    story.watch(3.0)
    lines(caplog)
    story.at(3.0, events.ResetRequested("7-1", "ada"))
    (line,) = lines(caplog)
    assert (line["event"], line["operator"], line["level"]) == ("released", "ada", "INFO")
    assert (line["from_state"], line["state"]) == ("halted", "monitoring")


def test_a_review_is_told_from_its_request_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    story = Told().up()
    lines(caplog)
    story.verdict(0.8, YELLOW)
    (asked,) = lines(caplog)
    assert (asked["event"], asked["review"], asked["source"]) == ("review requested", 1, "cam")
    assert (asked["verdict"], asked["speed"], asked["state"]) == ("YELLOW", "reduced", "reviewing")
    story.log.judged(Reviewed("slow", 1, frame(0.8), 0.81, 1.11))
    story.at(1.0, events.SlowVerdict(1, danger=False))
    (safe,) = lines(caplog)
    assert (safe["event"], safe["reviewed_in"]) == ("review says safe", 0.3)
    story.verdict(1.2, YELLOW)
    story.at(1.3, events.SlowVerdict(2, danger=True, hazard=Hazard(text="fire")))
    halt = lines(caplog)[-1]
    assert (halt["event"], halt["cause"], halt["review"]) == ("halt", "slow_danger", 2)
    assert halt["hazard"] == "fire"


def test_a_review_that_a_halt_cuts_short_stands_in_the_halts_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    story.verdict(0.8, YELLOW)
    lines(caplog)
    story.verdict(1.0, RED)
    (line,) = lines(caplog)
    assert (line["event"], line["cancelled"]) == ("halt", 1)
    story.at(1.05, events.ReviewFailed(1, "killed"))
    assert names(caplog) == ["review failed"]


def test_a_camera_that_is_tried_for_days_is_told_once_for_each_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    lines(caplog)
    for number in range(100):
        story.log.stepped(story.now, events.SourceLost("cam", f"port {number % 50}"), ())
    assert names(caplog) == ["source lost"] * MOST_REASONS
    for _ in range(2):
        story.log.stepped(story.now, events.SourceUp("cam"), ())
    story.log.stepped(story.now, events.SourceLost("cam", "port 1"), ())
    story.log.stepped(story.now, events.SourceEnded("cam"), ())
    assert names(caplog) == ["source up", "source lost", "source ended"]


def test_brains_that_go_blind_fail_or_die_are_told_as_they_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    lines(caplog)
    for at in (0.81, 0.82):
        ref = frame(at)
        story.at(at, events.FrameSeen(ref), events.BrainFailed("cam", "fast", "late", ref))
    for at in (0.83, 0.84):
        story.at(at, events.FrameSeen(frame(at)), events.CannotSee(frame(at), "fast", "dark"))
    story.verdict(0.85, GREEN)
    for latched in (False, False, True):
        story.at(0.86, events.BrainDown("slow", latched))
    story.at(0.87, events.BrainUp("slow"), events.BrainUp("slow"))
    story.at(0.88, events.BrainFailed("cam", "nobody", "late"))
    told = [(x["level"], x["event"]) for x in lines(caplog) if x["event"] != "speed changed"]
    assert told == [
        ("WARNING", "no verdict"),
        ("INFO", "cannot see"),
        ("INFO", "judges again"),
        ("WARNING", "brain down"),
        ("ERROR", "brain down for good"),
        ("INFO", "brain up"),
    ]


def test_old_news_changes_no_light_in_the_log_either(caplog: pytest.LogCaptureFixture) -> None:
    story = Told().up()
    story.verdict(0.8, YELLOW)
    lines(caplog)
    story.verdict(0.85, GREEN, captured=0.3)
    assert lines(caplog) == []


def test_a_fault_tells_how_old_the_picture_was(caplog: pytest.LogCaptureFixture) -> None:
    story = Told().up()
    lines(caplog)
    story.until(3.0)
    halt = next(x for x in lines(caplog) if x["event"] == "halt")
    assert (halt["class"], halt["cause"]) == ("fault", "stale_frame")
    assert halt["frame_age"] == pytest.approx(1.0, abs=0.101)
    assert "capture_to_halt" not in halt


def test_operators_the_link_and_the_end_are_told(caplog: pytest.LogCaptureFixture) -> None:
    story = Told().up()
    lines(caplog)
    story.at(0.85, events.LinkLost(), events.LinkUp())
    story.at(0.9, events.HaltRequested("ada"), events.HaltRequested("bob"))
    story.at(0.95, events.StopRequested())
    story.at(0.96, events.RobotSeen(1, 1, moving=False))
    told = lines(caplog)
    assert [x["event"] for x in told if x["event"] != "speed changed"] == [
        "the broker does not return our permits",
        "the broker returns our permits",
        "halt",
        "halt asked",
        "stopping",
    ]
    halt = next(x for x in told if x["event"] == "halt")
    assert (halt["class"], halt["operator"]) == ("operator", "ada")


def test_leaving_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    story = Told().up()
    lines(caplog)
    story.at(0.85, events.StopRequested())
    (line,) = lines(caplog)
    assert (line["event"], line["cause"], line["level"]) == ("halt", "stopping", "INFO")


def test_what_a_brain_adds_about_the_frame_that_halted_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    story.verdict(0.8, RED)
    lines(caplog)
    remark = Hazard("C3", "L4", "a pan on fire")
    story.at(0.9, events.Remarked(frame(0.7), "fast", remark))
    story.at(0.9, events.Remarked(frame(0.8), "fast", remark))
    (line,) = lines(caplog)
    assert (line["event"], line["halt_id"], line["hazard"]) == (
        "remark on the halt",
        "7-1",
        "a pan on fire",
    )


def test_a_halt_of_an_earlier_life_is_called_so_and_the_numbers_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = Halt(
        "6-2", HaltClass.DANGER, HaltCause.FAST_RED, ref=frame(0.1), light=Light.RED, decided_at=9.0
    )
    numbers = itertools.count(1)
    Told(numbers=numbers).up()
    last = lines(caplog)[-1]["decision"]
    story = Told(Guard(watching(), 0.0, boot=7, restored=before), numbers)
    story.at(0.1, events.SourceUp("cam"), events.HaltConfirmed("6-2"))
    first, _, third = lines(caplog)
    assert (first["event"], first["halt_id"]) == ("halt restored", "6-2")
    assert (last, first["decision"], third["decision"]) == ("7.5", "7.6", "7.8")
    assert "capture_to_halt" not in first  # of another life's clock
    assert (third["event"], "after" in third) == ("halt confirmed", False)


def test_a_brain_that_answers_too_late_again_and_again_does_not_judge_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    story.verdict(0.8, RED)
    lines(caplog)
    for at in (0.85, 0.95):
        ref = frame(at)
        story.at(at, events.FrameSeen(ref), events.BrainFailed("cam", "fast", "late", ref))
        story.at(at + 0.05, events.FastVerdict(ref, "fast", RED, late=True))
    assert names(caplog) == ["no verdict"]
    story.verdict(1.1, GREEN)
    (again,) = lines(caplog)
    assert (again["verdict"], again["brain"]) == ("GREEN", "fast")


def test_a_halt_that_time_has_brought_is_not_mixed_with_the_event_that_came_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    lines(caplog)
    story._step(events.BrainDown("slow"), 5.0)  # the loop has stalled: rule 1
    halt, worker = lines(caplog)
    assert (halt["event"], halt["cause"], halt["source"]) == ("halt", "stale_frame", "cam")
    assert (halt["state"], halt["speed"], "brain" in halt) == ("halted", "none", False)
    assert (worker["event"], worker["brain"], "halt_id" in worker) == ("brain down", "slow", False)


def test_a_refused_reset_does_not_take_the_place_of_the_halt_that_came_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    lines(caplog)
    story._step(events.ResetRequested("6-1", "ada"), 5.0)
    halt, reset = lines(caplog)
    assert (halt["halt_id"], "operator" in halt) == ("7-1", False)
    assert (reset["event"], reset["halt_id"], reset["in_force"]) == ("reset refused", "6-1", "7-1")


def test_nobody_is_said_to_have_released_what_ended_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Told().up()
    lines(caplog)
    stray = events.ResetRequested("6-1", "ada")
    story.log.stepped(story.now, stray, (Release("7-1"),))
    (line,) = lines(caplog)
    assert (line["event"], line["halt_id"], line["refused"]) == ("released", "7-1", "6-1")


def test_the_ages_of_a_halt_about_a_camera_are_that_cameras(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policy = watching(sources=(SourcePlan("cam"), SourcePlan("hall")))
    story = Told(Guard(policy, 0.0, boot=7))
    for at in (0.1, 0.4, 0.7):
        for name in ("cam", "hall"):
            ref = frame(at, name)
            story.at(at, events.FrameSeen(ref), events.FastVerdict(ref, "fast", GREEN))
    lines(caplog)
    ref = frame(1.0)
    story.at(1.1, events.FrameSeen(ref), events.FastVerdict(ref, "fast", RED))
    (halt,) = (x for x in lines(caplog) if x["event"] == "halt")
    assert (halt["source"], halt["frame_age"], halt["verdict_age"]) == ("cam", 0.1, 0.1)
