"""A stack that is only told of: what scenarios make of what guard and robot say."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from hdguard.actuators import wire
from hdguard.actuators.translate import halt_message, permit_message
from hdguard.core.actions import Halt, Permit
from hdguard.core.types import HaltCause, HaltClass, Light, Speed, State
from hdguard.faults.stack import Stack
from hdguard.faults.witness import Seen, Witness


class ToldStack:
    """As far as scenarios use one. Times are seconds after `began`.

    Args:
        numbers: what the guard's metric is, each time that it is asked for.
    """

    def __init__(self, numbers: Sequence[float] = ()) -> None:
        self.began = asyncio.get_running_loop().time()
        self.witness = Witness(1, "rosie")
        self.camera = SimpleNamespace(mode="sending", covered=False, taken=[self.began])
        self.guard = SimpleNamespace(pid=1, signal=lambda _: self.began)
        self.workers = [1, 2]
        self._numbers = list(numbers)

    def says(self, name: str, at: float, payload: bytes) -> None:
        """It comes `at` seconds after the beginning."""
        self.witness.seen.append(Seen(self.began + at, name, payload))

    def permits(self, at: float, age: float | None, speed: Speed = Speed.FULL) -> None:
        """A permit comes that tells the age of the last judged frame."""
        permit = Permit(speed, Light.GREEN, State.MONITORING, 0.1, age, (3, 99))
        self.says("permit", at, wire.encode(permit_message(permit, 1, 1)))

    def halts(self, at: float, cause: HaltCause) -> None:
        """A fault halt comes."""
        halt = Halt("1-1", HaltClass.FAULT, cause, "kitchen")
        self.says("halt", at, wire.encode(halt_message(halt, 1, 1, 1)))

    # What scenarios ask for.

    def now(self) -> float:
        return self.began

    async def ready(self) -> None:
        await asyncio.sleep(0)

    async def until(self, _: float) -> None:
        await asyncio.sleep(0)

    async def robot_stands(self, since: float) -> float:
        await asyncio.sleep(0)
        return since + 0.5

    async def metric(self, _: str) -> float:
        await asyncio.sleep(0)
        return self._numbers.pop(0)

    def worker(self) -> int:
        return self.workers.pop(0)


Injection = Callable[[Stack], Any]


async def injected(injection: Injection, stack: ToldStack) -> Any:
    """What the scenario measures on it."""
    async with asyncio.timeout(1.0):
        return await injection(cast("Stack", stack))
