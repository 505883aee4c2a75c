"""Whom the two ends believe: resets, keys, restarts; over real brokers."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hdguard.actuators import wire
from hdguard.actuators.mqtt import MqttActuator
from hdguard.actuators.signing import check_key, seal
from hdguard.core.actions import Notify
from hdguard.core.events import HaltAcknowledged, ResetRequested, RobotSeen
from hdguard.core.types import State
from tests.actuators.support import (
    HALT,
    RESET_KEY,
    ROBOT_KEY,
    WHY,
    Signal,
    permit,
    run,
    shepherded,
)
from tests.e2e.stage import BROKERS, Stage, Watched, following, stage

KEY = check_key(RESET_KEY, "key")
RESET = "hdguard/rosie/reset"

every_broker = pytest.mark.parametrize("broker", BROKERS)


def reset(nonce: str, halt_id: str = HALT.halt_id, key: bytes | None = KEY) -> bytes:
    message = wire.ResetMessage(halt_id=halt_id, nonce=nonce, operator="ada")
    return seal(RESET, wire.encode(message), key)


async def nonce_of(at: Stage) -> str:
    """The nonce that an operator reads in the state."""
    async with following(at, "state", "operator") as states:
        _, payload, _ = await states.wait_for(lambda p: wire.decode_state(p).nonce is not None)
    nonce = wire.decode_state(payload).nonce
    assert nonce is not None
    return nonce


@every_broker
def test_of_many_resets_only_the_signed_fresh_one_gets_through_and_only_once(
    broker: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with stage(broker, tmp_path) as at, at.client("operator") as operator:
            await operator.publish(RESET, reset("kept by the broker"), 1, retain=True)
            audit = Signal()
            actuator = MqttActuator(at.guard_settings(), 7, on_rejected=audit)
            async with actuator, shepherded(actuator) as shepherd:
                await actuator.ready()
                assert audit.said == [("reset", "reset: retained")]
                await actuator.halt(HALT)
                await actuator.notify(WHY)
                nonce = await nonce_of(at)
                good = reset(nonce)
                lies = [
                    b"1junk",
                    b"\xff" * 40,
                    b"[" * 4000,
                    b"x" * 70_000,
                    reset(nonce, key=None),
                    reset(nonce, key=b"some other secret"),
                    reset(nonce, halt_id="7-2"),
                    reset("0" * 32),
                    good.replace(b"ada", b"eve"),
                ]
                for lie in lies:
                    await operator.publish(RESET, lie, 1)
                for _ in range(3):
                    await operator.publish(RESET, good, 1)
                await audit.wait(1 + len(lies) + 2)
                assert [e for _, e in shepherd.all(ResetRequested)] == [
                    ResetRequested(HALT.halt_id, "ada")
                ]
                assert actuator.rejected["reset"] == 1 + len(lies) + 2

    run(story())


def test_the_nonce_is_renewed_while_halted(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            stage("mosquitto", tmp_path) as at,
            at.guard() as actuator,
            following(at, "state") as states,
        ):
            await actuator.ready()
            await actuator.halt(HALT)
            await actuator.notify(WHY)
            first = await states.wait_for(lambda p: wire.decode_state(p).nonce is not None)
            nonce = wire.decode_state(first[1]).nonce
            second = await states.wait_for(
                lambda p: wire.decode_state(p).nonce not in {None, nonce}
            )
            assert second[0] - first[0] < 2.5
            await actuator.notify(Notify(State.MONITORING, ""))
            await states.wait_for(lambda p: wire.decode_state(p).state is State.MONITORING)

    run(story())


@every_broker
def test_with_a_shared_key_strangers_neither_move_nor_speak_for_the_robot(
    broker: str, tmp_path: Path
) -> None:
    async def story() -> None:
        audit = Signal()
        async with (
            stage(broker, tmp_path) as at,
            MqttActuator(at.guard_settings(robot_key=ROBOT_KEY), 7, on_rejected=audit) as actuator,
            shepherded(actuator) as shepherd,
            at.client() as stranger,
        ):
            robot = Watched(at.robot_settings(robot_key=ROBOT_KEY))
            async with robot.link:
                await robot.moves.wait()
                forged = wire.encode(permit(10**6, (3, 1), boot=99))
                await stranger.publish("hdguard/rosie/permit", forged)
                seen = wire.RobotMessage(boot=99, seq=1, moving=False, speed=0.0)
                await stranger.publish("hdguard/rosie/robot", wire.encode(seen))
                # The guard sees that permit as well, as one of its own that it did not sign.
                await audit.wait(2)
                assert actuator.rejected == {"permit": 1, "robot": 1}
                await actuator.halt(HALT)
                await shepherd.wait_for(HaltAcknowledged)
                assert robot.link.rejected == 1
                assert {event.boot for _, event in shepherd.all(RobotSeen)} == {3}

    run(story())


@every_broker
def test_a_halt_that_an_earlier_guard_left_is_found_and_a_replay_can_end_it(
    broker: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with stage(broker, tmp_path) as at:
            async with at.guard(boot=7) as earlier:
                await earlier.ready()
                assert earlier.retained_halt is None
                await earlier.halt(HALT)
            robot = Watched(at.robot_settings())
            async with robot.link:
                async with at.guard(boot=8) as actuator, shepherded(actuator):
                    await actuator.ready()
                    assert actuator.retained_halt is not None
                    assert actuator.retained_halt.halt_id == HALT.halt_id
                    await robot.permits.wait(3)
                    assert robot.moves.times == []
                    await actuator.forget_halt()
                    await robot.moves.wait()
                async with at.guard(boot=8) as again:
                    await again.ready()
                    assert "boot 8 is not above 8" in caplog.text

    run(story())


def test_everything_also_goes_over_tls(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    subject = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", key, "-out", certificate, *subject.split()],
        check=True,
        capture_output=True,
    )
    extra = f"certfile {certificate}\nkeyfile {key}"

    async def story() -> None:
        async with stage("mosquitto", tmp_path, extra) as at:
            tls: dict[str, Any] = {"tls": True, "ca_file": str(certificate)}
            async with at.guard(**tls) as actuator, shepherded(actuator) as shepherd:
                robot = Watched(at.robot_settings(**tls))
                async with robot.link:
                    await robot.moves.wait()
                    await actuator.halt(HALT)
                    await shepherd.wait_for(HaltAcknowledged)
            async with at.guard() as plain:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await plain.ready()

    run(story())
