"""The guard that is played for a robot's check: its messages are good, but for what is asked."""

import asyncio

import pytest

from hdguard.actuators import wire
from hdguard.actuators.broker import EmbeddedBroker
from hdguard.actuators.connection import MqttEndpoint
from hdguard.actuators.signing import unseal
from hdguard.demo_robot import DemoRobot
from hdguard.played_guard import PlayedGuard
from hdguard.robot import RobotSettings
from tests.actuators.support import ROBOT_KEY, run


def test_its_permits_are_signed_numbered_and_echo_the_newest_report_but_for_what_is_changed() -> (
    None
):
    async def story() -> None:
        guard = PlayedGuard(MqttEndpoint(robot="rosie", robot_key=ROBOT_KEY), 7)
        newest = wire.RobotMessage(boot=3, seq=99, moving=True, speed=None)
        guard.reports.append((1.0, newest))
        topic = guard.topics["permit"]
        first = wire.decode_permit(unseal(topic, guard.made_permit(), guard.key))
        assert (first.boot, first.speed) == (7, "full")
        assert first.robot == wire.RobotEcho(boot=3, seq=99)
        second = wire.decode_permit(unseal(topic, guard.made_permit((4, 1), boot=6), guard.key))
        assert (second.boot, second.robot) == (6, wire.RobotEcho(boot=4, seq=1))
        assert second.seq > first.seq

    run(story())


def test_without_a_number_it_takes_one_above_that_of_the_guard_before_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> tuple[int, int]:
        boots = []
        async with EmbeddedBroker() as broker:
            where = MqttEndpoint(port=broker.port, robot="rosie")
            robot = DemoRobot(RobotSettings(port=broker.port, robot="rosie", boot=3))
            for _ in range(2):
                guard = PlayedGuard(where, None)
                async with asyncio.TaskGroup() as group:
                    driving = group.create_task(robot.run(), name="robot")
                    guard.connection.start(group)
                    await guard.found()
                    await guard.say_halt(active=False)
                    boots.append(guard.boot)
                    await guard.connection.close()
                    driving.cancel()
                robot = DemoRobot(RobotSettings(port=broker.port, robot="rosie", boot=4))
        first, second = boots
        return first, second

    assert run(story()) == (1, 2)
    assert "so write 2 or more into its boot file" in caplog.text
