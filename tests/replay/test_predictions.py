"""Anybody's predictions: read strictly, scored by the same rules, and given back by a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from hdguard.replay.annotations import Annotation, load_truth
from hdguard.replay.predictions import (
    Predictions,
    export_predictions,
    load_predictions,
    score_predictions,
)
from hdguard.replay.problems import DatasetError
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.summary import summarise_run
from hdguard.replay.video_result import Outcome, Warned, video_result

TIMES = {"intent_onset": 3.3, "intervention_deadline": 4.2, "pnr": 4.4, "impact_outcome": 5.1}


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def load(tmp_path: Path, content: Any) -> Predictions:
    return load_predictions(write(tmp_path / "p.json", content))


def test_a_red_with_a_time_is_a_warning_and_nothing_else_is(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        {
            "a.mp4": {"status": "red", "timestamp": 3.5},
            "b": {"status": " RED ", "timestamp": 4, "reason": "fire"},
            "c": {"status": "green", "timestamp": 2.0},
            "d": {"status": "Yellow"},
            "e": {"status": "unknown", "timestamp": None},
        },
    )
    assert found.times == {"a.mp4": 3.5, "b": 4.0, "c": None, "d": None, "e": None}


@pytest.mark.parametrize(
    ("entry", "field", "message"),
    [
        ({"status": "red"}, "timestamp", "missing"),
        ({"status": "Red", "timestamp": None}, "timestamp", "missing"),
        ({"status": "red", "timestamp": "3.5"}, "timestamp", "'3.5' is not a number"),
        ({"status": "red", "timestamp": True}, "timestamp", "True is not a number"),
        ({"status": "red", "timestamp": float("nan")}, "timestamp", "nan is not a number"),
        ({"status": "red", "timestamp": -1}, "timestamp", "-1 s is negative"),
        ({"timestamp": 3.5}, "status", "missing"),
        ({"status": 2}, "status", "2 is not a word"),
        ("red", "entry", "not a mapping"),
    ],
)
def test_what_cannot_be_scored_is_refused_with_file_entry_and_field(
    tmp_path: Path, entry: Any, field: str, message: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        load(tmp_path, {"good.mp4": {"status": "green"}, "bad.mp4": entry})
    (problem,) = caught.value.problems
    assert (problem.file, problem.entry, problem.field) == (
        str(tmp_path / "p.json"), "bad.mp4", field,
    )  # fmt: skip
    assert message in problem.message
    assert str(problem) in str(caught.value)


def test_a_video_given_twice_is_refused(tmp_path: Path) -> None:
    green = {"status": "green"}
    with pytest.raises(DatasetError, match=r"a: video: given twice: also as a\.mp4"):
        load(tmp_path, {"a.mp4": green, "a": green})
    (tmp_path / "twice.json").write_text('{"a": {"status": "green"}, "a": {"status": "green"}}')
    with pytest.raises(DatasetError, match="'a' is given twice"):
        load_predictions(tmp_path / "twice.json")


def test_a_list_is_no_predictions_file(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"p\.json: not a mapping"):
        load(tmp_path, [])


def test_scores_by_hand_with_everything_named(tmp_path: Path) -> None:
    truth = load_truth(
        write(
            tmp_path / "t.json",
            [
                {"video_name": "1_C4_L1_D1.mp4", "keyframes": TIMES},
                {"video_name": "2_C4_L2_D1.mp4", "keyframes": TIMES},
                {"video_name": "3.mp4", "keyframes": TIMES},
                {"video_name": "bad.mp4", "keyframes": {**TIMES, "pnr": None}},
                {"video_name": "invalid.mp4", "keyframes": TIMES, "is_valid": False},
                {"video_name": "quiet.mp4", "keyframes": None},
                {"video_name": "calm.mp4", "keyframes": None},
            ],
        )
    )
    red = {"status": "red", "timestamp": 4.3}
    names = ["1_C4_L1_D1", "3.mp4", "bad", "invalid", "quiet.mp4", "stranger.mp4"]
    predictions = load(tmp_path, {**dict.fromkeys(names, red), "calm": {"status": "green"}})
    score = score_predictions(predictions, truth, times=(4.0,))
    assert (score.total.summary.n, score.total.summary.warned) == (3, 2)
    assert score.total.summary.wss == pytest.approx(100 / 3)
    assert [(v.video, v.at, v.phase, v.score) for v in score.videos] == [
        ("1_C4_L1_D1.mp4", 4.3, "suboptimal", 50.0),
        ("2_C4_L2_D1.mp4", None, "missed", 0.0),
        ("3.mp4", 4.3, "suboptimal", 50.0),
    ]
    assert score.unpredicted == ("2_C4_L2_D1.mp4",)
    assert (score.safe, score.false_stops) == (2, ("quiet.mp4",))
    assert [(p.entry, p.field) for p in score.problems] == [
        ("stranger.mp4", "video"), ("bad.mp4", "keyframes.pnr"),
    ]  # fmt: skip
    assert [(b.name, b.summary.wss) for b in score.total.baselines] == [
        ("always at 4 s", 100.0), ("best t: 3.3 s", 100.0), ("never", 0.0),
    ]  # fmt: skip
    assert [(x, s.summary.n) for x, s in score.breakdowns["severity"].items()] == [
        ("L1", 1), ("L2", 1), ("", 1),
    ]  # fmt: skip


def test_a_clock_on_the_real_truth_alone(homesafe: Path, tmp_path: Path) -> None:
    truth = load_truth(homesafe / "anno_truth.json")
    clock = {a.video: {"status": "red", "timestamp": 3.6} for a in truth.annotations}
    score = score_predictions(load(tmp_path, clock), truth)
    assert (score.total.summary.wss, score.problems, score.unpredicted) == (100.0, (), ())


def test_what_a_run_exports_scores_as_the_run_did_by_trigger(tmp_path: Path) -> None:
    truth = load_truth(
        write(tmp_path / "t.json", {f"{n}.mp4": {"keyframes": TIMES} for n in range(4)})
    )
    late = Warned(trigger=4.3, issued=4.9, stopped=6.0, cause="fast_red")
    good = Warned(trigger=3.3, issued=3.4, stopped=3.9, cause="fast_red")
    outcomes = [Outcome(warning=late), Outcome(warning=good), Outcome(), Outcome(failed="died")]
    videos = [video_result(a, o) for a, o in zip(truth.annotations, outcomes, strict=True)]
    exported = export_predictions(videos)
    assert exported == {
        "0.mp4": {"status": "red", "timestamp": 4.3},
        "1.mp4": {"status": "red", "timestamp": 3.3},
        "2.mp4": {"status": "green", "timestamp": None},
        "3.mp4": {"status": "unknown", "timestamp": None},
    }
    again = score_predictions(load(tmp_path, exported), truth)
    assert again.total.summary == summarise_run(videos).trigger
    assert again.total.summary.wss == 37.5


def test_a_false_stop_is_exported_too() -> None:
    warning = Warned(trigger=1.0, issued=1.1, stopped=1.2, cause="slow_danger")
    quiet = video_result(Annotation(video="q.mp4", keyframes=None), Outcome(warning=warning))
    assert export_predictions([quiet]) == {"q.mp4": {"status": "red", "timestamp": 1.0}}


def test_a_warning_after_impact_is_exported_as_a_warning() -> None:
    warning = Warned(trigger=7.0, issued=7.1, stopped=7.2, cause="slow_danger")
    k = KeyFrames(3.3, 4.2, 4.4, 5.1)
    video = video_result(Annotation(video="v.mp4", keyframes=k), Outcome(warning=warning))
    assert export_predictions([video])["v.mp4"]["status"] == "red"
