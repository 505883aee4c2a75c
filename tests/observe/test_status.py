"""Whether the guard is ready and why not, asked at literal times."""

import pytest

from hdguard.core import events
from hdguard.core.halts import fault
from hdguard.core.types import FrameRef, HaltCause, Light
from tests.observe.support import Watched


def test_a_guard_that_has_seen_nothing_is_not_ready() -> None:
    watched = Watched()
    assert watched.status.unready() == (
        "starting: the first verdicts are awaited",
        "the broker has not returned a permit of ours yet",
        "kitchen has no fresh frame",
        "reflex has no fresh verdict on kitchen",
    )


def test_it_is_ready_once_the_robot_may_move() -> None:
    watched = Watched()
    watched.starts()
    assert watched.status.unready() == ()
    watched.step(events.DeadlineReached(), after=0.2)  # the next permit
    report = watched.status.report()
    assert (report["state"], report["speed"], report["light"]) == ("monitoring", "full", "GREEN")
    assert report["ready"] is True


def test_until_the_self_test_has_passed_it_says_so() -> None:
    watched = Watched()
    watched.sees()
    assert watched.status.unready() == (
        "starting: " + watched.status.report()["why"],
        "the broker has not returned a permit of ours yet",
    )
    assert "self-test not passed" in watched.status.unready()[0]


def test_the_web_is_alive_but_detection_is_dead() -> None:
    """Frigate 949: what answers there says nothing about whether anything is judged."""
    watched = Watched()
    watched.starts()
    watched.step(events.DeadlineReached(), after=0.6)  # frames stop, the guard goes on deciding
    assert watched.status.unready() == (
        "kitchen has no fresh frame",
        "reflex has no fresh verdict on kitchen",
    )


def test_a_decision_step_that_stands_still_is_not_ready() -> None:
    watched = Watched()
    watched.starts()
    watched.now += 0.7
    assert watched.status.unready()[0] == "nothing was decided for 0.7 s"


def test_an_optional_camera_or_brain_may_fail() -> None:
    watched = Watched()
    watched.starts()
    watched.step(events.BrainDown("second"), events.SourceLost("hall", "unplugged"))
    assert watched.status.unready() == ()
    report = watched.status.report()
    assert [s["up"] for s in report["sources"]] == [True, False]
    assert "second is down" in report["why"]


def test_a_required_brain_that_is_down_is_named() -> None:
    watched = Watched()
    watched.starts()
    watched.step(events.BrainDown("reflex"))
    assert watched.status.unready() == ("reflex is down",)


def test_a_lost_link_is_told_until_it_is_back() -> None:
    watched = Watched()
    watched.starts()
    watched.step(events.LinkLost())
    assert watched.status.unready() == ("the broker does not return our permits",)
    assert watched.status.report()["link"] is False
    watched.step(events.LinkUp())
    assert watched.status.unready() == ()


def test_a_restored_guard_that_no_broker_ever_answered_is_not_ready() -> None:
    """Halted is no excuse: whether anybody hears it is not proven yet."""
    watched = Watched(restored=fault(HaltCause.BRAIN_LATCHED, "kitchen", "reflex"))
    watched.sees()
    assert watched.status.unready() == ("the broker has not returned a permit of ours yet",)
    assert watched.status.report()["link"] is False
    watched.step(events.SelfTestPassed())
    assert watched.status.unready() == ()


def test_a_link_that_was_lost_before_the_self_test_is_lost_until_it_is_back() -> None:
    watched = Watched(restored=fault(HaltCause.BRAIN_LATCHED, "kitchen", "reflex"))
    watched.sees()
    watched.step(events.LinkLost(), events.SelfTestPassed())
    assert watched.status.unready() == ("the broker does not return our permits",)
    watched.step(events.LinkUp())
    assert watched.status.unready() == ()


def test_a_halted_guard_that_sees_all_is_ready() -> None:
    watched = Watched()
    watched.starts()
    watched.sees(Light.RED)
    assert watched.status.report()["state"] == "halted"
    assert watched.status.unready() == ()


def test_the_halt_in_force_says_why_how_far_it_has_come_and_what_to_do() -> None:
    watched = Watched()
    watched.starts()
    assert watched.status.halt() is None
    watched.sees(Light.RED)
    halt = watched.status.halt()
    assert halt is not None
    assert (halt["halt_id"], halt["class"], halt["cause"]) == ("7-1", "danger", "fast_red")
    assert (halt["source"], halt["brain"], halt["light"]) == ("kitchen", "reflex", "RED")
    assert "hdguard reset 7-1" in halt["what_to_do"]
    watched.step(events.HaltDelivered("7-1"))
    watched.step(events.DeadlineReached(), after=0.5)
    came = watched.status.halt() or {}
    assert (came["delivered"], came["acknowledged"], came["escalated"]) == (True, False, True)
    watched.step(events.HaltConfirmed("7-1"))
    came = watched.status.halt() or {}
    assert (came["acknowledged"], came["confirmed"]) == (True, True)


def test_what_is_said_about_another_halt_changes_nothing() -> None:
    watched = Watched()
    watched.starts()
    watched.sees(Light.RED)
    watched.step(events.HaltConfirmed("7-0"), events.HaltDelivered("6-9"))
    came = watched.status.halt() or {}
    assert (came["confirmed"], came["delivered"]) == (False, False)


def test_a_restored_halt_is_shown_before_the_first_step() -> None:
    restored = fault(HaltCause.BRAIN_LATCHED, "kitchen", "reflex")
    watched = Watched(restored=restored)
    halt = watched.status.halt()
    assert halt is not None
    assert (halt["cause"], halt["latched"], halt["delivered"]) == ("brain_latched", True, False)
    assert halt["restored"]
    watched.step(events.DeadlineReached())
    (listed,) = watched.status.report()["timeline"]["halts"]
    assert listed["restored"]  # its age is that of the guard, not its own
    watched = Watched()
    watched.step(events.HaltRequested("anna"))
    assert not (watched.status.halt() or {})["restored"]


def test_a_light_is_sure_only_while_the_brains_that_must_see_have_just_said_it() -> None:
    def sure(watched: Watched) -> bool:
        kitchen, _ = watched.status.report()["sources"]
        return bool(kitchen["sure"])

    watched = Watched()
    assert not sure(watched)
    watched.starts()
    assert sure(watched)
    for number in range(1, 6):  # pictures come on, verdicts do not
        watched.now += 0.2
        watched.step(events.FrameSeen(FrameRef("kitchen", 100 + number, watched.now, 0.0)))
    assert not sure(watched)
    watched.sees()
    assert sure(watched)
    ref = FrameRef("kitchen", 200, watched.now, 0.0)
    watched.step(events.BrainFailed("kitchen", "second", "no sense", ref))
    assert sure(watched)  # that one is optional
    watched.step(events.BrainFailed("kitchen", "reflex", "no sense", ref))
    assert not sure(watched)


def test_ages_count_from_capture_and_are_null_before_the_first() -> None:
    watched = Watched()
    report = watched.status.report()
    assert [s["frame_age"] for s in report["sources"]] == [None, None]
    watched.sees()
    watched.now += 0.2
    report = watched.status.report()
    assert [s["frame_age"] for s in report["sources"]] == [pytest.approx(0.25), None]
    assert report["brains"][0]["verdict_age"] == pytest.approx(0.25)


def test_what_the_robot_said_last_is_shown_with_its_age() -> None:
    watched = Watched()
    assert watched.status.report()["robot"] is None
    watched.step(events.RobotSeen(3, 1, moving=True, speed=0.4))
    watched.now += 0.3
    shown = watched.status.report()["robot"]
    assert shown == {"age": pytest.approx(0.3), "moving": True, "speed": 0.4}


def test_the_slow_brain_is_shown_too() -> None:
    watched = Watched()
    assert watched.status.report()["slow"] == {"name": "thinker", "up": True}
    watched.step(events.BrainDown("thinker"))
    assert watched.status.report()["slow"] == {"name": "thinker", "up": False}


def test_a_page_is_told_when_a_camera_is_stale_and_what_broke_it() -> None:
    watched = Watched()
    watched.step(events.SourceUp("kitchen", 0.5), events.SourceLost("hall", "unplugged"))
    kitchen, hall = watched.status.report()["sources"]
    assert (kitchen["stale_after"], kitchen["trouble"]) == (1.25, "")
    assert (hall["stale_after"], hall["trouble"]) == (1.0, "unplugged")


def test_changes_of_state_light_and_halt_are_told_at_once_and_nothing_else_is() -> None:
    watched = Watched()
    told: list[str] = []
    watched.starts()
    watched.step(events.DeadlineReached(), after=0.2)
    watched.status.on_change = lambda: told.append(watched.status.state)
    watched.sees()
    watched.step(events.DeadlineReached(), after=0.2)
    assert told == []
    watched.sees(Light.YELLOW)
    assert told == ["reviewing"]  # two brains saw it
    watched.step(events.HaltRequested("anna"))
    assert told[1:] == ["halted"]
    watched.step(events.HaltDelivered("7-1"))
    watched.step(events.HaltConfirmed("7-1"))
    assert told[2:] == ["halted"] * 2
    watched.step(events.DeadlineReached(), after=0.2)
    assert len(told) == 4


def test_what_a_reset_waits_for_is_named() -> None:
    watched = Watched()
    watched.starts()
    watched.step(events.HaltRequested("anna"))
    assert watched.status.unreleased() == ()
    watched.now += 0.2
    watched.sees(Light.YELLOW)
    assert watched.status.unreleased() == ("reflex on kitchen is YELLOW",)
    watched.step(events.BrainDown("reflex"))
    watched.now += 0.2
    watched.sees()
    assert watched.status.unreleased() == (
        "reflex is down",
        "reflex on kitchen has said GREEN 1 of 3 times",
    )
