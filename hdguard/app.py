"""The composition root: the only file that names concrete parts and puts them together."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import uvloop

from hdguard import __version__
from hdguard.actuators.base import Actuator, ActuatorError
from hdguard.actuators.broker import EmbeddedBroker
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.actuators.recording import RecordingActuator
from hdguard.brains.base import BrainError
from hdguard.brains.trace import TraceRecorder, write_trace
from hdguard.config import (
    Config,
    ConfigError,
    FastConfig,
    SlowConfig,
    digests,
    settings_of,
    shown,
)
from hdguard.core.policy import HIGH_FPS, BrainPlan, Policy
from hdguard.demo_robot import Chassis, run_demo_robot
from hdguard.ingest.base import FrameSource, SourceError
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.replay.campaign import Done, run_here, run_in_pool
from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import Outcome, VideoResult, video_result
from hdguard.replay.runner import BOOT, Crew, VideoSettings, run_video
from hdguard.robot import RobotSettings
from hdguard.runtime.observer import Observer
from hdguard.runtime.virtual_time import run_virtual
from hdguard.workers.base import FastSeat, Seat, SlowSeat
from hdguard.workers.inline import Cost, InlineFastSeat, InlineSlowSeat
from hdguard.workers.seats import WorkerFastBrain, WorkerSlowBrain
from hdguard.workers.thread import ThreadFastSeat

FAST_BRAINS = {
    "reflex": "hdguard.brains.reflex:ReflexFastBrain",
    "trace": "hdguard.brains.trace:TraceFastBrain",
}
SLOW_BRAINS = {
    "reflex-slow": "hdguard.brains.reflex_slow:ReflexSlowBrain",
    "trace": "hdguard.brains.trace:TraceSlowBrain",
}

READY_WITHIN = 5.0
"""Seconds; the embedded broker answers in milliseconds."""

EXAMPLES = Path(__file__).parent / "examples" / "clips"

NOBODY = "none"
"""The name of no SlowBrain."""

Pace = Literal["realtime", "virtual"]


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """How a replay is made; plain values, so that worker processes get it whole.

    Attributes:
        config: the configuration.
        pace: the pace.
        cost: what a brain costs in the virtual pace; None: what each brain declares.
        drain: seconds that open reviews are awaited; None: the policy's review deadline.
    """

    config: Config
    pace: Pace = "realtime"
    cost: Cost | None = None
    drain: float | None = None

    @property
    def policy(self) -> Policy:
        """The policy with its brains.

        Raises:
            ConfigError: a brain's name is unknown, is used twice, or its settings are wrong.
        """
        config = self.config
        plans = [
            _brain_plan(fast, _settings(FAST_BRAINS, fast, f"fast.{n}").name)
            for n, fast in enumerate(config.fast)
        ]
        slow = _settings(SLOW_BRAINS, config.slow, "slow").name if config.slow else ""
        names = [plan.name for plan in plans] + ([slow] if slow else [])
        if len(set(names)) < len(names):
            msg = f"two brains have one name: {sorted(names)}; set settings.name"
            raise ConfigError(msg)
        return replace(config.policy.policy(), brains=tuple(plans), slow=slow)

    @property
    def header(self) -> dict[str, Any]:
        """What stands at the head of the results: all that another run must share to be resumed."""
        policy = self.policy
        return {
            "hdguard": __version__,
            "policy": policy.name,
            "pace": self.pace,
            "cost": self.cost or "declared",
            "drain": self.drain_seconds(policy),
            "settings": shown(self.config),
            "files": digests(self.config),
        }

    def drain_seconds(self, policy: Policy) -> float:
        """Seconds that open reviews are awaited."""
        return policy.review_deadline if self.drain is None else self.drain

    def video_settings(self, folder: RunFolder) -> VideoSettings:
        """How each video is run."""
        policy = self.policy
        return VideoSettings(
            policy=policy,
            drain=self.drain_seconds(policy),
            stop_time=self.config.robot.stop_time,
            journals=folder.journals,
            flush_every=0.5 if self.pace == "realtime" else 0.0,
        )


def with_brains(config: Config) -> Config:
    """The configuration, with the embedded brains where it names no FastBrain."""
    fast = config.fast or (FastConfig("reflex"),)
    slow = config.slow
    if slow is None and all(each.brain == "reflex" for each in fast):
        slow = SlowConfig("reflex-slow")
    return replace(config, fast=fast, slow=None if slow and slow.brain == NOBODY else slow)


def _brain_plan(fast: FastConfig, name: str) -> BrainPlan:
    """What the guard must know of a FastBrain; the brain knows if it bears 1 frame a second."""
    bears = _resolve(FAST_BRAINS[fast.brain]).adaptive
    adaptive = bears if fast.adaptive is None else fast.adaptive
    if not bears and (adaptive or fast.fps < HIGH_FPS):
        msg = f"brain {name}: it misses below {HIGH_FPS:g} frames a second: leave adaptive and fps"
        raise ConfigError(msg)
    return BrainPlan(name, fast.required, adaptive, fast.fps, fast.deadline)


def _resolve(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _settings(table: dict[str, str], chosen: FastConfig | SlowConfig, where: str) -> Any:
    """The chosen brain's own settings, checked."""
    if chosen.brain not in table:
        msg = f"{where}.brain: no brain is called {chosen.brain!r}; there are {sorted(table)}"
        raise ConfigError(msg)
    kind = _resolve(table[chosen.brain])
    return settings_of(kind.Settings, chosen.settings, f"{where}.settings")


def _playing(settings: Any, pace: Pace) -> Any:
    """A brain that plays recorded time really takes it where time is real."""
    if any(f.name == "play" for f in fields(settings)):
        return replace(settings, play=pace == "realtime")
    return settings


@cache
def _brain(target: str, settings: Any) -> Any:
    """A brain of this process: it is loaded once and outlives the video's event loop."""
    return _resolve(target)(settings)


def _cost(plan: ReplayPlan, brain: str) -> Cost:
    return plan.cost or ("trace" if brain == "trace" else "fixed")


def _fast_seat(plan: ReplayPlan, fast: FastConfig) -> FastSeat:
    target = FAST_BRAINS[fast.brain]
    settings = _playing(_settings(FAST_BRAINS, fast, "fast"), plan.pace)
    build: Callable[[], Any] = partial(_brain, target, settings)
    if plan.pace == "virtual":
        return InlineFastSeat(build, _cost(plan, fast.brain), fast.cost)
    if fast.seat == "thread":
        # Not from the cache: a thread that is replaced must not share its brain with the old one.
        return ThreadFastSeat(
            partial(_resolve(target), settings), plan.config.worker.restarts_per_minute
        )
    return WorkerFastBrain(
        target, asdict(settings), settings.name, settings.spec, plan.config.worker
    )


def _slow_seat(plan: ReplayPlan, slow: SlowConfig) -> SlowSeat:
    target = SLOW_BRAINS[slow.brain]
    settings = _playing(_settings(SLOW_BRAINS, slow, "slow"), plan.pace)
    if plan.pace == "virtual":
        build = partial(_brain, target, settings)
        return InlineSlowSeat(build, _cost(plan, slow.brain), slow.cost)
    return WorkerSlowBrain(
        target, asdict(settings), settings.name, settings.spec, plan.config.worker
    )


@asynccontextmanager
async def crew(plan: ReplayPlan) -> AsyncIterator[Crew]:
    """The brains in their seats, ready; closed at the end.

    Raises:
        BrainError: one cannot be loaded or was not ready in time.
    """
    fast = [_fast_seat(plan, each) for each in plan.config.fast]
    slow = _slow_seat(plan, plan.config.slow) if plan.config.slow else None
    seats: list[Seat] = [*fast, *([slow] if slow else [])]
    async with AsyncExitStack() as stack:
        for seat in seats:
            stack.push_async_callback(seat.close)
        started = await asyncio.gather(*(seat.start() for seat in seats), return_exceptions=True)
        for failure in started:
            if failure is not None:
                raise failure
        yield Crew({seat.name: seat for seat in fast}, slow)


class ReplayStage:
    """What each video gets anew.

    Args:
        plan: of the replay.
        broker: the embedded broker, where there is one: then the robot is on the wire.
        watch: makes an observer for each video, for people who look on.
    """

    def __init__(
        self,
        plan: ReplayPlan,
        broker: EmbeddedBroker | None = None,
        watch: Callable[[Entry], Observer] | None = None,
    ) -> None:
        self._plan = plan
        self._broker = broker
        self._watch = watch
        self._robots = 0

    def source(self, entry: Entry) -> FrameSource:
        """The entry's file."""
        config = self._plan.config.source
        return FileSource(
            FileSettings(
                path=str(entry.path),
                source_id=entry.video,
                ignore_regions=config.ignore_regions,
                image_fps=config.image_fps,
                decode="inline" if self._plan.pace == "virtual" else "thread",
            )
        )

    @asynccontextmanager
    async def actuator(self, entry: Entry) -> AsyncIterator[Actuator]:
        """The ideal robot; with a broker, a demo robot that every message really goes to."""
        if self._broker is None:
            yield RecordingActuator(self._plan.config.robot)
            return
        # Another robot with each video: what the broker retains of the last is not its business.
        self._robots += 1
        where: dict[str, Any] = {"port": self._broker.port, "robot": f"replay-{self._robots}"}
        policy = self._plan.policy
        brains = (*(b.name for b in policy.brains), *filter(None, [policy.slow]))
        guard = MqttActuator(MqttSettings(**where), BOOT, sources=(entry.video,), brains=brains)
        chassis = Chassis.that_stops_in(self._plan.config.robot.stop_time)
        async with guard, asyncio.TaskGroup() as group:
            robot = run_demo_robot(RobotSettings(**where, boot=1), chassis)
            driving = group.create_task(robot, name="demo robot")
            try:
                async with asyncio.timeout(READY_WITHIN):
                    await guard.ready()
            except TimeoutError:
                msg = f"the embedded broker returned nothing in {READY_WITHIN:g} s"
                raise ActuatorError(msg) from None
            yield guard
            driving.cancel()

    def observers(self, entry: Entry) -> tuple[Observer, ...]:
        """Who else looks on."""
        return () if self._watch is None else (self._watch(entry),)

    def recorder(self) -> TraceRecorder:
        """The trace's notebook."""
        return TraceRecorder()


async def _run(
    plan: ReplayPlan, entry: Entry, ready: Crew, stage: ReplayStage, folder: RunFolder
) -> VideoResult:
    try:
        outcome, trace = await run_video(entry, ready, stage, plan.video_settings(folder))
    except* (BrainError, SourceError, ActuatorError, OSError) as failed:
        # One video must not take the others down; it stays in n and is named.
        outcome, trace = Outcome(failed="; ".join(_leaves(failed))), {}
    video = video_result(entry, outcome)
    folder.save(entry, video, trace)
    return video


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[str]:
    found: list[str] = []
    for error in group.exceptions:
        said = str(error) or type(error).__name__
        inner = _leaves(error) if isinstance(error, BaseExceptionGroup) else [said]
        found.extend(inner)
    return found


async def _run_one(plan: ReplayPlan, entry: Entry, folder: RunFolder) -> VideoResult:
    async with crew(plan) as ready:
        return await _run(plan, entry, ready, ReplayStage(plan), folder)


def run_virtually(plan: ReplayPlan, folder: RunFolder, entry: Entry) -> VideoResult:
    """Run one video in virtual time; what a worker process does."""
    return run_virtual(_run_one(plan, entry, folder))


async def _run_in_realtime(
    plan: ReplayPlan,
    entries: Sequence[Entry],
    folder: RunFolder,
    done: Done,
    watch: Callable[[Entry], Observer] | None,
) -> None:
    async with crew(plan) as ready, EmbeddedBroker(plan.config.broker) as broker:
        stage = ReplayStage(plan, broker, watch)
        for entry in entries:
            done(await _run(plan, entry, ready, stage, folder))


def replay(
    plan: ReplayPlan,
    entries: Sequence[Entry],
    folder: RunFolder,
    done: Done,
    *,
    workers: int = 1,
    watch: Callable[[Entry], Observer] | None = None,
) -> None:
    """Run the entries; each finished one is in the folder before `done` hears of it.

    Args:
        plan: how.
        entries: which.
        folder: where to.
        done: hears of each finished video.
        workers: processes, in the virtual pace.
        watch: makes an observer for each video, in realtime.

    Raises:
        ConfigError: as `check_workers`.
        BrainError: a brain cannot be loaded.
    """
    check_workers(plan, workers)
    if plan.pace == "realtime":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run_in_realtime(plan, entries, folder, done, watch))
        return
    work = partial(run_virtually, plan, folder)
    if workers > 1:
        run_in_pool(entries, work, done, workers=workers, folder=folder)
    else:
        run_here(entries, work, done)


def check_brains(plan: ReplayPlan) -> None:
    """Load nothing, but check every brain's name and settings; a `ConfigError` if one is wrong."""
    _ = plan.policy


def check_workers(plan: ReplayPlan, workers: int) -> None:
    """In realtime one video at a time has the device: several workers are a `ConfigError`."""
    if plan.pace == "realtime" and workers > 1:
        msg = "--workers above 1 needs --pace virtual: in realtime they would share one device"
        raise ConfigError(msg)


def merge_traces(folder: RunFolder, entries: Sequence[Entry]) -> dict[str, Any]:
    """One trace of all finished videos."""
    recorder = TraceRecorder()
    for data in folder.traces(entries):
        recorder.merge(data)
    return recorder.data()


def save_trace(folder: RunFolder, entries: Sequence[Entry]) -> None:
    """Write the trace of all finished videos, to be replayed with the brain `trace`."""
    write_trace(folder.path / "trace.json", merge_traces(folder, entries))
