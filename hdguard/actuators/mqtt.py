"""The guard's way to the robot over MQTT.

Halts, permits and the state each wait for their own receipt, so that none delays another. What must
outlive a broken connection is what the broker retains: on every connect the newest halt or release
of this guard, the availability and the state are published again. A permit is never kept for later.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

import aiomqtt

from hdguard.actuators import wire
from hdguard.actuators.base import ActuatorError
from hdguard.actuators.connection import Connection, MqttEndpoint
from hdguard.actuators.intake import Echo, Inbox, Intake, Keys
from hdguard.actuators.retained import Retained
from hdguard.actuators.signing import NONCE_EVERY, check_key
from hdguard.actuators.statements import Statements
from hdguard.core.actions import Escalate, Halt, Notify, Permit, Release
from hdguard.core.events import Event, LinkLost, LinkUp

log = logging.getLogger(__name__)

DROP_AFTER = 4.0
"""Seconds that a link may be lost before the connection is made anew: a half-open one never ends by
itself. More than a short freeze, which a new connection would only prolong."""


def _is_round(count: int) -> bool:
    """1, 10, 100, ...: a flood of bad messages must not become a flood of log lines."""
    return str(count).strip("0") == "1"


RETAINED = ("halt", "state")
"""Topics that are read for what guards before this one said there, and then no more."""

INCOMING = {"halt": 0, "state": 0, "permit": 0, "robot": 0, "ack": 1, "reset": 1, "availability": 1}
"""Topics that the guard reads, with their QoS; its own among them, for the echo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSettings(MqttEndpoint):
    """The guard's settings, beside those of every party.

    Attributes:
        reset_key: shared by guard and operators; without it every reset is refused.
        stop_category: asked of the robot; IEC 60204-1: 1 stops and cuts power, 2 keeps it.
    """

    reset_key: str | None = field(default=None, repr=False)
    stop_category: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        MqttEndpoint.__post_init__(self)
        check_key(self.reset_key, "reset_key")

    @property
    def keys(self) -> Keys:
        """The keys, as bytes."""
        robot = check_key(self.robot_key, "robot_key")
        return Keys(robot=robot, reset=check_key(self.reset_key, "reset_key"))


class MqttActuator:
    """An `Actuator`; an async context manager that connects, and takes its leave at the end.

    Args:
        settings: the broker, the robot, the keys.
        boot: this guard's, greater than any before it: see `hdguard.actuators.boot`.
        sources, brains: names, for the state that people read.
        on_rejected: told the topic's last level and the reason of every message that is refused.
            Whoever it is logs that, and escalations too; None: they are logged here.

    Raises:
        ValueError: the names are too long to be sent.
    """

    def __init__(
        self,
        settings: MqttSettings,
        boot: int,
        *,
        sources: tuple[str, ...] = (),
        brains: tuple[str, ...] = (),
        on_rejected: Callable[[str, str], None] | None = None,
    ) -> None:
        self.settings = settings
        self.rejected: Counter[str] = Counter()
        self._on_rejected = on_rejected
        self._loop = asyncio.get_running_loop()
        keys, topics = settings.keys, settings.topics
        token = lambda: secrets.token_hex(16)  # noqa: E731 - a name would say less
        names = (sources, brains)
        self._says = Statements(topics, boot, keys.robot, settings.stop_category, names, token)
        self._intake = Intake(
            topics, boot, keys, self._says.nonces, in_force=lambda: self._says.in_force
        )
        self._echo = Echo(boot, self._loop.time())
        self._inbox = Inbox()
        self._retained = Retained(topics, boot, keys.robot)
        self._echoed = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._connection = Connection(
            settings,
            f"hdguard-{settings.robot}",
            {topics[name]: qos for name, qos in INCOMING.items()},
            self._greet,
            self._on_message,
            aiomqtt.Will(topics["availability"], b"offline", qos=1, retain=True),
        )

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._connection.start(self._group)
        self._renewer = self._group.create_task(self._renew(), name="nonces")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inbox.close()
        self._renewer.cancel()
        if self._connection.up_since is not None:
            await self._say_availability(b"offline")
        await self._connection.close()
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            await self._group.__aexit__(None, None, None)

    @property
    def connected(self) -> bool:
        """There is a connection. No proof that anything arrives: see LinkLost and LinkUp."""
        return self._connection.up_since is not None

    @property
    def retained_halt(self) -> wire.HaltMessage | None:
        """What the broker kept of another guard's halts; known once `ready` has returned."""
        return self._retained.halt

    @property
    def unread_halt(self) -> str:
        """Why what the broker kept as a halt cannot be read; empty: there is no such thing."""
        return self._retained.unread

    @property
    def outnumbered(self) -> int | None:
        """The number of another guard that ours is not above; None while none is known."""
        newest = self._retained.newest_boot
        return newest if newest >= self._says.boot else None

    async def ready(self) -> None:
        """Wait until the broker has brought back what we said, and so all that it kept."""
        await self._retained.complete.wait()

    async def echoed(self) -> None:
        """Wait until one of our own permits has come back."""
        await self._echoed.wait()

    async def halt(self, action: Halt | Release) -> None:
        """Publish the halt or its end, retained; returns with the broker's receipt.

        Raises:
            ActuatorError: there was none. On the next connect it is published again.
        """
        self._says.on_halt(action)
        await self._say_halt()

    async def permit(self, action: Permit) -> None:
        """Publish the permit, or drop it.

        Raises:
            ActuatorError: it did not leave.
        """
        seq, payload = self._says.permit_payload(action)
        if self.connected:
            self._echo.sent(seq, self._loop.time())
        await self._connection.publish(self._says.topics["permit"], payload)

    async def notify(self, action: Notify | Escalate) -> None:
        """Publish the state, retained; an escalation stands in its words.

        Raises:
            ActuatorError: there was no receipt. On the next connect it is published again.
        """
        if isinstance(action, Escalate) and self._on_rejected is None:
            log.error("halt %s: the robot has not acknowledged it", action.halt_id)
        self._says.on_note(self._retained.explained(action) if type(action) is Notify else action)
        await self._say_state()

    async def events(self) -> AsyncIterator[Event]:
        """What the robot and the operators say, and whether the link works; until closed."""
        self._echo.restart(self._loop.time())
        while not self._inbox.closed:
            now = self._loop.time()
            if self._echo.changed(now):
                yield LinkLost() if self._echo.lost else LinkUp()
            elif (event := self._inbox.take()) is not None:
                yield event
            elif not self._echo.lost:
                await self._inbox.wait(self._echo.deadline)
            elif (since := self._connection.up_since) is None:
                await self._inbox.wait(None)
            elif now < (drop_at := max(since, self._echo.deadline) + DROP_AFTER):
                await self._inbox.wait(drop_at)
            else:
                self._connection.drop("our permits do not come back")
                await self._inbox.wait(None)

    async def forget_halt(self) -> None:
        """End whatever halt the broker keeps from another guard, unless we have one of our own.

        For replays, which start anew, and for a halt whose release the broker has missed.

        Raises:
            ActuatorError: there was no receipt.
        """
        await self.ready()
        found = self.retained_halt
        if found is not None and found.active and self._says.halt is None:
            await self.halt(Release(found.halt_id))

    # Saying. All raise ActuatorError.

    async def _greet(self) -> None:
        self._retained.greetings += 1
        await self._say_halt()
        await self._retain("availability", b"online")
        await self._say_state()
        self._inbox.wake()

    async def _say_halt(self) -> None:
        if (payload := self._says.halt_payload()) is not None:
            await self._retain("halt", payload)

    async def _say_state(self) -> None:
        await self._retain("state", self._says.state_payload(self._loop.time()))

    async def _retain(self, name: str, payload: bytes) -> None:
        await self._connection.publish(self._says.topics[name], payload, qos=1, retain=True)

    async def _say_availability(self, word: bytes) -> None:
        """Does not raise: the next connect says it again, or the Last Will does."""
        try:
            await self._retain("availability", word)
        except ActuatorError as error:
            log.warning("%s", error)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(NONCE_EVERY)
            if self._says.halted and self.connected:
                self._says.nonces.issue(self._loop.time())
                try:
                    await self._say_state()
                except ActuatorError as error:
                    log.warning("%s", error)

    # Hearing.

    def _on_message(self, topic: str, payload: bytes, retained: bool) -> None:
        name = topic.rpartition("/")[2]
        try:
            self._take(name, payload, retained)
        except wire.WireError as error:
            self.rejected[name] += 1
            if self._on_rejected is not None:
                self._on_rejected(name, str(error))
            elif _is_round(self.rejected[name]):
                log.warning("rejected: %s (%d so far)", error, self.rejected[name])

    def _take(self, name: str, payload: bytes, retained: bool) -> None:
        match name:
            case "permit":
                if self._echo.returned(self._intake.permit(payload)):
                    self._echoed.set()
                self._inbox.wake()
            case "halt" | "state":
                if retained and not self._retained.complete.is_set():
                    self._on_kept(name, payload)
            case "availability":
                said = wire.decode_availability(payload)
                if not retained and not self._inbox.closed:
                    self._on_availability(said)
            case _:
                now = self._loop.time()
                event = self._intake.take(name, payload, now, retained=retained)
                if event is not None:
                    self._inbox.put(event)

    def _on_kept(self, name: str, payload: bytes) -> None:
        self._retained.take(name, payload)
        if self.outnumbered is not None:
            log.error(
                "boot %d is not above %d, which another guard had: the robot may take what we say "
                "for old",
                self._says.boot,
                self.outnumbered,
            )
        self._says.found = self._retained.halt

    def _on_availability(self, said: wire.Availability) -> None:
        if said == "online" and not self._retained.complete.is_set():
            # The broker has sent what it kept before this: our own halts need not come back.
            self._retained.complete.set()
            for name in RETAINED:
                forget = self._connection.unsubscribe(self._says.topics[name])
                self._group.create_task(forget, name=f"unsubscribe {name}")
            if self.unread_halt:
                self._group.create_task(self._say_unread(), name="unread halt")
        elif said == "online":
            return
        else:  # the Last Will of a connection that we have given up, or of a guard before us
            self._group.create_task(self._say_availability(b"online"), name="availability")

    async def _say_unread(self) -> None:
        """Does not raise: the next connect says the state again."""
        self._says.on_note(self._retained.explained())
        try:
            await self._say_state()
        except ActuatorError as error:
            log.warning("%s", error)
