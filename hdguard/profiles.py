"""Profiles: which brains, which deadlines, and how fast a robot may be with them.

A profile is a promise about time. Everything that follows from its deadlines is worked out here:
the age limits of verdicts, the largest safe speed, and whether a loaded model keeps the deadline
at all.

The largest safe speed v solves v t + v^2 / (2 a) = d: in the time t from when a hazard can be seen
to when the brakes bite the robot goes on at v, then it brakes at a, and it must stand within the
free distance d. t is the sum of

- the longest age at which a verdict still lets the robot go on (`halt` of its age limits): the
  hazard appears just after the frame of the last verdict. Brains that keep their deadlines call it
  RED sooner, but one late answer costs no halt, so the limit is all that the guard promises;
- on the way over a review: twice the review's deadline, because one that was opened on older frames
  may be open, and the hazard's then waits for its end and has a whole deadline after that (an
  overdue review halts);
- 0.1 s in which an expired limit is noticed, and 0.1 s to the halt's repeat if one is lost;
- the robot's own time from the halt to its brakes.

It assumes that the hazard is at rest and can be seen from d away, that the camera gives at least 5
frames a second, and that the brains judge rightly: they do not miss it and are not blind (which
slows the robot at once, and stops it after 5 s). The required brain that sees it may be the
slowest. The second speed, over a review, holds for the whole way: a robot that is faster when the
hazard appears has used up the distance before the review ends, although it is then held to
`reduced`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hdguard.brains.catalogue import MODELS
from hdguard.config import Config, ConfigError, FastConfig, PolicyConfig, SlowConfig
from hdguard.core.freshness import Limits, verdict_limits
from hdguard.core.policy import HIGH_FPS, LOW_FPS, Policy

NOTICED = 0.1
"""Seconds within which an expired limit is noticed (DESIGN 3)."""
REPEATED = 0.1
"""Seconds between a halt and its repeat (DESIGN 3, rule 5): one publish may be lost."""

REFLEX = "reflex"
REFLEX_SLOW = "reflex-slow"


@dataclass(frozen=True, slots=True)
class Profile:
    """A choice of brains and deadlines.

    Attributes:
        name: of the profile.
        fast: FastBrains, all required; a model never stands without the reflex beside it.
        slow: the SlowBrain.
        policy: what it changes in the preset.
        share_device: see `Config`.
        note: what has to be known or done before it can be used.
    """

    name: str
    fast: tuple[FastConfig, ...]
    slow: SlowConfig
    policy: PolicyConfig
    share_device: bool = False
    note: str = ""

    def applied(self, config: Config) -> Config:
        """The configuration, with the profile's part for whatever it leaves open.

        FastBrains are taken as a whole: who names one names all, the reflex too.
        """
        review = config.policy.review_deadline
        deadline = self.policy.review_deadline if review is None else review
        return replace(
            config,
            fast=config.fast or tuple(_consented(f, config.remote_code_python) for f in self.fast),
            slow=config.slow or self.slow,
            policy=replace(config.policy, review_deadline=deadline),
            share_device=config.share_device or self.share_device,
        )

    @property
    def has_model(self) -> bool:
        """True if a model is among the FastBrains."""
        return any(fast.brain != REFLEX for fast in self.fast)

    def deadline(self, fast: FastConfig) -> float:
        """Seconds that this FastBrain has for an answer, under the preset `sidecar`."""
        usual = self.policy.policy().fast_deadline
        assert usual is not None, "profiles are for live use, and there everything has a deadline"
        return usual if fast.deadline is None else fast.deadline

    @property
    def fast_deadline(self) -> float:
        """Seconds that the slowest of the FastBrains has."""
        return max(self.deadline(fast) for fast in self.fast)

    @property
    def review_deadline(self) -> float:
        """Seconds that a review has."""
        return self.policy.policy().review_deadline

    def age_limits(self) -> Iterator[tuple[str, float, Limits]]:
        """Per FastBrain and rate, frames a second: from which age its verdicts count no more."""
        for fast in self.fast:
            for fps in (HIGH_FPS,) if fast.brain == REFLEX else (LOW_FPS, HIGH_FPS):
                yield fast.brain, fps, verdict_limits(fps, self.deadline(fast), 0.0)

    def seen_to_judged(self) -> float:
        """Seconds, at most, from when a hazard can be seen to a verdict on it, or to a fault halt.

        No brain that keeps its deadline takes as long: the limit is above max(period, deadline) +
        deadline at every rate.
        """
        return max(limits.halt for _, _, limits in self.age_limits())


def _consented(fast: FastConfig, python: str) -> FastConfig:
    """The FastBrain, allowed to run its model's own code in that environment, if there is one."""
    entry = MODELS.get(str(fast.settings.get("path")))
    if entry is None or not entry.remote_code or not python:
        return fast
    return replace(fast, python=python, settings={**fast.settings, "allow_remote_code": True})


def _models(
    fast: str, device: str, deadline: float, slow: str, slow_device: str
) -> tuple[tuple[FastConfig, ...], SlowConfig]:
    """The reflex and a model as FastBrains, and a model as SlowBrain."""
    chosen = {"path": fast, "device": device}
    model = FastConfig("transformers", chosen, deadline=deadline, seat="process")
    return (FastConfig(REFLEX), model), SlowConfig(
        "transformers", {"path": slow, "device": slow_device}
    )


def _profiles() -> Iterator[Profile]:
    """Review deadlines of embedded, server and hd-guard: DESIGN 3; the others are our choice.

    So are the FastBrains' deadlines, 0.4 s as in DESIGN 3 where the device should allow it: a load
    check measures whether it does.
    """
    yield Profile(
        "embedded",
        (FastConfig(REFLEX),),
        SlowConfig(REFLEX_SLOW),
        PolicyConfig(review_deadline=1.0),
    )
    yield Profile(
        "laptop",
        *_models("smolvlm2-2.2b", "cuda:0", 0.8, "qwen3-vl-2b", "cuda:0"),
        PolicyConfig(review_deadline=5.0),
        share_device=True,
        note="both models share one GPU: reviews delay verdicts",
    )
    yield Profile(
        "workstation",
        *_models("qwen3-vl-4b", "cuda:0", 0.4, "qwen3-vl-8b", "cuda:0"),
        PolicyConfig(review_deadline=5.0),
        share_device=True,
        note="with a second GPU, set the SlowBrain's device to cuda:1",
    )
    yield Profile(
        "hd-guard",
        *_models("minicpm-o-4.5", "cuda:0", 0.4, "qwen3-vl-30b-a3b-thinking", "cuda:1"),
        PolicyConfig(review_deadline=10.0),
        note="MiniCPM-o runs its own code: set remote_code_python to the environment for it",
    )
    yield Profile(
        "server",
        (
            FastConfig(REFLEX),
            FastConfig("openai", {"url": "http://127.0.0.1:8000/v1"}, deadline=0.5, seat="process"),
        ),
        SlowConfig("openai", {"url": "http://127.0.0.1:8001/v1"}),
        PolicyConfig(review_deadline=2.0),
        note="start the servers first",
    )


PROFILES = {profile.name: profile for profile in _profiles()}


@dataclass(frozen=True, slots=True)
class Robot:
    """What the largest safe speed depends on besides the profile.

    Attributes:
        distance: free distance in metres: from where a hazard can be seen to where it is.
        braking: deceleration of a halt, m/s^2.
        actuation: seconds from the halt to the brakes; 0.1 as `ReflexSettings.actuation`.
    """

    distance: float = 1.0
    braking: float = 1.0
    actuation: float = 0.1

    def __post_init__(self) -> None:
        for name, least in (("distance", 0.01), ("braking", 0.01), ("actuation", 0.0)):
            value = getattr(self, name)
            if not least <= value <= 100.0:
                msg = f"{name}: {value} must be {least:g} to 100"
                raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class SafeSpeeds:
    """Largest safe speeds in m/s.

    Attributes:
        red: for hazards that a FastBrain calls RED.
        review: for hazards that a FastBrain calls YELLOW and only the review calls dangerous.
    """

    red: float
    review: float


def safe_speed(reaction: float, robot: Robot) -> float:
    """Largest v, m/s, with v t + v^2 / (2 a) <= d, for a reaction time of t seconds."""
    a, d = robot.braking, robot.distance
    # The usual form a (sqrt(t^2 + 2 d / a) - t) loses digits where t is long.
    return 2.0 * d / (reaction + math.sqrt(reaction**2 + 2.0 * d / a))


def safe_speeds(profile: Profile, robot: Robot) -> SafeSpeeds:
    """Both speeds of a profile; see the head of this file."""
    red = profile.seen_to_judged() + NOTICED + REPEATED + robot.actuation
    review = red + 2.0 * profile.review_deadline
    return SafeSpeeds(safe_speed(red, robot), safe_speed(review, robot))


def fitting(fast: float, slow: float, *, model: bool) -> Profile | None:
    """The fastest profile whose deadlines bear these 99th percentiles in seconds; None: none does.

    Args:
        fast: of the slowest FastBrain; 0: none was measured.
        slow: of the SlowBrain; 0: it was not measured.
        model: a FastBrain is a model, so the profile must be made for one.
    """
    bear = [
        profile
        for profile in PROFILES.values()
        if profile.fast_deadline >= fast
        and profile.review_deadline >= slow
        and (profile.has_model or not model)
    ]
    return min(bear, key=lambda p: (p.fast_deadline, p.review_deadline), default=None)


def check_latency(policy: Policy, measured: Mapping[str, float]) -> None:
    """Refuse brains that, as measured on this machine, would miss their deadlines.

    Args:
        policy: with its brains and their deadlines, as the guard will have it.
        measured: the 99th percentile of an answer in seconds, by the brain's name; a brain that
            measures nothing when it is loaded is left out.

    Raises:
        ConfigError: names each such brain, its percentile and deadline, and the profile that fits.
    """
    deadlines = {plan.name: policy.deadline_of(plan) for plan in policy.brains}
    if policy.slow:
        deadlines[policy.slow] = policy.review_deadline
    late = []
    for name, p99 in measured.items():
        deadline = deadlines[name]
        if not (math.isfinite(p99) and p99 > 0.0):
            late.append(f"brain {name}: its latency could not be measured ({p99})")
        elif deadline is not None and p99 > deadline:
            late.append(
                f"brain {name}: takes {p99:.2f} s here (99th percentile of its warm-up), more than "
                f"its deadline of {deadline:g} s"
            )
    if late:
        raise ConfigError("\n".join([*late, _advice(policy, measured)]))


def _advice(policy: Policy, measured: Mapping[str, float]) -> str:
    """Which profile would do."""
    plans = {plan.name: plan for plan in policy.brains}
    by_fast = {name: p99 for name, p99 in measured.items() if name in plans}
    fast = max(by_fast.values(), default=0.0)
    slow = measured.get(policy.slow, 0.0)
    fits = None
    if all(math.isfinite(p99) and p99 > 0.0 for p99 in measured.values()):
        fits = fitting(fast, slow, model=any(name != REFLEX for name in by_fast))
    if fits is None:
        return (
            "no profile fits: take a smaller model or a faster device, or the profile embedded, "
            "which has no model; `hdguard models` shows what each allows"
        )
    # A profile changes no FastBrain that the settings name.
    own = [
        f"give brain {name} a deadline of at least {math.ceil(100 * p99) / 100:g} s "
        f"(settings of [[fast]]), as profile {fits.name} has"
        for name, p99 in by_fast.items()
        if p99 > (policy.deadline_of(plans[name]) or math.inf)
    ]
    return (
        f"--profile {fits.name} fits: {fits.fast_deadline:g} s, reviews {fits.review_deadline:g} s;"
        f" {''.join(f'or {each}; ' for each in own)}"
        "`hdguard models` shows the largest safe speed with it"
    )
