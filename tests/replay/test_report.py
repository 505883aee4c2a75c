"""What a person reads: whole numbers at any width, n and the clock always beside the score."""

import io
import json
import re
from pathlib import Path

import pytest

from hdguard.replay.annotations import Annotation, load_truth
from hdguard.replay.predictions import load_predictions, score_predictions
from hdguard.replay.report import make_console, print_predictions, print_run
from hdguard.replay.results import (
    FaultHalt,
    Outcome,
    Results,
    Source,
    Stages,
    VideoResult,
    Warned,
    video_result,
    write_results,
)
from hdguard.replay.scoring import KeyFrames

SPILL = KeyFrames(3.3, 4.2, 4.4, 5.1)
LONG = "a_video_that_somebody_recorded_in_the_living_room_with_a_long_name_on_2026-01-01.mp4"


def hazard(video: str, outcome: Outcome, category: str = "C4") -> VideoResult:
    return video_result(Annotation(video=video, keyframes=SPILL, category=category), outcome)


def warned(trigger: float) -> Outcome:
    return Outcome(
        warning=Warned(
            trigger=trigger, issued=trigger + 0.3, stopped=trigger + 0.8, cause="review_overdue",
            brain="slow",
        ),
        watched=trigger + 0.3,
        stages=Stages.between(captured=0.0, sampled=0.0625, decided=0.3125),
    )  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Results:
    halts = (FaultHalt(at=12.345, cause="stale_verdict", released_at=15.0),)
    quiet = Annotation(video="quiet.mp4", keyframes=None)
    videos = [
        hazard(LONG, warned(4.0)),
        hazard("silent.mp4", Outcome(watched=1800.0, fault_halts=halts)),
        hazard("dead.mp4", Outcome(failed="worker killed"), category=""),
        video_result(quiet, Outcome(watched=3600.0)),
        video_result(Annotation(video="stopped.mp4", keyframes=None), warned(99.0)),
    ]
    return write_results(tmp_path, {"pace": "virtual"}, videos, left_out=["gone.mp4: video absent"])


def printed(results: Results) -> str:
    out = io.StringIO()
    print_run(make_console(out), results)
    return out.getvalue()


def row(text: str, start: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.strip().startswith(start))


def test_the_totals_stand_beside_n_and_the_clock(results: Results) -> None:
    text = printed(results)
    assert row(text, "trigger ") == [
        "trigger", "3", "33.33", "100.00", "33.33",
        "0.00", "33.33", "0.00", "0.00", "66.67", "+0.200", "+0.200",
    ]  # fmt: skip
    assert row(text, "stopped ")[:5] == ["stopped", "3", "33.33", "100.00", "8.33"]
    assert row(text, "always at 4 s") == [
        "always", "at", "4", "s", "3", "100.00", "100.00", "100.00",
        "0.00", "100.00", "0.00", "0.00", "0.00", "+0.200", "+0.200",
    ]  # fmt: skip
    assert row(text, "best t: 3.3 s")[4] == "3"
    assert row(text, "never")[-2:] == ["-", "-"]


def test_each_video_shows_three_times_with_phase_and_score(results: Results) -> None:
    text = printed(results)
    for part in (
        "4.000 +4.300 +4.800", "optimal 100 +suboptimal 50 +irreversible 25", "review_overdue",
        "no warning", "missed 0", "FALSE STOP", "safe material", "12.345", "stale_verdict",
    ):  # fmt: skip
        assert re.search(part, text), part


def test_breakdowns_leave_out_a_label_nobody_gave(results: Results) -> None:
    text = printed(results)
    assert "by category" in text
    assert "by room" not in text
    assert row(text, "C4 ")[1:5] == ["trigger", "2", "50.00", "100.00"]
    assert row(text, "none given")[2:4] == ["trigger", "1"]


def test_latency_rates_and_what_did_not_run(results: Results) -> None:
    text = printed(results)
    assert row(text, "captured to decided") == [
        "captured", "to", "decided", "2", "0.312", "0.312", "0.312", "0.312",
    ]  # fmt: skip
    assert "virtual pace; only the realtime pace's may be quoted" in text
    assert "false stops, on safe material: 1 in 1.0276 h, 0.97 per hour (95 % interval 0.02" in text
    assert "fault halts, on all videos: 1 in" in text
    assert "failed to run; counted as missed where annotated: 1\n  dead.mp4: worker killed" in text
    assert "left out, not in n: 1\n  gone.mp4: video absent" in text


def test_a_pipe_gets_100_columns_no_colour_and_no_shortened_number(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns in ("40", "80", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        text = printed(results)
        assert "\x1b" not in text
        assert "…" not in text
        assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
        first_column = "".join(line[1:19].strip() for line in text.splitlines())
        assert LONG in first_column


def test_a_name_that_looks_like_markup_is_printed_as_it_is(tmp_path: Path) -> None:
    results = write_results(tmp_path, {}, [hazard("[bold]x[/].mp4", Outcome())])
    assert "[bold]x[/].mp4" in printed(results)


def test_without_safe_material_there_is_no_rate(tmp_path: Path) -> None:
    results = write_results(tmp_path, {"pace": "realtime"}, [hazard("a.mp4", Outcome(watched=1.0))])
    text = printed(results)
    assert "false stops, on safe material: nothing watched, so no rate" in text
    assert "warning latency: seconds, realtime pace\n" in text


def test_predictions_are_printed_beside_the_clock(tmp_path: Path) -> None:
    times = {"intent_onset": 3.3, "pnr": 4.4, "impact_outcome": 5.1}
    entries = {n: {"keyframes": times} for n in ("1_C4_L1_D1.mp4", "2.mp4")}
    (tmp_path / "t.json").write_text(json.dumps({**entries, "quiet.mp4": {"keyframes": None}}))
    red = {"status": "red", "timestamp": 4.5}
    (tmp_path / "p.json").write_text(json.dumps({"1_C4_L1_D1": red, "quiet": red, "who": red}))
    score = score_predictions(
        load_predictions(tmp_path / "p.json"), load_truth(tmp_path / "t.json")
    )
    out = io.StringIO()
    print_predictions(make_console(out), score)
    text = out.getvalue()
    assert row(text, "1_C4_L1_D1") == ["1_C4_L1_D1.mp4", "4.500", "irreversible", "25"]
    assert row(text, "predictions")[1:5] == ["2", "50.00", "100.00", "12.50"]
    assert row(text, "best t: 3.3 s")[4] == "2"
    assert row(text, "L1 ")[1:3] == ["given", "1"]
    assert "false stops: 1 of 1 safe videos" in text
    assert "not predicted; counted as missed: 1\n  2.mp4" in text
    assert "who: video: not in the truth" in text


def test_what_must_be_known_to_read_the_figures_is_said(tmp_path: Path) -> None:
    overdue = Warned(trigger=3.0, issued=4.0, stopped=4.7, cause="review_overdue", brain="slow")
    stages = Stages.between(captured=0.0, decided=1.0)
    seen = Outcome(
        warning=overdue,
        stages=stages,
        verdicts={"green": 3, "failed": 2},
        source=Source(frames=5, problems=("1.mp4: cut short at 0.2 s",)),
    )
    entry = Annotation(
        video="1.mp4", keyframes=KeyFrames(1.0, 2.0, 2.2, 3.0, deadline_derived=True)
    )
    results = write_results(tmp_path, {"pace": "virtual"}, [video_result(entry, seen)])
    assert results.summary.warnings_by_cause == {"review_overdue": 1}
    text = printed(results)
    for words in (
        "warnings by cause: review_overdue 1",
        "1 of them for want of an answer: no brain judged a danger there",
        "FastBrain answers that failed: 2 of 5",
        "never confirmed, `stopped` is then a setting: 1",
        "intervention deadlines not annotated, taken as PNR - 0.2 s: 1",
        "damaged or odd files, used as far as they go: 1",
        "1.mp4: 1.mp4: cut short at 0.2 s",
    ):
        assert words in text, words
