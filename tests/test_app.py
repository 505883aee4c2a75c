"""The composition root: names become parts, and what cannot be put together is said early."""

import json
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, get_args

import pytest

from hdguard import app
from hdguard.actuators.mqtt import MqttSettings
from hdguard.app import ReplayPlan
from hdguard.config import (
    SECRET,
    Config,
    ConfigError,
    Elsewhere,
    FastConfig,
    LiveConfig,
    PolicyConfig,
    SlowConfig,
    SourceConfig,
)
from hdguard.core.policy import PAPER, SIDECAR
from hdguard.ingest.base import SourceError
from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import VideoResult
from hdguard.seating import Pace
from tests.replay.made import entries, make_dataset


@pytest.fixture(autouse=True, scope="module")
def _tracker() -> None:
    """Python's own helper of `spawn` outlives every pool; it is not a child left behind."""
    resource_tracker.ensure_running()


def fast(name: str = "trace", **fields: Any) -> FastConfig:
    settings = {"path": "t.json", "name": name}
    return FastConfig("trace", {**settings, **fields.pop("settings", {})}, **fields)


def plan(*brains: FastConfig, **fields: Any) -> ReplayPlan:
    config = Config(fast=brains or (fast(),), **fields.pop("config", {}))
    return ReplayPlan(config, **fields)


def wrong(made: ReplayPlan) -> str:
    with pytest.raises(ConfigError) as caught:
        app.check_brains(made)
    return str(caught.value)


# What is said before anything starts.


def test_several_workers_in_realtime_are_refused_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--workers above 1 needs --pace virtual"):
        app.replay(plan(), [], RunFolder(tmp_path), list[VideoResult]().append, workers=2)
    app.check_workers(plan(pace="virtual"), 2)


def test_the_default_drain_is_the_policys_review_deadline() -> None:
    assert plan().drain_seconds(SIDECAR) == 1.0
    assert plan().drain_seconds(PAPER) == 10.0
    assert plan(drain=0.0).drain_seconds(PAPER) == 0.0
    assert plan(drain=0.0).header["drain"] == 0.0


def test_a_secret_is_not_written_into_the_results_of_a_run() -> None:
    secret = fast(settings={"path": Elsewhere("hunter2")})
    header = plan(secret).header
    assert "hunter2" not in repr(header)
    assert header["settings"]["fast"][0]["settings"]["path"] == SECRET


def test_whatever_changes_a_run_changes_its_header() -> None:
    base = plan()
    others = [
        plan(fast(fps=4.0)),
        plan(pace="virtual"),
        plan(cost="none"),
        plan(drain=3.0),
        plan(config={"policy": PolicyConfig("paper")}),
        plan(config={"policy": PolicyConfig(start_greens=1)}),
        plan(config={"source": SourceConfig(image_fps=4.0)}),
        plan(config={"slow": SlowConfig("trace", {"path": "t.json"})}),
    ]
    for other in others:
        assert other.header != base.header


def test_what_only_the_daemon_reads_does_not_make_it_another_run() -> None:
    live = {"mqtt": MqttSettings(robot="rosie"), "live": LiveConfig(state_dir="/x")}
    assert plan(config=live).header == plan().header


# A run.


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4"])


def traced(data: Path, pace: Pace = "virtual", **fields: Any) -> ReplayPlan:
    path = {"path": str(data / "trace.json")}
    config = Config(fast=(FastConfig("trace", path, **fields),), slow=SlowConfig("trace", path))
    return ReplayPlan(config, pace)


def run(made: ReplayPlan, data: Path, out: Path, workers: int = 1) -> list[VideoResult]:
    folder, finished = RunFolder(out), list[VideoResult]()
    folder.prepare(made.header, resume=False)
    app.replay(made, entries(data), folder, finished.append, workers=workers)
    assert [folder.load(e) for e in entries(data)] == sorted(
        finished, key=lambda v: ["red.mp4", "calm.mp4"].index(v.video)
    )
    return finished


def warnings(videos: list[VideoResult]) -> dict[str, tuple[float, str] | None]:
    return {v.video: (v.warning.trigger, v.warning.cause) if v.warning else None for v in videos}


def test_both_paces_and_any_number_of_workers_agree(data: Path, tmp_path: Path) -> None:
    expected = {"red.mp4": (1.0, "fast_red"), "calm.mp4": None}
    virtual = run(traced(data), data, tmp_path / "virtual")
    pooled = run(traced(data), data, tmp_path / "pooled", workers=2)
    assert warnings(virtual) == warnings(pooled) == expected
    assert sorted(pooled, key=lambda v: v.video) == sorted(virtual, key=lambda v: v.video)
    real = run(traced(data, "realtime"), data, tmp_path / "real")
    assert warnings(real) == expected


def test_a_part_that_fails_fails_its_video_and_not_the_next(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = app.ReplayStage.source

    def broken(self: app.ReplayStage, entry: Entry) -> Any:
        if entry.video == "red.mp4":
            raise SourceError("the disk is gone")
        return source(self, entry)

    monkeypatch.setattr(app.ReplayStage, "source", broken)
    first, second = run(traced(data), data, tmp_path / "out")
    assert (first.video, first.failed) == ("red.mp4", "the disk is gone")
    assert (second.video, second.failed) == ("calm.mp4", None)


def test_a_review_that_a_video_leaves_behind_does_not_hold_up_the_next_one(
    data: Path, tmp_path: Path
) -> None:
    green = {"t": 0.0, "light": "green"}
    yellow = [green, {"t": 0.2, "light": "yellow"}, {"t": 0.4, "light": "green"}]
    videos = {"red.mp4": [*yellow, {"t": 0.8, "light": "red"}], "calm.mp4": yellow}
    reviews = {
        "red.mp4": [{"t": 0.0, "verdict": "safe", "latency": 2.8}],
        "calm.mp4": [{"t": 0.0, "verdict": "safe", "latency": 0.2}],
    }
    trace = {
        "format": "hdguard-trace/1",
        "fast": {"trace": {"videos": videos}},
        "slow": {"trace-slow": {"videos": reviews}},
    }
    (data / "trace.json").write_text(json.dumps(trace))
    expected = {"red.mp4": (0.8, "fast_red"), "calm.mp4": None}
    for pace in get_args(Pace):
        made = traced(data, pace, adaptive=False)
        assert warnings(run(made, data, tmp_path / pace)) == expected


def test_the_traces_of_a_run_are_merged_into_one(data: Path, tmp_path: Path) -> None:
    run(traced(data), data, tmp_path / "out")
    merged = app.merge_traces(RunFolder(tmp_path / "out"), entries(data))
    assert set(merged["fast"]["trace"]["videos"]) == {"red.mp4", "calm.mp4"}
