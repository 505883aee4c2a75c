"""Stories in literal times: each is a thing that happens beside a real robot."""

from dataclasses import replace
from itertools import pairwise

import pytest

from hdguard.core import actions, events
from hdguard.core.actions import Halt
from hdguard.core.guard import Guard
from hdguard.core.policy import PAPER, SIDECAR, BrainPlan, SourcePlan
from hdguard.core.types import HaltCause, HaltClass, Hazard, Light, Speed, State
from tests.core.story import GREEN, RED, YELLOW, Story, frame, only, watching


def test_no_motion_before_the_self_test_and_three_greens() -> None:
    s = Story(watching())
    s.at(0.0, events.SourceUp("cam"))
    s.watch(1.0)
    assert s.state() is State.STARTING
    s.at(1.1, events.SelfTestPassed())
    assert s.state() is State.MONITORING
    assert {p.speed for t, p in s.permits() if t < 1.1} == {Speed.NONE}
    s.watch(1.5)
    assert s.permits()[-1][1].speed is Speed.FULL


def test_two_greens_are_not_three() -> None:
    s = Story(watching())
    s.at(0.0, events.SourceUp("cam"), events.SelfTestPassed())
    s.watch(0.4)
    assert s.state() is State.STARTING
    s.verdict(0.6, GREEN)
    assert s.state() is State.MONITORING


def test_red_halts_in_the_same_step_and_comes_first() -> None:
    s = Story().monitoring()
    hazard = Hazard("C3", "L4", "hot oil spills")
    out = s.at(
        1.0, events.FrameSeen(frame(1.0)), events.FastVerdict(frame(0.9), "fast", RED, hazard)
    )
    halt = out[0]
    assert isinstance(halt, Halt)
    assert (halt.halt_id, halt.halt_class, halt.cause) == (
        "7-1",
        HaltClass.DANGER,
        HaltCause.FAST_RED,
    )
    assert (halt.ref, halt.hazard, halt.decided_at) == (frame(0.9), hazard, 1.0)
    assert (halt.brain, halt.source_id, halt.light) == ("fast", "cam", RED)
    assert only(actions.Permit, out).speed is Speed.NONE


def test_red_while_starting_halts_and_a_released_guard_goes_on_starting() -> None:
    s = Story(watching())
    s.at(0.0, events.SourceUp("cam"))
    s.verdict(0.2, RED)
    assert s.state() is State.HALTED
    s.watch(1.0)
    out = s.at(1.0, events.ResetRequested("7-1", "kim"))
    assert only(actions.Release, out).halt_id == "7-1"
    assert s.state() is State.STARTING


def test_halt_is_repeated_every_100_ms_and_escalated_once_until_the_robot_confirms() -> None:
    s = Story().monitoring()
    s.verdict(0.7, RED)
    s.at(0.75, events.HaltDelivered("7-1"), events.HaltFailed("7-1"))
    s.until(1.75)
    repeats = [t for t, a in s.said if isinstance(a, Halt)]
    assert repeats == pytest.approx([0.7 + 0.1 * k for k in range(11)])
    assert [t for t, a in s.said if isinstance(a, actions.Escalate)] == pytest.approx([1.2])
    s.at(1.76, events.HaltConfirmed("7-1"))
    assert not [a for a in s.until(3.0) if isinstance(a, Halt | actions.Escalate)]


def test_acknowledged_ends_the_escalation_but_not_the_repeats() -> None:
    s = Story().monitoring()
    s.verdict(0.7, RED)
    s.at(0.8, events.HaltAcknowledged("0-0"), events.HaltConfirmed("0-0"))
    s.at(0.9, events.HaltAcknowledged("7-1"))
    out = s.until(2.0)
    assert not [a for a in out if isinstance(a, actions.Escalate)]
    assert len([a for a in out if isinstance(a, Halt)]) >= 10


def test_reset_needs_the_id_and_fresh_greens_in_a_row() -> None:
    s = Story().monitoring()
    s.verdict(0.8, RED)
    s.watch(1.2)
    assert not s.at(1.2, events.ResetRequested("7-1", "kim"))  # two GREEN only
    s.watch(1.4)
    assert not s.at(1.4, events.ResetRequested("7-2", "kim"))
    out = s.at(1.4, events.ResetRequested("7-1", "kim"))
    assert only(actions.Release, out).halt_id == "7-1"
    assert s.state() is State.MONITORING
    assert not s.at(1.5, events.ResetRequested("7-1", "kim"))


def test_danger_halt_never_ends_by_itself() -> None:
    s = Story().monitoring()
    s.verdict(0.8, RED)
    s.watch(20.0)
    assert s.state() is State.HALTED


def test_camera_silent_halts_one_second_after_the_last_frame() -> None:
    s = Story().monitoring()
    s.until(5.0)
    assert s.halted() == [(HaltCause.STALE_FRAME, 1.6)]
    reduced = [t for t, p in s.permits() if p.speed is Speed.REDUCED]
    assert reduced[0] == pytest.approx(1.1)


def test_a_slow_source_has_the_limits_that_its_interval_earns() -> None:
    slow = SourcePlan("cam", interval=1.0)
    s = Story(watching(sources=[slow]))
    s.at(0.0, events.SourceUp("cam"), events.SelfTestPassed())
    for t in (1.0, 2.0, 3.0):
        s.verdict(t, GREEN)
    assert s.state() is State.MONITORING
    s.until(9.0)
    assert [h.decided_at for h in s.halts()] == pytest.approx([5.5])


def test_fault_halt_clears_after_three_seconds_of_fresh_green() -> None:
    s = Story().monitoring()
    s.until(2.0)
    s.watch(5.1)
    assert s.state() is State.HALTED  # the first GREEN came at 2.2
    s.watch(5.3)
    assert s.state() is State.MONITORING


def test_a_gap_in_the_greens_starts_the_three_seconds_anew() -> None:
    s = Story().monitoring()
    s.until(2.0)
    s.watch(4.0)
    s.verdict(4.2, YELLOW)
    s.watch(7.3)
    assert s.state() is State.HALTED
    s.watch(7.5)
    assert s.state() is State.MONITORING


def test_fault_halt_stays_where_the_policy_asks_for_a_reset() -> None:
    s = Story(watching(fault_clear="reset")).monitoring()
    s.until(2.0)
    s.watch(12.0)
    assert s.state() is State.HALTED
    s.at(12.0, events.ResetRequested("7-1", "kim"))
    assert s.state() is State.MONITORING


def test_red_during_a_fault_halt_is_a_new_danger_halt() -> None:
    s = Story().monitoring()
    s.until(2.0)
    out = s.verdict(2.1, RED)
    halt = only(Halt, out)
    assert (halt.halt_id, halt.halt_class) == ("7-2", HaltClass.DANGER)
    s.watch(20.0)
    assert s.guard.halt is not None
    assert s.guard.halt.halt_id == "7-2"


def test_a_fault_does_not_end_or_replace_a_danger_halt() -> None:
    s = Story().monitoring()
    s.verdict(0.8, RED)
    s.until(9.0)
    assert [h.cause for h in s.halts()] == [HaltCause.FAST_RED]


def test_operator_halt_during_a_fault_is_not_cleared_with_it() -> None:
    s = Story().monitoring()
    s.until(2.0)
    s.at(2.1, events.HaltRequested("kim"))
    s.watch(20.0)
    assert s.guard.halt is not None
    assert s.guard.halt.halt_class is HaltClass.OPERATOR
    assert "kim" in s.guard.halt.hazard.text
    s.at(20.0, events.ResetRequested("7-2", "kim"))
    assert s.state() is State.MONITORING


def test_red_however_late_halts_but_a_late_green_changes_nothing() -> None:
    s = Story().monitoring()
    s.at(1.0, events.FrameSeen(frame(1.0)), events.BrainFailed("cam", "fast", "late", frame(0.8)))
    s.at(1.1, events.FrameSeen(frame(1.1)))
    s.at(1.2, events.FastVerdict(frame(0.8), "fast", GREEN, late=True))
    assert s.permits()[-1][1].speed is Speed.REDUCED
    out = s.at(1.3, events.FastVerdict(frame(0.8), "fast", RED, late=True))
    assert only(Halt, out).cause is HaltCause.FAST_RED


def test_an_old_green_after_a_newer_yellow_is_ignored() -> None:
    s = Story().monitoring()
    s.verdict(1.0, YELLOW)
    s.verdict(1.05, GREEN, captured=0.9)
    assert s.permits()[-1][1].light is YELLOW


def test_a_stalled_loop_cannot_let_a_late_green_slip_in() -> None:
    s = Story().monitoring()
    out = s.guard.step(events.FastVerdict(frame(3.0), "fast", GREEN), 3.0)
    assert only(Halt, out).cause in {HaltCause.STALE_FRAME, HaltCause.STALE_VERDICT}


def test_three_failures_in_a_row_halt_and_two_only_slow_the_robot() -> None:
    s = Story().monitoring()
    for t in (0.8, 1.0):
        s.at(t, events.FrameSeen(frame(t)), events.BrainFailed("cam", "fast", "nonsense"))
    assert s.state() is State.MONITORING
    assert s.permits()[-1][1].speed is Speed.REDUCED
    out = s.at(1.1, events.BrainFailed("cam", "fast", "nonsense"))
    assert only(Halt, out).cause is HaltCause.BRAIN_FAILED


def test_a_verdict_between_breaks_the_row_of_failures() -> None:
    s = Story().monitoring()
    for t in (0.7, 0.8):
        s.at(t, events.BrainFailed("cam", "fast", "nonsense"))
    s.verdict(0.9, GREEN)
    for t in (1.0, 1.1):
        s.at(t, events.BrainFailed("cam", "fast", "nonsense"))
    assert s.state() is State.MONITORING


def test_an_optional_brain_that_fails_only_slows() -> None:
    brains = [BrainPlan("fast"), BrainPlan("extra", required=False)]
    s = Story(watching(brains=brains)).monitoring(brains=("fast", "extra"))
    for step in range(1, 10):
        t = 0.6 + 0.2 * step
        s.verdict(t, GREEN)
        s.at(t, events.BrainFailed("cam", "extra", "nonsense"))
    assert s.state() is State.MONITORING
    assert s.permits()[-1][1].speed is Speed.REDUCED


def test_blind_slows_at_once_is_yellow_after_one_second_and_halts_after_five() -> None:
    s = Story().monitoring()
    slow_at = yellow_at = None
    for step in range(1, 40):
        t = 0.6 + 0.2 * step
        s.at(t, events.FrameSeen(frame(t)), events.CannotSee(frame(t), "fast", "dark"))
        last = s.permits()[-1][1]
        if slow_at is None and last.speed is Speed.REDUCED:
            slow_at = t
        if yellow_at is None and s.guard.roster.light is YELLOW:
            yellow_at = t
        for review in [a for _, a in s.said if isinstance(a, actions.RequestReview)]:
            s.at(t, events.SlowVerdict(review.review_id, danger=False))
    assert slow_at == pytest.approx(0.8)
    assert yellow_at == pytest.approx(1.8)
    assert s.halted() == [(HaltCause.BLIND, pytest.approx(5.8))]


def test_blindness_turns_yellow_by_the_clock_alone() -> None:
    s = Story().monitoring()
    s.at(0.8, events.FrameSeen(frame(0.8)), events.CannotSee(frame(0.8), "fast", "dark"))
    s.at(1.7, events.FrameSeen(frame(1.7)))
    review = only(actions.RequestReview, s.until(1.8))
    assert review.trigger == frame(0.8)


def test_an_old_cannot_see_changes_nothing() -> None:
    s = Story().monitoring()
    s.at(0.65, events.CannotSee(frame(0.3), "fast", "dark"))
    s.watch(0.9)
    assert s.permits()[-1][1].speed is Speed.FULL


def test_toddler_reaches_stove_while_slow_brain_is_busy() -> None:
    s = Story().monitoring()
    review = only(actions.RequestReview, s.verdict(0.8, YELLOW))
    assert s.state() is State.REVIEWING
    s.verdict(1.0, YELLOW)
    out = s.verdict(1.2, RED)
    assert only(Halt, out).cause is HaltCause.FAST_RED
    assert only(actions.CancelReview, out).review_id == review.review_id
    s.at(1.3, events.SlowVerdict(review.review_id, danger=False))
    assert s.state() is State.HALTED


def test_slow_brain_says_danger_and_the_halt_names_the_yellow_frame() -> None:
    s = Story().monitoring()
    review = only(actions.RequestReview, s.verdict(0.8, YELLOW))
    s.watch(1.2)
    out = s.at(1.3, events.SlowVerdict(review.review_id, True, Hazard(text="glass at the edge")))
    halt = only(Halt, out)
    assert (halt.cause, halt.ref, halt.brain) == (HaltCause.SLOW_DANGER, frame(0.8), "slow")


def test_safe_ends_the_review_and_the_newest_trigger_that_waited_is_next() -> None:
    s = Story().monitoring()
    first = only(actions.RequestReview, s.verdict(0.8, YELLOW))
    s.verdict(1.0, YELLOW)
    s.verdict(1.2, YELLOW)
    out = s.at(1.3, events.SlowVerdict(first.review_id, danger=False))
    second = only(actions.RequestReview, out)
    assert second.trigger == frame(1.2)
    s.watch(1.5)
    s.at(1.5, events.SlowVerdict(second.review_id, danger=False))
    assert s.state() is State.MONITORING


def test_a_verdict_on_another_review_changes_nothing() -> None:
    s = Story().monitoring()
    review = only(actions.RequestReview, s.verdict(0.8, YELLOW))
    assert not s.at(0.85, events.SlowVerdict(review.review_id + 1, danger=True))
    assert not s.at(0.86, events.ReviewFailed(review.review_id + 1, "died"))
    assert s.state() is State.REVIEWING


def test_review_overdue_halts_in_sidecar() -> None:
    s = Story().monitoring()
    s.verdict(0.8, YELLOW)
    s.watch(2.2, YELLOW)
    assert s.halted() == [(HaltCause.REVIEW_OVERDUE, pytest.approx(1.8))]
    assert s.halts()[0].halt_class is HaltClass.DANGER


def test_an_overdue_review_is_noticed_between_two_permits() -> None:
    s = Story(watching(review_deadline=0.9)).monitoring()
    s.verdict(0.85, YELLOW)
    s.verdict(1.6, GREEN)
    s.until(2.0)
    assert s.halted() == [(HaltCause.REVIEW_OVERDUE, pytest.approx(1.75))]


@pytest.mark.parametrize("how", ["failed", "down"])
def test_a_review_that_nobody_will_answer_is_overdue_at_once(how: str) -> None:
    s = Story().monitoring()
    review = only(actions.RequestReview, s.verdict(0.8, YELLOW))
    event = (
        events.BrainDown("slow")
        if how == "down"
        else events.ReviewFailed(review.review_id, "unparsed")
    )
    out = s.at(0.9, event)
    assert only(Halt, out).cause is HaltCause.REVIEW_OVERDUE


def test_yellow_while_the_slow_brain_is_down_is_overdue_at_once() -> None:
    s = Story().monitoring()
    s.until(0.85)
    out = s.at(0.9, events.BrainDown("slow"))
    assert only(actions.Permit, out).speed is Speed.REDUCED
    assert only(Halt, s.verdict(1.0, YELLOW)).cause is HaltCause.REVIEW_OVERDUE


def test_caution_stays_slow_and_watchful_until_greens_in_a_row() -> None:
    s = Story(watching(review_overdue="caution")).monitoring()
    s.verdict(0.8, YELLOW)
    s.watch(1.8)
    s.verdict(2.0, GREEN)
    assert s.state() is State.REVIEWING
    assert not s.halts()
    assert s.permits()[-1][1].speed is Speed.REDUCED
    s.watch(2.4)
    assert s.state() is State.MONITORING
    rates: list[tuple[object, ...]] = [
        (t, a.fps) for t, a in s.said if isinstance(a, actions.SetSampleRate)
    ]
    assert rates == [
        (0.8, 5.0),
        (pytest.approx(1.0), 1.0),
        (pytest.approx(1.8), 5.0),
        (pytest.approx(2.2), 1.0),
    ]


def test_caution_ends_when_a_later_review_says_safe() -> None:
    s = Story(watching(review_overdue="caution")).monitoring()
    first = only(actions.RequestReview, s.verdict(0.8, YELLOW))
    s.watch(1.7, YELLOW)
    s.until(1.8)
    cancelled = [a.review_id for _, a in s.said if isinstance(a, actions.CancelReview)]
    assert cancelled == [first.review_id]
    second = [a for _, a in s.said if isinstance(a, actions.RequestReview)][-1]
    assert second.review_id != first.review_id
    s.verdict(2.0, GREEN)
    s.at(2.1, events.SlowVerdict(second.review_id, danger=False))
    assert s.state() is State.MONITORING


def test_adaptive_rate_rises_at_yellow_and_falls_at_green() -> None:
    s = Story().monitoring()
    rise = only(actions.SetSampleRate, s.verdict(0.8, YELLOW))
    assert (rise.source_id, rise.brain, rise.fps, rise.ref) == ("cam", "fast", 5.0, frame(0.8))
    fall = only(actions.SetSampleRate, s.verdict(1.0, GREEN))
    assert (fall.fps, fall.ref) == (1.0, frame(1.0))


def test_a_reflex_keeps_its_rate_and_the_adaptive_brain_follows_the_source() -> None:
    brains = [BrainPlan("reflex", adaptive=False), BrainPlan("fast")]
    s = Story(watching(brains=brains)).monitoring(brains=("reflex", "fast"))
    out = s.verdict(0.8, YELLOW, brain="reflex")
    rate = only(actions.SetSampleRate, out)
    assert (rate.brain, rate.fps) == ("fast", 5.0)


def test_two_adaptive_brains_on_the_same_frames_do_not_go_stale_when_the_rate_falls() -> None:
    brains = [BrainPlan("fast"), BrainPlan("other")]
    s = Story(watching(brains=brains, slow="")).monitoring(brains=("fast", "other"))
    s.verdict(1.0, YELLOW)
    s.verdict(1.0, GREEN, brain="other")
    s.verdict(1.2, GREEN, brain="other")
    s.verdict(1.2, GREEN)  # the rate falls after "other" has answered at the high rate
    s.watch(5.2, every=1.0, brains=("other", "fast"))
    assert not [h for h in s.halts() if h.cause is HaltCause.STALE_VERDICT]


def test_a_rise_of_the_rate_shortens_what_another_brain_is_believed_for() -> None:
    brains = [BrainPlan("fast"), BrainPlan("other")]
    s = Story(watching(brains=brains, slow="")).monitoring(brains=("fast", "other"))
    s.verdict(0.8, YELLOW, brain="other")
    for step in range(20):
        t = 0.9 + step * 0.1
        s.at(t, events.FrameSeen(frame(t)))
        s.at(t, events.FastVerdict(frame(t), "other", YELLOW))
    assert [(h.brain, *row) for h, row in zip(s.halts(), s.halted(), strict=True)] == [
        ("fast", HaltCause.STALE_VERDICT, pytest.approx(1.8))
    ]


def test_verdict_limits_at_one_frame_a_second() -> None:
    s = Story().monitoring()
    for step in range(1, 40):
        t = 0.6 + step * 0.1
        s.at(t, events.FrameSeen(frame(t)))
    assert s.halted() == [(HaltCause.STALE_VERDICT, pytest.approx(0.6 + 2.5))]
    slow = [t for t, p in s.permits() if p.speed is Speed.REDUCED and t > 0.7]
    assert slow[0] == pytest.approx(0.6 + 1.5)


def test_a_brain_with_a_longer_deadline_has_longer_limits() -> None:
    s = Story(watching(brains=[BrainPlan("fast", deadline=1.4)])).monitoring()
    for step in range(1, 60):
        t = 0.6 + step * 0.1
        s.at(t, events.FrameSeen(frame(t)))
    assert [h.decided_at for h in s.halts()] == pytest.approx([0.6 + 2.5 + 2.0])


def test_frames_past_the_limit_are_not_given_to_a_brain() -> None:
    s = Story().monitoring()
    assert s.guard.admits(frame(0.6), "fast", 3.1)
    assert not s.guard.admits(frame(0.6), "fast", 3.11)
    s.verdict(0.8, YELLOW)
    assert not s.guard.admits(frame(0.6), "fast", 1.7)
    assert not s.guard.admits(frame(0.6), "nobody", 0.6)
    paper = Story(watching(PAPER)).guard
    assert paper.admits(frame(0.0), "fast", 1e6)


def test_source_lost_slows_and_then_halts_and_comes_back() -> None:
    s = Story().monitoring()
    s.until(0.85)
    out = s.at(0.9, events.SourceLost("cam", "unplugged"))
    assert only(actions.Permit, out).speed is Speed.REDUCED
    assert only(actions.Notify, out).why == "cam is lost: unplugged"
    s.until(1.6)
    assert s.state() is State.HALTED
    s.at(3.0, events.SourceUp("cam", interval=0.2))
    s.watch(6.3)
    assert s.state() is State.MONITORING


def test_an_ended_source_raises_no_staleness() -> None:
    s = Story().monitoring()
    s.at(0.7, events.SourceEnded("cam"))
    s.until(30.0)
    assert not s.halts()


def test_one_dead_optional_camera_slows_but_does_not_stop() -> None:
    sources = [SourcePlan("cam"), SourcePlan("hall", required=False)]
    s = Story(watching(sources=sources)).monitoring()
    s.watch(3.0)
    assert s.state() is State.MONITORING
    assert s.permits()[-1][1].speed is Speed.REDUCED


def test_link_lost_means_no_permit_and_back() -> None:
    s = Story().monitoring()
    s.until(0.85)
    out = s.at(0.9, events.LinkLost())
    assert only(actions.Permit, out).speed is Speed.NONE
    assert "broker" in only(actions.Notify, out).why
    s.at(0.95, events.LinkUp())
    s.watch(1.4)
    assert s.permits()[-1][1].speed is Speed.FULL


def test_stop_is_a_fault_halt_that_does_not_clear_in_this_life() -> None:
    s = Story().monitoring()
    assert only(Halt, s.at(0.7, events.StopRequested())).cause is HaltCause.STOPPING
    s.watch(9.0)
    assert s.state() is State.HALTED


def test_stop_while_halted_keeps_the_halt() -> None:
    s = Story().monitoring()
    s.verdict(0.7, RED)
    s.at(0.8, events.StopRequested())
    assert [h.cause for h in s.halts()] == [HaltCause.FAST_RED]


def test_after_a_restart_a_halted_guard_comes_back_halted() -> None:
    first = Story().monitoring()
    first.verdict(0.7, RED)
    assert first.guard.halt is not None
    guard = Guard(watching(), 0.0, boot=8, restored=first.guard.halt)
    s = Story(guard=guard)
    out = s.at(0.0, events.SelfTestPassed())
    assert only(Halt, out).halt_id == "7-1"
    s.watch(1.0)
    s.at(1.0, events.ResetRequested("7-1", "kim"))
    assert s.state() is State.MONITORING


def test_a_stopping_halt_is_released_at_the_next_start() -> None:
    first = Story().monitoring()
    first.at(0.7, events.StopRequested())
    guard = Guard(watching(), 0.0, boot=8, restored=first.guard.halt)
    out = guard.step(events.SourceUp("cam"), 0.0)
    assert only(actions.Release, out).halt_id == "7-1"
    assert guard.state is State.STARTING


def test_the_release_of_a_stopping_halt_comes_before_a_new_halt() -> None:
    first = Story().monitoring()
    first.at(0.7, events.StopRequested())
    guard = Guard(watching(), 0.0, boot=8, restored=first.guard.halt)
    out = guard.step(events.FastVerdict(frame(0.0), "fast", RED), 0.0)
    assert [type(a) for a in out[:2]] == [actions.Release, Halt]
    assert [a.halt_id for a in out[:2] if isinstance(a, actions.Release | Halt)] == ["7-1", "8-1"]


def test_restart_budget_spent_latches_even_over_another_fault() -> None:
    s = Story().monitoring()
    s.until(2.0)
    s.at(2.1, events.BrainDown("fast"))
    out = s.at(2.2, events.BrainDown("fast", latched=True))
    assert only(Halt, out).cause is HaltCause.BRAIN_LATCHED
    s.at(2.3, events.BrainUp("fast"))
    s.watch(30.0)
    assert s.state() is State.HALTED
    s.at(30.0, events.ResetRequested("7-2", "kim"))
    assert s.state() is State.MONITORING


def test_fast_brain_down_slows_at_once() -> None:
    s = Story().monitoring()
    s.until(0.85)
    out = s.at(0.9, events.BrainDown("fast"))
    assert only(actions.Permit, out).speed is Speed.REDUCED
    assert "fast is down" in only(actions.Notify, out).why


def test_permits_leave_five_times_a_second_in_every_state_and_late_ones_once() -> None:
    s = Story().monitoring()
    s.verdict(0.8, RED)
    s.until(3.0)
    times = [t for t, _ in s.permits()]
    gaps = [b - a for a, b in pairwise(times)]
    assert max(gaps) <= 0.2 + 1e-9
    out = s.guard.step(events.DeadlineReached(), 10.0)
    only(actions.Permit, out)
    assert s.guard.deadline <= 10.2 + 1e-9


def test_permit_echoes_the_newest_robot_message_and_the_ages() -> None:
    s = Story().monitoring()
    s.at(0.7, events.RobotSeen(3, 9, moving=True))
    s.at(0.7, events.RobotSeen(3, 8, moving=True), events.RobotSeen(2, 99, moving=True))
    s.until(0.8)
    permit = s.permits()[-1][1]
    assert permit.robot == (3, 9)
    assert permit.frame_age == pytest.approx(0.2)
    assert permit.verdict_age == pytest.approx(0.2)
    first = Story().guard.step(events.DeadlineReached(), 0.0)
    assert only(actions.Permit, first).frame_age is None


def test_paper_counts_a_failure_as_yellow_and_never_fault_halts() -> None:
    s = Story(watching(PAPER)).monitoring()
    out = s.at(
        1.0, events.FrameSeen(frame(1.0)), events.BrainFailed("cam", "fast", "?", frame(1.0))
    )
    assert only(actions.RequestReview, out).trigger == frame(1.0)
    s.at(1.1, events.BrainFailed("cam", "fast", "no frame at all"))
    s.until(60.0)
    assert not s.halts()


def test_paper_drops_triggers_while_a_review_is_open_and_counts_a_late_answer() -> None:
    s = Story(watching(PAPER)).monitoring()
    review = only(actions.RequestReview, s.verdict(1.0, YELLOW))
    s.watch(30.0, YELLOW)
    assert len([a for _, a in s.said if isinstance(a, actions.RequestReview)]) == 1
    out = s.at(30.0, events.SlowVerdict(review.review_id, danger=True))
    assert only(Halt, out).ref == frame(1.0)
    s.watch(31.0)
    assert not [
        a for a in s.at(31.0, events.ResetRequested("7-1", "kim")) if isinstance(a, actions.Release)
    ]


def test_paper_closes_a_failed_review_without_a_verdict() -> None:
    s = Story(watching(PAPER)).monitoring()
    review = only(actions.RequestReview, s.verdict(1.0, YELLOW))
    s.at(12.0, events.ReviewFailed(review.review_id, "format"))
    s.at(12.1, events.BrainDown("slow"))
    s.verdict(12.2, YELLOW)  # nobody to ask: dropped
    assert s.state() is State.MONITORING
    s.at(12.3, events.BrainUp("slow"))
    only(actions.RequestReview, s.verdict(12.4, YELLOW))


def test_without_a_slow_brain_yellow_only_slows() -> None:
    s = Story(watching(slow="")).monitoring()
    s.watch(5.0, YELLOW)
    assert not s.halts()
    assert s.state() is State.MONITORING
    assert s.permits()[-1][1].speed is Speed.REDUCED


def test_strangers_change_nothing() -> None:
    s = Story().monitoring()
    before = s.state(), s.guard.halt
    s.at(
        0.65,
        events.FastVerdict(frame(0.65, "other"), "fast", RED),
        events.FastVerdict(frame(0.65), "nobody", RED),
        events.FrameSeen(frame(0.65, "other")),
        events.SourceLost("other"),
        events.BrainDown("nobody-fast"),
        events.BrainUp("nobody-fast"),
    )
    assert (s.state(), s.guard.halt) == before
    assert s.guard.held("other") == frozenset()


def test_time_never_runs_backwards() -> None:
    s = Story().monitoring()
    s.guard.step(events.DeadlineReached(), 0.3)
    assert s.guard.deadline > 0.6


@pytest.mark.parametrize("missing", ["sources", "brains"])
def test_a_guard_with_nothing_required_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match="required"):
        Guard(replace(watching(), **{missing: ()}), 0.0)  # type: ignore[arg-type]


def test_the_presets_are_what_the_design_says() -> None:
    rows = {
        "start_greens": (1, 3),
        "release_greens": (1, 3),
        "failures_to_halt": (None, 3),
        "fast_deadline": (None, 0.4),
        "fault_halts": (False, True),
        "review_overdue": ("ignore", "halt"),
        "pending": ("dropped", "newest_waits"),
        "first_danger": ("ends_run", "latched"),
        "resample": ("released", "at_once"),
        "window": ("released", "memory"),
        "fault_clear": ("auto", "auto"),
    }
    for field, (paper, sidecar) in rows.items():
        assert (getattr(PAPER, field), getattr(SIDECAR, field)) == (paper, sidecar), field
    assert Light.GREEN < Light.YELLOW < Light.RED
