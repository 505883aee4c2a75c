"""Brokers, guards and robots for the end-to-end tests; all real, all on this machine."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiomqtt

from hdguard.actuators.broker import EmbeddedBroker
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.actuators.wire import PermitMessage
from hdguard.core.types import Speed
from hdguard.demo_robot import DemoRobot
from hdguard.robot import RobotLink, RobotSettings
from tests.actuators.support import PATIENCE, RESET_KEY, Signal
from tests.mosquitto import PASSWORD, Mosquitto, mosquitto

REPOSITORY = Path(__file__).resolve().parents[2]
BROKERS = ("mosquitto", "embedded")
log = logging.getLogger(__name__)


def measured(name: str, seconds: float) -> None:
    """Shown by `pytest -o log_cli=true --log-cli-level=INFO`."""
    log.info("measured: %s %.3f s", name, seconds)


@dataclass(frozen=True)
class Stage:
    """Where a broker listens, and whom it lets in."""

    port: int
    passwords: bool
    process: Mosquitto | None = None

    @property
    def mosquitto(self) -> Mosquitto:
        assert self.process is not None
        return self.process

    def account(self, user: str) -> dict[str, Any]:
        known = {"username": user, "password": PASSWORD} if self.passwords else {}
        return {"port": self.port, "robot": "rosie", **known}

    def guard_settings(self, **changes: Any) -> MqttSettings:
        return MqttSettings(**{"reset_key": RESET_KEY, **self.account("guard"), **changes})

    def guard(self, boot: int = 7, **changes: Any) -> MqttActuator:
        return MqttActuator(self.guard_settings(**changes), boot)

    def robot_settings(self, boot: int = 3, **changes: Any) -> RobotSettings:
        return RobotSettings(**{**self.account("robot"), "boot": boot, **changes})

    def client(self, user: str = "anyone") -> aiomqtt.Client:
        """Somebody else on the broker."""
        account = self.account(user)
        account.pop("robot")
        return aiomqtt.Client("127.0.0.1", timeout=PATIENCE, **account)


@asynccontextmanager
async def stage(broker: str, folder: Path, extra: str = "") -> AsyncIterator[Stage]:
    """A broker of that kind."""
    if broker == "embedded":
        async with EmbeddedBroker() as embedded:
            yield Stage(embedded.port, passwords=False)
    else:
        with mosquitto(folder, extra) as process:
            yield Stage(process.port, passwords=True, process=process)


class Watched:
    """A robot's link, with the times at which it was told to move, to stop, and got permits."""

    def __init__(self, settings: RobotSettings) -> None:
        self.moves, self.stops, self.permits = Signal(), Signal(), Signal()
        self.link = RobotLink(settings, on_move=self.moves, on_stop=self.stops)
        take = self.link.lease.on_permit

        def on_permit(permit: PermitMessage) -> bool:
            accepted = take(permit)
            if accepted:
                self.permits(permit)
            return accepted

        self.link.lease.on_permit = on_permit  # type: ignore[method-assign]


class Driven:
    """A demo robot that drives whenever it may, with the speeds that it was told."""

    def __init__(self, settings: RobotSettings) -> None:
        self.told = Signal()
        self.robot = DemoRobot(settings, on_change=self.told)

    async def at_speed(self, speed: Speed) -> None:
        """Wait until that is what it may do."""
        await self.told.until(lambda: bool(self.told.said) and self.told.said[-1] is speed)


@asynccontextmanager
async def demo_robot(settings: RobotSettings) -> AsyncIterator[Driven]:
    """A demo robot, for as long as the block lasts."""
    driven = Driven(settings)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(driven.robot.run(), name="robot")
        yield driven
        task.cancel()


@contextmanager
def guard_process(at: Stage, boot: int) -> Iterator[subprocess.Popen[bytes]]:
    """A guard that lets the robot run, in a process of its own; killed at the end."""
    account = at.account("guard")
    words = [str(at.port), str(boot), account.get("username", ""), account.get("password", "")]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.guard_process", *words],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


class Topic:
    """What somebody who reads one topic sees: payload, retained, and when."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, bytes, bool]] = []
        self._news = asyncio.Condition()

    async def follow(self, client: aiomqtt.Client, topic: str, qos: int = 1) -> None:
        """Read until cancelled or the connection breaks."""
        loop = asyncio.get_running_loop()
        await client.subscribe(topic, qos)
        with suppress(aiomqtt.MqttError):
            async for message in client.messages:
                if message.topic.value != topic:
                    continue  # amqtt sends more than it is asked for
                async with self._news:
                    self.seen.append((loop.time(), message.payload, message.retain))
                    self._news.notify_all()

    async def wait_for(
        self, condition: Callable[[bytes], bool] = lambda _: True, patience: float = PATIENCE
    ) -> tuple[float, bytes, bool]:
        """The first that fulfils the condition."""

        def found() -> list[tuple[float, bytes, bool]]:
            return [entry for entry in self.seen if condition(entry[1])]

        async with asyncio.timeout(patience), self._news:
            await self._news.wait_for(lambda: bool(found()))
        return found()[0]


@asynccontextmanager
async def following(at: Stage, name: str, user: str = "anyone") -> AsyncIterator[Topic]:
    """Somebody reads that topic of the robot's."""
    topic = Topic()
    async with at.client(user) as client, asyncio.TaskGroup() as group:
        task = group.create_task(topic.follow(client, f"hdguard/rosie/{name}"), name="follow")
        yield topic
        task.cancel()
