"""Runs one video through the pipeline, as a camera would have shown it, and notes the outcome."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hdguard.actuators.base import Actuator
from hdguard.core.events import SelfTestPassed
from hdguard.core.guard import Guard
from hdguard.core.policy import Policy, SourcePlan
from hdguard.ingest.base import FrameSource
from hdguard.replay.collector import Collector
from hdguard.replay.dataset import Entry
from hdguard.replay.results import Outcome, Source
from hdguard.replay.tracing import Recorder, TraceKeeper
from hdguard.runtime.journal import Journal
from hdguard.runtime.observer import Observer, Viewer
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.workers.base import FastSeat, SlowSeat

BOOT = 1
"""Every video has a guard and a robot of its own, so that none is older than another."""

CONFIRM_WITHIN = 3.0
"""Seconds, above its stop time, that a replay waits for the robot's word that it stands still."""

SETTLE_WITHIN = 120.0
"""Seconds after a video's end in which a FastBrain without a deadline must answer its last frame; a
`TimeoutError` then fails the video, and not the whole run."""

JUST = 1e-3
"""Seconds; a review that is due exactly when the drain ends is still heard."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Who judges: seats that have been started, and live longer than one video."""

    fast: Mapping[str, FastSeat]
    slow: SlowSeat | None


class Stage(Protocol):
    """What the composition root makes for each video."""

    def source(self, entry: Entry) -> FrameSource:
        """The entry's frames."""
        ...

    def actuator(self, entry: Entry) -> AbstractAsyncContextManager[Actuator]:
        """The way to a robot that starts anew with each video."""
        ...

    def observers(self, entry: Entry, guard: Guard) -> tuple[Observer, ...]:
        """Who else looks on at the guard that runs it."""
        ...

    def viewers(self, entry: Entry) -> tuple[Viewer, ...]:
        """Who looks at the pictures."""
        ...

    def recorder(self) -> Recorder:
        """Where the video's trace is noted."""
        ...


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """How a video is run.

    Attributes:
        policy: with its brains; the source is filled in per video.
        drain: seconds that open reviews are awaited after the end; 0 drops them.
        stop_time: seconds from issued to stopped where no robot confirms.
        journals: folder for the journals, or None.
        flush_every: seconds between journal flushes; 0: once, at the end.
    """

    policy: Policy
    drain: float
    stop_time: float
    journals: Path | None = None
    flush_every: float = 0.0


async def run_video(
    entry: Entry, crew: Crew, stage: Stage, settings: VideoSettings
) -> tuple[Outcome, dict[str, Any]]:
    """Run one video to its first danger halt or its end.

    The crew must be ready. Returns what was seen, and the trace of every answer.
    """
    loop = asyncio.get_running_loop()
    policy = replace(settings.policy, sources=(SourcePlan(entry.video, when_frozen="ignore"),))
    guard = Guard(policy, loop.time(), boot=BOOT)
    collector, recorder = Collector(), stage.recorder()
    observers: list[Observer] = [collector, TraceKeeper(recorder), *stage.observers(entry, guard)]
    journal = None
    if settings.journals is not None:
        path = settings.journals / f"{entry.slug}.jsonl"
        journal = Journal(path, guard, loop.time(), {"video": entry.video})
        observers.append(journal)
    source, viewers = stage.source(entry), stage.viewers(entry)
    try:
        async with stage.actuator(entry) as actuator, asyncio.TaskGroup() as group:
            parts = Parts((source,), crew.fast, crew.slow, actuator, tuple(observers), viewers)
            pipeline = Pipeline(guard, parts)
            keeper = group.create_task(_keep(journal, settings.flush_every), name="journal")
            await _run_through(pipeline, collector, settings.drain, settings.stop_time)
            keeper.cancel()
    finally:
        if journal is not None:
            journal.flush()
    outcome = _outcome(pipeline, collector, source, settings.stop_time)
    return outcome, _with_origins(recorder.data(), crew)


def _with_origins(trace: dict[str, Any], crew: Crew) -> dict[str, Any]:
    """A trace that says what a repetition must know of the brains.

    Which model gave the scores, for a calibration holds for that one only; and whether the
    SlowBrain could be interrupted.
    """
    for name, brain in trace.get("fast", {}).items():
        if fingerprint := crew.fast[name].fingerprint:
            brain["fingerprint"] = fingerprint
    slow = crew.slow
    if slow is not None and slow.interruptible and slow.name in trace.get("slow", {}):
        trace["slow"][slow.name]["interruptible"] = True
    return trace


async def _run_through(
    pipeline: Pipeline, collector: Collector, drain: float, stop_time: float
) -> None:
    async def until() -> None:
        await _until_over(pipeline, collector, drain, stop_time)
        collector.closed = True
        await pipeline.rest()  # the next video's brains are these

    pipeline.dispatch(SelfTestPassed())
    await pipeline.run(until)


async def _keep(journal: Journal | None, every: float) -> None:
    """Write the journal from a thread of the executor, so that a slow disk delays nothing."""
    while journal is not None and every > 0:
        await asyncio.sleep(every)
        await asyncio.to_thread(journal.flush)


async def _until_over(
    pipeline: Pipeline, collector: Collector, drain: float, stop_time: float
) -> None:
    """Wait for the first danger halt and the robot's word, or for the end and the open reviews."""
    async with asyncio.TaskGroup() as group:
        danger = group.create_task(collector.danger.wait(), name="danger")
        over = group.create_task(_drained(pipeline, collector, drain), name="over")
        await asyncio.wait({danger, over}, return_when=asyncio.FIRST_COMPLETED)
        danger.cancel()
        over.cancel()
    if collector.danger.is_set():
        try:
            async with asyncio.timeout(stop_time + CONFIRM_WITHIN):
                await collector.confirmed.wait()
        except TimeoutError:
            return  # the report says that nobody confirmed


async def _drained(pipeline: Pipeline, collector: Collector, drain: float) -> None:
    await collector.ended.wait()
    async with asyncio.timeout(SETTLE_WITHIN):
        await pipeline.settled()
    if drain > 0 and not collector.reviewed.is_set():
        try:
            async with asyncio.timeout(drain + JUST):
                await collector.reviewed.wait()
        except TimeoutError:
            return  # dropped, as the setting says


def _outcome(
    pipeline: Pipeline, collector: Collector, source: FrameSource, stop_time: float
) -> Outcome:
    report = source.report
    error = pipeline.source_errors.get(source.source_id)
    problems = report.problems if error is None else (*report.problems, str(error))
    return Outcome(
        warning=collector.warned(stop_time),
        fault_halts=collector.fault_halts(),
        watched=collector.watched(),
        stages=collector.stages(),
        verdicts=dict(collector.verdicts),
        dropped=sum(m.dropped for m in pipeline.mailboxes.values()) + pipeline.stale,
        source=Source(
            frames=report.frames,
            corrupt=report.corrupt,
            repaired=report.repaired,
            problems=problems,
        ),
        failed=str(error) if error and report.frames == 0 else collector.unjudged or None,
    )
