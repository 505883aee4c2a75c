"""One suite for the protocol `Actuator`, run over every actuator, with a robot at the other end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hdguard.actuators.base import Actuator
from hdguard.actuators.recording import RecordingActuator
from hdguard.core.actions import Escalate, Halt, Release
from hdguard.core.events import HaltAcknowledged, HaltConfirmed, RobotSeen
from hdguard.core.types import Speed
from tests.actuators.support import GO, HALT, WHY, Shepherd, run, shepherded
from tests.e2e.stage import demo_robot, stage

Ready = Callable[[Path], AbstractAsyncContextManager[Actuator]]


@asynccontextmanager
async def recording(_: Path) -> AsyncIterator[Actuator]:
    yield RecordingActuator()


def mqtt(broker: str) -> Ready:
    @asynccontextmanager
    async def ready(folder: Path) -> AsyncIterator[Actuator]:
        async with (
            stage(broker, folder) as at,
            at.guard() as actuator,
            demo_robot(at.robot_settings()),
        ):
            await actuator.ready()
            yield actuator

    return ready


# A new actuator is one line here.
ACTUATORS: dict[str, Ready] = {
    "recording": recording,
    "mqtt, embedded broker": mqtt("embedded"),
    "mqtt, mosquitto": mqtt("mosquitto"),
}

every_actuator = pytest.mark.parametrize("ready", ACTUATORS.values(), ids=ACTUATORS)
every_loop = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


@every_loop
@every_actuator
def test_a_halt_is_acknowledged_and_then_confirmed_by_its_id(
    ready: Ready, loop: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with ready(tmp_path) as actuator, shepherded(actuator) as shepherd:
            await shepherd.wait_for(RobotSeen, 2)
            await actuator.halt(HALT)
            shepherd.speed = Speed.NONE
            acknowledged, event = await shepherd.wait_for(HaltAcknowledged)
            confirmed, last = await shepherd.wait_for(HaltConfirmed)
            assert (event.halt_id, last.halt_id) == (HALT.halt_id, HALT.halt_id)
            assert acknowledged <= confirmed

    run(story(), loop)


@every_actuator
def test_the_robot_is_seen_ten_times_a_second_with_rising_numbers(
    ready: Ready, tmp_path: Path
) -> None:
    async def story() -> None:
        async with ready(tmp_path) as actuator, shepherded(actuator) as shepherd:
            await shepherd.wait_for(RobotSeen, 8)
            seen = [(at, event.boot, event.seq) for at, event in shepherd.all(RobotSeen)]
            assert all(before[1:] < after[1:] for before, after in pairwise(seen))
            assert 0.4 < seen[-1][0] - seen[0][0] < 2.0

    run(story())


@every_actuator
def test_repeats_other_halts_and_releases_are_taken_side_by_side_with_all_else(
    ready: Ready, tmp_path: Path
) -> None:
    async def story() -> None:
        async with ready(tmp_path) as actuator, shepherded(actuator, permits=False) as shepherd:
            halts: list[Halt | Release] = [replace(HALT, repeat=n) for n in range(5)]
            async with asyncio.TaskGroup() as group:
                for halt in (*halts, replace(HALT, halt_id="7-2"), Release("7-2")):
                    group.create_task(actuator.halt(halt))
                for _ in range(5):
                    group.create_task(actuator.permit(GO))
                group.create_task(actuator.notify(WHY))
                group.create_task(actuator.notify(Escalate(HALT.halt_id)))
            await actuator.halt(HALT)
            await shepherd.wait_for(HaltAcknowledged)

    run(story())


@every_actuator
def test_who_listens_can_be_cancelled(ready: Ready, tmp_path: Path) -> None:
    async def story() -> None:
        async with ready(tmp_path) as actuator, asyncio.TaskGroup() as group:
            shepherd = Shepherd(actuator)
            task = group.create_task(shepherd.listen(), name="listen")
            await shepherd.wait_for(RobotSeen)
            task.cancel()

    run(story())
