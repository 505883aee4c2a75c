"""`hdguard tune` as a person types it."""

import json
from collections.abc import Callable, Sequence
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from hdguard import cli_tune
from hdguard.brains.calibration import Calibration, read_calibration
from hdguard.brains.trace import TraceFastBrain, TraceFastSettings
from hdguard.ingest.frame_times import frame_times
from hdguard.replay.results import read_results
from hdguard.replay.simulate import Case
from tests.replay.made import KEYFRAMES, make_dataset
from tests.replay.recorded import cases, log_softmax, trace_of, truth_of, write
from tests.test_cli import call, says

tuning = typer.Typer(pretty_exceptions_enable=False)
tuning.command()(cli_tune.tune)


def tune(*words: object) -> Result:
    environment = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(tuning, [str(word) for word in words], env=environment)


@pytest.fixture(autouse=True, scope="module")
def _tracker() -> None:
    """Python's own helper of `spawn` outlives every pool; it is not a child left behind."""
    resource_tracker.ensure_running()


@pytest.fixture(scope="module")
def sure() -> list[Case]:
    """Ten videos and two safe ones, of a model that makes hardly a mistake: few runs differ."""
    return cases(10, 2, apart=8.0)


@pytest.fixture
def made(sure: list[Case], tmp_path: Path) -> tuple[Path, Path]:
    return (
        write(tmp_path / "trace.json", trace_of(sure, fingerprint="mark")),
        write(tmp_path / "truth.json", truth_of(sure)),
    )


def test_a_calibration_is_written_for_the_model_that_was_recorded(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    trace, truth = made
    out, figures = tmp_path / "calibration.json", tmp_path / "figures.json"
    result = tune(trace, "--labels", truth, "--out", out, "--json", figures, "--workers", 2)
    assert result.exit_code == 0, result.output
    calibration = read_calibration(str(out), "mark")
    assert calibration.fingerprint == "mark"
    assert calibration.fitted_on.startswith("10 annotated videos and 2 safe ones of vlm")
    assert '[policy]\npreset = "sidecar"\nreview_overdue = "halt"' in result.stdout
    assert result.stdout.endswith(f"calibration: {out}\n")
    assert result.stderr.splitlines()[-1].startswith("12/12 ")
    written = json.loads(figures.read_text())
    asked = written["tuning"]["asked"]
    assert f"to quote: held-out WSS {asked['held_out']['scores']['wss']:.2f}" in result.stdout
    assert len(written["tuning"]["curve"]) == 6
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_calibration_is_overwritten_only_by_force(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    trace, truth = made
    out = write(tmp_path / "calibration.json", {"precious": True})
    says(tune(trace, "--labels", truth, "--out", out), 65, "is there already; give --force")
    assert json.loads(out.read_text()) == {"precious": True}
    assert tune(trace, "--labels", truth, "--out", out, "--force", "--folds", 2).exit_code == 0
    assert read_calibration(str(out), "mark") != Calibration()


def strip(data: dict[str, Any]) -> None:
    for rows in data["fast"]["vlm"]["videos"].values():
        for row in rows:
            del row["scores"]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (strip, (), "recorded by a brain that gives no scores"),
        (lambda d: d["fast"]["vlm"]["videos"].pop("video-3.mp4"), (), "too few for 5 folds"),
        (lambda d: d.update(format="other"), (), "trace.json"),
        (lambda d: None, ("--folds", 11), "11 folds, but only 10 annotated videos"),
    ],
)
def test_data_that_cannot_be_tuned_on_are_refused(
    made: tuple[Path, Path],
    tmp_path: Path,
    change: Callable[[dict[str, Any]], object],
    options: Sequence[object],
    words: str,
) -> None:
    trace, truth = made
    data = json.loads(trace.read_text())
    change(data)
    out = tmp_path / "out.json"
    result = tune(write(trace, data), "--labels", truth, "--out", out, *options)
    says(result, 65, words)
    assert not out.exists()


def test_an_interrupt_leaves_nothing_behind(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_tune, "tune_on", interrupted)
    out = tmp_path / "out.json"
    says(tune(made[0], "--labels", made[1], "--out", out), 130, "interrupted; nothing was written")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["trace.json", "truth.json"]


def seeing(video: Path, keyframes: dict[str, float]) -> list[dict[str, Any]]:
    """A model that sees the danger coming, at 5 FPS to the video's end; its RED is half-hearted."""
    found = []
    for n in range(int(frame_times(video)[-1] * 5) + 1):
        t = n / 5
        coming = keyframes["intent_onset"] <= t <= keyframes["impact_outcome"]
        scores = log_softmax((0.0, 2.0, 0.5) if coming else (4.0, 0.0, -2.0))
        found.append({"t": t, "light": "green", "latency": 0.2, "scores": scores})
    return found


def test_the_real_videos_one_left_out_at_a_time(homesafe: Path, tmp_path: Path) -> None:
    truth = json.loads((homesafe / "anno_truth.json").read_text())["annotations"]
    videos = {
        each["video_name"]: seeing(homesafe / "videos" / each["video_name"], each["keyframes"])
        for each in truth
    }
    trace = {"format": "hdguard-trace/1", "fast": {"vlm": {"videos": videos}}}
    path = write(tmp_path / "t.json", trace)
    out, figures = tmp_path / "calibration.json", tmp_path / "figures.json"
    words = (path, "--labels", homesafe, "--out", out)
    says(tune(*words), 65, "3 annotated videos are too few for 5 folds", "--folds 3")
    result = tune(*words, "--folds", 3, "--json", figures)
    assert result.exit_code == 0, result.output
    assert "frame times: 3 read from the videos" in result.stdout
    assert "do not say which model" in result.stdout
    found = json.loads(figures.read_text())["tuning"]
    assert found["untuned"]["scores"]["wss"] == 0.0  # it never says RED loudly enough
    # 1 frame a second in GREEN passes over a window of 0.6 s: 421 is warned of too late.
    assert found["asked"]["held_out"]["scores"]["wss"] == 75.0
    assert read_calibration(str(out), "whatever").red < 0.5
    result = tune(*words, "--folds", 3, "--json", figures, "--no-adaptive", "--force")
    found = json.loads(figures.read_text())["tuning"]
    assert found["asked"]["held_out"]["scores"]["wss"] == 100.0


def test_a_replay_with_the_calibration_is_what_was_promised(tmp_path: Path) -> None:
    names = ["a.mp4", "b.mp4", "c.mp4", "quiet.mp4"]
    data = make_dataset(tmp_path / "data", names)
    calm = {**KEYFRAMES, "intent_onset": 9.0}
    videos = {n: seeing(data / n, calm if n == "quiet.mp4" else KEYFRAMES) for n in names}
    trace = write(
        tmp_path / "t.json",
        {"format": "hdguard-trace/1", "fast": {"vlm": {"videos": videos, "fingerprint": "m"}}},
    )
    out, figures = tmp_path / "calibration.json", tmp_path / "figures.json"
    result = tune(trace, "--labels", data, "--folds", 3, "--out", out, "--json", figures)
    assert result.exit_code == 0, result.output
    promised = json.loads(figures.read_text())["tuning"]["asked"]["in_sample"]
    config = tmp_path / "hdguard.toml"
    config.write_text(
        f'[[fast]]\nbrain = "trace"\n'
        f'settings = {{ path = "{trace}", name = "vlm", calibration = "{out}" }}\n'
    )
    run = tmp_path / "run"
    says(call("replay", data, "--config", config, "--pace", "virtual", "--out", run), 0)
    summary = read_results(run).summary
    assert summary.issued.wss == promised["scores"]["wss"] == 100.0
    assert summary.issued.lead is not None
    assert summary.issued.lead.mean == promised["scores"]["lead"]["mean"]
    assert summary.false_stops_per_hour.count == promised["false_stops"]["count"] == 0
    brain = TraceFastBrain(TraceFastSettings(str(trace), "vlm", calibration=str(out)))
    assert brain.fingerprint == "m"
