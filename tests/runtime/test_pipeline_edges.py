"""Where the pipeline meets the robot, the clock and its own end."""

import asyncio

import pytest

from hdguard.actuators.recording import RecordingActuator
from hdguard.core import actions, events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.types import HaltClass
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import PERMIT_AFTER, Pipeline
from tests.fakes import (
    GREEN,
    RED,
    YELLOW,
    DroppingActuator,
    HangingBrain,
    ListSource,
    ScriptedFastSeat,
    ScriptedSlowSeat,
    SilentActuator,
    every,
)
from tests.runtime.rig import Played, play


def red_at_one() -> ScriptedFastSeat:
    return ScriptedFastSeat({0.0: GREEN, 1.0: RED})


def silent() -> ListSource:
    """A source that is open and never shows a frame."""
    return ListSource([], stays=True)


class Raises:
    """An observer with a defect: it raises when it sees that event."""

    def __init__(self, kind: type[object]) -> None:
        self._kind = kind

    def judged(self, stamps: Judged | Reviewed) -> None:
        if isinstance(stamps, self._kind):
            raise OSError("no space left")

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        if isinstance(event, self._kind):
            raise OSError("no space left")


# The robot.


def test_a_halt_is_published_in_the_same_instant_and_its_receipt_comes_back() -> None:
    played = play(1.05, ListSource(every(0.2, 2.0), stays=True), fast=[red_at_one()])
    assert played.sent(actions.Halt) == [1.01]
    assert played.events(events.HaltDelivered) == [(1.01, events.HaltDelivered("0-1"))]
    assert [t for t, _ in played.events(events.HaltAcknowledged)] == [1.01]


def test_a_halt_is_repeated_every_100_ms_until_the_robot_stands_still() -> None:
    played = play(2.5, ListSource(every(0.2, 3.0), stays=True), fast=[red_at_one()])
    sent = played.sent(actions.Halt)
    assert sent[:7] == pytest.approx(every(0.1, 1.61, start=1.01))
    assert sent[-1] <= 1.71
    assert [t for t, _ in played.events(events.HaltConfirmed)] == [1.71]
    assert played.actions(actions.Escalate) == []
    assert {h.halt_id for _, h in played.actions(actions.Halt)} == {"0-1"}


def test_a_robot_that_says_nothing_is_escalated_once_and_halted_on() -> None:
    source = ListSource(every(0.2, 4.0), stays=True)
    played = play(3.0, source, fast=[red_at_one()], actuator=SilentActuator)
    assert [t for t, _ in played.actions(actions.Escalate)] == [1.51]
    assert len(played.sent(actions.Escalate)) == 1
    assert len(played.sent(actions.Halt)) == 20


def test_a_halt_that_does_not_leave_is_reported_and_tried_again_every_100_ms() -> None:
    def heal(pipeline: Pipeline) -> None:
        way = pipeline.parts.actuator
        assert isinstance(way, DroppingActuator)
        way.drop_halts()
        asyncio.get_running_loop().call_at(1.35, way.pass_halts)

    source = ListSource(every(0.2, 3.0), stays=True)
    played = play(1.5, source, fast=[red_at_one()], actuator=DroppingActuator, script=heal)
    assert isinstance(played.actuator, DroppingActuator)
    tries = [t for t, what in played.actuator.tried if what == "halt"]
    assert tries == pytest.approx([1.01, 1.11, 1.21, 1.31, 1.41])
    failed = [(t, e.halt_id, e.reason) for t, e in played.events(events.HaltFailed)]
    assert failed[0] == (1.01, "0-1", "halt: the broker is away")
    assert len(failed) == 4
    assert played.sent(actions.Halt) == [1.41]
    assert [t for t, _ in played.events(events.HaltDelivered)] == [1.41]


def test_a_permit_that_never_leaves_does_not_hold_a_halt_up() -> None:
    def block(pipeline: Pipeline) -> None:
        assert isinstance(pipeline.parts.actuator, DroppingActuator)
        pipeline.parts.actuator.block_permits()

    source = ListSource(every(0.2, 3.0), stays=True)
    played = play(1.5, source, fast=[red_at_one()], actuator=DroppingActuator, script=block)
    assert played.sent(actions.Permit) == []
    assert played.sent(actions.Halt)[0] == 1.01
    assert len(played.sent(actions.Notify)) > 0


def test_a_state_that_never_leaves_does_not_hold_the_escalation_up() -> None:
    """A frozen broker is when the other means are needed, and when the state gets no receipt."""

    def block(pipeline: Pipeline) -> None:
        assert isinstance(pipeline.parts.actuator, DroppingActuator)
        pipeline.parts.actuator.block_notes()
        pipeline.parts.actuator.block_halts()

    source = ListSource(every(0.2, 4.0), stays=True)
    played = play(2.0, source, fast=[red_at_one()], actuator=DroppingActuator, script=block)
    assert played.sent(actions.Escalate) == [1.51]


def test_a_halt_that_never_leaves_does_not_hold_the_permits_up() -> None:
    def block(pipeline: Pipeline) -> None:
        assert isinstance(pipeline.parts.actuator, DroppingActuator)
        pipeline.parts.actuator.block_halts()

    source = ListSource(every(0.2, 4.0), stays=True)
    played = play(3.0, source, fast=[red_at_one()], actuator=DroppingActuator, script=block)
    assert played.sent(actions.Halt) == []
    late = [t for t in played.sent(actions.Permit) if t > 1.01]
    assert len(late) >= 9
    assert len(played.sent(actions.Escalate)) == 1
    stops = [a for _, a in played.actuator.sent if isinstance(a, actions.Permit)]
    assert stops[-1].speed == 0


def test_the_end_of_a_halt_follows_it_in_order() -> None:
    blind = ScriptedFastSeat({0.0: GREEN, 1.0: "dark", 7.0: GREEN})
    played = play(11.0, ListSource(every(0.2, 12.0), stays=True), fast=[blind])
    sent = [type(a).__name__ for _, a in played.actuator.sent if isinstance(a, HALTS)]
    assert played.halts() == [(6.0, "blind")]
    assert sent[-1] == "Release"
    assert set(sent[:-1]) == {"Halt"}
    assert played.sent(actions.Release) == [10.01]  # 3 s of fresh GREEN from 7.01 on


HALTS = (actions.Halt, actions.Release)


# The clock.


def test_the_timer_keeps_the_permits_coming_where_nothing_else_happens() -> None:
    played = play(2.05, silent(), actuator=SilentActuator)
    sent = [t + PERMIT_AFTER for t in every(0.2, 2.0)]
    assert played.sent(actions.Permit) == pytest.approx(sent)
    assert {type(e).__name__ for _, e, _ in played.witness.steps} == {
        "SelfTestPassed",
        "DeadlineReached",
    }
    assert len(played.events(events.DeadlineReached)) == 10


def test_a_silent_camera_halts_one_second_after_its_last_frame() -> None:
    played = play(3.0, ListSource(every(0.2, 1.0), stays=True), actuator=SilentActuator)
    assert played.halts()[0] == (2.0, "stale_frame")


def test_an_earlier_deadline_moves_the_timer_forward() -> None:
    # The next permit is due at 1.2 s; a halt at 1.01 s makes its own repeat due before that.
    played = play(1.15, ListSource(every(0.2, 2.0), stays=True), fast=[red_at_one()])
    assert 1.11 in [t for t, _ in played.events(events.DeadlineReached)]


# What must not vanish.


def failure(kind: type[object], **parts: object) -> BaseException:
    """The one error in which the run must end."""
    source = ListSource(every(0.2, 3.0), stays=True)
    with pytest.raises(ExceptionGroup) as caught:
        play(3.0, source, observers=[Raises(kind)], **parts)  # type: ignore[arg-type]
    (error,) = caught.value.exceptions
    assert source.closed
    return error


@pytest.mark.parametrize(
    "kind",
    [
        events.DeadlineReached,  # in the timer's callback
        events.FrameSeen,  # in the source's task
        events.FastVerdict,  # in the brain's task
        events.RobotSeen,  # in the listener's task
        Judged,
    ],
    ids=lambda kind: kind.__name__,
)
def test_an_error_in_an_observer_ends_the_run(kind: type[object]) -> None:
    assert str(failure(kind)) == "no space left"


def test_an_error_about_a_review_or_a_receipt_ends_the_run_too() -> None:
    yellow, red = ScriptedFastSeat({0.0: YELLOW}), ScriptedFastSeat({0.0: RED})
    assert str(failure(Reviewed, fast=[yellow], slow=ScriptedSlowSeat())) == "no space left"
    assert str(failure(events.HaltDelivered, fast=[red])) == "no space left"
    hung = HangingBrain()
    assert str(failure(events.BrainDown, fast=[hung])) == "no space left"


def test_a_defect_of_a_brain_ends_the_run() -> None:
    sick = ScriptedFastSeat({0.0: GREEN, 1.0: ZeroDivisionError("a defect")})
    with pytest.raises(ExceptionGroup) as caught:
        play(3.0, ListSource(every(0.2, 3.0), stays=True), fast=[sick])
    assert "a defect" in repr(caught.value.exceptions)


# The end.


def assert_nothing_is_left(played: Played, *seats: ScriptedFastSeat | ScriptedSlowSeat) -> None:
    assert played.tasks_left == 0
    assert played.quiet
    assert [seat.listener for seat in seats] == [None] * len(seats)
    assert [seat.busy for seat in seats] == [0] * len(seats)


def test_a_run_that_is_over_leaves_no_task_no_listener_and_no_open_source() -> None:
    source, fast, slow = ListSource(every(0.2, 9.0)), HangingBrain(since=0.8), ScriptedSlowSeat()
    played = play(1.1, source, fast=[fast], slow=slow)
    assert_nothing_is_left(played, fast, slow)
    assert source.closed


def test_a_run_that_ends_in_the_middle_of_a_review_leaves_nothing() -> None:
    fast, slow = ScriptedFastSeat({0.0: YELLOW}), ScriptedSlowSeat(latency=5.0)
    played = play(0.5, ListSource(every(0.2, 9.0)), fast=[fast], slow=slow)
    assert len(slow.asked) == 1
    assert_nothing_is_left(played, fast, slow)


def test_an_operators_halt_and_reset_come_through_the_actuator() -> None:
    class Operated(RecordingActuator):
        async def halt(self, action: actions.Halt | actions.Release) -> None:
            await super().halt(action)
            if isinstance(action, actions.Halt) and action.repeat == 3:
                self._inbox.put_nowait(events.ResetRequested(action.halt_id, "ada"))

    def press(pipeline: Pipeline) -> None:
        way = pipeline.parts.actuator
        assert isinstance(way, Operated)
        halt = events.HaltRequested("ada")
        asyncio.get_running_loop().call_at(1.05, way._inbox.put_nowait, halt)

    source = ListSource(every(0.2, 3.0), stays=True)
    played = play(2.0, source, actuator=Operated, script=press)
    ((at, first), *_) = played.actions(actions.Halt)
    assert (at, first.halt_class) == (1.05, HaltClass.OPERATOR)
    assert [t for t, _ in played.actions(actions.Release)] == [pytest.approx(1.35)]
