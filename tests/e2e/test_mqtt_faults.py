"""What the guard's side does when the broker fails: real parts, real time."""

import asyncio
import signal
from pathlib import Path

import pytest

from hdguard.actuators import wire
from hdguard.actuators.base import ActuatorError
from hdguard.core.events import LinkLost, LinkUp
from tests.actuators.support import GO, HALT, PATIENCE, WHY, Signal, run, shepherded
from tests.e2e.stage import BROKERS, Stage, following, guard_process, measured, stage
from tests.mosquitto import Mosquitto

BUSY = 0.15  # seconds that a busy machine may add to what a clock decides

every_broker = pytest.mark.parametrize("broker", BROKERS)


async def kept_by_broker(at: Stage) -> dict[str, bytes]:
    """What a newcomer finds, once all three are there."""
    found: dict[str, bytes] = {}
    async with asyncio.timeout(PATIENCE), at.client() as client:
        await client.subscribe("hdguard/rosie/+", 1)
        async for message in client.messages:
            found[message.topic.value.rpartition("/")[2]] = message.payload
            if {"halt", "state", "availability"} <= set(found):
                break
    return found


def test_a_restarted_broker_has_halt_state_and_availability_again_within_half_a_second(
    tmp_path: Path,
) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with (
            stage("mosquitto", tmp_path) as at,
            at.guard() as actuator,
            shepherded(actuator) as shepherd,
        ):
            await actuator.ready()
            await actuator.halt(HALT)
            await actuator.notify(WHY)
            at.mosquitto.kill()
            await shepherd.wait_for(LinkLost)  # it stays away for a second
            at.mosquitto.start()
            back = loop.time()
            found = await kept_by_broker(at)
            took = loop.time() - back
            assert found["availability"] == b"online"
            assert wire.decode_state(found["state"]).nonce is not None
            assert wire.decode_halt(found["halt"]).active
            await shepherd.wait_for(LinkUp)
            return took

    took = run(story())
    measured("published_again_after", took)
    assert took < 0.5


def test_a_broker_that_is_absent_at_the_start_is_awaited_and_no_permit_is_kept(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        broker = Mosquitto(tmp_path)
        at = Stage(broker.port, passwords=True, process=broker)
        async with at.guard() as actuator, shepherded(actuator, permits=False) as shepherd:
            for send in (actuator.permit(GO), actuator.halt(HALT), actuator.notify(WHY)):
                with pytest.raises(ActuatorError, match="no connection to 127"):
                    await send
            await shepherd.wait_for(LinkLost)
            broker.start()
            await actuator.ready()
            # What is to be kept was said on connecting; the permit was not.
            async with following(at, "halt") as halts:
                await halts.wait_for()
            assert shepherd.all(LinkUp) == []
            await actuator.permit(GO)
            await shepherd.wait_for(LinkUp)
        broker.kill()

    run(story())


def test_a_frozen_broker_is_found_in_one_second_by_our_own_permits(
    tmp_path: Path,
) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with (
            stage("mosquitto", tmp_path) as at,
            at.guard(keepalive=60) as actuator,
            shepherded(actuator) as shepherd,
            following(at, "permit") as permits,
        ):
            await permits.wait_for(lambda _: len(permits.seen) > 2)
            at.mosquitto.freeze()
            frozen = loop.time()
            lost, _ = await shepherd.wait_for(LinkLost)
            assert actuator.connected  # nothing else has noticed
            at.mosquitto.thaw()
            await shepherd.wait_for(LinkUp)
            return lost - frozen

    took = run(story())
    measured("link_lost_after", took)
    assert 0.7 < took < 1.0 + BUSY


def test_a_broker_that_drops_our_permits_in_silence_is_found_too(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at:
            # The robot's account may not write permits; the broker acknowledges all the same.
            account = {key: at.account("robot")[key] for key in ("username", "password")}
            async with at.guard(**account) as actuator, shepherded(actuator) as shepherd:
                await shepherd.wait_for(LinkLost)
                assert actuator.connected
                await actuator.halt(HALT)

    run(story())


def test_a_link_that_stays_lost_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdguard.actuators.mqtt.DROP_AFTER", 0.3)

    async def story() -> None:
        async with (
            stage("mosquitto", tmp_path) as at,
            at.guard(keepalive=60) as actuator,
            shepherded(actuator) as shepherd,
        ):
            await actuator.ready()
            dropped, drop = Signal(), actuator._connection.drop

            def drop_and_say(why: str) -> None:
                dropped(why)
                drop(why)

            monkeypatch.setattr(actuator._connection, "drop", drop_and_say)
            at.mosquitto.freeze()
            await dropped.wait()
            assert shepherd.all(LinkLost)
            actuator._retained.complete.clear()
            at.mosquitto.thaw()
            await actuator.ready()
            await shepherd.wait_for(LinkUp)
            await actuator.halt(HALT)
            assert len(dropped.times) == 1

    run(story())


def test_a_halt_that_gets_no_receipt_delays_no_permit_and_no_state_a_halt(tmp_path: Path) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with stage("mosquitto", tmp_path) as at, at.guard() as actuator:
            await actuator.ready()
            at.mosquitto.freeze()

            async def fails(send: object, reason: str) -> float:
                began = loop.time()
                with pytest.raises(ActuatorError, match=reason):
                    await send  # type: ignore[misc]
                return loop.time() - began

            async with asyncio.TaskGroup() as group:
                state = group.create_task(fails(actuator.notify(WHY), "state: no receipt"))
                halt = group.create_task(fails(actuator.halt(HALT), "halt: no receipt"))
                began = loop.time()
                for _ in range(5):
                    await actuator.permit(GO)
                assert loop.time() - began < BUSY
                assert not halt.done()
            # Side by side: each took its own second.
            assert 0.9 < halt.result() < 1.0 + BUSY
            assert 0.9 < state.result() < 1.0 + BUSY
            at.mosquitto.thaw()

    run(story())


@every_broker
def test_availability_is_online_until_the_guard_leaves_and_no_stray_will_stands(
    broker: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with stage(broker, tmp_path) as at, following(at, "availability") as availability:
            async with at.guard() as actuator, at.client("guard") as other:
                await actuator.ready()
                await other.publish("hdguard/rosie/availability", b"offline", 1, retain=True)
                await availability.wait_for(lambda _: len(availability.seen) >= 3)
            await availability.wait_for(lambda _: len(availability.seen) >= 4)
            said = [payload for _, payload, _ in availability.seen]
            assert said == [b"online", b"offline", b"online", b"offline"]

    run(story())


@every_broker
def test_the_last_will_of_a_killed_guard_says_offline(broker: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(broker, tmp_path) as at, following(at, "availability") as availability:
            with guard_process(at, boot=1) as process:
                await availability.wait_for(lambda payload: payload == b"online")
                process.send_signal(signal.SIGKILL)
                await availability.wait_for(lambda payload: payload == b"offline")

    run(story())
