"""The robot's half of the contract: it moves only while a fresh permit lets it.

A robot team installs this and asks `link.speed` in every cycle of its control loop:

    async with RobotLink(RobotSettings(host="hub", robot="rosie", boot_file="boot")) as link:
        while True:
            base.set_limit(LIMITS[link.speed])          # Speed.NONE: brake, category 1 or 2
            wheels = await base.next_odometry()
            link.report(moving=wheels.moving, speed=wheels.speed)

`on_move` and `on_stop` say the same as callbacks. They come from the event loop, so a robot whose
loop may stall asks `link.speed` instead: it counts the time at which it is asked.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hdguard.actuators import wire
from hdguard.actuators.base import ActuatorError
from hdguard.actuators.boot import raise_boot
from hdguard.actuators.connection import Connection, MqttEndpoint
from hdguard.actuators.lease import Lease, Standing
from hdguard.actuators.signing import check_key, seal, unseal
from hdguard.core.types import Speed

log = logging.getLogger(__name__)

REPORT_EVERY = 0.1
"""Seconds between the robot's messages: DESIGN section 5, ten a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotSettings(MqttEndpoint):
    """The robot's settings, beside those of every party; one of the two is needed.

    Attributes:
        boot: greater at every start of the robot.
        boot_file: holds that number; it is raised by one at every start.
    """

    boot: int | None = None
    boot_file: str | None = None

    def raised_boot(self) -> int:
        """The number of this start.

        Raises:
            ValueError: neither is set, or the file holds no number.
            OSError: the file cannot be written.
        """
        if self.boot is not None:
            return self.boot
        if self.boot_file is None:
            msg = "boot_file: name a file that survives a restart; it counts the robot's starts"
            raise ValueError(msg)
        return raise_boot(Path(self.boot_file))


class RobotLink:
    """The robot's end of the wire; an async context manager.

    Args:
        settings: the broker, the robot, its boot.
        on_move: told the speed whenever the robot may move (again), or at another speed.
        on_stop: told when it may not move any more.

    Raises:
        ValueError: the settings name no boot, or the robot's name or key is not fit to be sent.
        OSError: the boot file cannot be written.
    """

    def __init__(
        self,
        settings: RobotSettings,
        *,
        on_move: Callable[[Speed], None] = lambda _: None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self.rejected = 0
        self.lease = Lease(settings.raised_boot())
        self._standing = Standing()
        self._on_move = on_move
        self._on_stop = on_stop
        self._told = Speed.NONE
        self._key = check_key(settings.robot_key, "robot_key")
        self._topics = settings.topics
        self._loop = asyncio.get_running_loop()
        self._group = asyncio.TaskGroup()
        self._lease_changed = asyncio.Event()
        self._answer_due = asyncio.Event()
        self._connection = Connection(
            settings,
            f"hdguard-{settings.robot}-robot",
            {self._topics["halt"]: 1, self._topics["permit"]: 0},
            self._greet,
            self._on_message,
        )

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._connection.start(self._group)
        jobs = {"reports": self._reports, "acks": self._acks, "lease": self._watch}
        self._jobs = [self._group.create_task(job(), name=name) for name, job in jobs.items()]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for job in self._jobs:
            job.cancel()
        await self._connection.close()
        self.lease.deadline = -math.inf
        self._tell()
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            await self._group.__aexit__(None, None, None)

    @property
    def speed(self) -> Speed:
        """What the robot may do now."""
        return self.lease.speed(self._loop.time())

    @property
    def may_move(self) -> bool:
        """True while it may move at all."""
        return self.speed is not Speed.NONE

    @property
    def halt(self) -> wire.HaltMessage | None:
        """The halt in force."""
        return self.lease.halt

    def report(self, *, moving: bool, speed: float | None = None) -> None:
        """Say how the robot moves, at least every 0.4 s; this alone confirms a halt.

        Args:
            moving: anything that could hurt still moves.
            speed: m/s, or None if unknown.
        """
        speed = None if speed is None else float(speed)  # odometry may be numpy's
        self._standing.report(moving=bool(moving), speed=speed, now=self._loop.time())
        self._answer_due.set()

    async def _greet(self) -> None:
        """Nothing to say: the robot's reports come ten times a second anyway."""

    def _on_message(self, topic: str, payload: bytes, retained: bool) -> None:
        try:
            self._take(topic, unseal(topic, payload, self._key), retained)
        except wire.WireError as error:
            self.rejected += 1
            log.warning("rejected: %s", error)

    def _take(self, topic: str, body: bytes, retained: bool) -> None:
        if topic == self._topics["halt"]:
            halt = wire.decode_halt(body)
            if self.lease.on_halt(halt):
                self._tell()
                self._standing.on_halt(halt, self._loop.time())
                self._answer_due.set()
        elif retained:
            raise wire.WireError("permit: retained")
        elif self.lease.on_permit(wire.decode_permit(body)):
            self._tell()

    def _tell(self) -> None:
        """Call back if what the robot may do has changed."""
        speed = self.speed
        self._lease_changed.set()
        if speed is self._told:
            return
        self._told = speed
        if speed is Speed.NONE:
            self._on_stop()
        else:
            self._on_move(speed)

    async def _watch(self) -> None:
        """Notice the end of the lease when it comes."""
        while True:
            running = self._told is not Speed.NONE
            try:
                async with asyncio.timeout_at(self.lease.deadline if running else None):
                    await self._lease_changed.wait()
            except TimeoutError:
                self._tell()
            self._lease_changed.clear()

    async def _reports(self) -> None:
        due = self._loop.time()
        while True:
            now = self._loop.time()
            moving, speed = self._standing.motion(now)
            boot, seq = self.lease.boot, self.lease.send(now)
            await self._send(
                "robot", wire.RobotMessage(boot=boot, seq=seq, moving=moving, speed=speed), 0
            )
            due = max(due + REPORT_EVERY, now)
            await asyncio.sleep(due - self._loop.time())

    async def _acks(self) -> None:
        while True:
            await self._answer_due.wait()
            self._answer_due.clear()
            if (ack := self._standing.answer(self._loop.time())) is not None:
                await self._send("ack", ack, 1)

    async def _send(self, name: str, message: wire.Message, qos: int) -> None:
        topic = self._topics[name]
        payload = seal(topic, wire.encode(message), self._key)
        try:
            await self._connection.publish(topic, payload, qos=qos)
        except ActuatorError as error:
            log.debug("%s", error)  # without a report no permit counts, and a halt is repeated
