"""The guard's end of the wire, made to say anything: what `hdguard robot --check` speaks with."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from hdguard.actuators import wire
from hdguard.actuators.base import ActuatorError
from hdguard.actuators.connection import Connection, MqttEndpoint
from hdguard.actuators.signing import check_key, seal, unseal
from hdguard.core.permits import PERMIT_EVERY
from hdguard.core.types import HaltCause, HaltClass, State

log = logging.getLogger(__name__)

CONNECT_WITHIN = 5.0
"""Seconds for the broker and the robot's first report."""


class CheckError(Exception):
    """The check cannot be made: says why and what to do."""


class PlayedGuard:
    """The guard's end of the wire, made to say anything.

    Args:
        endpoint: the broker, as the guard reaches it.
        boot: of this guard; None: one above what the broker keeps of another.

    Attributes:
        boot: what our messages carry; known once the robot is found.
        reports: what the robot said of itself, and when it came.
        acks: every acknowledgement, and when it came.
        permit: makes the permit that leaves every 200 ms, or None: none leaves.
        permitted_at: when the last permit left.
    """

    def __init__(self, endpoint: MqttEndpoint, boot: int | None) -> None:
        self.boot = boot or 0
        self.reports: list[tuple[float, wire.RobotMessage]] = []
        self.acks: list[tuple[float, wire.AckMessage]] = []
        self.permit: Callable[[], bytes] | None = None
        self.permitted_at = 0.0
        self._kept_boot = 0  # the newest that the broker keeps
        self._online = False
        self._seq = 0
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self.topics = endpoint.topics
        self.key = check_key(endpoint.robot_key, "robot_key")
        self.connection = Connection(
            endpoint,
            f"hdguard-{endpoint.robot}-check",
            {self.topics[n]: 1 for n in ("halt", "state", "availability", "robot", "ack")},
            self._greet,
            self._on_message,
        )

    async def found(self) -> None:
        """Wait for the robot's first report; then `boot` is known.

        Raises:
            CheckError: there is no broker, no robot, or a guard that runs.
        """
        if not await self.until(lambda: bool(self.reports), CONNECT_WITHIN):
            where = f"{self.connection.endpoint.host}:{self.connection.endpoint.port}"
            if self.connection.up_since is None:
                raise CheckError(f"no connection to {where}: {self.connection.trouble}")
            raise CheckError(f"no robot reports on {self.topics['robot']} at {where}")
        if self._online:
            raise CheckError("a guard runs: end it first, or two would command one robot")
        if not self.boot:
            self.boot = self._kept_boot + 1
            log.warning(
                "played by a guard with the number %d, which the robot will remember: afterwards "
                "the real guard's must be above it, so write %d or more into its boot file",
                self.boot,
                self.boot,
            )

    async def until(self, condition: Callable[[], bool], within: float) -> bool:
        """Wait for something that a message brings; False if it is not so in that many seconds."""
        try:
            async with asyncio.timeout(within):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    @property
    def moving(self) -> bool:
        """What the robot said last."""
        return self.reports[-1][1].moving

    def made_permit(self, robot: tuple[int, int] | None = None, **changes: Any) -> bytes:
        """A permit of full speed that echoes the newest report, but for what is given."""
        newest = self.reports[-1][1]
        boot, seq = robot or (newest.boot, newest.seq)
        self._seq += 1
        message = wire.PermitMessage(
            boot=self.boot,
            seq=self._seq,
            light="GREEN",
            speed="full",
            state=State.MONITORING,
            frame_age=0.0,
            verdict_age=0.0,
            robot=wire.RobotEcho(boot=boot, seq=seq),
        )
        message = msgspec.structs.replace(message, **changes)
        return seal(self.topics["permit"], wire.encode(message), self.key)

    async def beat(self) -> None:
        """Send a permit every 200 ms while there is one to be sent."""
        while True:
            if self.permit is not None:
                self.permitted_at = self._loop.time()
                with suppress(CheckError):  # then the robot stands, and a row says so
                    await self._publish("permit", self.permit(), 0)
            await asyncio.sleep(PERMIT_EVERY)

    async def say_halt(self, *, active: bool, boot: int | None = None) -> str:
        """Publish the one halt of this check, or its end; returns its id."""
        self._seq += 1
        message = wire.HaltMessage(
            boot=self.boot if boot is None else boot,
            seq=self._seq,
            active=active,
            halt_id=f"{self.boot}-1",
            halt_class=HaltClass.OPERATOR,
            cause=HaltCause.OPERATOR,
            latched=False,
            source="",
            brain="",
            light=None,
            hazard=wire.HazardField(text="hdguard robot --check"),
            stop_category=1,
            captured_at=None,
            decided_at=self._loop.time(),
            evidence_id=f"{self.boot}-1",
        )
        payload = seal(self.topics["halt"], wire.encode(message), self.key)
        await self._publish("halt", payload, 1)
        return message.halt_id

    async def _publish(self, name: str, payload: bytes, qos: int) -> None:
        try:
            await self.connection.publish(self.topics[name], payload, qos=qos, retain=qos == 1)
        except ActuatorError as error:
            raise CheckError(f"the broker went away: {error}") from error

    async def _greet(self) -> None:
        """Nothing: that a guard is online would not be true."""

    def _on_message(self, topic: str, payload: bytes, retained: bool) -> None:
        now = self._loop.time()
        try:
            if topic == self.topics["availability"]:
                self._online = wire.decode_availability(payload) == "online"
                return
            body = unseal(topic, payload, self.key)
            if topic == self.topics["robot"] and not retained:
                self.reports.append((now, wire.decode_robot(body)))
            elif topic == self.topics["ack"] and not retained:
                self.acks.append((now, wire.decode_ack(body)))
            elif topic in {self.topics["halt"], self.topics["state"]}:
                decode = wire.decode_halt if topic == self.topics["halt"] else wire.decode_state
                self._kept_boot = max(self._kept_boot, decode(body).boot)
        except wire.WireError:
            return  # a row says what is missing
        self._news.set()
