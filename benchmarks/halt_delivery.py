"""From decided to delivered, against a bare awaited QoS 1 publish.

Same broker, payload, rate and process, in turn; and the process is as busy as a guard's: every 5 ms
it does 1 ms of other work, and permits and states go out. What is above 1 is our price: outbox,
wire format, and the one task that waits for each receipt.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import aiomqtt
import numpy as np
import uvloop

from benchmarks.broker import broker
from benchmarks.ratio import Ratio
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.core import actions, events
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.core.types import FrameRef, Light
from hdguard.ingest.base import FrameSource
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Parts, Pipeline

ROUNDS = 2_000
EVERY = 0.01
BUSY_EVERY, BUSY_FOR = 0.005, 0.001
P50_GOAL, P99_GOAL = 1.5, 3.0


@dataclass
class _Stopwatch:
    """Stops between a halt's decision and its delivery; the loop's own clock is too coarse."""

    decided: float = 0.0
    took: list[float] = field(default_factory=list)
    delivered: asyncio.Event = field(default_factory=asyncio.Event)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing to time."""

    def stepped(self, now: float, event: events.Event, decided: tuple[actions.Action, ...]) -> None:
        """Note it."""
        if any(isinstance(a, actions.Halt) and a.repeat == 0 for a in decided):
            self.decided = time.perf_counter()


class _TimedActuator(MqttActuator):
    """Stops the watch when the broker has the halt."""

    watch: _Stopwatch

    async def halt(self, action: actions.Halt | actions.Release) -> None:
        """Publish it."""
        await super().halt(action)
        if isinstance(action, actions.Halt):
            self.watch.took.append(time.perf_counter() - self.watch.decided)
            self.watch.delivered.set()


def run() -> Iterator[Ratio]:
    """Measure, interleaved."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        name, ours, bare = runner.run(_measure())
    for which, percent, goal in (("p50", 50, P50_GOAL), ("p99", 99, P99_GOAL)):
        yield Ratio(
            f"decided to delivered {which} vs bare QoS 1 publish, s ({name}, n {len(ours)})",
            float(np.percentile(ours, percent)),
            float(np.percentile(bare, percent)),
            goal,
        )


async def _measure() -> tuple[str, list[float], list[float]]:
    loop = asyncio.get_running_loop()
    policy = replace(
        SIDECAR,
        sources=(SourcePlan("camera"),),
        brains=(BrainPlan("fast"),),
        start_greens=1,
        release_greens=1,
    )
    watch = _Stopwatch()
    bare: list[float] = []
    async with broker() as (name, port):
        settings = MqttSettings(port=port, robot="bench")
        async with (
            _TimedActuator(settings, boot=1) as actuator,
            aiomqtt.Client("127.0.0.1", port) as client,
        ):
            actuator.watch = watch
            await actuator.ready()
            sources: tuple[FrameSource, ...] = ()
            parts = Parts(sources, {}, None, actuator, (watch,))
            pipeline = Pipeline(Guard(policy, loop.time(), boot=1), parts)
            payload = b"x" * 450  # a halt message's size

            async def rounds() -> None:
                # At random times, lest one of the two always falls between two pieces of work.
                pauses = np.random.default_rng(1).uniform(0.5, 1.5, (ROUNDS, 2)) * EVERY
                for before_ours, before_bare in pauses:
                    await asyncio.sleep(before_ours)
                    await _halt_once(pipeline, watch)
                    await asyncio.sleep(before_bare)
                    start = time.perf_counter()
                    await client.publish("hdguard/bench/bare", payload, qos=1, retain=True)
                    bare.append(time.perf_counter() - start)

            async with asyncio.TaskGroup() as group:
                busy = group.create_task(_busy(), name="busy")
                await pipeline.run(rounds)
                busy.cancel()
    return name, watch.took, bare


async def _halt_once(pipeline: Pipeline, watch: _Stopwatch) -> None:
    """A RED, its delivery, and a reset: every halt is a new one."""
    now = asyncio.get_running_loop().time()
    watch.delivered.clear()
    pipeline.dispatch(events.FastVerdict(FrameRef("camera", 0, now, 0.0), "fast", Light.RED))
    halt = pipeline.guard.halt
    assert halt is not None
    await watch.delivered.wait()
    now = asyncio.get_running_loop().time() + 1e-3
    ref = FrameRef("camera", 1, now, 0.0)
    pipeline.dispatch(events.FrameSeen(ref))
    pipeline.dispatch(events.FastVerdict(ref, "fast", Light.GREEN))
    pipeline.dispatch(events.ResetRequested(halt.halt_id, "bench"))
    assert pipeline.guard.halt is None


async def _busy() -> None:
    while True:
        await asyncio.sleep(BUSY_EVERY)
        end = time.perf_counter() + BUSY_FOR
        while time.perf_counter() < end:
            pass
