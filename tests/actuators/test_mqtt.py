"""What the guard's actuator promises beside the contract and the faults of tests/e2e."""

import asyncio
from pathlib import Path

import pytest

from hdguard.actuators import wire
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.core.actions import Escalate
from tests.actuators.support import GO, HALT, RESET_KEY, ROBOT_KEY, WHY, run, shepherded
from tests.e2e.stage import following, stage


def test_keys_and_names_are_checked_before_any_socket_and_do_not_show() -> None:
    settings = MqttSettings(reset_key=RESET_KEY, robot_key=ROBOT_KEY, password="hush")
    assert settings.keys.reset == RESET_KEY.encode()
    for secret in (RESET_KEY, ROBOT_KEY, "hush"):
        assert secret not in repr(settings)
    with pytest.raises(ValueError, match="reset_key: "):
        MqttSettings(reset_key="short")
    with pytest.raises(ValueError, match="robot: "):
        MqttSettings(robot="#")


def test_an_escalation_is_said_in_the_state_and_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with (
            stage("embedded", tmp_path) as at,
            at.guard() as actuator,
            following(at, "state") as states,
        ):
            await actuator.ready()
            await actuator.halt(HALT)
            await actuator.notify(WHY)
            await actuator.notify(Escalate(HALT.halt_id))
            await states.wait_for(
                lambda p: (
                    wire.decode_state(p).why
                    == "the robot has not acknowledged halt 7-1; halted: fast_red"
                )
            )

    run(story())
    assert "halt 7-1: the robot has not acknowledged it" in caplog.text


def test_whoever_is_told_of_refusals_logs_them_and_escalations_so_that_nothing_is_said_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refused = asyncio.Event()

    async def story() -> None:
        async with (
            stage("embedded", tmp_path) as at,
            MqttActuator(
                at.guard_settings(), 7, on_rejected=lambda _what, _why: refused.set()
            ) as actuator,
            shepherded(actuator, permits=False),
            at.client() as stranger,
        ):
            await actuator.ready()
            await actuator.halt(HALT)
            await actuator.notify(Escalate(HALT.halt_id))
            await stranger.publish("hdguard/rosie/reset", b"1junk", 1)
            await refused.wait()

    run(story())
    assert "has not acknowledged" not in caplog.text
    assert "rejected" not in caplog.text


def test_the_state_names_what_is_watched_by_whom(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            stage("embedded", tmp_path) as at,
            MqttActuator(
                at.guard_settings(), 7, sources=("kitchen",), brains=("reflex", "slow")
            ) as actuator,
            following(at, "state") as states,
        ):
            await actuator.ready()
            _, payload, _ = await states.wait_for()
            state = wire.decode_state(payload)
            assert (state.sources, state.brains) == (("kitchen",), ("reflex", "slow"))

    run(story())


def test_the_link_is_proven_by_our_own_permit_and_by_no_other_guards(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("embedded", tmp_path) as at, at.guard(boot=7) as actuator:
            await actuator.ready()
            async with asyncio.TaskGroup() as group:
                echoed = group.create_task(actuator.echoed())
                async with (
                    at.guard(boot=6, client_id="other") as other,
                    following(at, "permit", user="other") as permits,
                ):
                    await other.ready()
                    await other.permit(GO)
                    await permits.wait_for()
                    assert not echoed.done()
                await actuator.permit(GO)

    run(story())


def test_events_end_when_the_actuator_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("embedded", tmp_path) as at:
            actuator = at.guard()
            async with asyncio.TaskGroup() as group:
                async with actuator:
                    heard = group.create_task(listen(actuator), name="listen")
                    await actuator.ready()
                assert await heard == "over"

    run(story(), patience=5.0)


async def listen(actuator: MqttActuator) -> str:
    async for _ in actuator.events():
        pass
    return "over"


def test_an_error_in_the_block_is_that_error_and_closes_all(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("embedded", tmp_path) as at, at.guard() as actuator:
            await actuator.ready()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(story())


def test_an_audit_that_fails_ends_the_actuator_loudly(tmp_path: Path) -> None:
    def audit(name: str, reason: str) -> None:
        raise OSError(f"disk full: {name}: {reason}")

    async def story() -> None:
        async with (
            stage("embedded", tmp_path) as at,
            MqttActuator(at.guard_settings(), 7, on_rejected=audit) as actuator,
            shepherded(actuator, permits=False),
            at.client() as stranger,
        ):
            await actuator.ready()
            await stranger.publish("hdguard/rosie/reset", b"1junk", 1)
            await asyncio.Event().wait()

    with pytest.raises(BaseExceptionGroup):
        run(story(), patience=5.0)
