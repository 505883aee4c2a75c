"""An actuator without a wire, with an ideal robot inside: it acknowledges, brakes and confirms.

For replays in virtual time, where no socket may be. It keeps what it was sent, so that tests and
reports can ask.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from hdguard.core.actions import Escalate, Halt, Notify, Permit, Release
from hdguard.core.events import Event, HaltAcknowledged, HaltConfirmed, RobotSeen
from hdguard.core.types import Speed

ROBOT_EVERY = 0.1
"""Seconds between the robot's messages: DESIGN section 5, ten a second."""


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """Settings of the ideal robot.

    Attributes:
        stop_time: seconds from the halt's arrival to standstill. 0.7 = 0.1 s of actuation and
            v/a = 0.6 s of braking, the values that the bundled examples are made for.
    """

    stop_time: float = 0.7

    def __post_init__(self) -> None:
        if self.stop_time < 0:
            msg = f"stop_time: {self.stop_time} must be 0 or more seconds"
            raise ValueError(msg)


class RecordingActuator:
    """Delivers at once and answers as an ideal robot would."""

    def __init__(self, settings: RecordingSettings | None = None) -> None:
        self.settings = settings or RecordingSettings()
        self.sent: list[tuple[float, Halt | Release | Permit | Notify | Escalate]] = []
        self._loop = asyncio.get_running_loop()
        self._speed = Speed.NONE
        self._halted: set[str] = set()
        self._seq = 0
        self._inbox: asyncio.Queue[Event] = asyncio.Queue()
        self._timers: list[asyncio.TimerHandle] = []

    async def halt(self, action: Halt | Release) -> None:
        """Deliver it; the robot brakes at the first of its id."""
        self.sent.append((self._loop.time(), action))
        if isinstance(action, Halt) and action.halt_id not in self._halted:
            self._halted.add(action.halt_id)
            self._inbox.put_nowait(HaltAcknowledged(action.halt_id))
            confirmed = HaltConfirmed(action.halt_id)
            timer = self._loop.call_later(
                self.settings.stop_time, self._inbox.put_nowait, confirmed
            )
            self._timers.append(timer)

    async def permit(self, action: Permit) -> None:
        """Deliver it."""
        self.sent.append((self._loop.time(), action))
        self._speed = action.speed

    async def notify(self, action: Notify | Escalate) -> None:
        """Keep it."""
        self.sent.append((self._loop.time(), action))

    async def events(self) -> AsyncIterator[Event]:
        """What the robot says, ten times a second and when it is halted."""
        try:
            self._report()
            while True:
                yield await self._inbox.get()
        finally:
            for timer in self._timers:
                timer.cancel()

    def _report(self) -> None:
        self._seq += 1
        moving = self._speed is not Speed.NONE
        self._inbox.put_nowait(RobotSeen(boot=1, seq=self._seq, moving=moving))
        self._timers = [
            t for t in self._timers if not t.cancelled() and t.when() > self._loop.time()
        ]
        self._timers.append(self._loop.call_later(ROBOT_EVERY, self._report))
