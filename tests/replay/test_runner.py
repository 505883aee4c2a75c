"""One video from its first frame to its warning or its end, checked by hand."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from hdguard.actuators.recording import RecordingActuator, RecordingSettings
from hdguard.brains.base import BrainError
from hdguard.core import events
from hdguard.core.policy import BrainPlan
from hdguard.core.types import Hazard
from hdguard.ingest.base import Frame, SourceReport
from hdguard.replay.results import FaultHalt, Outcome, Stages, Warned
from hdguard.runtime.journal import read_journal
from hdguard.workers.base import Notice
from tests.fakes import (
    GREEN,
    RED,
    YELLOW,
    HangingBrain,
    ListSource,
    Says,
    ScriptedFastSeat,
    ScriptedSlowSeat,
    SilentActuator,
    every,
)
from tests.replay.stage import CLIP, run


def warned(outcome: Outcome) -> Warned:
    assert outcome.warning is not None
    return outcome.warning


def test_a_red_gives_trigger_issued_and_stopped() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: Says(RED, 0.25)}, latency=0.05)
    outcome, _ = run(every(0.1, 5.0), fast)
    assert outcome.warning == Warned(
        trigger=2.0, issued=2.25, stopped=2.95, cause="fast_red", brain="fast"
    )
    assert outcome.watched == pytest.approx(2.25)
    assert outcome.fault_halts == ()
    assert outcome.failed is None


def test_danger_from_a_review_has_the_yellow_frame_as_its_trigger() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: YELLOW, 2.2: GREEN}, latency=0.1)
    slow = ScriptedSlowSeat({0.0: True}, latency=0.6)
    outcome, _ = run(every(0.1, 5.0), fast, slow=slow)
    assert outcome.warning == Warned(
        trigger=2.0,
        issued=2.7,
        stopped=3.4,
        cause="slow_danger",
        brain="slow",
        hazard=Hazard("C3", "L2", "a pan on fire"),
    )


def test_an_overdue_review_is_a_warning_under_halt() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: YELLOW, 2.2: GREEN}, latency=0.1)
    outcome, _ = run(every(0.1, 5.0), fast, slow=ScriptedSlowSeat(latency=1.2))
    warning = warned(outcome)
    assert (warning.trigger, warning.issued, warning.cause) == (2.0, 3.1, "review_overdue")


def test_media_time_counts_from_the_first_frame_whenever_the_loop_began() -> None:
    class Slow(ListSource):
        """Takes 7 s to open."""

        async def frames(self) -> AsyncGenerator[Frame, None]:
            await asyncio.sleep(7.0)
            async for frame in super().frames():
                yield frame

    fast = ScriptedFastSeat({0.0: GREEN, 2.0: RED}, latency=0.1)
    outcome, _ = run(Slow(every(0.1, 5.0), CLIP.video), fast)
    warning = warned(outcome)
    assert (warning.trigger, warning.issued, warning.stopped) == (2.0, 2.1, 2.8)
    assert outcome.watched == pytest.approx(2.1)


def test_a_quiet_video_has_no_warning_and_was_watched_to_its_last_frame() -> None:
    outcome, _ = run(every(0.1, 5.0), ScriptedFastSeat())
    assert outcome.warning is None
    assert outcome.stages is None
    assert outcome.watched == 5.0
    assert outcome.verdicts == {"green": 26}
    assert outcome.source.frames == 51


def test_the_first_danger_is_the_warning_and_the_run_ends_with_it() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: RED, 1.2: GREEN, 3.0: RED})
    source = ListSource(every(0.1, 60.0), CLIP.video)
    outcome, _ = run(source, fast)
    assert warned(outcome).trigger == 1.0
    assert source.handed[-1].ref.media_time < 2.0  # the robot's stop was still awaited
    assert source.closed


# Fault halts.


def test_a_fault_halt_is_listed_in_media_time_and_clears_by_its_rule() -> None:
    # Three failures of the frames at 2.0, 2.2 and 2.4; GREEN again from 2.6 on, for 3 s.
    unparsed = BrainError("unparsed")
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: unparsed, 2.6: GREEN}, latency=0.05)
    outcome, _ = run(every(0.1, 9.0), fast)
    assert outcome.warning is None
    (halt,) = outcome.fault_halts
    assert halt == FaultHalt(at=2.45, cause="brain_failed", released_at=5.65)
    assert outcome.watched == 9.0
    assert outcome.verdicts["failed"] == 3


def test_a_fault_halt_that_never_clears_has_no_release() -> None:
    outcome, _ = run(every(0.2, 3.0), HangingBrain(since=2.0))
    assert [(f.cause, f.released_at) for f in outcome.fault_halts] == [("stale_verdict", None)]


def test_a_red_during_a_fault_halt_is_the_warning() -> None:
    unparsed = BrainError("unparsed")
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: unparsed, 2.6: GREEN, 3.0: RED}, latency=0.05)
    outcome, _ = run(every(0.1, 9.0), fast)
    assert [f.cause for f in outcome.fault_halts] == ["brain_failed"]
    assert outcome.fault_halts[0].released_at is None
    warning = warned(outcome)
    assert (warning.trigger, warning.issued, warning.cause) == (3.0, 3.05, "fast_red")
    assert warning.stopped == 3.75


def test_a_red_on_the_first_frame_warns_at_zero() -> None:
    outcome, _ = run(every(0.1, 2.0), ScriptedFastSeat({0.0: RED}, latency=0.0))
    warning = warned(outcome)
    assert (warning.trigger, warning.issued, warning.stopped) == (0.0, 0.0, 0.7)
    assert outcome.watched == 0.0
    assert outcome.stages is not None
    assert outcome.stages.decided_to_delivered == 0.0
    assert outcome.stages.delivered_to_confirmed == pytest.approx(0.7)


# The end of the video.


def yellow_at_the_end() -> ScriptedFastSeat:
    """The last frame, of 2.0 s, opens a review at 2.1 s."""
    return ScriptedFastSeat({0.0: GREEN, 2.0: YELLOW}, latency=0.1)


def test_the_default_drain_hears_a_review_that_is_open_at_the_end() -> None:
    slow = ScriptedSlowSeat({0.0: True}, latency=0.8)
    outcome, _ = run(every(0.1, 2.0), yellow_at_the_end(), slow=slow)
    assert (warned(outcome).trigger, warned(outcome).issued) == (2.0, 2.9)
    assert outcome.watched == 2.0  # there was no more to watch


def test_a_drain_of_zero_drops_an_open_review() -> None:
    slow = ScriptedSlowSeat({0.0: True}, latency=0.0)
    outcome, _ = run(every(0.1, 2.0), yellow_at_the_end(), slow=slow, drain=0.0)
    assert outcome.warning is None
    assert outcome.verdicts["yellow"] == 1


def test_a_review_that_is_overdue_exactly_when_the_drain_ends_is_still_heard() -> None:
    slow = ScriptedSlowSeat(latency=9.0)
    outcome, _ = run(every(0.1, 2.0), yellow_at_the_end(), slow=slow)
    assert (warned(outcome).cause, warned(outcome).issued) == ("review_overdue", 3.1)


def test_a_review_that_takes_longer_than_the_drain_is_dropped() -> None:
    slow = ScriptedSlowSeat({0.0: True}, latency=0.8)
    patient: dict[str, Any] = {"review_overdue": "ignore"}
    outcome, _ = run(every(0.1, 2.0), yellow_at_the_end(), slow=slow, drain=0.5, **patient)
    assert outcome.warning is None
    outcome, _ = run(every(0.1, 2.0), yellow_at_the_end(), slow=slow, drain=0.9, **patient)
    assert warned(outcome).issued == 2.9


def test_the_frame_in_hand_at_the_end_is_still_judged() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: RED}, latency=0.3)
    outcome, _ = run(every(0.2, 2.0), fast)
    assert (warned(outcome).trigger, warned(outcome).issued) == (2.0, 2.4)


# The start.


def test_the_self_test_has_passed_before_the_first_frame(tmp_path: Path) -> None:
    run(every(0.1, 1.0), journals=tmp_path)
    steps = read_journal(tmp_path / "clip.mp4.jsonl").steps
    kinds = [type(s.event) for s in steps]
    assert kinds[0] is events.SelfTestPassed
    assert kinds.count(events.SelfTestPassed) == 1
    assert events.FrameSeen in kinds


class Unopenable(ListSource):
    """A file that is not there."""

    def __init__(self) -> None:
        super().__init__([], CLIP.video, fails="clip.mp4: no such file")

    @property
    def report(self) -> SourceReport:
        return SourceReport(problems=("looked everywhere",))


def test_a_source_that_cannot_be_opened_is_failed_with_its_reason() -> None:
    outcome, _ = run(Unopenable())
    assert outcome.failed == "clip.mp4: no such file"
    assert outcome.watched == 0.0
    assert outcome.source.problems == ("looked everywhere", "clip.mp4: no such file")


def test_a_source_that_breaks_on_the_way_keeps_what_was_seen() -> None:
    source = ListSource(every(0.1, 2.0), CLIP.video, fails="cut off")
    outcome, _ = run(source, ScriptedFastSeat({0.0: GREEN, 1.0: RED}))
    assert (outcome.failed, warned(outcome).trigger) == (None, 1.0)
    source = ListSource(every(0.1, 2.0), CLIP.video, fails="cut off")
    outcome, _ = run(source, ScriptedFastSeat())
    assert (outcome.failed, outcome.watched) == (None, 2.0)
    assert outcome.source.problems == ("cut off",)


def test_a_source_error_of_another_kind_is_not_swallowed() -> None:
    class Broken(ListSource):
        async def frames(self) -> AsyncGenerator[Frame, None]:
            for nothing in list[Frame]():
                yield nothing
            raise ZeroDivisionError("a defect")

    with pytest.raises(ExceptionGroup):
        run(Broken([], CLIP.video))


# The brains outlive the video.


def test_a_review_in_hand_when_the_robot_halts_is_answered_before_the_next_video() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: RED}, latency=0.05)
    slow = ScriptedSlowSeat(latency=2.5)
    source = ListSource(every(0.1, 60.0), CLIP.video)
    outcome, trace = run(source, fast, slow=slow)
    assert (warned(outcome).trigger, warned(outcome).cause) == (1.2, "fast_red")
    assert source.handed[-1].ref.media_time < 2.1  # nothing is decoded for nobody
    assert (slow.cut_off, slow.busy, fast.busy) == (0, 0, 0)
    assert slow.killed == []
    assert len(trace["slow"]["slow"]["videos"][CLIP.video]) == 1


def test_what_is_answered_after_the_end_counts_for_nothing() -> None:
    slow = ScriptedSlowSeat({0.0: True}, latency=0.8)
    patient: dict[str, Any] = {"review_overdue": "ignore"}
    outcome, _ = run(every(0.1, 2.0), yellow_at_the_end(), slow=slow, drain=0.5, **patient)
    assert (slow.cut_off, slow.busy) == (0, 0)
    assert outcome.warning is None
    quiet, _ = run(every(0.1, 2.0), yellow_at_the_end(), drain=0.5)
    assert outcome.verdicts == quiet.verdicts


def test_a_frame_in_hand_when_another_brain_halts_is_answered_and_no_more_are_given() -> None:
    keen = ScriptedFastSeat({0.0: GREEN, 1.0: RED}, name="keen", latency=0.05)
    slack = ScriptedFastSeat({0.0: GREEN, 1.4: Says(GREEN, 0.9), 1.6: GREEN}, name="slack")
    plans = [BrainPlan("keen", adaptive=False), BrainPlan("slack", adaptive=False)]
    outcome, _ = run(every(0.2, 60.0), keen, slack, brains=plans)
    assert warned(outcome).issued == 1.05
    assert (slack.cut_off, slack.busy, keen.busy) == (0, 0, 0)
    assert max(keen.seen) < 2.0
    assert slack.seen[-1] == 1.4  # the frame of 1.6 waits behind it
    assert outcome.verdicts.get("failed", 0) == 0  # it was late, but after the end


def test_a_brain_killed_near_the_end_is_loaded_again_before_the_next_video() -> None:
    hung = HangingBrain(since=2.0)
    hung.loads_for = 20.0
    up: list[float] = []
    tell = hung.tell

    def told(event: Notice) -> None:
        up.extend([asyncio.get_running_loop().time()] if isinstance(event, events.BrainUp) else [])
        tell(event)

    hung.tell = told  # type: ignore[method-assign]
    run(every(0.2, 2.0), hung)
    assert up == [pytest.approx(23.5)]  # given at 2.0, killed at 3.5


def test_a_brain_that_never_comes_back_is_not_awaited() -> None:
    hung = HangingBrain(since=2.0)
    hung.loads_for = None
    outcome, _ = run(every(0.2, 2.0), hung)
    assert [t for t, _ in hung.killed] == [pytest.approx(3.5)]
    assert outcome.watched == 2.0


def test_a_brain_that_hangs_without_a_deadline_does_not_hold_the_next_video_up_for_ever() -> None:
    keen = ScriptedFastSeat({0.0: GREEN, 1.0: RED}, name="keen", latency=0.05)
    hung = HangingBrain(since=0.8, name="hung")
    plans = [BrainPlan("keen", adaptive=False), BrainPlan("hung", adaptive=False)]
    outcome, _ = run(every(0.2, 60.0), keen, hung, brains=plans, fast_deadline=None)
    assert warned(outcome).trigger == 1.0


# Stages and stamps.


def test_the_stages_add_up_to_the_warning_latency() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 1.4: Says(GREEN, 0.35), 1.6: Says(RED, 0.2), 1.8: GREEN})
    outcome, _ = run(every(0.2, 4.0), fast)
    # Sampled at 1.6 while the brain has 1.4 in hand until 1.75; judged at 1.95.
    stages = outcome.stages
    assert stages is not None
    seen = [getattr(stages, name) for name in Stages.__struct_fields__]
    assert seen == pytest.approx([0.0, 0.35, 0.0, 0.0, 0.7, 0.35], abs=1e-6)
    assert outcome.warning is not None
    assert outcome.warning.issued - outcome.warning.trigger == pytest.approx(stages.warning)


def test_the_stages_of_a_review_are_those_of_its_trigger() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: YELLOW, 2.2: GREEN}, latency=0.1)
    outcome, _ = run(every(0.2, 5.0), fast, slow=ScriptedSlowSeat({0.0: True}, latency=0.6))
    stages = outcome.stages
    assert stages is not None
    assert stages.sampled_to_assessed == pytest.approx(0.1)
    assert stages.assessed_to_decided == pytest.approx(0.6)
    assert stages.warning == pytest.approx(0.7)


def test_of_two_brains_the_stages_are_those_of_the_one_that_warned() -> None:
    quick = ScriptedFastSeat(name="quick", latency=0.01)
    keen = ScriptedFastSeat({0.0: GREEN, 2.0: RED}, name="keen", latency=0.3)
    plans = [BrainPlan("quick", adaptive=False), BrainPlan("keen", adaptive=False)]
    outcome, _ = run(every(0.2, 4.0), quick, keen, brains=plans)
    assert warned(outcome).brain == "keen"
    assert outcome.stages is not None
    assert outcome.stages.assessed_to_decided == pytest.approx(0.0)


def test_drops_are_counted_with_what_was_too_old() -> None:
    outcome, _ = run(every(0.2, 2.0), ScriptedFastSeat(latency=0.39))
    judged = sum(outcome.verdicts.values())
    assert outcome.dropped == 11 - judged > 3


def test_a_frame_that_was_too_old_to_be_given_counts_as_dropped() -> None:
    # Behind a call of 1.3 s waits the frame of 1.2, too old when it is over.
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: Says(GREEN, 1.3), 1.2: GREEN})
    outcome, _ = run([*every(0.2, 1.2), 2.6], fast)
    assert outcome.dropped == 1


# The robot.


def test_the_robots_own_stop_time_is_used_where_it_confirms() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: RED}, latency=0.1)
    slow_robot = RecordingSettings(stop_time=1.5)
    outcome, _ = run(
        every(0.1, 9.0), fast, way=lambda: RecordingActuator(slow_robot), stop_time=0.2
    )
    assert warned(outcome).stopped == pytest.approx(3.6)


def test_a_robot_that_never_confirms_is_awaited_beyond_its_stop_time_and_assumed() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: RED}, latency=0.1)
    source = ListSource(every(0.1, 60.0), CLIP.video)
    outcome, _ = run(source, fast, way=SilentActuator, stop_time=0.2)
    assert warned(outcome).stopped == 2.3
    assert outcome.stages is not None
    assert outcome.stages.delivered_to_confirmed is None
    # Decided at 2.1 s; 0.2 s to stop, and 3 s more for its word.
    assert source.handed[-1].ref.media_time == pytest.approx(5.3, abs=0.11)


def test_a_source_error_after_the_halt_changes_nothing() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 2.0: RED}, latency=0.1)
    source = ListSource(every(0.1, 2.3), CLIP.video, fails="cut off")
    outcome, _ = run(source, fast)
    assert (warned(outcome).issued, warned(outcome).stopped) == (2.1, 2.8)


def test_a_brain_that_never_answers_is_a_failed_run_and_no_clean_one() -> None:
    """A broken brain must not score as "no warning", nor its safe clip as watched."""
    broken = ScriptedFastSeat({0.0: BrainError("no weights")})
    outcome, _ = run(every(0.2, 3.0), broken)
    assert outcome.failed == "no brain gave a verdict: fast: no weights"
    assert outcome.warning is None


def test_one_verdict_among_failures_is_a_run() -> None:
    mostly = ScriptedFastSeat({0.0: GREEN, 0.3: BrainError("busy")})
    outcome, _ = run(every(0.2, 3.0), mostly)
    assert outcome.failed is None
