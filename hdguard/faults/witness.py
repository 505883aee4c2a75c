"""Somebody who reads all that guard and robot say, and notes when; and the end of the hook's wire.

All that is measured is measured here, from outside, on the one clock of this process.
"""

import asyncio
import itertools
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import aiomqtt

from hdguard.actuators import wire
from hdguard.actuators.client import SafeClient
from hdguard.faults.rows import FaultError

AGAIN_AFTER = 0.01
"""Seconds before a broker that is not there is tried again: it adds no more to what is measured."""

KEPT = 20_000
"""Messages; more than a minute of a flood."""


class Seen:
    """One message."""

    __slots__ = ("at", "name", "payload")

    def __init__(self, at: float, name: str, payload: bytes) -> None:
        self.at = at
        self.name = name
        self.payload = payload


class Witness:
    """Reads every topic of a robot.

    Attributes:
        seen: the messages, oldest first.
        client: the present connection, to say something on; None while there is none.
    """

    def __init__(self, port: int, robot: str) -> None:
        self.seen: deque[Seen] = deque(maxlen=KEPT)
        self.client: SafeClient | None = None
        self._port = port
        self._prefix = f"hdguard/{robot}/"
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    async def read(self) -> None:
        """Read until cancelled."""
        while True:
            client = SafeClient("127.0.0.1", self._port)
            with suppress(aiomqtt.MqttError):
                async with client:
                    await client.subscribe(f"{self._prefix}+", 1)
                    self.client = client
                    self._news.set()
                    async for message in client.messages:
                        self._note(message)
            self.client = None
            await asyncio.sleep(AGAIN_AFTER)

    def _note(self, message: aiomqtt.Message) -> None:
        name = message.topic.value.removeprefix(self._prefix)
        self.seen.append(Seen(self._loop.time(), name, message.payload))
        self._news.set()

    async def publish(self, name: str, payload: bytes, qos: int = 1, retain: bool = False) -> None:
        """Say something on one of the robot's topics, whoever should say it.

        Raises:
            FaultError: the connection broke.
        """
        while self.client is None:
            await self.changed()
        try:
            await self.client.publish(self._prefix + name, payload, qos, retain)
        except aiomqtt.MqttError as error:
            raise FaultError(f"nothing could be said on {name}: {error}") from error

    async def changed(self) -> None:
        """Wait for the next message, or connection."""
        self._news.clear()
        await self._news.wait()

    def last(self, name: str) -> Seen | None:
        """The newest message of a topic."""
        return next((s for s in reversed(self.seen) if s.name == name), None)

    def since(self, name: str, at: float) -> list[Seen]:
        """The messages of a topic from then on, oldest first."""
        found = []
        for seen in reversed(self.seen):
            if seen.at < at:
                break
            if seen.name == name:
                found.append(seen)
        return found[::-1]

    def longest_gap(self, name: str, since: float) -> float:
        """Seconds between two messages of a topic, from the last one before then until now.

        What never came again counts: the last gap is the one that lasts.

        Raises:
            FaultError: none came before it, or none since.
        """
        times = [seen.at for seen in self.seen if seen.name == name]
        after = [at for at in times if at >= since]
        if not after or len(after) == len(times):
            raise FaultError(f"no {name} was seen before it, or none since")
        spanned = [*times[-len(after) - 1 :], self._loop.time()]
        return max(b - a for a, b in itertools.pairwise(spanned))

    async def first(self, name: str, fits: Callable[[bytes], bool], since: float) -> Seen:
        """The first message of a topic from then on that fits; waits for it."""
        while True:
            for seen in self.since(name, since):
                if fits(seen.payload):
                    return seen
            await self.changed()

    async def halt(self, since: float, *causes: str) -> Seen:
        """The first halt of such a cause from then on; waits for it."""

        def fits(payload: bytes) -> bool:
            halt = wire.decode_halt(payload)
            return halt.active and halt.cause in causes

        return await self.first("halt", fits, since)

    @property
    def in_force(self) -> wire.HaltMessage | None:
        """The halt in force, as the robot knows it."""
        seen = self.last("halt")
        halt = None if seen is None or not seen.payload else wire.decode_halt(seen.payload)
        return halt if halt is not None and halt.active else None

    @property
    def permit(self) -> wire.PermitMessage | None:
        """The newest permit, if it is not older than a lease."""
        seen = self.last("permit")
        if seen is None or self._loop.time() - seen.at > 0.6:
            return None
        return wire.decode_permit(seen.payload)


class HookWire:
    """What the fall-back hook writes to, in place of a GPIO line: a named pipe.

    Attributes:
        changes: when it was set to what.
    """

    def __init__(self, folder: Path) -> None:
        self.changes: list[tuple[float, str]] = []
        self.path = folder / "hook"
        os.mkfifo(self.path)
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        # Open for both ways: a pipe that nobody writes to at the moment has not ended.
        self._fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._loop.add_reader(self._fd, self._on_written)

    def _on_written(self) -> None:
        words = os.read(self._fd, 1024).decode("ascii", "replace")
        now = self._loop.time()
        self.changes.extend((now, word) for word in words)
        self._news.set()

    async def on(self, since: float) -> float:
        """When it was switched on, from then on; waits for it."""
        while True:
            for at, word in self.changes:
                if at >= since and word == "1":
                    return at
            self._news.clear()
            await self._news.wait()

    def close(self) -> None:
        """Let go of it."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
