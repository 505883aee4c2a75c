"""The one path of a frame, told in literal times."""

import asyncio
from dataclasses import replace

import pytest

from hdguard.brains.base import BrainError
from hdguard.core import actions, events
from hdguard.core.actions import Action
from hdguard.core.policy import BrainPlan
from hdguard.core.types import FrameRef, Hazard, Light, Scores
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Pipeline
from tests.fakes import (
    GREEN,
    RED,
    YELLOW,
    HangingBrain,
    ListSource,
    Says,
    ScriptedFastSeat,
    ScriptedSlowSeat,
    every,
)
from tests.runtime.rig import REFLEX, play

VLM = BrainPlan("vlm")
UNPARSED = BrainError("unparsed")
SOURCE = {"SourceUp", "FrameSeen"}


def ref(t: float) -> FrameRef:
    return FrameRef("cam", round(t * 10), t, t)


def test_each_brain_has_its_own_grid_and_the_light_of_the_source_moves_it() -> None:
    reflex = ScriptedFastSeat()
    vlm = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 2.0: GREEN}, name="vlm")
    play(
        4.0,
        ListSource(every(0.1, 4.0), stays=True),
        fast=(reflex, vlm),
        brains=(REFLEX, VLM),
        slow=ScriptedSlowSeat(),
    )
    assert reflex.seen == every(0.2, 3.8)
    # 1 FPS; at the YELLOW of 1.0 the next frame and 5 FPS from there; the first GREEN is that of
    # 2.1, where the grid of 1 FPS restarts.
    assert vlm.seen == [0.0, 1.0, 1.1, 1.3, 1.5, 1.7, 1.9, 2.1, 3.1]


def test_a_slow_brain_gets_the_newest_frame_and_the_others_are_dropped() -> None:
    slow = ScriptedFastSeat(latency=0.35)
    played = play(1.1, ListSource(every(0.1, 1.0), stays=True), fast=[slow])
    assert slow.given == [(0.0, 0.0), (0.35, 0.2), (0.7, 0.6), (1.05, 1.0)]
    assert played.pipeline.mailboxes["fast"].dropped == 2


def test_a_late_call_fails_at_its_deadline_and_nothing_else_is_given_meanwhile() -> None:
    slow = ScriptedFastSeat({0.0: GREEN, 1.0: Says(GREEN, 0.55), 1.2: GREEN})
    played = play(1.9, ListSource(every(0.1, 2.0), stays=True), fast=[slow])
    (failed,) = played.events(events.BrainFailed)
    assert failed == (1.4, events.BrainFailed("cam", "fast", "late", ref(1.0)))
    assert slow.given[5:8] == [(1.0, 1.0), (1.55, 1.4), (1.6, 1.6)]
    assert slow.most_busy == 1
    assert slow.killed == []
    judged = [v.ref.media_time for _, v in played.events(events.FastVerdict)]
    assert 1.0 not in judged  # rule 2: what came late is not GREEN


def test_an_answer_just_inside_the_deadline_counts() -> None:
    slow = ScriptedFastSeat({0.0: Says(GREEN, 0.399)})
    played = play(0.5, ListSource([0.0], stays=True), fast=[slow])
    assert played.events(events.BrainFailed) == []
    assert [t for t, _ in played.events(events.FastVerdict)] == [0.399]


def test_a_late_red_still_halts() -> None:
    slow = ScriptedFastSeat({0.0: GREEN, 1.0: Says(RED, 0.7), 1.2: GREEN})
    played = play(2.0, ListSource(every(0.1, 2.0), stays=True), fast=[slow])
    late = (1.7, events.FastVerdict(ref(1.0), "fast", RED, late=True))
    assert late in played.events(events.FastVerdict)
    assert played.halts() == [(1.7, "fast_red")]


@pytest.mark.parametrize("light", [GREEN, YELLOW])
def test_a_late_answer_that_is_not_red_is_dropped(light: Light) -> None:
    slow = ScriptedFastSeat({0.0: GREEN, 1.0: Says(light, 0.9), 1.2: GREEN})
    played = play(1.95, ListSource(every(0.1, 2.0), stays=True), fast=[slow])
    assert [v for _, v in played.events(events.FastVerdict) if v.late] == []
    assert 1.0 not in [v.ref.media_time for _, v in played.events(events.FastVerdict)]


def test_a_call_without_an_answer_is_killed_after_one_and_a_half_seconds() -> None:
    brain = HangingBrain(since=1.0)
    played = play(2.8, ListSource(every(0.2, 3.0), stays=True), fast=[brain])
    assert [t for t, _ in played.events(events.BrainFailed)] == [1.4]
    assert [(round(t, 6), why) for t, why in brain.killed] == [(2.5, "no answer in 1.5 s")]
    assert [t for t, _ in played.events(events.BrainDown)] == [2.5]
    assert [t for t, _ in played.events(events.BrainUp)] == [2.5]
    assert brain.given[-2:] == [(1.0, 1.0), (2.5, 2.4)]
    assert brain.most_busy == 1
    assert played.halts() == [(1.8, "stale_verdict")]  # captured 0.8, limit 1.0 s


def test_three_honest_failures_in_a_row_halt_and_the_brain_is_asked_on() -> None:
    sick = ScriptedFastSeat({0.0: GREEN, 1.0: UNPARSED, 1.6: GREEN})
    played = play(2.0, ListSource(every(0.2, 2.0), stays=True), fast=[sick])
    failures = [(t, e.reason) for t, e in played.events(events.BrainFailed)]
    assert failures == [(1.01, "unparsed"), (1.21, "unparsed"), (1.41, "unparsed")]
    assert played.halts() == [(1.41, "brain_failed")]
    assert sick.seen == every(0.2, 1.8)


def test_a_frame_past_the_age_limit_is_never_given() -> None:
    # The call on 1.0 takes 1.3 s; behind it waits the frame of 1.2, 1.1 s old when it is over.
    brain = ScriptedFastSeat({0.0: GREEN, 1.0: Says(GREEN, 1.3), 1.2: GREEN})
    source = ListSource([*every(0.2, 1.2), 2.6], stays=True)
    played = play(3.0, source, fast=[brain])
    assert brain.given[-2:] == [(1.0, 1.0), (2.6, 2.6)]
    assert played.pipeline.stale == 1


def test_a_burst_of_old_frames_is_dropped_but_for_the_newest() -> None:
    # The camera freezes after 1.0 and sends 1.4 s of frames at 2.5; those up to 1.4 are too old.
    source = ListSource(every(0.1, 3.0), late={1.1: 1.4}, stays=True)
    brain = ScriptedFastSeat(latency=0.15)
    played = play(2.9, source, fast=[brain])
    assert played.halts() == [(2.0, "stale_frame")]
    after = [(at, t) for at, t in brain.given if t > 1.0]
    assert after == [(2.5, 1.6), (2.65, 2.6), (2.8, 2.8)]
    assert played.pipeline.stale > 0


def test_a_red_halts_at_once_while_a_review_runs() -> None:
    brain = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: RED})
    slow = ScriptedSlowSeat(latency=0.9)
    played = play(2.5, ListSource(every(0.1, 2.5), stays=True), fast=[brain], slow=slow)
    assert [a.at for a in slow.asked] == [1.01]
    assert played.halts() == [(1.21, "fast_red")]
    assert [t for t, _ in played.actions(actions.CancelReview)] == [1.21]
    assert played.sent(actions.Halt)[0] == 1.21
    assert slow.killed == []


def test_danger_from_a_review_halts_when_it_is_said() -> None:
    brain = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: GREEN})
    slow = ScriptedSlowSeat({0.0: True}, latency=0.5)
    played = play(2.0, ListSource(every(0.1, 2.0), stays=True), fast=[brain], slow=slow)
    ((_, first), *_) = played.actions(actions.Halt)
    assert (round(first.decided_at, 6), first.ref, first.brain) == (1.51, ref(1.0), "slow")
    assert first.hazard.text == "a pan on fire"
    assert brain.seen == every(0.2, 1.8)  # the review did not hold the FastBrain up


def test_the_source_is_up_before_its_first_frame_and_says_its_interval() -> None:
    played = play(0.5, ListSource([0.0, 0.4], interval=0.4, stays=True))
    kinds = [type(e).__name__ for _, e, _ in played.witness.steps if type(e).__name__ in SOURCE]
    assert kinds == ["SourceUp", "FrameSeen", "FrameSeen"]
    assert played.events(events.SourceUp) == [(0.0, events.SourceUp("cam", 0.4))]


def test_a_source_that_breaks_is_lost_then_ended_and_its_error_is_kept() -> None:
    played = play(1.0, ListSource([0.0, 0.2], fails="clip.mp4: cut off"))
    steps = [(t, e) for t, e, _ in played.witness.steps]
    lost = (0.2, events.SourceLost("cam", "clip.mp4: cut off"))
    ended = (0.2, events.SourceEnded("cam"))
    assert steps.index(ended) > steps.index(lost)
    assert str(played.pipeline.source_errors["cam"]) == "clip.mp4: cut off"


def test_a_source_that_breaks_does_not_take_the_other_with_it() -> None:
    brain = ScriptedFastSeat()
    hall, stove = ListSource([0.0], "hall", fails="gone"), ListSource(every(0.2, 2.0), "stove")
    played = play(1.5, hall, stove, fast=[brain])
    assert [t for t, e in played.events(events.FrameSeen) if e.ref.source_id == "stove"] == [
        pytest.approx(t) for t in every(0.2, 1.4)
    ]


def test_a_picture_that_cannot_be_converted_is_a_failure_of_that_frame_alone() -> None:
    played = play(0.7, ListSource(every(0.2, 0.6), broken=[0.2], stays=True))
    failed = played.events(events.BrainFailed)
    assert failed == [
        (0.2, events.BrainFailed("cam", "fast", "the picture is broken", replace(ref(0.2), seq=1)))
    ]
    judged = [v.ref.media_time for _, v in played.events(events.FastVerdict)]
    assert judged == [0.0, 0.4, 0.6]


def test_a_picture_without_a_thumbnail_is_no_new_scene_and_the_run_goes_on() -> None:
    source = ListSource(every(0.2, 0.6), broken=[0.2], stays=True)
    played = play(0.7, source, slow=ScriptedSlowSeat())
    seen = [e for _, e in played.events(events.FrameSeen)]
    assert [e.kept for e in seen] == [True] * 4
    assert [e.scene_change for e in seen] == [False] * 4


def test_the_scores_of_an_answer_that_meant_no_light_come_with_the_failure() -> None:
    scores = Scores(-4.0, -5.0, -6.0)
    fast = ScriptedFastSeat({0.0: BrainError("no label", scores=scores)})
    played = play(0.1, ListSource([0.0], stays=True), fast=[fast])
    failed = events.BrainFailed("cam", "fast", "no label", ref(0.0), scores)
    assert played.events(events.BrainFailed) == [(0.01, failed)]


def test_what_a_brain_adds_after_its_verdict_goes_the_way_of_every_event() -> None:
    fast = ScriptedFastSeat()
    remark = events.Remarked(ref(0.0), "fast", Hazard(text="a knife at the edge"))

    stranger = replace(remark, ref=replace(ref(0.0), source_id="the video before"))

    def script(_: Pipeline) -> None:
        for each in (stranger, remark):
            asyncio.get_running_loop().call_at(0.1, fast.tell, each)

    played = play(0.3, ListSource([0.0, 0.2], stays=True), fast=[fast], script=script)
    assert played.events(events.Remarked) == [(0.1, remark)]
    assert played.halts() == []


def test_the_stamps_of_an_answer_come_just_before_its_event() -> None:
    order: list[str] = []

    class Watcher:
        def judged(self, stamps: Judged | Reviewed) -> None:
            order.append(f"stamps {stamps.brain}")

        def stepped(self, now: float, event: events.Event, actions: tuple[Action, ...]) -> None:
            if isinstance(event, events.FastVerdict | events.SlowVerdict):
                order.append(type(event).__name__)

    fast = ScriptedFastSeat({0.0: YELLOW})
    source = ListSource([0.0], stays=True)
    play(1.0, source, fast=[fast], slow=ScriptedSlowSeat(), observers=[Watcher()])
    assert order == ["stamps fast", "FastVerdict", "stamps slow", "SlowVerdict"]


def test_the_stamps_of_every_judgement() -> None:
    brain = ScriptedFastSeat(latency=0.3)
    played = play(0.75, ListSource(every(0.1, 0.7), stays=True), fast=[brain])
    stamps = [
        tuple(round(x, 6) for x in (s.ref.captured_at, s.sampled, s.given, s.assessed))
        for s in played.judged()
    ]
    assert stamps == [(0.0, 0.0, 0.0, 0.3), (0.2, 0.2, 0.3, 0.6)]
