"""The guard's one timer rings once, when it was last told to, and hides no error."""

import asyncio

import pytest

from hdguard.runtime.timer import Timer
from hdguard.runtime.virtual_time import run_virtual


def test_it_rings_at_the_last_time_that_it_was_set_for_and_only_once() -> None:
    async def story() -> list[float]:
        loop, rang = asyncio.get_running_loop(), list[float]()
        timer = Timer(loop, lambda: rang.append(loop.time()))
        for when in (3.0, 1.0, 2.0, 2.0):
            timer.arm(when)
        await asyncio.sleep(5.0)
        return rang

    assert run_virtual(story()) == [2.0]


def test_the_same_time_may_be_set_again_once_it_has_rung() -> None:
    async def story() -> int:
        loop, rang = asyncio.get_running_loop(), list[float]()
        timer = Timer(loop, lambda: rang.append(loop.time()))
        for _ in range(2):
            timer.arm(1.0)
            await asyncio.sleep(1.5)
        return len(rang)

    assert run_virtual(story()) == 2


def test_cancelled_it_does_not_ring() -> None:
    async def story() -> list[float]:
        loop, rang = asyncio.get_running_loop(), list[float]()
        timer = Timer(loop, lambda: rang.append(loop.time()))
        timer.arm(1.0)
        timer.cancel()
        timer.cancel()
        await asyncio.sleep(2.0)
        return rang

    assert run_virtual(story()) == []


def test_an_error_when_it_rings_reaches_whoever_waits_for_it() -> None:
    async def story() -> None:
        def ring() -> None:
            raise OSError("no space left")

        timer = Timer(asyncio.get_running_loop(), ring)
        for when in (1.0, 2.0):
            timer.arm(when)
            await asyncio.sleep(1.5)
        await timer.failed()

    with pytest.raises(OSError, match="no space left"):
        run_virtual(story())
