"""The whole way, with nothing faked but the camera and the brain's eyes: from RED to standstill."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from hdguard.actuators import wire
from hdguard.actuators.signing import check_key, seal
from hdguard.brains.base import Shot
from hdguard.core.actions import Action, Halt, Release
from hdguard.core.events import (
    Event,
    FastVerdict,
    HaltConfirmed,
    HaltDelivered,
    ResetRequested,
    SelfTestPassed,
)
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.core.types import FrameRef, ImageSpec, Light, Speed
from hdguard.ingest.base import Frame, Rgb, SourceReport
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.workers.inline import InlineFastSeat
from tests.actuators.support import PATIENCE, RESET_KEY, run
from tests.e2e.stage import BROKERS, Stage, demo_robot, following, measured, stage

BUSY = 0.15  # seconds that a busy machine may add to what a clock decides
DANGER = (1.2, 1.4)  # media time in seconds during which the brain sees RED


class Grey:
    """A picture of nothing."""

    def rgb(self, spec: ImageSpec) -> Rgb:
        return np.zeros((spec.height or 8, spec.width, 3), np.uint8)


class Camera:
    """Twenty pictures a second, for ever."""

    source_id, interval, report = "kitchen", 0.05, SourceReport()

    async def frames(self) -> AsyncIterator[Frame]:
        loop = asyncio.get_running_loop()
        origin, seq = loop.time(), 0
        while True:
            at = origin + seq * self.interval
            await asyncio.sleep(at - loop.time())
            yield Frame(FrameRef(self.source_id, seq, at, seq * self.interval), Grey())
            seq += 1

    def retry_after(self) -> float | None:
        return None


class Eyes:
    """A FastBrain that sees danger when it is told to."""

    name, spec = "eyes", ImageSpec(8, 8)
    adaptive: ClassVar[bool] = False

    def assess(self, shot: Shot) -> FastVerdict:
        red = DANGER[0] <= shot.ref.media_time < DANGER[1]
        return FastVerdict(shot.ref, self.name, Light.RED if red else Light.GREEN)

    def cost(self, ref: FrameRef) -> float:
        return 0.005


class Log:
    """What the guard was told and decided, and when."""

    def __init__(self) -> None:
        self.said: list[tuple[float, Event | Action]] = []
        self._news = asyncio.Event()

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Not looked at."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        self.said += [(now, each) for each in (event, *actions)]
        self._news.set()

    def times(self, kind: type[Event | Action]) -> list[float]:
        return [at for at, each in self.said if isinstance(each, kind)]

    async def when(self, kind: type[Event | Action], count: int = 1) -> float:
        """The time of the `count`-th of that kind."""
        async with asyncio.timeout(PATIENCE):
            while len(self.times(kind)) < count:
                self._news.clear()
                await self._news.wait()
        return self.times(kind)[count - 1]


async def reset(at: Stage, log: Log) -> None:
    """An operator reads the nonce and asks for the end of the halt, until the guard grants it."""
    key = check_key(RESET_KEY, "key")
    async with following(at, "state", "operator") as states, at.client("operator") as operator:
        used: set[str | None] = {None}
        while not log.times(Release):
            _, payload, _ = await states.wait_for(lambda p: wire.decode_state(p).nonce not in used)
            state = wire.decode_state(payload)
            used.add(state.nonce)
            assert state.nonce is not None
            assert state.halt_id is not None
            ask = wire.ResetMessage(halt_id=state.halt_id, nonce=state.nonce, operator="ada")
            topic = "hdguard/rosie/reset"
            await operator.publish(topic, seal(topic, wire.encode(ask), key), 1)
            await log.when(ResetRequested, len(used) - 1)


@pytest.mark.parametrize("broker", BROKERS)
def test_a_robot_is_stopped_by_red_stands_until_it_is_reset_and_drives_again(
    broker: str, tmp_path: Path
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        log = Log()
        policy = replace(
            SIDECAR,
            sources=(SourcePlan("kitchen", when_frozen="ignore"),),
            brains=(BrainPlan("eyes", adaptive=False),),
        )
        async with (
            stage(broker, tmp_path) as at,
            at.guard(boot=7) as actuator,
            demo_robot(at.robot_settings()) as driven,
        ):
            await actuator.ready()
            guard = Guard(policy, loop.time(), boot=7)
            seats = {"eyes": InlineFastSeat(Eyes, "fixed")}
            pipeline = Pipeline(guard, Parts((Camera(),), seats, None, actuator, (log,)))

            async def until() -> None:
                await driven.at_speed(Speed.FULL)
                decided = await log.when(Halt)
                delivered = await log.when(HaltDelivered)
                confirmed = await log.when(HaltConfirmed)
                measured(f"{broker}: decided to delivered", delivered - decided)
                measured(f"{broker}: decided to confirmed", confirmed - decided)
                assert delivered - decided < BUSY
                assert confirmed - decided < 0.7 + 0.02 + BUSY
                assert driven.robot.motion.standing(loop.time())
                repeats = [e for _, e in log.said if isinstance(e, Halt)]
                assert {halt.halt_id for halt in repeats} == {"7-1"}
                assert 6 <= len(repeats) <= 9  # every 100 ms until it stands
                await reset(at, log)
                await driven.at_speed(Speed.FULL)

            pipeline.dispatch(SelfTestPassed())
            await pipeline.run(until)

    run(story())
