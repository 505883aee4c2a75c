"""Names become brains in their seats, and what cannot be put together is said early."""

import asyncio
import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import uvloop

from benchmarks import random_models
from hdguard.brains.base import BrainError
from hdguard.brains.openai_fast import OpenAIFastSettings
from hdguard.brains.reflex import ReflexSettings
from hdguard.brains.reflex_slow import ReflexSlowSettings
from hdguard.brains.trace import TraceFastBrain, TraceFastSettings
from hdguard.brains.transformers_fast import TransformersFastBrain
from hdguard.config import Config, ConfigError, FastConfig, PolicyConfig, SlowConfig
from hdguard.profiles import PROFILES
from hdguard.replay.runner import Crew
from hdguard.runtime.virtual_time import run_virtual
from hdguard.seating import (
    FAST_BRAINS,
    LOAD_TIMEOUT,
    SLOW_BRAINS,
    Pace,
    Seating,
    argument_of,
    with_brains,
)
from hdguard.workers.inline import Cost, InlineFastSeat, InlineSlowSeat
from hdguard.workers.seats import WorkerFastBrain, WorkerSlowBrain
from hdguard.workers.thread import ThreadFastSeat
from tests.fakes import ScriptedFastSeat
from tests.replay.made import make_dataset


def fast(name: str = "trace", **fields: Any) -> FastConfig:
    settings = {"path": "t.json", "name": name}
    return FastConfig("trace", {**settings, **fields.pop("settings", {})}, **fields)


def seating(
    *brains: FastConfig, pace: Pace = "realtime", cost: Cost | None = None, **fields: Any
) -> Seating:
    return Seating(Config(fast=brains or (fast(),), **fields), pace, cost)


def wrong(made: Seating) -> str:
    with pytest.raises(ConfigError) as caught:
        _ = made.policy
    return str(caught.value)


# The tables.


@pytest.mark.parametrize("table", [FAST_BRAINS, SLOW_BRAINS], ids=["fast", "slow"])
def test_every_brain_of_a_table_resolves_to_a_class_with_settings(table: dict[str, str]) -> None:
    for target in table.values():
        module, _, name = target.partition(":")
        kind = getattr(importlib.import_module(module), name)
        made = (
            kind.Settings(**{getattr(kind, "argument", "path"): "http://127.0.0.1/v1"})
            if hasattr(kind, "argument") or "trace" in target or "transformers" in target
            else kind.Settings()
        )
        assert made.name
        assert made.spec.width > 0
        if table is FAST_BRAINS:
            assert isinstance(kind.adaptive, bool)


# What is said before anything starts.


def test_an_unknown_brain_is_named_with_those_there_are() -> None:
    said = wrong(seating(fast(), FastConfig("tracer")))
    assert said == "fast.1.brain: no brain is called 'tracer'; there are " + str(
        sorted(FAST_BRAINS)
    )
    said = wrong(seating(slow=SlowConfig("gpt")))
    assert said == "slow.brain: no brain is called 'gpt'; there are " + str(sorted(SLOW_BRAINS))


def test_without_a_fast_brain_the_embedded_ones_watch() -> None:
    made = Seating(with_brains(Config()), "realtime")
    (reflex,) = made.policy.brains
    assert (reflex.name, reflex.adaptive, reflex.fps) == ("reflex", False, 5.0)
    assert made.policy.slow == "reflex-slow"
    own = SlowConfig("trace", {"path": "t.json"})
    assert with_brains(Config(slow=own)).slow == own


@pytest.mark.parametrize("slow_down", [{"adaptive": True}, {"fps": 1.0}])
def test_a_reflex_that_is_shown_too_little_is_refused(slow_down: dict[str, Any]) -> None:
    """At 1 and 2 frames a second it misses collisions without a word."""
    made = Seating(with_brains(Config(fast=(FastConfig("reflex", **slow_down),))), "realtime")
    assert "it misses below 5 frames a second" in wrong(made)


def test_naming_the_reflex_keeps_its_slow_brain_unless_nobody_is_named() -> None:
    named = with_brains(Config(fast=(FastConfig("reflex"),)))
    assert named.slow == SlowConfig("reflex-slow")
    nobody = Config(fast=(FastConfig("reflex"),), slow=SlowConfig("none"))
    assert with_brains(nobody).slow is None
    own = Config(fast=(FastConfig("trace", {"path": "t.json"}),))
    assert with_brains(own).slow is None


def test_the_embedded_brains_mean_the_same_time_by_near() -> None:
    assert ReflexSlowSettings().horizon == pytest.approx(ReflexSettings().yellow)


def test_two_brains_of_one_name_are_refused() -> None:
    assert "two brains have one name" in wrong(seating(fast("a"), fast("a")))
    same = SlowConfig("trace", {"path": "t.json", "name": "a"})
    assert "two brains have one name" in wrong(seating(fast("a"), slow=same))
    three = seating(fast("a"), fast("b"), slow=SlowConfig("trace", {"path": "t"})).policy
    assert ([b.name for b in three.brains], three.slow) == (["a", "b"], "trace-slow")


def test_a_brains_wrong_setting_is_named_with_its_path() -> None:
    assert wrong(seating(fast(), FastConfig("trace"))).startswith("fast.1.settings: path: ")
    assert wrong(seating(fast(settings={"widht": 3}))) == "fast.0.settings: widht: unknown key"
    said = wrong(seating(slow=SlowConfig("trace", {"path": 1})))
    assert said.startswith("slow.settings: path: ")


def test_the_guard_is_told_who_watches_and_how() -> None:
    keen = fast("keen", required=False, adaptive=False, fps=10.0, deadline=0.8)
    slow = SlowConfig("trace", {"path": "t.json", "name": "wise"})
    made = seating(fast("reflex"), keen, slow=slow, policy=PolicyConfig("paper"))
    policy = made.policy
    assert [(b.name, b.required, b.adaptive, b.fps, b.deadline) for b in policy.brains] == [
        ("reflex", True, True, 5.0, None),
        ("keen", False, False, 10.0, 0.8),
    ]
    assert (policy.slow, policy.name) == ("wise", "paper")
    assert seating().policy.slow == ""


# Models.


SERVER = FastConfig("openai", {"url": "http://127.0.0.1:8000/v1"})


def model(device: str = "cuda:0", **fields: Any) -> FastConfig:
    return FastConfig("transformers", {"path": "somewhere", "device": device}, **fields)


def test_two_models_on_one_gpu_are_refused_unless_they_may_share_it() -> None:
    slow = SlowConfig("transformers", {"path": "other", "device": "cuda:0"})
    said = wrong(seating(model(), slow=slow))
    assert "transformers and transformers-slow would share cuda:0" in said
    assert seating(model(), slow=slow, share_device=True).policy.slow == "transformers-slow"
    assert seating(model("cpu"), slow=slow).policy.slow == "transformers-slow"
    assert seating(model(), slow=slow, pace="virtual").policy.slow == "transformers-slow"


def test_a_model_sits_in_a_process_of_its_own_and_is_given_time_to_load() -> None:
    made = seating(model(python="/opt/minicpmo/bin/python"))
    (chosen,) = made.config.fast
    assert type(made._fast_seat(chosen)) is WorkerFastBrain
    assert made._worker(chosen, TransformersFastBrain).ready_timeout == LOAD_TIMEOUT
    assert made._worker(chosen, TransformersFastBrain).python == "/opt/minicpmo/bin/python"
    hasty = replace(chosen, ready_timeout=5.0)
    assert made._worker(hasty, TransformersFastBrain).ready_timeout == 5.0
    assert made._worker(fast(), TraceFastBrain) == made.config.worker
    assert "must have a process of its own" in wrong(seating(model(seat="thread")))


def test_a_brain_with_a_deadline_of_its_own_learns_the_policys() -> None:
    made = seating(SERVER, policy=PolicyConfig(review_deadline=2.0))
    settings = OpenAIFastSettings(**SERVER.settings)
    assert made._filled(settings, 2.0).deadline == 2.0
    assert made._filled(replace(settings, deadline=0.7), 2.0).deadline == 0.7
    assert made._deadline(SERVER) == 0.4
    assert made._deadline(replace(SERVER, deadline=0.9)) == 0.9


def test_pictures_of_a_home_go_to_no_other_machine_unasked() -> None:
    away = FastConfig("openai", {"url": "http://gpu.example:8000/v1"})
    assert "allow_remote = true" in wrong(seating(away))


def test_the_device_option_is_for_models_that_name_none() -> None:
    named, unnamed = model("cuda:1"), FastConfig("transformers", {"path": "x"})
    slow = SlowConfig("transformers", {"path": "x"})
    config = Config(fast=(fast(), named, unnamed, SERVER), slow=slow)
    moved = with_brains(config, "cpu")
    assert [each.settings.get("device") for each in moved.fast] == [None, "cuda:1", "cpu", None]
    assert moved.slow is not None
    assert moved.slow.settings["device"] == "cpu"
    assert with_brains(config) == config


def test_the_device_option_moves_a_profiles_models() -> None:
    laptop = with_brains(Config(profile="laptop"), "cuda:3")
    devices = [each.settings.get("device") for each in (*laptop.fast, laptop.slow) if each]
    assert devices == [None, "cuda:3", "cuda:3"]
    own = Config(profile="laptop", slow=SlowConfig("transformers", {"path": "x", "device": "cpu"}))
    kept = with_brains(own, "cuda:3").slow
    assert kept is not None
    assert kept.settings["device"] == "cpu"


def test_in_virtual_time_all_models_have_one_device() -> None:
    slow = SlowConfig("transformers", {"path": "other", "device": "cuda:1"})
    said = wrong(seating(model(), slow=slow, pace="virtual"))
    assert "one process, which has one device, not ['cuda:0', 'cuda:1']" in said


def test_a_gpu_by_number_and_one_by_uuid_may_be_the_same() -> None:
    slow = SlowConfig("transformers", {"path": "other", "device": "GPU-8f1c"})
    assert "name their GPUs in two ways" in wrong(seating(model(), slow=slow))
    assert seating(model(), slow=slow, share_device=True).policy.slow


def test_what_stands_behind_the_colon_is_the_setting_that_the_brain_names() -> None:
    assert argument_of(FAST_BRAINS, "transformers") == "path"
    assert argument_of(FAST_BRAINS, "openai") == "url"
    assert argument_of(FAST_BRAINS, "gpt") == "path"  # the name is refused later


def test_every_profile_seats_brains_that_there_are() -> None:
    for name in PROFILES:
        config = with_brains(Config(profile=name))
        policy = Seating(config, "realtime").policy
        assert policy.brains[0].name == "reflex"
        assert policy.slow
        assert policy.review_deadline == PROFILES[name].review_deadline
    assert with_brains(Config(profile="embedded")).fast == with_brains(Config()).fast
    with pytest.raises(ConfigError, match="profile: none is called 'phone'; there are embedded"):
        with_brains(Config(profile="phone"))


def test_a_brain_too_slow_for_its_deadline_is_refused_once_loaded() -> None:
    made = seating(SERVER, policy=PolicyConfig(review_deadline=2.0))
    quick = ScriptedFastSeat(name="openai")
    quick.warm_p99 = 0.3
    made.check_live(Crew({"openai": quick}, None))
    quick.warm_p99 = 0.45
    with pytest.raises(
        ConfigError, match=r"brain openai: takes 0\.45 s here .* deadline of 0\.4 s"
    ):
        made.check_live(Crew({"openai": quick}, None))
    quick.warm_p99 = 0.0  # it was told not to measure
    with pytest.raises(ConfigError, match="openai: its latency could not be measured"):
        made.check_live(Crew({"openai": quick}, None))
    quick.warm_p99 = None  # the reflex measures nothing
    made.check_live(Crew({"openai": quick}, None))


def test_the_released_parser_may_watch_no_real_robot() -> None:
    settings = {"path": "x", "parser": "released"}
    with pytest.raises(ConfigError, match=r"fast\.0\.settings\.parser: released says GREEN"):
        seating(FastConfig("generate", settings)).check_live(Crew({}, None))


def test_another_prompt_calibration_or_model_is_another_run(tmp_path: Path) -> None:
    made = random_models.build("internvl", "tiny", tmp_path / "model")
    calibration = tmp_path / "c.json"
    settings = {"path": str(made), "calibration": str(calibration)}
    brain = FastConfig("transformers", settings)
    before = seating(brain).digests
    assert before["fast.0.settings.calibration"] == "absent"
    assert len(before["fast.0.settings.prompt"]) == 64
    calibration.write_text("{}")
    (made / "config.json").write_text("{}")
    after = seating(replace(brain, settings={**settings, "prompt": "generate"})).digests
    assert all(before[key] != after[key] for key in before)
    gone = FastConfig("transformers", {"path": "gone"})
    assert seating(gone).digests["fast.0.settings.path"] == "absent"


# The seats.


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
        assert type(made._fast_seat(chosen)) is fast_kind
        assert type(made._slow_seat(made.config.slow)) is slow_kind


def test_a_trace_is_played_in_real_time_only_in_the_realtime_pace(data: Path) -> None:
    settings = TraceFastSettings("t.json")
    assert seating(pace="realtime")._filled(settings, None).play
    assert not seating(pace="virtual")._filled(replace(settings, play=True), None).play


def test_a_trace_brain_costs_what_its_trace_says_and_others_what_they_declare() -> None:
    assert seating()._cost(fast()) == "trace"
    assert seating()._cost(FastConfig("reflex")) == "fixed"
    for cost in get_args(Cost):
        assert seating(cost=cost)._cost(fast()) == cost


def test_a_brain_that_cannot_be_loaded_is_an_error_of_its_own(tmp_path: Path) -> None:
    async def load(made: Seating) -> None:
        async with made.crew():
            raise AssertionError("it was loaded")

    made = seating(fast(settings={"path": str(tmp_path / "gone.json")}), pace="virtual")
    with pytest.raises(BrainError, match=r"gone\.json: cannot be read"):
        run_virtual(load(made))


def test_a_brain_in_a_process_that_cannot_be_loaded_leaves_no_process(data: Path) -> None:
    async def load(made: Seating) -> None:
        async with made.crew():
            raise AssertionError("it was loaded")

    config = traced(data, "realtime").config
    gone = SlowConfig("trace", {"path": str(data / "gone.json")})
    made = Seating(replace(config, slow=gone), "realtime")
    refused = pytest.raises(BrainError, match=r"gone\.json: cannot be read")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, refused:
        runner.run(load(made))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4"])


def traced(data: Path, pace: Pace = "virtual", **fields: Any) -> Seating:
    path = {"path": str(data / "trace.json")}
    config = Config(fast=(FastConfig("trace", path, **fields),), slow=SlowConfig("trace", path))
    return Seating(config, pace)
