"""A run's figures, by hand."""

import pytest

from hdguard.replay.annotations import Annotation
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.summary import common_latency, latency, percentile, spread, summarise_run
from hdguard.replay.video_result import (
    FaultHalt,
    Outcome,
    Stages,
    VideoResult,
    Warned,
    video_result,
)

SPILL = KeyFrames(3.3, 4.2, 4.4, 5.1)


def warned(trigger: float, delay: float = 0.1, stop: float = 0.5) -> Outcome:
    return Outcome(
        warning=Warned(
            trigger=trigger,
            issued=trigger + delay,
            stopped=trigger + delay + stop,
            cause="fast_red",
        ),
        watched=trigger + delay,
        stages=Stages.between(captured=0.0, assessed=delay / 2, decided=delay),
    )


def hazard(video: str, outcome: Outcome, category: str = "", room: str = "") -> VideoResult:
    annotation = Annotation(video=video, keyframes=SPILL, category=category, room=room)
    return video_result(annotation, outcome)


def quiet(video: str, outcome: Outcome) -> VideoResult:
    return video_result(Annotation(video=video, keyframes=None), outcome)


def test_the_three_times_are_summed_up_apart() -> None:
    summary = summarise_run([hazard("a", warned(4.15)), hazard("b", Outcome(watched=8.0))])
    # 4.15 optimal, 4.25 suboptimal, 4.75 irreversible
    assert (summary.trigger.wss, summary.issued.wss, summary.stopped.wss) == (50.0, 25.0, 12.5)
    assert summary.trigger.n == summary.stopped.n == 2
    assert summary.trigger.lead is not None
    assert summary.trigger.lead.mean == pytest.approx(0.05)
    assert [b.summary.n for b in summary.baselines] == [2] * len(summary.baselines)


def test_safe_material_is_never_in_n_but_in_the_false_stops() -> None:
    summary = summarise_run(
        [
            hazard("premature", warned(1.0)),
            quiet("stopped", warned(899.9)),
            quiet("watched", Outcome(watched=900.0)),
            quiet("failed", Outcome(watched=5.0, failed="truncated")),
        ]
    )
    assert summary.trigger.n == 1
    rate = summary.false_stops_per_hour
    assert rate.hours == pytest.approx(0.5)
    assert rate.count == 1
    assert (rate.low, rate.rate, rate.high) == pytest.approx((0.0506, 2.0, 11.143), abs=1e-3)
    assert summary.failed == {"failed": "truncated"}


def test_fault_halts_count_over_all_videos() -> None:
    halts = (FaultHalt(at=1.0, cause="blind"), FaultHalt(at=2.0, cause="stale_frame"))
    summary = summarise_run(
        [
            hazard("a", Outcome(watched=1800.0, fault_halts=halts)),
            quiet("b", Outcome(watched=1800.0)),
        ]
    )
    assert summary.fault_halts_per_hour.count == 2
    assert summary.fault_halts_per_hour.rate == 2.0


def test_nothing_watched_has_no_rate() -> None:
    assert summarise_run([hazard("a", warned(1.0))]).false_stops_per_hour.rate is None


def test_a_failed_video_stays_in_n_as_missed_and_is_named() -> None:
    summary = summarise_run(
        [hazard("a", warned(4.0)), hazard("b", Outcome(failed="no such codec"))]
    )
    assert (summary.trigger.n, summary.trigger.hdr, summary.trigger.wss) == (2, 50.0, 50.0)
    assert summary.failed == {"b": "no such codec"}


def test_breakdowns_by_every_label_have_their_own_clock() -> None:
    summary = summarise_run(
        [
            hazard("a", warned(4.0), category="C4", room="study"),
            hazard("b", Outcome(), category="C1"),
            hazard("c", warned(4.0), category="C4"),
            quiet("d", Outcome(watched=1.0)),
        ]
    )
    by = summary.breakdowns
    assert list(by) == ["category", "severity", "difficulty", "room"]
    assert [(x, f.trigger.n, f.trigger.wss) for x, f in by["category"].items()] == [
        ("C1", 1, 0.0), ("C4", 2, 100.0),
    ]  # fmt: skip
    assert [(x, f.issued.n) for x, f in by["room"].items()] == [("study", 1), ("", 2)]
    assert max(b.summary.wss for b in by["category"]["C1"].baselines) == 100.0


def test_a_run_of_nothing_is_summed_up() -> None:
    summary = summarise_run([])
    assert (summary.trigger.n, summary.latency.n) == (0, 0)
    assert summary.breakdowns == {"category": {}, "severity": {}, "difficulty": {}, "room": {}}


def test_a_video_that_comes_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="counted twice: a"):
        summarise_run([hazard("a", Outcome()), hazard("a", warned(4.0)), hazard("b", Outcome())])


def test_latency_is_over_the_warnings_and_by_stage() -> None:
    found = latency(
        [hazard("a", warned(4, 0.2)), quiet("b", warned(4, 0.4)), quiet("c", Outcome())]
    )
    assert found.n == 2
    assert found.mean == pytest.approx(0.3)
    assert found.stages["assessed_to_decided"].n == 2
    assert found.stages["assessed_to_decided"].mean == pytest.approx(0.15)
    assert found.stages["delivered_to_confirmed"].n == 0
    assert found.stages["delivered_to_confirmed"].p99 is None
    assert "warning" not in found.stages


def test_runs_are_compared_on_the_videos_on_which_all_warned() -> None:
    quick = [hazard("easy", warned(4, 0.1)), hazard("hard", Outcome())]
    thorough = [hazard("easy", warned(4, 0.3)), hazard("hard", warned(4, 2.0))]
    found = common_latency({"quick": quick, "thorough": thorough})
    assert (found["quick"].n, found["thorough"].n) == (1, 1)
    assert found["thorough"].mean == pytest.approx(0.3)
    assert common_latency({}) == {}


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1.0), (50, 2.5), (75, 3.25), (95, 3.85), (100, 4.0)]
)
def test_percentiles_interpolate_between_ranks(percent: float, value: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], percent) == pytest.approx(value)


def test_one_value_is_every_percentile() -> None:
    one = spread([0.5])
    assert (one.n, one.mean, one.p50, one.p95, one.p99) == (1, 0.5, 0.5, 0.5, 0.5)
