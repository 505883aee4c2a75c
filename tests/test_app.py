"""The composition root: names become parts, and what cannot be put together is said early."""

import asyncio
import importlib
import json
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, get_args

import pytest
import uvloop

from hdguard import app
from hdguard.app import FAST_BRAINS, SLOW_BRAINS, ReplayPlan
from hdguard.brains.base import BrainError
from hdguard.brains.reflex import ReflexSettings
from hdguard.brains.reflex_slow import ReflexSlowSettings
from hdguard.config import (
    SECRET,
    Config,
    ConfigError,
    Elsewhere,
    FastConfig,
    PolicyConfig,
    SlowConfig,
    SourceConfig,
)
from hdguard.core.policy import PAPER, SIDECAR
from hdguard.ingest.base import SourceError
from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import VideoResult
from hdguard.runtime.virtual_time import run_virtual
from hdguard.workers.inline import Cost, InlineFastSeat, InlineSlowSeat
from hdguard.workers.seats import WorkerFastBrain, WorkerSlowBrain
from hdguard.workers.thread import ThreadFastSeat
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


# The tables.


@pytest.mark.parametrize("table", [FAST_BRAINS, SLOW_BRAINS], ids=["fast", "slow"])
def test_every_brain_of_a_table_resolves_to_a_class_with_settings(table: dict[str, str]) -> None:
    for target in table.values():
        module, _, name = target.partition(":")
        kind = getattr(importlib.import_module(module), name)
        made = kind.Settings(path="t.json") if "trace" in target else kind.Settings()
        assert made.name
        assert made.spec.width > 0
        if table is FAST_BRAINS:
            assert isinstance(kind.adaptive, bool)


# What is said before anything starts.


def test_an_unknown_brain_is_named_with_those_there_are() -> None:
    said = wrong(plan(fast(), FastConfig("tracer")))
    assert said == "fast.1.brain: no brain is called 'tracer'; there are ['reflex', 'trace']"
    said = wrong(plan(config={"slow": SlowConfig("gpt")}))
    assert said == "slow.brain: no brain is called 'gpt'; there are ['reflex-slow', 'trace']"


def test_without_a_fast_brain_the_embedded_ones_watch() -> None:
    made = ReplayPlan(app.with_brains(Config()))
    (reflex,) = made.policy.brains
    assert (reflex.name, reflex.adaptive, reflex.fps) == ("reflex", False, 5.0)
    assert made.policy.slow == "reflex-slow"
    own = SlowConfig("trace", {"path": "t.json"})
    assert app.with_brains(Config(slow=own)).slow == own


@pytest.mark.parametrize("slow_down", [{"adaptive": True}, {"fps": 1.0}])
def test_a_reflex_that_is_shown_too_little_is_refused(slow_down: dict[str, Any]) -> None:
    """At 1 and 2 frames a second it misses collisions without a word."""
    made = ReplayPlan(app.with_brains(Config(fast=(FastConfig("reflex", **slow_down),))))
    assert "it misses below 5 frames a second" in wrong(made)


def test_naming_the_reflex_keeps_its_slow_brain_unless_nobody_is_named() -> None:
    named = app.with_brains(Config(fast=(FastConfig("reflex"),)))
    assert named.slow == SlowConfig("reflex-slow")
    nobody = Config(fast=(FastConfig("reflex"),), slow=SlowConfig("none"))
    assert app.with_brains(nobody).slow is None
    own = Config(fast=(FastConfig("trace", {"path": "t.json"}),))
    assert app.with_brains(own).slow is None


def test_the_embedded_brains_mean_the_same_time_by_near() -> None:
    assert ReflexSlowSettings().horizon == pytest.approx(ReflexSettings().yellow)


def test_two_brains_of_one_name_are_refused() -> None:
    assert "two brains have one name" in wrong(plan(fast("a"), fast("a")))
    same = SlowConfig("trace", {"path": "t.json", "name": "a"})
    assert "two brains have one name" in wrong(plan(fast("a"), config={"slow": same}))
    app.check_brains(
        plan(fast("a"), fast("b"), config={"slow": SlowConfig("trace", {"path": "t"})})
    )


def test_a_brains_wrong_setting_is_named_with_its_path() -> None:
    assert wrong(plan(fast(), FastConfig("trace"))).startswith("fast.1.settings: path: ")
    assert wrong(plan(fast(settings={"widht": 3}))) == "fast.0.settings: widht: unknown key"
    said = wrong(plan(config={"slow": SlowConfig("trace", {"path": 1})}))
    assert said.startswith("slow.settings: path: ")


def test_several_workers_in_realtime_are_refused_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--workers above 1 needs --pace virtual"):
        app.replay(plan(), [], RunFolder(tmp_path), list[VideoResult]().append, workers=2)
    app.check_workers(plan(pace="virtual"), 2)


def test_the_guard_is_told_who_watches_and_how() -> None:
    keen = fast("keen", required=False, adaptive=False, fps=10.0, deadline=0.8)
    slow = SlowConfig("trace", {"path": "t.json", "name": "wise"})
    made = plan(fast("reflex"), keen, config={"slow": slow, "policy": PolicyConfig("paper")})
    policy = made.policy
    assert [(b.name, b.required, b.adaptive, b.fps, b.deadline) for b in policy.brains] == [
        ("reflex", True, True, 5.0, None),
        ("keen", False, False, 10.0, 0.8),
    ]
    assert (policy.slow, policy.name) == ("wise", "paper")
    assert plan().policy.slow == ""


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


# The seats.


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4"])


def traced(data: Path, pace: app.Pace = "virtual", **fields: Any) -> ReplayPlan:
    path = {"path": str(data / "trace.json")}
    config = Config(fast=(FastConfig("trace", path, **fields),), slow=SlowConfig("trace", path))
    return ReplayPlan(config, pace)


def test_each_pace_has_its_own_seats(data: Path) -> None:
    virtual, real = traced(data), traced(data, "realtime")
    process = traced(data, "realtime", seat="process")
    for made, fast_kind, slow_kind in (
        (virtual, InlineFastSeat, InlineSlowSeat),
        (real, ThreadFastSeat, WorkerSlowBrain),
        (process, WorkerFastBrain, WorkerSlowBrain),
    ):
        (chosen,) = made.config.fast
        assert made.config.slow is not None
        assert type(app._fast_seat(made, chosen)) is fast_kind
        assert type(app._slow_seat(made, made.config.slow)) is slow_kind


def test_a_trace_is_played_in_real_time_only_in_the_realtime_pace(data: Path) -> None:
    settings = app._settings(FAST_BRAINS, traced(data).config.fast[0], "fast")
    assert app._playing(settings, "realtime").play
    assert not app._playing(replace(settings, play=True), "virtual").play


def test_a_trace_brain_costs_what_its_trace_says_and_others_what_they_declare() -> None:
    assert app._cost(plan(), "trace") == "trace"
    assert app._cost(plan(), "another") == "fixed"
    for cost in get_args(Cost):
        assert app._cost(plan(cost=cost), "trace") == cost


def test_a_brain_that_cannot_be_loaded_is_an_error_of_its_own(tmp_path: Path) -> None:
    async def load(made: ReplayPlan) -> None:
        async with app.crew(made):
            raise AssertionError("it was loaded")

    made = plan(fast(settings={"path": str(tmp_path / "gone.json")}), pace="virtual")
    with pytest.raises(BrainError, match=r"gone\.json: cannot be read"):
        run_virtual(load(made))


def test_a_brain_in_a_process_that_cannot_be_loaded_leaves_no_process(data: Path) -> None:
    async def load(made: ReplayPlan) -> None:
        async with app.crew(made):
            raise AssertionError("it was loaded")

    config = traced(data, "realtime").config
    gone = SlowConfig("trace", {"path": str(data / "gone.json")})
    made = ReplayPlan(replace(config, slow=gone))
    refused = pytest.raises(BrainError, match=r"gone\.json: cannot be read")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, refused:
        runner.run(load(made))


# A run.


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
    for pace in get_args(app.Pace):
        made = traced(data, pace, adaptive=False)
        assert warnings(run(made, data, tmp_path / pace)) == expected


def test_the_traces_of_a_run_are_merged_into_one(data: Path, tmp_path: Path) -> None:
    run(traced(data), data, tmp_path / "out")
    merged = app.merge_traces(RunFolder(tmp_path / "out"), entries(data))
    assert set(merged["fast"]["trace"]["videos"]) == {"red.mp4", "calm.mp4"}
