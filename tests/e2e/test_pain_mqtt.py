"""What hurt users of other systems with their brokers, each named by its thread.

Those that are tested elsewhere, in test_mqtt_faults and test_mqtt_trust: frigate 814, aiomqtt 48
and 326, zigbee2mqtt 4854, MQTTnet 2248, mowgli 653, Valetudo 991.
"""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdguard.actuators import wire
from hdguard.actuators.mqtt import MqttActuator
from hdguard.actuators.signing import check_key, seal
from hdguard.core.events import LinkLost, LinkUp, ResetRequested
from tests.actuators.support import HALT, RESET_KEY, run, shepherded
from tests.e2e.proxy import proxy
from tests.e2e.stage import Watched, following, measured, stage

BUSY = 0.15  # seconds that a busy machine may add to what a clock decides
RESET = "hdguard/rosie/reset"


def test_paho_894_after_an_outage_that_nobody_announced_halts_are_delivered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdguard.actuators.mqtt.DROP_AFTER", 0.3)

    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with stage("mosquitto", tmp_path) as at, proxy(at.port) as between:
            settings = at.guard_settings(port=between.port, keepalive=60)
            async with (
                MqttActuator(settings, 7) as actuator,
                shepherded(actuator) as shepherd,
                following(at, "halt") as halts,
            ):
                await actuator.echoed()
                between.swallow()
                began = loop.time()
                lost, _ = await shepherd.wait_for(LinkLost)
                assert between.connections == 1  # to TCP it looks as well as ever
                await shepherd.wait_for(LinkUp)
                assert between.connections > 1
                await actuator.halt(HALT)
                await halts.wait_for(lambda p: wire.decode_halt(p).active)
                return lost - began

    took = run(story())
    measured("a swallowed link was lost after", took)
    assert took < 1.0 + BUSY


def test_paho_750_a_tls_connection_that_is_cut_off_is_made_again(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    subject = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", key, "-out", certificate, *subject.split()],
        check=True,
        capture_output=True,
    )

    async def story() -> None:
        extra = f"certfile {certificate}\nkeyfile {key}"
        async with stage("mosquitto", tmp_path, extra) as at, proxy(at.port) as between:
            tls: dict[str, Any] = {"tls": True, "ca_file": str(certificate)}
            actuator = MqttActuator(at.guard_settings(**{**tls, "port": between.port}), 7)
            robot = Watched(at.robot_settings(**tls))
            async with actuator, shepherded(actuator), robot.link:
                for cuts in range(4):
                    await robot.permits.wait(len(robot.permits.times) + 2)
                    assert between.connections > cuts
                    between.cut()
                await robot.permits.wait(len(robot.permits.times) + 2)
                await actuator.halt(HALT)

    run(story())


def test_mosquitto_433_the_first_halt_after_a_connect_does_not_take_forty_milliseconds(
    tmp_path: Path,
) -> None:
    async def story() -> list[float]:
        loop, took = asyncio.get_running_loop(), []
        async with stage("mosquitto", tmp_path) as at:
            for number in range(9):  # each a robot of its own, so that nothing is retained
                name = f"rosie-{number}"
                async with at.guard(robot=name) as actuator, at.client() as reader:
                    await actuator.ready()
                    await reader.subscribe(f"hdguard/{name}/halt", 1)
                    began = loop.time()
                    await actuator.halt(HALT)
                    await anext(aiter(reader.messages))
                    took.append(loop.time() - began)
        return took

    took = run(story())
    measured("first halt after a connect, median", float(np.median(took)))
    assert np.median(took) < 0.02


def test_amqtt_14_nothing_that_was_said_while_the_guard_was_away_awaits_its_return(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at, at.client("operator") as operator:
            async with at.guard(boot=7) as actuator:
                await actuator.ready()
                await actuator.halt(HALT)
            ask = wire.ResetMessage(halt_id=HALT.halt_id, nonce="0" * 32, operator="ada")
            body = seal(RESET, wire.encode(ask), check_key(RESET_KEY, "key"))
            await operator.publish(RESET, body, 1)
            async with at.guard(boot=8) as actuator, shepherded(actuator) as shepherd:
                await actuator.echoed()
                assert actuator.rejected == {}
                assert shepherd.all(ResetRequested) == []

    run(story())


def test_paho_365_the_robot_s_side_outlives_a_payload_that_is_no_text(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at, at.client() as stranger:
            robot = Watched(at.robot_settings())
            async with robot.link, at.guard() as actuator, shepherded(actuator):
                await robot.permits.wait(2)
                for name in ("permit", "halt"):
                    for lie in (b"\xff\xfe\x00", b"[" * 4000, b'{"boot":1e999}', b""):
                        await stranger.publish(f"hdguard/rosie/{name}", lie, 1)
                seen = len(robot.permits.times)
                await robot.permits.wait(seen + 3)
                await robot.moves.wait()

    run(story())
