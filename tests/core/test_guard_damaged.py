"""Stories of a camera that loses many pictures to damage, while clean ones come in between."""

import pytest

from hdguard.core import actions, events
from hdguard.core.policy import PAPER, SIDECAR, Policy, SourcePlan
from hdguard.core.types import FrameRef, HaltCause, Speed, State
from tests.core.story import GREEN, Story, frame, watching


class Camera(Story):
    """GREEN four times a second, whatever is lost in between; the other camera loses nothing."""

    def __init__(self, policy: Policy = SIDECAR, *, required: bool = True) -> None:
        plans = [SourcePlan("cam", required=required), SourcePlan("eye")]
        super().__init__(watching(policy, sources=plans))
        self.at(0.0, events.SourceUp("cam"), events.SourceUp("eye"), events.SelfTestPassed())

    def shows(self, until: float, *, damaged: bool = False) -> None:
        for _ in range(round((until - self.now) * 4)):
            at = self.now + 0.25
            self.at(at, events.FrameSeen(frame(at), damaged=damaged), events.FrameSeen(eye(at)))
            self.at(at, *[events.FastVerdict(r, "fast", GREEN) for r in (frame(at), eye(at))])

    def speed(self) -> Speed:
        return self.permits()[-1][1].speed

    def why(self) -> str:
        return [a.why for _, a in self.said if isinstance(a, actions.Notify)][-1]


def eye(at: float) -> FrameRef:
    return frame(at, "eye")


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("policy", [SIDECAR, PAPER], ids=["sidecar", "paper"])
def test_while_many_pictures_are_damaged_the_robot_is_slow_and_told_why_but_not_halted(
    policy: Policy, required: bool
) -> None:
    s = Camera(policy, required=required)
    s.shows(2.0)
    assert (s.speed(), s.why()) == (Speed.FULL, "")
    s.shows(2.25, damaged=True)
    assert (s.speed(), s.why()) == (Speed.REDUCED, "many pictures of cam are damaged")
    s.shows(60.0, damaged=True)
    assert s.speed() is Speed.REDUCED
    s.shows(60.5)
    assert (s.speed(), s.why()) == (Speed.FULL, "")
    assert s.halts() == []


def test_clean_pictures_of_another_camera_do_not_make_up_for_it() -> None:
    s = Camera()
    s.shows(2.0)
    s.shows(2.25, damaged=True)
    s.at(2.3, events.FrameSeen(eye(2.3)))
    assert s.speed() is Speed.REDUCED


def test_a_robot_may_be_started_on_pictures_of_which_many_are_damaged_but_slowly() -> None:
    s = Camera()
    s.shows(2.0, damaged=True)
    assert s.state() is State.MONITORING
    assert s.speed() is Speed.REDUCED


def test_when_no_clean_picture_comes_any_more_the_age_of_the_last_one_halts() -> None:
    s = Camera()
    s.shows(2.0, damaged=True)
    s.until(3.5)
    assert s.halted() == [(HaltCause.STALE_FRAME, 3.0)]
    assert s.why().startswith("halted: stale_frame; cam has no fresh frame; many pictures of cam")


def test_a_fault_halt_clears_although_pictures_are_damaged_and_the_robot_goes_on_slowly() -> None:
    s = Camera()
    s.shows(2.0)
    s.until(3.5)
    s.shows(7.0, damaged=True)
    assert s.state() is State.MONITORING
    assert s.speed() is Speed.REDUCED


def test_of_a_file_that_has_ended_no_damage_is_told() -> None:
    s = Camera()
    s.shows(2.0, damaged=True)
    s.at(2.1, events.SourceEnded("cam"))
    s.until(2.3)
    assert (s.speed(), s.why()) == (Speed.FULL, "")
