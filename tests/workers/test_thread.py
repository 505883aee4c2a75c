"""A brain on a thread: given up when it hangs, replaced when it fails."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable

import pytest

from hdguard.brains.base import BrainError
from hdguard.core.events import BrainDown, BrainUp, FastVerdict
from hdguard.workers.budget import RestartBudget
from hdguard.workers.thread import ThreadFastSeat
from tests.workers.command_brain import (
    GREEN,
    HANG,
    RAISE,
    RELEASE,
    UNPARSED,
    CommandFastBrain,
    CommandSettings,
)
from tests.workers.support import (
    LOOPS,
    PATIENCE,
    Ear,
    brain_threads,
    let_brains_go,
    reason,
    run,
    shot,
)

UP, DOWN, LATCHED = BrainUp("command"), BrainDown("command"), BrainDown("command", latched=True)
every_loop = pytest.mark.parametrize("loop", LOOPS)


def brain() -> CommandFastBrain:
    return CommandFastBrain(CommandSettings())


def one_good_brain() -> Callable[[], CommandFastBrain]:
    built: list[int] = []

    def build() -> CommandFastBrain:
        built.append(len(built))
        return CommandFastBrain(CommandSettings(load="refuse" if len(built) > 1 else ""))

    return build


async def started(seat: ThreadFastSeat) -> Ear:
    ear = Ear()
    seat.listen(ear)
    await seat.start()
    return ear


@every_loop
def test_a_hung_call_is_given_up_and_the_next_brain_answers(loop: str) -> None:
    async def story() -> None:
        seat = ThreadFastSeat(brain)
        ear = await started(seat)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(reason(seat.assess(shot(HANG))))
            await asyncio.sleep(0)
            await seat.kill("late")
            assert "is down: command: killed: late" in await reason(seat.assess(shot(GREEN)))
            assert await call == "worker killed: late"
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        assert isinstance(await seat.assess(shot(GREEN)), FastVerdict)
        hung = brain_threads()[0]
        RELEASE.set()
        await asyncio.to_thread(hung.join, PATIENCE)
        assert not hung.is_alive()
        assert isinstance(await seat.assess(shot(GREEN)), FastVerdict)
        await seat.close()
        assert ear.heard.empty()

    run(story(), loop)


def test_an_abandoned_thread_says_nothing_to_a_loop_that_is_gone() -> None:
    async def story() -> None:
        seat = ThreadFastSeat(brain)
        await seat.start()
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(reason(seat.assess(shot(HANG))))
            await asyncio.sleep(0)
            await seat.close()
        assert call.result() == "worker closed"

    run(story())
    assert len(brain_threads()) == 1
    let_brains_go()
    assert brain_threads() == []


def test_a_hung_thread_does_not_keep_the_interpreter() -> None:
    code = """
import asyncio
from tests.workers.test_thread import *

async def main():
    seat = ThreadFastSeat(brain)
    await seat.start()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(reason(seat.assess(shot(HANG))))
        await asyncio.sleep(0)
        await seat.close()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False)
    assert done.returncode == 0


def test_a_brain_that_raises_is_replaced_and_its_traceback_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        seat = ThreadFastSeat(brain)
        ear = await started(seat)
        with caplog.at_level(logging.ERROR):
            message = await reason(seat.assess(shot(RAISE)))
        assert message == "worker died: raised ZeroDivisionError('a defect of the brain')"
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        assert isinstance(await seat.assess(shot(GREEN)), FastVerdict)
        await seat.close()

    run(story())
    assert "in obey" in caplog.text


def test_the_fourth_replacement_in_a_minute_latches() -> None:
    async def story() -> None:
        seat = ThreadFastSeat(brain)
        ear = await started(seat)
        for _ in range(3):
            await seat.kill("late")
            assert [await ear.next(), await ear.next()] == [DOWN, UP]
        await seat.kill("late")
        assert await ear.next() == LATCHED
        assert "worker is down" in await reason(seat.assess(shot(GREEN)))
        await seat.kill("nothing to kill")
        await seat.close()
        assert ear.heard.empty()

    run(story())


def test_restarts_that_succeed_long_apart_never_latch() -> None:
    async def story() -> None:
        seat = ThreadFastSeat(brain)
        seat._budget = RestartBudget(1, window=0.0)  # every restart is long ago
        ear = await started(seat)
        for _ in range(2):
            await seat.kill("late")
            assert [await ear.next(), await ear.next()] == [DOWN, UP]
        await seat.close()

    run(story())


def test_a_brain_that_cannot_be_built_again_latches_after_its_restarts() -> None:
    async def story() -> None:
        seat = ThreadFastSeat(one_good_brain())
        ear = await started(seat)
        await seat.kill("late")
        assert [await ear.next(), await ear.next()] == [DOWN, LATCHED]
        assert "cannot be restarted: no weights here" in await reason(seat.assess(shot(GREEN)))
        await seat.close()
        assert ear.heard.empty()

    run(story())


def test_a_brain_that_cannot_be_built_at_all_is_an_error_at_once() -> None:
    with pytest.raises(BrainError, match="no weights here"):
        ThreadFastSeat(lambda: CommandFastBrain(CommandSettings(load="refuse")))


@every_loop
def test_the_answer_to_a_cancelled_call_is_dropped(loop: str) -> None:
    async def story() -> None:
        seat = ThreadFastSeat(brain)
        ear = await started(seat)
        async with asyncio.TaskGroup() as tasks:
            stale = tasks.create_task(seat.assess(shot(HANG, 1)))
            await asyncio.sleep(0)
            stale.cancel()
            fresh = tasks.create_task(seat.assess(shot(GREEN, 2)))
            await asyncio.sleep(0)
            RELEASE.set()
            answer = await fresh
        assert stale.cancelled()
        assert isinstance(answer, FastVerdict)
        assert answer.ref.seq == 2
        await seat.close()
        assert ear.heard.empty()

    run(story(), loop)


def test_a_call_before_the_start_and_after_the_close_is_an_error() -> None:
    async def story() -> None:
        seat = ThreadFastSeat(brain)
        assert "not started" in await reason(seat.assess(shot(GREEN)))
        await seat.start()
        assert "was started before" in await reason(seat.start())
        assert await reason(seat.assess(shot(UNPARSED))) == "unparsed"
        await seat.close()
        assert "closed" in await reason(seat.assess(shot(GREEN)))
        await seat.kill("nothing to kill")

    run(story())
