"""What a robot team meets beside the lease itself: settings, callbacks, reports."""

import asyncio
from pathlib import Path

import pytest

from hdguard.actuators import wire
from hdguard.core.types import Speed
from hdguard.robot import RobotLink, RobotSettings
from tests.actuators.support import Signal, run, shepherded
from tests.e2e.stage import Watched, following, stage


def test_a_robot_must_count_its_starts(tmp_path: Path) -> None:
    assert RobotSettings(boot=5).raised_boot() == 5
    path = tmp_path / "boot"
    settings = RobotSettings(boot_file=str(path))
    assert [settings.raised_boot() for _ in range(2)] == [1, 2]
    with pytest.raises(ValueError, match="boot_file: name a file"):
        RobotSettings().raised_boot()


def test_reports_say_what_the_robot_says_and_only_while_it_says_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("embedded", tmp_path) as at, following(at, "robot") as robots:
            watched = Watched(at.robot_settings())
            async with watched.link as link:
                first = wire.decode_robot((await robots.wait_for())[1])
                assert (first.moving, first.speed) == (True, None)
                link.report(moving=True, speed=0.25)
                await robots.wait_for(lambda p: wire.decode_robot(p).speed == 0.25)
                link.report(moving=False, speed=0.0)
                await robots.wait_for(lambda p: not wire.decode_robot(p).moving)
                robots.seen.clear()
                # Odometry dies: after half a second it may be moving again.
                await robots.wait_for(lambda p: wire.decode_robot(p).moving)
                numbers = [wire.decode_robot(p).seq for _, p, _ in robots.seen]
                assert numbers == sorted(set(numbers))

    run(story())


def test_the_robot_hears_of_every_change_of_speed(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            stage("embedded", tmp_path) as at,
            at.guard() as actuator,
            shepherded(actuator) as shepherd,
        ):
            robot = Watched(at.robot_settings())
            async with robot.link:
                await robot.moves.wait()
                shepherd.speed = Speed.REDUCED
                await robot.moves.wait(2)
                assert robot.link.speed is Speed.REDUCED
                shepherd.speed = Speed.NONE
                await robot.stops.wait()
                shepherd.speed = Speed.FULL
                await robot.moves.wait(3)
            assert robot.moves.said == [Speed.FULL, Speed.REDUCED, Speed.FULL]
            assert len(robot.stops.times) == 2  # and at the end

    run(story())


def test_a_retained_permit_is_worth_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("embedded", tmp_path) as at, at.client() as stranger:
            await stranger.publish("hdguard/rosie/permit", b"{}", 1, retain=True)
            async with at.guard() as actuator, shepherded(actuator):
                robot = Watched(at.robot_settings())
                async with robot.link:
                    await robot.moves.wait()
                    assert robot.link.rejected >= 1

    run(story())


def test_a_brake_that_fails_ends_the_link_loudly(tmp_path: Path) -> None:
    def brake() -> None:
        raise OSError("no brakes")

    async def story() -> None:
        moving = Signal()
        async with (
            stage("embedded", tmp_path) as at,
            at.guard() as actuator,
            shepherded(actuator) as shepherd,
            RobotLink(at.robot_settings(), on_move=moving, on_stop=brake),
        ):
            await moving.wait()
            shepherd.speed = Speed.NONE
            await asyncio.Event().wait()

    with pytest.raises(BaseExceptionGroup) as failed:
        run(story(), patience=5.0)
    assert failed.group_contains(OSError, match="no brakes")
