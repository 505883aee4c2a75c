"""`hdguard robot --check` passes a good robot, and finds what is wrong with a bad one."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hdguard.actuators import wire
from hdguard.actuators.broker import EmbeddedBroker
from hdguard.actuators.connection import MqttEndpoint
from hdguard.actuators.lease import LEASE, SPEEDS
from hdguard.demo_robot import Chassis, DemoRobot
from hdguard.played_guard import CheckError, PlayedGuard
from hdguard.robot import RobotSettings
from hdguard.robot_check import RobotCheck, Row
from tests.actuators.support import ROBOT_KEY, run

NIMBLE = Chassis(actuation=0.02, braking=0.1)


class NeverStops(DemoRobot):
    """Its lease has no end."""

    def __init__(self, settings: RobotSettings) -> None:
        super().__init__(settings, NIMBLE)
        take = self.link.lease.on_permit

        def on_permit(permit: wire.PermitMessage) -> bool:
            took = take(permit)
            if took:
                self.link.lease.deadline = math.inf
            return took

        self.link.lease.on_permit = on_permit  # type: ignore[method-assign]


class TrustsWhatArrives(DemoRobot):
    """Its lease counts from a permit's arrival, whatever the permit echoes."""

    def __init__(self, settings: RobotSettings) -> None:
        super().__init__(settings, NIMBLE)
        lease = self.link.lease

        def on_permit(permit: wire.PermitMessage) -> bool:
            lease.deadline = self._loop.time() + LEASE
            lease._speed = SPEEDS[permit.speed]
            return True

        lease.on_permit = on_permit  # type: ignore[method-assign]


class Mute(DemoRobot):
    """Stops for a halt and says nothing."""

    def __init__(self, settings: RobotSettings) -> None:
        super().__init__(settings, NIMBLE)
        self.link._standing.answer = self.nothing  # type: ignore[method-assign]

    def nothing(self, now: float) -> wire.AckMessage | None:
        return None


class DeafToHalts(DemoRobot):
    """Acknowledges a halt and drives on."""

    def __init__(self, settings: RobotSettings) -> None:
        super().__init__(settings, NIMBLE)
        take = self.link.lease.on_halt

        def on_halt(halt: wire.HaltMessage) -> bool:
            took = take(halt)
            self.link.lease.halt = None
            return took

        self.link.lease.on_halt = on_halt  # type: ignore[method-assign]


class Liar(DemoRobot):
    """Says that it stands the moment it is halted."""

    def __init__(self, settings: RobotSettings) -> None:
        super().__init__(settings, Chassis(actuation=0.02, braking=0.3))
        answer = self.link._standing.answer

        def lie(now: float) -> wire.AckMessage | None:
            said = answer(now)
            return said and wire.AckMessage(
                halt_id=said.halt_id, guard_boot=said.guard_boot, stopped=True
            )

        self.link._standing.answer = lie  # type: ignore[method-assign]


class Lazy(DemoRobot):
    """Does not want to go anywhere."""

    def __init__(self, settings: RobotSettings) -> None:
        super().__init__(settings, Chassis(cruise=0.0))


class Good(DemoRobot):
    """As it should be."""

    def __init__(self, settings: RobotSettings) -> None:
        super().__init__(settings, NIMBLE)


ROBOTS: dict[str, tuple[type[DemoRobot], set[str]]] = {
    "good": (Good, set()),
    "never-stops": (
        NeverStops,
        {
            "it stands 600 ms and its braking after the last permit",
            "a permit of an older guard does not move it",
            "a permit whose number was used before does not move it",
            "an echo of another start of the robot does not move it",
            "an echo of a report that is older than 600 ms does not move it",
            "a permit without a signature does not move it",
        },
    ),
    "trusts-what-arrives": (
        TrustsWhatArrives,
        {
            "a permit of an older guard does not move it",
            "a permit whose number was used before does not move it",
            "an echo of another start of the robot does not move it",
            "an echo of a report that is older than 600 ms does not move it",
        },
    ),
    "mute": (
        Mute,
        {
            "it acknowledges a halt",
            "it says that it stands",
            "it acknowledges the halt's repeat",
        },
    ),
    "deaf": (
        DeafToHalts,
        {
            "it says that it stands",
            "permits do not move it while it is halted",
            "an older guard's release does not move it",
        },
    ),
    "liar": (Liar, {"its report says so too"}),
    "lazy": (Lazy, {"it moves while it may", "the rest"}),
}


@asynccontextmanager
async def running(robot: DemoRobot) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(robot.run(), name="robot")
        yield
        task.cancel()


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[Row, ...]]:
    """The rows of every robot, all tried at once."""

    async def one(port: int, name: str, kind: type[DemoRobot]) -> tuple[Row, ...]:
        where = MqttEndpoint(port=port, robot=name, robot_key=ROBOT_KEY)
        async with running(kind(RobotSettings(port=port, robot=name, boot=3, robot_key=ROBOT_KEY))):
            return await RobotCheck(where, 7, stop_within=0.4).run()

    async def story() -> dict[str, tuple[Row, ...]]:
        async with EmbeddedBroker() as broker, asyncio.TaskGroup() as group:
            tasks = {
                name: group.create_task(one(broker.port, name, kind))
                for name, (kind, _) in ROBOTS.items()
            }
        return {name: task.result() for name, task in tasks.items()}

    with pytest.MonkeyPatch.context() as shorter:
        shorter.setattr("hdguard.robot_check.DRIVES_FOR", 0.4)
        shorter.setattr("hdguard.robot_check.IGNORES_FOR", LEASE + 0.1)
        return run(story(), patience=60.0)


@pytest.mark.parametrize("name", list(ROBOTS))
def test_exactly_what_is_wrong_with_a_robot_is_found(
    name: str, found: dict[str, tuple[Row, ...]]
) -> None:
    wrong = {row.what for row in found[name] if not row.ok}
    assert wrong == ROBOTS[name][1]


def test_everything_is_tried_on_a_robot_that_moves(found: dict[str, tuple[Row, ...]]) -> None:
    every = {row.what for row in found["good"]}
    assert len(every) >= 15
    for name, (_, wrong) in ROBOTS.items():
        assert wrong - {"the rest"} <= every, name


def test_without_a_robot_or_beside_a_running_guard_nothing_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hdguard.played_guard.CONNECT_WITHIN", 0.3)

    async def story() -> None:
        async with EmbeddedBroker() as broker:
            where = MqttEndpoint(port=broker.port, robot="rosie")
            with pytest.raises(CheckError, match="no robot reports on hdguard/rosie/robot"):
                await RobotCheck(where, 7, stop_within=0.4).run()
            robot = Good(RobotSettings(port=broker.port, robot="rosie", boot=3))
            guard = PlayedGuard(where, 7)
            async with running(robot), asyncio.TaskGroup() as group:
                guard.connection.start(group)
                await guard.found()
                topic = where.topics["availability"]
                await guard.connection.publish(topic, b"online", qos=1, retain=True)
                with pytest.raises(CheckError, match="a guard runs: end it first"):
                    await RobotCheck(where, 7, stop_within=0.4).run()
                await guard.connection.close()
        nowhere = MqttEndpoint(port=1, robot="rosie")
        with pytest.raises(CheckError, match=r"no connection to 127\.0\.0\.1:1"):
            await RobotCheck(nowhere, 7, stop_within=0.4).run()

    run(story())
