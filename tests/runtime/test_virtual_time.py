"""Time that jumps: nothing waits, everything keeps its order."""

import asyncio
import time

import pytest

from hdguard.runtime.virtual_time import run_virtual


def test_an_hour_passes_at_once_and_exactly() -> None:
    async def story() -> float:
        await asyncio.sleep(3600.0)
        return asyncio.get_running_loop().time()

    started = time.perf_counter()
    assert run_virtual(story()) == 3600.0
    assert time.perf_counter() - started < 30.0


def test_the_clock_starts_at_zero_and_does_not_move_while_work_is_ready() -> None:
    async def story() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = [loop.time()]
        for _ in range(1000):
            await asyncio.sleep(0)
        return [*seen, loop.time()]

    assert run_virtual(story()) == [0.0, 0.0]


def test_timers_ring_in_order_at_their_times_whoever_set_them_first() -> None:
    rung: list[tuple[str, float]] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        rung.append((name, asyncio.get_running_loop().time()))

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            for name, seconds in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
                group.create_task(wait(name, seconds))

    run_virtual(story())
    assert rung == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


def test_a_timeout_ends_what_takes_longer_and_leaves_what_does_not() -> None:
    async def story() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(1.0):
            await asyncio.sleep(0.999)
        in_time = loop.time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.sleep(1.001)
        return in_time, loop.time()

    assert run_virtual(story()) == (0.999, 1.999)


def test_a_failed_task_group_cancels_the_others_without_waiting_for_them() -> None:
    async def fail() -> None:
        await asyncio.sleep(0.5)
        raise ValueError("a part failed")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(asyncio.sleep(100.0))

    async def story() -> float:
        with pytest.raises(ExceptionGroup):
            await both()
        return asyncio.get_running_loop().time()

    assert run_virtual(story()) == 0.5


def test_a_cancelled_timer_does_not_make_time_jump_to_it() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        loop.call_at(1.0, lambda: None).cancel()
        await asyncio.sleep(5.0)
        return loop.time()

    assert run_virtual(story()) == 5.0


def test_waiting_for_what_no_timer_brings_is_an_error_that_says_so() -> None:
    ended: list[str] = []

    async def story() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    with pytest.raises(RuntimeError, match="time stands still: every task waits"):
        run_virtual(story())
    assert ended == ["cleaned up"]


def test_two_runs_of_a_busy_story_are_the_same() -> None:
    async def story() -> list[tuple[int, float]]:
        seen: list[tuple[int, float]] = []

        async def beat(n: int) -> None:
            for _ in range(20):
                await asyncio.sleep(0.07 * n)
                seen.append((n, asyncio.get_running_loop().time()))

        async with asyncio.TaskGroup() as group:
            for n in range(1, 6):
                group.create_task(beat(n))
        return seen

    assert run_virtual(story()) == run_virtual(story())
