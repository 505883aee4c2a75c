"""What the tests of the actuators share: values, loops, and someone who plays the guard."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import uvloop

from hdguard.actuators import wire
from hdguard.actuators.base import Actuator, ActuatorError
from hdguard.core.actions import Halt, Notify, Permit
from hdguard.core.events import Event, RobotSeen
from hdguard.core.types import (
    FrameRef,
    HaltCause,
    HaltClass,
    Hazard,
    Light,
    Speed,
    State,
)

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
PATIENCE = 10.0  # seconds until a test gives up waiting for what must come
RESET_KEY = "the operators' long secret"
ROBOT_KEY = "guard and robot's long secret"
T = TypeVar("T")
EventT = TypeVar("EventT", bound=Event)

HALT = Halt(
    "7-1",
    HaltClass.DANGER,
    HaltCause.FAST_RED,
    "kitchen",
    "reflex",
    FrameRef("kitchen", 41, 12.25, 1.4),
    Light.RED,
    Hazard("C1", "L3", "a knife moves toward a hand"),
    decided_at=12.375,
)
GO = Permit(Speed.FULL, Light.GREEN, State.MONITORING, 0.125, 0.25, (3, 99))
WHY = Notify(State.HALTED, "halted: fast_red")


def run(main: Coroutine[Any, Any, T], loop: str = "uvloop", patience: float = 30.0) -> T:
    """Run on that loop, leaving no task."""

    async def patiently() -> T:
        async with asyncio.timeout(patience):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        left = {t for t in left if not t.get_name().startswith("Task-")}  # the libraries' own
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(patiently())


def permit(
    seq: int, robot: tuple[int, int] | None, speed: wire.SpeedName = "full", boot: int = 7
) -> wire.PermitMessage:
    echo = None if robot is None else wire.RobotEcho(boot=robot[0], seq=robot[1])
    return wire.PermitMessage(
        boot=boot,
        seq=seq,
        light="GREEN",
        speed=speed,
        state=State.MONITORING,
        frame_age=0.125,
        verdict_age=0.25,
        robot=echo,
    )


class Shepherd:
    """Plays the guard: hears every event, and lets the robot move five times a second."""

    def __init__(self, actuator: Actuator) -> None:
        self.actuator = actuator
        self.robot: tuple[int, int] | None = None
        self.heard: list[tuple[float, Event]] = []
        self.speed: Speed | None = Speed.FULL  # None: no permits at all
        self._news = asyncio.Condition()
        self._loop = asyncio.get_running_loop()

    async def listen(self) -> None:
        async for event in self.actuator.events():
            if isinstance(event, RobotSeen):
                self.robot = (event.boot, event.seq)
            async with self._news:
                self.heard.append((self._loop.time(), event))
                self._news.notify_all()

    async def send_permit(self) -> None:
        assert self.speed is not None
        await self.actuator.permit(
            Permit(self.speed, Light.GREEN, State.MONITORING, 0.1, 0.1, self.robot)
        )

    async def permits(self) -> None:
        due = self._loop.time()
        while True:
            if self.speed is not None:
                with suppress(ActuatorError):  # dropped, as by the pipeline
                    await self.send_permit()
            due += 0.2
            await asyncio.sleep(due - self._loop.time())

    def all(self, kind: type[EventT]) -> list[tuple[float, EventT]]:
        return [(at, event) for at, event in self.heard if isinstance(event, kind)]

    async def wait_for(self, kind: type[EventT], count: int = 1) -> tuple[float, EventT]:
        """The `count`-th event of that kind, and when it came."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: len(self.all(kind)) >= count)
        return self.all(kind)[count - 1]


@asynccontextmanager
async def shepherded(actuator: Actuator, *, permits: bool = True) -> AsyncIterator[Shepherd]:
    """Someone who plays the guard, for as long as the block lasts."""
    shepherd = Shepherd(actuator)
    async with asyncio.TaskGroup() as group:
        jobs = [shepherd.listen(), *([shepherd.permits()] if permits else [])]
        tasks = [group.create_task(job, name="shepherd") for job in jobs]
        yield shepherd
        for task in tasks:
            task.cancel()


class Signal:
    """Something that a callback says, with the time at which it said it."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.said: list[object] = []
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def __call__(self, *what: object) -> None:
        self.times.append(self._loop.time())
        self.said.append(what[0] if len(what) == 1 else what)
        self._news.set()

    async def wait(self, count: int = 1) -> float:
        """When it was said for the `count`-th time."""
        await self.until(lambda: len(self.times) >= count)
        return self.times[count - 1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()
