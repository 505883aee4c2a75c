"""One video's result: scored by the three times, and never from half a run."""

import msgspec
import pytest

from hdguard.core.types import Hazard
from hdguard.replay.annotations import Annotation
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.video_result import (
    ByTime,
    FaultHalt,
    Outcome,
    Stages,
    VideoResult,
    Warned,
    video_result,
    warning_time,
)

SPILL = Annotation(
    video="230_C4_L1_D1.mp4",
    keyframes=KeyFrames(3.3, 4.2, 4.4, 5.1),
    category="C4",
    extra={"annotator": "x"},
)
SAFE = Annotation(video="quiet.mp4", keyframes=None)
WARNED = Warned(trigger=4.19, issued=4.3, stopped=4.8, cause="fast_red", brain="reflex")


def test_a_warning_is_scored_by_each_of_its_times() -> None:
    result = video_result(SPILL, Outcome(warning=WARNED, watched=4.3))
    assert result.phase == ByTime("optimal", "suboptimal", "irreversible")
    assert result.score == ByTime(100.0, 50.0, 25.0)
    assert not result.safe
    assert result.annotated.keyframes == SPILL.keyframes
    assert (result.annotated.category, result.annotated.extra) == ("C4", {"annotator": "x"})


def test_no_warning_is_missed_by_each_time() -> None:
    result = video_result(SPILL, Outcome(watched=8.0))
    assert result.phase == ByTime("missed", "missed", "missed")
    assert result.score == ByTime(0.0, 0.0, 0.0)


def test_what_is_scored_is_what_is_written() -> None:
    # issued would be past the deadline by a hair, and is written as 4.200
    late = Warned(trigger=4.0, issued=4.20049, stopped=5, cause="slow_danger")
    assert (late.issued, late.stopped) == (4.2, 5.0)
    result = video_result(SPILL, Outcome(warning=late))
    assert result.phase is not None
    assert result.phase.issued == "optimal"
    assert FaultHalt(at=1.23456, cause="blind", released_at=2.00049) == FaultHalt(
        at=1.235, cause="blind", released_at=2.0
    )


def test_safe_material_has_no_phase_whatever_happened() -> None:
    result = video_result(SAFE, Outcome(warning=WARNED))
    assert (result.safe, result.phase, result.score) == (True, None, None)
    assert result.warning == WARNED


def test_a_video_that_failed_is_missed_even_if_it_had_warned() -> None:
    stages = Stages.between(captured=1.0, decided=1.1)
    result = video_result(SPILL, Outcome(warning=WARNED, stages=stages, failed="worker killed"))
    assert (result.warning, result.stages) == (None, None)
    assert result.phase == ByTime("missed", "missed", "missed")
    assert result.failed == "worker killed"


def test_stages_are_differences_of_stamps() -> None:
    stages = Stages.between(
        captured=10.0, sampled=10.5, assessed=11.5, decided=13.5, delivered=13.75, confirmed=14.25
    )
    assert msgspec.structs.asdict(stages) == {
        "captured_to_sampled": 0.5,
        "sampled_to_assessed": 1.0,
        "assessed_to_decided": 2.0,
        "decided_to_delivered": 0.25,
        "delivered_to_confirmed": 0.5,
        "warning": 3.5,
    }


def test_a_stage_without_both_stamps_is_none() -> None:
    stages = Stages.between(captured=10.0, assessed=11.0, decided=11.5)
    assert stages.captured_to_sampled is None
    assert stages.sampled_to_assessed is None
    assert stages.assessed_to_decided == 0.5
    assert stages.delivered_to_confirmed is None


def test_the_times_by_name() -> None:
    assert [warning_time(WARNED, when) for when, _ in ByTime(1, 2, 3).items()] == [4.19, 4.3, 4.8]
    assert warning_time(None, "trigger") is None


def test_a_result_survives_a_round_trip_and_a_wrong_one_does_not() -> None:
    hazard = Hazard("C4", "L1", "a cup tips")
    warning = Warned(trigger=1, issued=2, stopped=3, cause="fast_red", hazard=hazard)
    result = video_result(SPILL, Outcome(warning=warning, verdicts={"red": 1}))
    data = msgspec.json.encode(result)
    assert msgspec.json.decode(data, type=VideoResult) == result
    with pytest.raises(msgspec.ValidationError, match="'early'"):
        msgspec.json.decode(data.replace(b"premature", b"early"), type=VideoResult)
