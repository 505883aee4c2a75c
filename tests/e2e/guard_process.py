"""A guard in a process of its own, to be killed: lets the robot run as long as its loop turns."""

import asyncio
import sys

import uvloop

from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from tests.actuators.support import shepherded


async def guard(settings: MqttSettings, boot: int) -> None:
    async with MqttActuator(settings, boot) as actuator, shepherded(actuator):
        await asyncio.Event().wait()


if __name__ == "__main__":
    port, boot, username, password = sys.argv[1:]
    endpoint = MqttSettings(
        port=int(port), username=username or None, password=password or None, robot="rosie"
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(guard(endpoint, int(boot)))
