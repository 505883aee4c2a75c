"""A robot that moves nothing: for demos, replays and tests, with the braking of a real one."""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import uvloop

from hdguard.core.types import Speed
from hdguard.robot import RobotLink, RobotSettings

STEP = 0.02
"""Seconds between two looks at the wheels: a common odometry rate, 50 Hz."""


@dataclass(frozen=True, slots=True)
class Chassis:
    """How the robot moves.

    Attributes:
        cruise: m/s at full speed; reduced is half of it.
        actuation: seconds from a command to its effect.
        braking: seconds from `cruise` to standstill, v/a; it speeds up as it brakes. 0.1 s and
            0.6 s are the values that the bundled examples are made for.
    """

    cruise: float = 0.5
    actuation: float = 0.1
    braking: float = 0.6

    @classmethod
    def that_stops_in(cls, seconds: float) -> "Chassis":
        """One that needs so long from a halt at full speed to standstill; less when slower."""
        actuation = min(cls().actuation, seconds)
        return cls(actuation=actuation, braking=max(1e-3, seconds - actuation))

    def limit(self, speed: Speed) -> float:
        """m/s that a permit allows."""
        return {Speed.NONE: 0.0, Speed.REDUCED: self.cruise / 2, Speed.FULL: self.cruise}[speed]


class Motion:
    """The chassis under way; every time is an argument, and times must not go back."""

    def __init__(self, chassis: Chassis, now: float) -> None:
        self._chassis = chassis
        self._pending: list[tuple[float, float]] = []
        self._target = 0.0
        self._speed = 0.0
        self._at = now

    def command(self, speed: Speed, now: float) -> None:
        """Move at that speed, from the actuation time on."""
        self._pending.append((now + self._chassis.actuation, self._chassis.limit(speed)))

    def speed(self, now: float) -> float:
        """The speed at that time, m/s."""
        while self._pending and self._pending[0][0] <= now:
            when, target = self._pending.pop(0)
            self._advance(when)
            self._target = target
        self._advance(now)
        return self._speed

    def standing(self, now: float) -> bool:
        """True if it neither moves nor is about to."""
        at_rest = math.isclose(self.speed(now), 0.0, abs_tol=1e-9)
        return at_rest and not any(target for _, target in self._pending) and self._target == 0.0

    def _advance(self, now: float) -> None:
        change = self._chassis.cruise / self._chassis.braking * (now - self._at)
        gap = self._target - self._speed
        self._speed += max(-change, min(change, gap))
        self._at = now


class DemoRobot:
    """Drives whenever it may.

    Args:
        settings: of its link.
        chassis: how it moves.
        on_change: told every speed that it may move at, for people who watch.
    """

    def __init__(
        self,
        settings: RobotSettings,
        chassis: Chassis | None = None,
        on_change: Callable[[Speed], None] = lambda _: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_change = on_change
        self.motion = Motion(chassis or Chassis(), self._loop.time())
        self.link = RobotLink(settings, on_move=self._drive, on_stop=self._brake)

    async def run(self) -> None:
        """Drive until cancelled."""
        async with self.link:
            while True:
                now = self._loop.time()
                self.link.report(moving=not self.motion.standing(now), speed=self.motion.speed(now))
                await asyncio.sleep(STEP)

    def _drive(self, speed: Speed) -> None:
        self.motion.command(speed, self._loop.time())
        self._on_change(speed)

    def _brake(self) -> None:
        self._drive(Speed.NONE)


async def run_demo_robot(
    settings: RobotSettings,
    chassis: Chassis | None = None,
    on_change: Callable[[Speed], None] = lambda _: None,
) -> None:
    """Be a demo robot until cancelled; see `DemoRobot`."""
    await DemoRobot(settings, chassis, on_change).run()


def be_robot(on_change: Callable[[Speed, str], None], settings: RobotSettings) -> None:
    """Be a demo robot until Ctrl-C; errors as `RobotLink`'s.

    Args:
        on_change: told every speed that it may move at, and why it may not if a halt is why.
        settings: of its link.
    """

    async def main() -> None:
        robot = DemoRobot(settings, on_change=lambda speed: on_change(speed, why()))

        def why() -> str:
            halt = robot.link.halt
            return "" if halt is None else f"halt {halt.halt_id}: {halt.cause}"

        await robot.run()

    with (
        suppress(KeyboardInterrupt),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(main())
