"""Which brains there are, and where each of them sits: the brains' half of the composition root.

A brain's class says what it needs (an adaptive rate, a process of its own, time to load), its
settings say what it is, and the configuration says how it is used.
"""

import asyncio
import hashlib
import importlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import model_folder
from hdguard.brains.fingerprint import fingerprint
from hdguard.brains.prompts import prompt_path
from hdguard.config import ABSENT, Config, ConfigError, FastConfig, SlowConfig, settings_of
from hdguard.core.policy import HIGH_FPS, BrainPlan, Policy
from hdguard.profiles import PROFILES, check_latency
from hdguard.replay.runner import Crew
from hdguard.workers.base import FastSeat, Seat, SlowSeat
from hdguard.workers.inline import Cost, InlineFastSeat, InlineSlowSeat
from hdguard.workers.seats import WorkerFastBrain, WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from hdguard.workers.thread import ThreadFastSeat

FAST_BRAINS = {
    "reflex": "hdguard.brains.reflex:ReflexFastBrain",
    "trace": "hdguard.brains.trace:TraceFastBrain",
    "transformers": "hdguard.brains.transformers_fast:TransformersFastBrain",
    "generate": "hdguard.brains.transformers_generate:GenerateFastBrain",
    "openai": "hdguard.brains.openai_fast:OpenAIFastBrain",
}
SLOW_BRAINS = {
    "reflex-slow": "hdguard.brains.reflex_slow:ReflexSlowBrain",
    "trace": "hdguard.brains.trace:TraceSlowBrain",
    "transformers": "hdguard.brains.transformers_slow:TransformersSlowBrain",
    "openai": "hdguard.brains.openai_slow:OpenAISlowBrain",
}

NOBODY = "none"
"""The name of no SlowBrain."""

LOAD_TIMEOUT = 900.0
"""Seconds for a model to load, where nothing else is said: 61 GB of weights (Qwen3-VL-30B-A3B in
bf16) from a disk that gives 100 MB a second take ten minutes."""

Pace = Literal["realtime", "virtual"]
Chosen = FastConfig | SlowConfig
ChosenT = TypeVar("ChosenT", FastConfig, SlowConfig)


@dataclass(frozen=True, slots=True)
class Seating:
    """The chosen brains; plain values.

    Attributes:
        config: the configuration.
        pace: of the run.
        cost: what a brain costs in the virtual pace; None: what each brain declares.
    """

    config: Config
    pace: Pace
    cost: Cost | None = None

    @property
    def policy(self) -> Policy:
        """The policy with its brains.

        Raises:
            ConfigError: a brain's name is unknown, is used twice, or its settings are wrong; or
                two models would share a GPU.
        """
        config = self.config
        chosen = [
            (fast, _settings(FAST_BRAINS, fast, f"fast.{n}")) for n, fast in enumerate(config.fast)
        ]
        plans = tuple(_brain_plan(fast, settings.name) for fast, settings in chosen)
        every = [settings for _, settings in chosen]
        slow = ""
        if config.slow is not None:
            every.append(_settings(SLOW_BRAINS, config.slow, "slow"))
            slow = every[-1].name
        names = [settings.name for settings in every]
        if len(set(names)) < len(names):
            msg = f"two brains have one name: {sorted(names)}; set settings.name"
            raise ConfigError(msg)
        if self.pace == "virtual":
            _refuse_two_devices(every)
        elif not config.share_device:
            _refuse_shared_device(every)
        return replace(config.policy.policy(), brains=plans, slow=slow)

    @property
    def digests(self) -> dict[str, str]:
        """What every brain is made of, by the key that names it; "absent" where it is not there.

        With other content it is another brain, and a run made with it another run.
        """
        chosen: list[tuple[str, dict[str, str], Chosen]] = [
            (f"fast.{n}", FAST_BRAINS, fast) for n, fast in enumerate(self.config.fast)
        ]
        if self.config.slow is not None:
            chosen.append(("slow", SLOW_BRAINS, self.config.slow))
        found = {}
        for where, table, each in chosen:
            settings = _settings(table, each, where)
            for key, digest in _DIGESTS.items():
                if value := getattr(settings, key, ""):
                    found[f"{where}.settings.{key}"] = digest(value)
        return found

    @asynccontextmanager
    async def crew(self) -> AsyncIterator[Crew]:
        """The brains in their seats, ready; closed at the end.

        Raises:
            BrainError: one cannot be loaded or was not ready in time.
        """
        fast = [self._fast_seat(each) for each in self.config.fast]
        slow = self._slow_seat(self.config.slow) if self.config.slow else None
        seats: list[Seat] = [*fast, *([slow] if slow else [])]
        async with AsyncExitStack() as stack:
            for seat in seats:
                stack.push_async_callback(seat.close)
            starts = (seat.start() for seat in seats)
            for failure in await asyncio.gather(*starts, return_exceptions=True):
                if failure is not None:
                    raise failure
            yield Crew({seat.name: seat for seat in fast}, slow)

    def check_parsers(self) -> None:
        """Refuse what must not watch a real robot, before anything is loaded.

        Raises:
            ConfigError: names a brain that reads answers as the released code does.
        """
        for n, fast in enumerate(self.config.fast):
            if fast.settings.get("parser") == "released":
                msg = f"fast.{n}.settings.parser: released says GREEN to nonsense; set strict"
                raise ConfigError(msg)

    def check_live(self, crew: Crew) -> None:
        """Refuse what must not watch a real robot; once the brains are loaded.

        Raises:
            ConfigError: as `check_parsers`; or names a brain that is too slow here for its deadline
                and the profile that fits.
        """
        self.check_parsers()
        seats: list[Seat] = [*crew.fast.values(), *([crew.slow] if crew.slow else [])]
        measured = {seat.name: seat.warm_p99 for seat in seats}
        check_latency(self.policy, {k: v for k, v in measured.items() if v is not None})

    def _fast_seat(self, fast: FastConfig) -> FastSeat:
        target = FAST_BRAINS[fast.brain]
        kind = _resolve(target)
        settings = self._filled(_settings(FAST_BRAINS, fast, "fast"), self._deadline(fast))
        if self.pace == "virtual":
            build: Callable[[], Any] = partial(_brain, target, settings)
            return InlineFastSeat(build, self._cost(fast), fast.cost)
        if (fast.seat or default_seat(kind)) == "thread":
            # Not from the cache: a thread that is replaced must not share its brain with the old.
            return ThreadFastSeat(partial(kind, settings), self.config.worker.restarts_per_minute)
        worker = self._worker(fast, kind)
        return WorkerFastBrain(target, asdict(settings), settings.name, settings.spec, worker)

    def _slow_seat(self, slow: SlowConfig) -> SlowSeat:
        target = SLOW_BRAINS[slow.brain]
        deadline = self.config.policy.policy().review_deadline
        settings = self._filled(_settings(SLOW_BRAINS, slow, "slow"), deadline)
        if self.pace == "virtual":
            return InlineSlowSeat(partial(_brain, target, settings), self._cost(slow), slow.cost)
        worker = self._worker(slow, _resolve(target))
        return WorkerSlowBrain(target, asdict(settings), settings.name, settings.spec, worker)

    def _deadline(self, fast: FastConfig) -> float | None:
        return fast.deadline or self.config.policy.policy().fast_deadline

    def _filled(self, settings: Any, deadline: float | None) -> Any:
        """The settings, with what the run knows better than a brain.

        A brain that plays recorded time really takes it where time is real; one that has a
        deadline of its own and was given none learns the policy's.
        """
        known = {f.name for f in fields(settings)}
        if "play" in known:
            settings = replace(settings, play=self.pace == "realtime")
        if "deadline" in known and not settings.deadline and deadline is not None:
            settings = replace(settings, deadline=deadline)
        return settings

    def _cost(self, chosen: Chosen) -> Cost:
        return self.cost or ("trace" if chosen.brain == "trace" else "fixed")

    def _worker(self, chosen: Chosen, kind: Any) -> WorkerSettings:
        worker = self.config.worker
        loading = LOAD_TIMEOUT if default_seat(kind) == "process" else worker.ready_timeout
        return replace(
            worker,
            python=chosen.python or worker.python,
            ready_timeout=chosen.ready_timeout or max(loading, worker.ready_timeout),
        )


def default_seat(kind: Any) -> Literal["thread", "process"]:
    """Where a FastBrain of this class sits in realtime, unless the configuration says otherwise."""
    return "process" if getattr(kind, "own_process", False) else "thread"


def with_brains(config: Config, device: str | None = None) -> Config:
    """The configuration, with its profile's brains, or the embedded ones, where it names none.

    Args:
        config: as it was given.
        device: for every model that is not told where to sit, and for the profile's.

    Raises:
        ConfigError: there is no such profile.
    """
    if config.profile:
        if config.profile not in PROFILES:
            msg = f"profile: none is called {config.profile!r}; there are {', '.join(PROFILES)}"
            raise ConfigError(msg)
        given = config
        config = PROFILES[config.profile].applied(config)
        if device is not None and not given.fast:
            moved = (_on_device(FAST_BRAINS, each, device, over=True) for each in config.fast)
            config = replace(config, fast=tuple(moved))
        if device is not None and given.slow is None and config.slow is not None:
            config = replace(config, slow=_on_device(SLOW_BRAINS, config.slow, device, over=True))
    config = _with_device(config, device)
    fast = config.fast or (FastConfig("reflex"),)
    slow = config.slow
    if slow is None and all(each.brain == "reflex" for each in fast):
        slow = SlowConfig("reflex-slow")
    return replace(config, fast=fast, slow=None if slow and slow.brain == NOBODY else slow)


def _with_device(config: Config, device: str | None) -> Config:
    """The configuration, with this device for every model whose settings name none."""
    if device is None:
        return config
    fast = tuple(_on_device(FAST_BRAINS, each, device) for each in config.fast)
    slow = config.slow and _on_device(SLOW_BRAINS, config.slow, device)
    return replace(config, fast=fast, slow=slow)


def _on_device(
    table: dict[str, str], chosen: ChosenT, device: str, *, over: bool = False
) -> ChosenT:
    kind = _resolve(table[chosen.brain]) if chosen.brain in table else None
    if kind is None or all(f.name != "device" for f in fields(kind.Settings)):
        return chosen
    settings = {**chosen.settings, "device": device}
    return replace(chosen, settings=settings if over else {"device": device, **chosen.settings})


def argument_of(table: dict[str, str], brain: str) -> str:
    """The setting that `--fast NAME:VALUE` sets, `path` for most."""
    return getattr(_resolve(table[brain]), "argument", "path") if brain in table else "path"


def _brain_plan(fast: FastConfig, name: str) -> BrainPlan:
    """What the guard must know of a FastBrain; the brain knows if it bears 1 frame a second."""
    kind = _resolve(FAST_BRAINS[fast.brain])
    adaptive = kind.adaptive if fast.adaptive is None else fast.adaptive
    if not kind.adaptive and (adaptive or fast.fps < HIGH_FPS):
        msg = f"brain {name}: it misses below {HIGH_FPS:g} frames a second: leave adaptive and fps"
        raise ConfigError(msg)
    if fast.seat == "thread" and default_seat(kind) == "process":
        msg = f"brain {name}: seat: a model must have a process of its own, where it can be killed"
        raise ConfigError(msg)
    return BrainPlan(name, fast.required, adaptive, fast.fps, fast.deadline)


def _refuse_shared_device(every: list[Any]) -> None:
    """Two processes take turns on a GPU, so each one's slowest answer contains the other's work."""
    seen: dict[str, str] = {}
    for settings in every:
        device = getattr(settings, "device", "cpu")
        if device == "cpu":
            continue
        if any(d.startswith("cuda:") != device.startswith("cuda:") for d in seen):
            msg = (
                f"brains {', '.join(seen.values())} and {settings.name} name their GPUs in two ways"
                ", so nothing tells whether they share one: name both by cuda:N or both by UUID, "
                "or set share_device = true"
            )
            raise ConfigError(msg)
        if device in seen:
            msg = (
                f"brains {seen[device]} and {settings.name} would share {device}: give them a "
                "device each, or set share_device = true and measure FastBrain's p99"
            )
            raise ConfigError(msg)
        seen[device] = settings.name


def _refuse_two_devices(every: list[Any]) -> None:
    """Inline brains live in one process, which sees one device."""
    devices = {s.device for s in every if hasattr(s, "device")}
    if len(devices) > 1:
        msg = (
            f"--pace virtual calls brains in one process, which has one device, not "
            f"{sorted(devices)}: record in realtime and replay the trace"
        )
        raise ConfigError(msg)


def _resolve(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _settings(table: dict[str, str], chosen: Chosen, where: str) -> Any:
    """The chosen brain's own settings, checked."""
    if chosen.brain not in table:
        msg = f"{where}.brain: no brain is called {chosen.brain!r}; there are {sorted(table)}"
        raise ConfigError(msg)
    kind = _resolve(table[chosen.brain])
    return settings_of(kind.Settings, chosen.settings, f"{where}.settings")


@cache
def _brain(target: str, settings: Any) -> Any:
    """A brain of this process: it is loaded once and outlives the video's event loop."""
    return _resolve(target)(settings)


def _digest_of_file(path: str | Path) -> str:
    path = Path(path)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ABSENT


def _digest_of_path(path: str) -> str:
    """A file's content; of a model's folder, or a fetched model's, its fingerprint."""
    if Path(path).is_file():
        return _digest_of_file(path)
    try:
        return fingerprint(model_folder(path))
    except BrainError:
        return ABSENT


_DIGESTS: dict[str, Callable[[str], str]] = {
    "path": _digest_of_path,
    "prompt": lambda name: _digest_of_file(prompt_path(name)),
    "calibration": _digest_of_file,
}
