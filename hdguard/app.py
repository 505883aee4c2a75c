"""The composition root: it alone, with `seating` for the brains, names concrete parts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from hdguard import __version__
from hdguard.actuators.base import Actuator, ActuatorError
from hdguard.actuators.broker import EmbeddedBroker
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.actuators.recording import RecordingActuator
from hdguard.brains.base import BrainError
from hdguard.brains.trace import TraceRecorder, write_trace
from hdguard.config import LIVE_KEYS, Config, ConfigError, shown
from hdguard.core.guard import Guard
from hdguard.core.policy import Policy
from hdguard.demo_robot import Chassis, run_demo_robot
from hdguard.ingest.base import FrameSource, SourceError
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.observe.incidents.recorder import Recorder
from hdguard.recording import check_recording, make_recorder, recording
from hdguard.replay.campaign import Done, run_here, run_in_pool
from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import Outcome, VideoResult, video_result
from hdguard.replay.runner import BOOT, Crew, VideoSettings, run_video
from hdguard.robot import RobotSettings
from hdguard.runtime.error_groups import leaves
from hdguard.runtime.observer import Observer, Viewer
from hdguard.runtime.virtual_time import run_virtual
from hdguard.seating import Pace, Seating
from hdguard.workers.inline import Cost

if TYPE_CHECKING:
    from hdguard.demo_page import DemoPage  # it loads a web server

OpenPage = Callable[[Policy], AbstractAsyncContextManager["DemoPage"]]
"""Serves a demo's page, given the policy of every clip's guard."""

READY_WITHIN = 5.0
"""Seconds; the embedded broker answers in milliseconds."""

EXAMPLES = Path(__file__).parent / "examples" / "clips"


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """How a replay is made; plain values, so that worker processes get it whole.

    Attributes:
        config: the configuration.
        pace: the pace.
        cost: what a brain costs in the virtual pace; None: what each brain declares.
        drain: seconds that open reviews are awaited; None: the policy's review deadline.
        incidents: record the seconds around every halt, in the run's folder; realtime only.
    """

    config: Config
    pace: Pace = "realtime"
    cost: Cost | None = None
    drain: float | None = None
    incidents: bool = False

    @property
    def seating(self) -> Seating:
        """The brains."""
        return Seating(self.config, self.pace, self.cost)

    @property
    def policy(self) -> Policy:
        """The policy with its brains; a `ConfigError` if they are wrong."""
        return self.seating.policy

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
            "settings": {k: v for k, v in shown(self.config).items() if k not in LIVE_KEYS},
            "files": self.seating.digests,
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


class ReplayStage:
    """What each video gets anew.

    Args:
        plan: of the replay.
        broker: the embedded broker, where there is one: then the robot is on the wire.
        watch: makes an observer for each video, for people who look on.
        incidents: records what leads to a halt, and what follows; None: nothing is recorded.
        page: shows each video while it runs; None: there is none.
    """

    def __init__(
        self,
        plan: ReplayPlan,
        broker: EmbeddedBroker | None = None,
        watch: Callable[[Entry], Observer] | None = None,
        incidents: Recorder | None = None,
        page: "DemoPage | None" = None,
    ) -> None:
        self._plan = plan
        self._broker = broker
        self._watch = watch
        self._incidents = incidents
        self._page = page
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
        if self._page is not None:
            self._page.link = guard
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

    def observers(self, entry: Entry, guard: Guard) -> tuple[Observer, ...]:
        """Who else looks on."""
        watching = () if self._watch is None else (self._watch(entry),)
        shown = () if self._page is None else self._page.begins(entry, guard)
        return (*watching, *shown, *self._recording(entry))

    def viewers(self, entry: Entry) -> tuple[Viewer, ...]:
        """Who looks at the pictures."""
        shown = () if self._page is None else (self._page.pictures,)
        return (*shown, *self._recording(entry))

    def _recording(self, entry: Entry) -> tuple[Recorder, ...]:
        if self._incidents is None:
            return ()
        self._incidents.concerns(entry.video, f"{entry.slug}-")  # every guard's ids are the same
        return (self._incidents,)

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
        said = (str(error) or type(error).__name__ for error in leaves(failed))
        outcome, trace = Outcome(failed="; ".join(said)), {}
    video = video_result(entry, outcome)
    folder.save(entry, video, trace)
    return video


async def _run_one(plan: ReplayPlan, entry: Entry, folder: RunFolder) -> VideoResult:
    async with plan.seating.crew() as ready:
        return await _run(plan, entry, ready, ReplayStage(plan), folder)


def run_virtually(plan: ReplayPlan, folder: RunFolder, entry: Entry) -> VideoResult:
    """Run one video in virtual time; what a worker process does."""
    return run_virtual(_run_one(plan, entry, folder))


async def _run_in_realtime(
    plan: ReplayPlan,
    entries: Iterable[Entry],
    folder: RunFolder,
    done: Done,
    watch: Callable[[Entry], Observer] | None,
    open_page: OpenPage | None = None,
) -> None:
    async with AsyncExitStack() as stack:
        page: DemoPage | None = None
        if open_page is not None:
            page = await stack.enter_async_context(open_page(plan.policy))
        ready = await stack.enter_async_context(plan.seating.crew())
        broker = await stack.enter_async_context(EmbeddedBroker(plan.config.broker))
        incidents: Recorder | None = None
        if plan.incidents:
            made = make_recorder(plan.seating, plan.policy, ready, folder.incidents, boot=BOOT)
            incidents = await stack.enter_async_context(recording(made))
        stage = ReplayStage(plan, broker, watch, incidents, page)
        for entry in entries:
            done(video := await _run(plan, entry, ready, stage, folder))
            if incidents is not None:
                await incidents.cut()
            if page is not None:
                await page.ended(video)
        if page is not None:
            page.finish()


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
        _really(_run_in_realtime(plan, entries, folder, done, watch))
        return
    work = partial(run_virtually, plan, folder)
    if workers > 1:
        run_in_pool(entries, work, done, workers=workers, folder=folder)
    else:
        run_here(entries, work, done)


def demonstrate(
    plan: ReplayPlan,
    entries: Iterable[Entry],
    folder: RunFolder,
    watch: Callable[[Entry], Observer],
    page: OpenPage | None,
) -> None:
    """Run the entries, perhaps without end, for people who look on at a terminal or at a page.

    Raises:
        ConfigError: as `check_workers`.
        BrainError: a brain cannot be loaded.
        HttpError: the page cannot be served.
    """
    check_workers(plan, 1)
    _really(_run_in_realtime(plan, entries, folder, lambda _: None, watch, page))


def _really(run: Coroutine[Any, Any, None]) -> None:
    """Run it in real time; of errors that come in a group, the first is raised alone."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run)
    except ExceptionGroup as failed:
        raise next(leaves(failed)) from failed


def check_brains(plan: ReplayPlan) -> None:
    """Load nothing, but check every brain's name and settings; a `ConfigError` if one is wrong."""
    _ = plan.policy


def check_workers(plan: ReplayPlan, workers: int) -> None:
    """Refuse what the pace does not bear: workers that share a device, or a recorder's thread.

    Raises:
        ConfigError: says which.
    """
    if plan.incidents:
        check_recording(plan.config)
    if plan.incidents and plan.pace != "realtime":
        msg = "--incidents needs --pace realtime: in the virtual pace there are no pictures to keep"
        raise ConfigError(msg)
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
