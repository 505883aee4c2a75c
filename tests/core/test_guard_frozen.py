"""Stories of a camera that is stuck: frames come, stamps advance, the picture stands still."""

import pytest

from hdguard.core import actions, events
from hdguard.core.actions import Halt
from hdguard.core.guard import Guard
from hdguard.core.policy import PAPER, SourcePlan, WhenFrozen
from hdguard.core.types import FrameRef, HaltCause, HaltClass, Speed, State
from tests.core.story import GREEN, RED, Story, frame, only, watching


class Camera(Story):
    """GREEN whatever the picture shows; the robot reports itself with every frame."""

    def __init__(self, plan: SourcePlan | None = None, guard: Guard | None = None) -> None:
        super().__init__(watching(sources=[plan or SourcePlan("cam"), SourcePlan("eye")]), guard)
        self.seq = 0

    def shows(self, until: float, *, still: bool, moving: bool | None) -> None:
        """Four frames a second up to and including that time; the other camera always changes."""
        for _ in range(round((until - self.now) * 4)):
            at = self.now + 0.25
            if moving is not None:
                self.robot(at, moving=moving)
            self.at(at, events.FrameSeen(frame(at), frozen=still), events.FrameSeen(eye(at)))
            self.at(at, *[events.FastVerdict(r, "fast", GREEN) for r in (frame(at), eye(at))])

    def robot(self, at: float, *, moving: bool) -> None:
        self.seq += 1
        self.at(at, events.RobotSeen(1, self.seq, moving))

    def begin(self, *, still: bool = False, moving: bool | None = False) -> "Camera":
        """Come to MONITORING; the picture has changed at 1.0 s, if it does not stand still."""
        self.at(0.0, events.SourceUp("cam"), events.SourceUp("eye"), events.SelfTestPassed())
        self.shows(1.0, still=still, moving=moving)
        return self

    def speed(self) -> Speed:
        return self.permits()[-1][1].speed


def eye(at: float) -> FrameRef:
    return frame(at, "eye")


def test_after_three_seconds_without_a_change_the_robot_is_slowed_and_told_why() -> None:
    s = Camera().begin()
    s.shows(3.75, still=True, moving=False)
    assert s.speed() is Speed.FULL
    s.shows(4.0, still=True, moving=False)
    assert s.speed() is Speed.REDUCED
    notes = [a.why for _, a in s.said if isinstance(a, actions.Notify)]
    assert notes[-1] == "the picture of cam does not change"
    s.shows(4.5, still=False, moving=False)
    assert s.speed() is Speed.FULL


def test_a_picture_that_stands_still_while_the_robot_moves_halts_it_after_one_second() -> None:
    s = Camera().begin(moving=True)
    s.shows(5.0, still=True, moving=True)
    assert s.halted() == [(HaltCause.FROZEN_FRAME, 2.0)]
    (halt,) = s.halts()
    assert (halt.halt_class, halt.source_id, halt.latched) == (HaltClass.FAULT, "cam", False)


def test_the_second_counts_from_when_the_robot_began_to_move() -> None:
    s = Camera().begin()
    s.shows(9.0, still=True, moving=False)
    s.shows(12.0, still=True, moving=True)  # says so with the frame of 9.25
    assert s.halted() == [(HaltCause.FROZEN_FRAME, 10.25)]


def test_a_robot_that_stands_may_look_at_a_still_room_for_ever() -> None:
    s = Camera().begin()
    s.shows(30.0, still=True, moving=False)
    assert s.halts() == []
    assert s.speed() is Speed.REDUCED


def test_a_robot_that_stops_in_between_begins_the_second_anew() -> None:
    s = Camera().begin()
    for _ in range(5):
        s.shows(s.now + 0.75, still=True, moving=True)
        s.shows(s.now + 0.25, still=True, moving=False)
    assert s.halts() == []


def test_a_robot_that_is_not_heard_of_is_not_halted_for_a_still_picture() -> None:
    s = Camera().begin(moving=None)
    s.shows(20.0, still=True, moving=None)
    assert s.halts() == []
    s = Camera().begin(moving=True)
    s.shows(20.0, still=True, moving=None)  # its last word, half a second long, is that it moves
    assert s.halts() == []


def test_silence_of_the_robot_does_not_end_its_motion() -> None:
    s = Camera().begin(moving=True)
    s.shows(5.0, still=True, moving=None)
    s.shows(5.25, still=True, moving=True)
    assert s.halted() == [(HaltCause.FROZEN_FRAME, 5.25)]


def test_an_old_word_of_the_robot_that_comes_late_changes_nothing() -> None:
    s = Camera().begin(moving=True)
    s.seq = 40
    s.shows(1.5, still=True, moving=True)
    s.at(1.6, events.RobotSeen(1, 39, moving=False), events.RobotSeen(0, 99, moving=False))
    s.shows(2.1, still=True, moving=True)
    assert [cause for cause, _ in s.halted()] == [HaltCause.FROZEN_FRAME]


def test_a_camera_without_frames_is_stale_and_not_frozen() -> None:
    s = Camera().begin(moving=True)
    for n in range(1, 8):
        s.robot(1.0 + 0.25 * n, moving=True)
    assert s.halted() == [(HaltCause.STALE_FRAME, 2.0)]


@pytest.mark.parametrize(
    ("when", "speed"), [("slow", Speed.REDUCED), ("ignore", Speed.FULL)], ids=["fixed", "recorded"]
)
def test_only_a_camera_on_the_robot_halts_it(when: WhenFrozen, speed: Speed) -> None:
    s = Camera(SourcePlan("cam", when_frozen=when)).begin(moving=True)
    s.shows(10.0, still=True, moving=True)
    assert s.halts() == []
    assert s.speed() is speed


def test_an_optional_camera_that_is_stuck_only_slows() -> None:
    s = Camera(SourcePlan("cam", required=False)).begin(moving=True)
    s.shows(10.0, still=True, moving=True)
    assert s.halts() == []
    assert s.speed() is Speed.REDUCED


def test_green_of_a_frozen_picture_does_not_clear_the_halt_but_a_change_does() -> None:
    s = Camera().begin(moving=True)
    s.shows(2.0, still=True, moving=True)
    s.shows(30.0, still=True, moving=False)
    assert s.state() is State.HALTED
    s.shows(30.25, still=False, moving=False)
    s.shows(33.0, still=True, moving=False)
    assert s.state() is State.HALTED
    s.shows(33.25, still=True, moving=False)
    assert s.state() is State.MONITORING


def test_an_operator_may_end_it_and_the_robot_that_moves_on_is_halted_again() -> None:
    s = Camera().begin(moving=True)
    s.shows(2.0, still=True, moving=True)
    s.shows(4.0, still=True, moving=False)
    s.at(4.0, events.ResetRequested("7-1", "kim"))
    assert s.state() is State.MONITORING
    s.shows(4.25, still=True, moving=False)
    assert s.speed() is Speed.REDUCED
    s.shows(6.0, still=True, moving=True)
    assert s.halted()[1:] == [(HaltCause.FROZEN_FRAME, 5.5)]


def test_a_robot_that_stands_in_a_still_room_can_be_started_slowly() -> None:
    s = Camera().begin(still=True)
    assert s.state() is State.MONITORING
    s.shows(3.25, still=True, moving=False)
    assert s.speed() is Speed.REDUCED


def test_a_frozen_picture_only_explains_why_before_the_start() -> None:
    s = Camera()
    s.shows(5.0, still=True, moving=True)
    assert s.halts() == []
    assert s.state() is State.STARTING


def test_red_on_a_frozen_picture_is_a_danger_still() -> None:
    s = Camera().begin(moving=True)
    s.shows(2.0, still=True, moving=True)
    out = s.at(2.1, events.FastVerdict(frame(2.1), "fast", RED))
    assert only(Halt, out).cause is HaltCause.FAST_RED


@pytest.mark.parametrize("source_id", ["cam", "a camera that is configured no more"])
def test_after_a_restart_the_first_frame_of_a_stuck_camera_is_no_proof_of_life(
    source_id: str,
) -> None:
    halt = Halt("6-1", HaltClass.FAULT, HaltCause.FROZEN_FRAME, source_id, decided_at=1e6)
    policy = watching(sources=[SourcePlan("cam"), SourcePlan("eye")])
    s = Camera(guard=Guard(policy, 0.0, boot=7, restored=halt)).begin(still=True)
    s.shows(9.0, still=True, moving=False)
    known = source_id == "cam"
    assert s.state() is (State.HALTED if known else State.MONITORING)
    s.shows(9.25, still=False, moving=False)
    s.shows(12.25, still=True, moving=False)
    assert s.state() is State.MONITORING


def test_paper_never_halts_for_it() -> None:
    s = Story(watching(PAPER)).monitoring()
    for n in range(40):
        at = 1.0 + 0.2 * n
        s.at(at, events.RobotSeen(1, n, moving=True), events.FrameSeen(frame(at), frozen=True))
    assert s.halts() == []
