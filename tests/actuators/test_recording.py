"""The ideal robot: it acknowledges at once, brakes, stands still and says so."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from hdguard.actuators.recording import RecordingActuator, RecordingSettings
from hdguard.core.actions import Escalate, Halt, Notify, Permit, Release
from hdguard.core.events import Event, HaltAcknowledged, HaltConfirmed, RobotSeen
from hdguard.core.types import HaltCause, HaltClass, Light, Speed, State
from hdguard.runtime.virtual_time import run_virtual

Heard = list[tuple[float, Event]]
Script = Callable[[RecordingActuator], Awaitable[None]]


def halt(halt_id: str = "1-1") -> Halt:
    return Halt(halt_id, HaltClass.DANGER, HaltCause.FAST_RED)


def permit(speed: Speed) -> Permit:
    return Permit(speed, Light.GREEN, State.MONITORING, 0.1, 0.1, None)


def listen(script: Script, until: float, settings: RecordingSettings | None = None) -> Heard:
    """What the robot says in so many seconds of virtual time while the script runs."""

    async def hear(said: AsyncIterator[Event], heard: Heard) -> None:
        async for event in said:
            heard.append((round(asyncio.get_running_loop().time(), 6), event))

    async def story() -> Heard:
        way, heard = RecordingActuator(settings), Heard()
        async with asyncio.TaskGroup() as group:
            ear = group.create_task(hear(way.events(), heard))
            await script(way)
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, until - loop.time()))
            ear.cancel()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert all(timer.cancelled() for timer in way._timers)
        return heard

    return run_virtual(story())


def of(kind: type[Event], heard: Heard) -> Heard:
    return [(t, e) for t, e in heard if isinstance(e, kind)]


async def nothing(_: RecordingActuator) -> None:
    return


def test_the_robot_reports_ten_times_a_second_in_order() -> None:
    heard = of(RobotSeen, listen(nothing, 1.05))
    assert [t for t, _ in heard] == pytest.approx([n / 10 for n in range(11)])
    assert [e for _, e in heard] == [RobotSeen(1, n + 1, moving=False) for n in range(11)]


def test_it_moves_on_the_permit_it_last_heard() -> None:
    async def script(way: RecordingActuator) -> None:
        for at, speed in ((0.25, Speed.FULL), (0.45, Speed.REDUCED), (0.65, Speed.NONE)):
            await asyncio.sleep(at - asyncio.get_running_loop().time())
            await way.permit(permit(speed))

    moving = [e.moving for _, e in listen(script, 0.95) if isinstance(e, RobotSeen)]
    assert moving == [False] * 3 + [True] * 4 + [False] * 3


@pytest.mark.parametrize("stop_time", [0.7, 0.0, 2.0])
def test_a_halt_is_acknowledged_at_once_and_confirmed_at_standstill(stop_time: float) -> None:
    async def script(way: RecordingActuator) -> None:
        await asyncio.sleep(1.0)
        await way.halt(halt())

    heard = listen(script, 5.0, RecordingSettings(stop_time))
    assert of(HaltAcknowledged, heard) == [(1.0, HaltAcknowledged("1-1"))]
    assert of(HaltConfirmed, heard) == [(1.0 + stop_time, HaltConfirmed("1-1"))]


def test_a_repeated_halt_is_answered_once_and_does_not_restart_the_braking() -> None:
    async def script(way: RecordingActuator) -> None:
        for _ in range(5):
            await way.halt(halt())
            await asyncio.sleep(0.1)

    heard = listen(script, 3.0)
    assert of(HaltAcknowledged, heard) == [(0.0, HaltAcknowledged("1-1"))]
    assert [t for t, _ in of(HaltConfirmed, heard)] == [0.7]


def test_a_second_halt_is_answered_by_its_own_id_and_a_release_by_nothing() -> None:
    async def script(way: RecordingActuator) -> None:
        await way.halt(halt("1-1"))
        await way.halt(Release("1-1"))
        await way.halt(halt("1-2"))

    heard = listen(script, 2.0)
    assert [e for _, e in of(HaltAcknowledged, heard)] == [
        HaltAcknowledged("1-1"),
        HaltAcknowledged("1-2"),
    ]
    assert [e for _, e in of(HaltConfirmed, heard)] == [HaltConfirmed("1-1"), HaltConfirmed("1-2")]


def test_everything_sent_is_kept_with_its_time() -> None:
    ways: list[RecordingActuator] = []
    sent = [permit(Speed.FULL), halt(), Escalate("1-1"), Notify(State.HALTED, "why")]

    async def script(way: RecordingActuator) -> None:
        ways.append(way)
        await way.permit(permit(Speed.FULL))
        await asyncio.sleep(0.5)
        await way.halt(halt())
        await way.notify(Escalate("1-1"))
        await way.notify(Notify(State.HALTED, "why"))

    listen(script, 1.0)
    assert ways[0].sent == list(zip([0.0, 0.5, 0.5, 0.5], sent, strict=True))


def test_an_hour_of_listening_keeps_no_old_timers() -> None:
    sizes: list[int] = []

    async def script(way: RecordingActuator) -> None:
        for n in range(100):
            await way.halt(halt(f"1-{n}"))
            await asyncio.sleep(36.0)
        sizes.append(len(way._timers))

    listen(script, 3600.0)
    assert sizes[0] <= 3


def test_a_stop_time_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"stop_time: -0\.1 must be 0 or more"):
        RecordingSettings(-0.1)
