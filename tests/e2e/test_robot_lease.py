"""Whatever happens to the guard or the broker, the robot stops in time: real parts, real time."""

import asyncio
import signal
from pathlib import Path

import pytest

from hdguard.actuators.lease import LEASE
from hdguard.core.actions import Release
from hdguard.core.events import HaltAcknowledged, HaltConfirmed, RobotSeen
from hdguard.core.types import Speed
from tests.actuators.support import HALT, run, shepherded
from tests.e2e.stage import BROKERS, Watched, demo_robot, guard_process, measured, stage

BUSY = 0.1  # seconds that a busy machine may add to what a clock decides

every_broker = pytest.mark.parametrize("broker", BROKERS)


@every_broker
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_guard_that_is_killed_or_frozen_stops_the_robot_within_600_ms(
    broker: str,
    number: signal.Signals,
    tmp_path: Path,
) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with stage(broker, tmp_path) as at:
            robot = Watched(at.robot_settings())
            async with robot.link:
                with guard_process(at, boot=1) as process:
                    await robot.moves.wait()
                    await robot.permits.wait(4)
                    struck = loop.time()
                    process.send_signal(number)
                    stopped = await robot.stops.wait()
        return stopped - struck

    took = run(story())
    measured("stopped_after", took)
    assert 0.1 < took < LEASE + BUSY


@every_broker
def test_a_halt_is_delivered_acknowledged_and_confirmed_and_its_end_lets_the_robot_go(
    broker: str, tmp_path: Path
) -> None:
    async def story() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        async with (
            stage(broker, tmp_path) as at,
            at.guard() as actuator,
            demo_robot(at.robot_settings()) as driven,
            shepherded(actuator) as shepherd,
        ):
            await driven.at_speed(Speed.FULL)
            motion = driven.robot.motion
            while motion.speed(loop.time()) < 0.5:
                await shepherd.wait_for(RobotSeen, len(shepherd.all(RobotSeen)) + 1)
            began = loop.time()
            await actuator.halt(HALT)
            acknowledged, _ = await shepherd.wait_for(HaltAcknowledged)
            confirmed, event = await shepherd.wait_for(HaltConfirmed)
            assert event.halt_id == HALT.halt_id
            assert motion.standing(loop.time())
            assert not driven.robot.link.may_move
            await actuator.halt(Release(HALT.halt_id))
            await driven.at_speed(Speed.FULL)
            return acknowledged - began, confirmed - began

    acknowledged, confirmed = run(story())
    measured("acknowledged_after", acknowledged)
    measured("confirmed_after", confirmed)
    assert acknowledged < BUSY
    stops = 0.7  # actuation, braking
    assert stops - 1e-6 <= confirmed < stops + 0.02 + 2 * BUSY  # and a look at the wheels


def test_twenty_old_permits_of_a_thawed_broker_do_not_move_the_robot(tmp_path: Path) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with (
            stage("mosquitto", tmp_path) as at,
            at.guard(keepalive=60) as actuator,
            shepherded(actuator, permits=False) as shepherd,
        ):
            robot = Watched(at.robot_settings(keepalive=60))
            async with robot.link:
                await shepherd.wait_for(RobotSeen)
                await shepherd.send_permit()
                await robot.moves.wait()
                frozen = loop.time()
                at.mosquitto.freeze()
                for _ in range(20):
                    await shepherd.send_permit()
                stopped = await robot.stops.wait()
                at.mosquitto.thaw()
                await robot.permits.wait(21)
                assert len(robot.moves.times) == 1
                assert not robot.link.may_move
                # Not latched: one fresh echo is enough.
                seen = len(shepherd.all(RobotSeen))
                await shepherd.wait_for(RobotSeen, seen + 1)
                await shepherd.send_permit()
                await robot.moves.wait(2)
        return stopped - frozen

    assert run(story()) < LEASE + BUSY


@pytest.mark.parametrize("speed", [None, Speed.NONE])
def test_a_robot_without_permits_never_moves(speed: Speed | None, tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            stage("mosquitto", tmp_path) as at,
            at.guard() as actuator,
            shepherded(actuator) as shepherd,
        ):
            shepherd.speed = speed
            robot = Watched(at.robot_settings())
            async with robot.link:
                await shepherd.wait_for(RobotSeen, 12)
                assert (robot.moves.times, robot.link.may_move) == ([], False)
                assert bool(robot.permits.times) is (speed is not None)

    run(story())


@every_broker
def test_a_robot_that_connects_while_a_halt_is_in_force_stands_until_the_release(
    broker: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with (
            stage(broker, tmp_path) as at,
            at.guard() as actuator,
            shepherded(actuator) as shepherd,
        ):
            await actuator.ready()
            await actuator.halt(HALT)
            robot = Watched(at.robot_settings())
            async with robot.link:
                await shepherd.wait_for(HaltAcknowledged)
                await robot.permits.wait(3)
                robot.link.report(moving=False, speed=0.0)
                await shepherd.wait_for(HaltConfirmed)
                assert robot.moves.times == []
                assert robot.link.halt is not None
                await actuator.halt(Release(HALT.halt_id))
                await robot.moves.wait()

    run(story())


@every_broker
def test_a_link_that_is_closed_has_told_the_robot_to_stop(broker: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(broker, tmp_path) as at, at.guard() as actuator, shepherded(actuator):
            robot = Watched(at.robot_settings())
            async with robot.link:
                await robot.moves.wait()
            assert len(robot.stops.times) == 1
            assert not robot.link.may_move

    run(story())
