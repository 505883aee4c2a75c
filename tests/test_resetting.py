"""An operator ends a halt, or hears why it goes on."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from hdguard.actuators.broker import EmbeddedBroker
from hdguard.actuators.connection import MqttEndpoint
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.core.actions import Notify, Release
from hdguard.core.events import ResetRequested
from hdguard.core.types import State
from hdguard.resetting import ResetError, Resetter
from tests.actuators.support import HALT, RESET_KEY, ROBOT_KEY, WHY, Shepherd, run, shepherded


@asynccontextmanager
async def guarded(
    *, halted: bool = True
) -> AsyncIterator[tuple[MqttEndpoint, MqttActuator, Shepherd]]:
    """A guard on a broker, with a halt in force."""
    async with EmbeddedBroker() as broker:
        where = {"port": broker.port, "robot": "rosie"}
        settings = MqttSettings(**where, robot_key=ROBOT_KEY, reset_key=RESET_KEY)  # type: ignore[arg-type]
        endpoint = MqttEndpoint(**where, robot_key=ROBOT_KEY)  # type: ignore[arg-type]
        async with MqttActuator(settings, 7) as actuator, shepherded(actuator) as shepherd:
            await actuator.ready()
            if halted:
                await actuator.halt(HALT)
                await actuator.notify(WHY)
            yield endpoint, actuator, shepherd


def test_the_guard_is_asked_with_its_own_nonce_and_the_release_is_awaited() -> None:
    async def story() -> ResetRequested:
        async with guarded() as (where, actuator, shepherd), asyncio.TaskGroup() as group:
            asked = group.create_task(Resetter(where, RESET_KEY, "ada").reset("7-1", 5.0))
            _, event = await shepherd.wait_for(ResetRequested)
            assert not asked.done()
            await actuator.halt(Release("7-1"))
        return event

    assert run(story()) == ResetRequested("7-1", "ada")


def test_a_guard_that_sees_no_green_is_asked_again_with_each_new_nonce(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hdguard.actuators.mqtt.NONCE_EVERY", 0.1)

    async def story() -> None:
        async with guarded() as (where, actuator, shepherd), asyncio.TaskGroup() as group:
            group.create_task(Resetter(where, RESET_KEY, "ada").reset("7-1", 5.0))
            await shepherd.wait_for(ResetRequested, 2)
            await actuator.halt(Release("7-1"))

    run(story())


def test_a_danger_that_takes_the_place_of_the_halt_is_named_at_once_and_not_reset() -> None:
    async def story() -> None:
        async with guarded() as (where, actuator, shepherd), asyncio.TaskGroup() as group:
            asked = group.create_task(why_not(where, within=60.0))
            await shepherd.wait_for(ResetRequested)
            await actuator.halt(replace(HALT, halt_id="7-2"))
            await actuator.notify(replace(WHY, why="halted: another knife"))
            assert await asked == "the halt in force is 7-2: halted: another knife"
            assert len(shepherd.all(ResetRequested)) == 1
            assert actuator.rejected["reset"] == 0

    run(story())


async def why_not(
    where: MqttEndpoint, halt_id: str = "7-1", key: str = RESET_KEY, within: float = 0.5
) -> str:
    with pytest.raises(ResetError) as caught:
        await Resetter(where, key, "ada").reset(halt_id, within)
    return str(caught.value)


def test_a_halt_that_is_not_in_force_is_said_at_once() -> None:
    async def story() -> None:
        async with guarded() as (where, _, _):
            assert await why_not(where, "6-2") == "the halt in force is 7-1: halted: fast_red"
        async with guarded(halted=False) as (where, actuator, _):
            await actuator.notify(Notify(State.MONITORING, ""))
            assert await why_not(where) == "no halt is in force (the guard is monitoring)"

    run(story())


def test_a_guard_that_does_not_release_says_why() -> None:
    async def story() -> None:
        async with guarded() as (where, actuator, shepherd):
            said = await why_not(where)
            assert said.startswith("not released: halted: fast_red; every required brain must see")
            assert len(shepherd.all(ResetRequested)) == 1
            said = await why_not(where, key=secrets.token_hex(16))
            assert "the key must be the guard's reset_key" in said
            assert len(shepherd.all(ResetRequested)) == 1
            assert actuator.rejected["reset"] == 1

    run(story())


def test_a_broker_or_guard_that_is_not_there_is_named() -> None:
    async def story() -> None:
        said = await why_not(MqttEndpoint(port=1, robot="rosie"))
        assert said.startswith("no connection to 127.0.0.1:1: ")
        async with EmbeddedBroker() as broker:
            where = MqttEndpoint(port=broker.port, robot="daisy")
            assert await why_not(where) == (
                f"no guard of robot 'daisy' has said anything at 127.0.0.1:{broker.port}"
            )

    run(story())


def test_a_key_that_can_be_guessed_is_refused() -> None:
    async def story() -> None:
        with pytest.raises(ValueError, match="reset_key: a key has at least 16 characters"):
            Resetter(MqttEndpoint(), "short", "ada")

    run(story())
