"""From a frame's capture to the broker's receipt of its halt, without the time that the brain took.

A 720p30 file in its own pace stands for the camera: decoded in its thread, converted to 448 x 448,
shown to a FastBrain in a process of its own that always says RED, decided, published. What is
measured is everything but the brain's own work: the wait for a sampled frame is not in it, since
each halt counts from the capture of the frame that caused it. Idle: the brain answers at once.
Busy: it works for 10 ms a frame while a SlowBrain in a third process keeps a core busy.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.broker import broker
from benchmarks.clips import clips
from benchmarks.ratio import Ratio
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.brains.base import BrainError
from hdguard.core import actions, events
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, Policy, SourcePlan
from hdguard.core.types import FrameRef, ImageSpec, Light
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.runtime.observer import Judged, Observer, Reviewed, Viewer
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.workers.seats import WorkerFastBrain, WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings

SEGMENT = 10.0
ROUNDS = 3
BRAIN_FPS = 15.0  # below the camera's 30, so that a halt is over before the next RED
BUSY_FOR = 0.01
LIMIT = 0.02  # seconds: DESIGN section 3's "software without model p99"
SPEC = ImageSpec(448, 448)
Onlookers = tuple[tuple[Observer, ...], tuple[Viewer, ...]]


@dataclass
class _Watch:
    """Notes what each halt took, less the brain's own time; ends the halt when it is delivered."""

    took: list[float] = field(default_factory=list)
    brain_took: dict[FrameRef, float] = field(default_factory=dict)
    delivered: asyncio.Queue[actions.Halt] = field(default_factory=asyncio.Queue)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing to time."""

    def stepped(self, now: float, event: events.Event, decided: tuple[actions.Action, ...]) -> None:
        """Note how long the brain had the frame."""
        if isinstance(event, events.FastVerdict) and event.light is Light.RED:
            self.brain_took = {event.ref: float(event.hazard.text)}


class _TimedActuator(MqttActuator):
    """Tells when the broker has a halt."""

    watch: _Watch

    async def halt(self, action: actions.Halt | actions.Release) -> None:
        """Publish it."""
        await super().halt(action)
        if isinstance(action, actions.Halt) and action.ref in self.watch.brain_took:
            # The clock that captured_at is read from, which the loop rounds to milliseconds.
            whole = time.perf_counter() - action.ref.captured_at
            self.watch.took.append(whole - self.watch.brain_took.pop(action.ref))
            self.watch.delivered.put_nowait(action)


def run() -> Iterator[Ratio]:
    """Alternate idle and busy segments; the p99 is over all segments of a kind."""
    took: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name:
        video = clips(Path(name))[0]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            for busy in [False, True] * ROUNDS:
                took[busy] += runner.run(_segment(video, busy=busy))
    for busy, all_took in took.items():
        yield Ratio(
            "capture to delivered without the brain p99 vs 20 ms, s "
            f"({'both brains busy' if busy else 'idle'}, n {len(all_took)}, "
            f"p50 {np.median(all_took):.4f})",
            float(np.percentile(all_took, 99)),
            LIMIT,
            1.0,
        )


async def _segment(video: Path, *, busy: bool) -> list[float]:
    fast = WorkerFastBrain(
        "benchmarks.timed_brain:TimedFastBrain",
        {"seconds": BUSY_FOR if busy else 0.0},
        "timed",
        SPEC,
        WorkerSettings(),
    )
    slow = WorkerSlowBrain(
        "benchmarks.busy_brain:BusySlowBrain", {"seconds": 1.0}, "busy", SPEC, WorkerSettings()
    )
    await fast.start()
    await slow.start()
    try:
        async with broker() as (_, port), asyncio.TaskGroup() as group:
            thinks = group.create_task(_think(slow), name="thinks") if busy else None
            took = await halts(video, fast, port)
            if thinks is not None:
                thinks.cancel()
    finally:
        await fast.close()
        await slow.close()
    return took


async def _think(slow: WorkerSlowBrain) -> None:
    """Review after review, whatever the guard is doing."""
    number = 0
    while True:
        number += 1
        with suppress(BrainError):
            await slow.review(number, FrameRef("bench", 0, 0.0, 0.0), ())


async def halts(
    video: Path,
    fast: WorkerFastBrain,
    port: int,
    onlookers: Callable[[Guard], Onlookers] = lambda _: ((), ()),
) -> list[float]:
    """What each halt of a segment took, less the brain's own time, in seconds.

    Args:
        video: stands for the camera.
        fast: says RED; started.
        port: of the broker.
        onlookers: who else looks on at that guard and at its pictures.
    """
    loop = asyncio.get_running_loop()
    source = FileSource(FileSettings(str(video), "camera", loop=True))
    policy = policy_for(fast.name)
    watch = _Watch()
    async with _TimedActuator(MqttSettings(port=port, robot="bench"), boot=1) as actuator:
        actuator.watch = watch
        await actuator.ready()
        guard = Guard(policy, loop.time(), boot=1)
        observers, viewers = onlookers(guard)
        brains = {fast.name: fast}
        parts = Parts((source,), brains, None, actuator, (watch, *observers), viewers)
        pipeline = Pipeline(guard, parts)

        async def until() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(SEGMENT):
                    while True:
                        _let_go(pipeline, await watch.delivered.get())

        await pipeline.run(until)
    return watch.took


def policy_for(brain: str) -> Policy:
    """A guard that one GREEN releases."""
    return replace(
        SIDECAR,
        sources=(SourcePlan("camera", when_frozen="ignore"),),
        brains=(BrainPlan(brain, adaptive=False, fps=BRAIN_FPS),),
        start_greens=1,
        release_greens=1,
    )


def _let_go(pipeline: Pipeline, halt: actions.Halt) -> None:
    """A GREEN and a reset, as if an operator had been quick: the next RED is a new halt."""
    now = asyncio.get_running_loop().time() + 1e-3
    assert halt.ref is not None
    green = FrameRef("camera", halt.ref.seq, now, halt.ref.media_time)
    pipeline.dispatch(events.FrameSeen(green))
    pipeline.dispatch(events.FastVerdict(green, "timed", Light.GREEN))
    pipeline.dispatch(events.ResetRequested(halt.halt_id, "bench"))
