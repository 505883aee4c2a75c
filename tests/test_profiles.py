"""What follows from a profile's deadlines: age limits, safe speeds, brains that are too slow."""

import math
from dataclasses import replace

import pytest

from hdguard.brains.catalogue import MODELS
from hdguard.config import Config, ConfigError, FastConfig, PolicyConfig, SlowConfig
from hdguard.core.freshness import Limits
from hdguard.core.policy import SIDECAR, BrainPlan, Policy
from hdguard.profiles import (
    PROFILES,
    REFLEX,
    Profile,
    Robot,
    check_latency,
    fitting,
    safe_speed,
    safe_speeds,
)

# Profiles.


def test_the_default_profile_has_no_model_and_every_other_keeps_the_reflex() -> None:
    assert next(iter(PROFILES)) == "embedded"
    assert not PROFILES["embedded"].has_model
    for profile in PROFILES.values():
        assert REFLEX in {fast.brain for fast in profile.fast}
        assert all(fast.required for fast in profile.fast)
        assert profile.has_model == (profile.name != "embedded")


def test_every_model_of_a_profile_is_in_the_catalogue_in_a_role_that_it_has() -> None:
    for profile in PROFILES.values():
        for fast in profile.fast:
            if path := fast.settings.get("path"):
                assert MODELS[path].role in {"fast", "both"}
        if path := profile.slow.settings.get("path"):
            assert MODELS[path].role in {"slow", "both"}


def test_no_profile_opts_in_to_foreign_code() -> None:
    for profile in PROFILES.values():
        assert all("allow_remote_code" not in fast.settings for fast in profile.fast)


def test_two_models_on_one_gpu_are_a_choice_that_the_profile_names() -> None:
    for profile in PROFILES.values():
        chosen = [*(f.settings for f in profile.fast), profile.slow.settings]
        devices = [settings["device"] for settings in chosen if "device" in settings]
        assert profile.share_device == (len(set(devices)) < len(devices))


def test_a_profile_fills_only_what_the_configuration_leaves_open() -> None:
    laptop = PROFILES["laptop"]
    filled = laptop.applied(Config())
    assert (filled.fast, filled.slow) == (laptop.fast, laptop.slow)
    assert filled.policy.policy().review_deadline == 5.0
    own = Config(
        fast=(FastConfig("trace"),),
        slow=SlowConfig("trace"),
        policy=PolicyConfig(preset="paper", review_deadline=3.0),
    )
    assert laptop.applied(own) == replace(own, share_device=True)


def test_age_limits_follow_from_the_deadlines() -> None:
    assert [*PROFILES["embedded"].age_limits()] == [("reflex", 5.0, Limits(0.5, 1.0))]
    laptop = [*PROFILES["laptop"].age_limits()]
    assert [(brain, fps) for brain, fps, _ in laptop] == [
        ("reflex", 5.0),
        ("transformers", 1.0),
        ("transformers", 5.0),
    ]
    # twice the 0.4 s by which its deadline exceeds 0.4 s
    for (_, _, found), (degraded, halt) in zip(laptop[1:], ((2.3, 3.3), (1.3, 1.8)), strict=True):
        assert (found.degraded, found.halt) == pytest.approx((degraded, halt))


# Speeds, computed by hand.


def test_a_robot_that_stops_at_once_may_be_as_fast_as_its_brakes_allow() -> None:
    assert safe_speed(0.0, Robot(distance=2.0, braking=1.0)) == pytest.approx(2.0)
    assert safe_speed(0.0, Robot(distance=0.5, braking=4.0)) == pytest.approx(2.0)


def test_the_slower_the_reaction_the_slower_the_robot() -> None:
    # v * 1.5 + v^2 / 2 = 2 has the root 1
    assert safe_speed(1.5, Robot(distance=2.0, braking=1.0)) == pytest.approx(1.0)
    speeds = [safe_speed(t / 10, Robot()) for t in range(200)]
    assert speeds == sorted(speeds, reverse=True)


@pytest.mark.parametrize("reaction", [0.0, 0.3, 1.1, 11.7, 1e4])
@pytest.mark.parametrize("robot", [Robot(), Robot(3.0, 0.5), Robot(0.01, 100.0)])
def test_at_the_safe_speed_the_robot_stands_just_within_the_distance(
    reaction: float, robot: Robot
) -> None:
    v = safe_speed(reaction, robot)
    assert v * reaction + v**2 / (2 * robot.braking) == pytest.approx(robot.distance)


@pytest.mark.parametrize(
    ("name", "red", "review"),
    [
        ("embedded", 0.62094, 0.29026),  # 1.0 + 0.3 = 1.3 s; with two reviews of 1 s 3.3 s
        ("laptop", 0.26782, 0.07333),  # 2.5 + 2 * 0.4 + 0.3 = 3.6 s; 13.6 s
        ("workstation", 0.33688, 0.07789),  # 2.5 + 0.3 = 2.8 s; 12.8 s
        ("hd-guard", 0.33688, 0.04382),  # 2.8 s; 22.8 s
        ("server", 0.31662, 0.14143),  # 2.5 + 2 * 0.1 + 0.3 = 3.0 s; 7.0 s
    ],
)
def test_the_largest_safe_speeds_of_the_profiles(name: str, red: float, review: float) -> None:
    speeds = safe_speeds(PROFILES[name], Robot())
    assert speeds.red == pytest.approx(red, abs=1e-5)
    assert speeds.review == pytest.approx(review, abs=1e-5)


@pytest.mark.parametrize("deadline", [0.1, 0.4, 0.8, 2.0, 10.0])
@pytest.mark.parametrize(("brain", "period"), [(REFLEX, 0.2), ("transformers", 1.0)])
def test_brains_that_keep_their_deadlines_judge_before_the_guard_gives_up_on_them(
    brain: str, period: float, deadline: float
) -> None:
    """A hazard just after a sample, or just after the brain has begun on a frame without it."""
    profile = Profile("p", (FastConfig(brain, deadline=deadline),), SlowConfig("s"), PolicyConfig())
    assert profile.seen_to_judged() > max(period, deadline) + deadline


@pytest.mark.parametrize("setting", ["distance", "braking", "actuation"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_robot_that_cannot_be_is_refused(setting: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{setting}: "):
        Robot(**{setting: value})


# The load check.


def policy(**deadlines: float) -> Policy:
    """A sidecar with FastBrains by name and deadline, and a SlowBrain that has 2 s."""
    brains = tuple(BrainPlan(name, deadline=seconds) for name, seconds in deadlines.items())
    return replace(SIDECAR, brains=brains, slow="thinker", review_deadline=2.0)


def test_brains_within_their_deadlines_pass() -> None:
    check_latency(policy(model=0.4), {"model": 0.4, "thinker": 2.0})
    check_latency(policy(model=0.4), {})


def test_a_slow_fast_brain_is_named_with_the_profile_that_bears_it() -> None:
    with pytest.raises(ConfigError) as refused:
        check_latency(policy(model=0.4), {"model": 0.731, "thinker": 1.0})
    said = str(refused.value)
    assert "brain model: takes 0.73 s here" in said
    assert "its deadline of 0.4 s" in said
    assert "--profile laptop fits: 0.8 s, reviews 5 s" in said
    own = "or give brain model a deadline of at least 0.74 s (settings of [[fast]]), as profile lap"
    assert own in said
    assert "thinker" not in said


def test_a_slow_slow_brain_is_named_and_both_if_both_are() -> None:
    with pytest.raises(
        ConfigError, match=r"thinker: takes 7\.00 s(.|\n)*--profile hd-guard fits"
    ) as one:
        check_latency(policy(model=0.4), {"model": 0.1, "thinker": 7.0})
    assert "give brain" not in str(one.value)
    with pytest.raises(ConfigError) as refused:
        check_latency(policy(model=0.4), {"model": 0.6, "thinker": 3.0})
    assert "brain model" in str(refused.value)
    assert "brain thinker" in str(refused.value)
    assert "--profile laptop fits" in str(refused.value)


def test_where_no_profile_fits_that_is_said() -> None:
    for measured in ({"model": 0.9}, {"model": 0.6, "thinker": 9.0}, {"thinker": 11.0}):
        with pytest.raises(ConfigError, match="no profile fits: take a smaller model"):
            check_latency(policy(model=0.4), measured)


@pytest.mark.parametrize("p99", [0.0, -1.0, math.nan, math.inf])
def test_a_brain_whose_latency_is_unknown_does_not_pass(p99: float) -> None:
    with pytest.raises(ConfigError, match="brain model: its latency could not be measured"):
        check_latency(policy(model=0.4), {"model": p99})


def test_each_brain_has_its_own_deadline_and_else_the_policys() -> None:
    check_latency(policy(model=0.8, other=0.4), {"model": 0.7, "other": 0.3})
    two = replace(SIDECAR, brains=(BrainPlan("model"),))
    with pytest.raises(ConfigError, match=r"its deadline of 0\.4 s"):
        check_latency(two, {"model": 0.41})


def test_without_deadlines_nothing_is_late() -> None:
    paper = replace(policy(model=0.4), fast_deadline=None)
    check_latency(paper, {"model": 3.07})


def test_the_fastest_profile_that_bears_it_is_advised() -> None:
    def name(fast: float, slow: float, *, model: bool) -> str | None:
        found = fitting(fast, slow, model=model)
        return found.name if found else None

    assert name(0.1, 0.5, model=False) == "embedded"
    assert name(0.1, 0.5, model=True) == "workstation"
    assert name(0.1, 6.0, model=True) == "hd-guard"
    assert name(0.45, 1.0, model=True) == "server"
    assert name(0.45, 3.0, model=True) == "laptop"
    assert name(0.9, 0.0, model=True) is None


def test_a_models_own_code_runs_only_where_its_environment_is_named() -> None:
    profile = PROFILES["hd-guard"]
    assert profile.applied(Config()).fast == profile.fast
    reflex, model = profile.applied(Config(remote_code_python="/opt/omni/bin/python")).fast
    assert reflex == profile.fast[0]
    assert model.python == "/opt/omni/bin/python"
    assert model.settings == {**profile.fast[1].settings, "allow_remote_code": True}
    laptop = PROFILES["laptop"].applied(Config(remote_code_python="/opt/omni/bin/python"))
    assert laptop.fast == PROFILES["laptop"].fast
