"""What is special about a brain in a process; the rest is in the seats' contract."""

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from hdguard.brains.base import Shot
from hdguard.core.events import FastVerdict
from hdguard.workers.seats import SLOW_SLOTS, WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from tests.workers.command_brain import GATE, RED, SLOW, SPEC
from tests.workers.support import fast, reason, ref, run, shot, slow


def test_a_review_of_more_pictures_than_the_ring_holds_is_an_error() -> None:
    async def story() -> None:
        seat = slow()
        await seat.start()
        shots = (shot(RED),) * (SLOW_SLOTS + 1)
        assert await reason(seat.review(1, ref(RED), shots)) == (
            "a review of 33 pictures; at most 32 fit"
        )
        assert (await seat.review(2, ref(RED), shots[1:])).review_id == 2
        await seat.close()

    run(story())


@pytest.mark.parametrize(
    ("rgb", "says"),
    [
        (np.zeros((60, 8, 3), np.uint8), "does not fit"),
        (np.zeros((6, 8), np.uint8), "must be"),
    ],
    ids=["too tall", "grey"],
)
def test_a_picture_of_another_shape_is_an_error_and_the_brain_lives_on(
    rgb: np.ndarray, says: str
) -> None:
    async def story() -> None:
        seat = fast()
        await seat.start()
        assert says in await reason(seat.assess(Shot(ref(RED), rgb)))
        assert isinstance(await seat.assess(shot(RED)), FastVerdict)
        await seat.close()

    run(story())


def test_a_review_sees_its_own_pictures_even_after_one_that_was_given_up(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> str:
        seat = WorkerSlowBrain(SLOW, {"gate": str(gate)}, "command", SPEC, WorkerSettings())
        await seat.start()
        async with asyncio.TaskGroup() as tasks:
            old = (shot(GATE, 0, value=9),) * 20
            stale = tasks.create_task(seat.review(1, ref(GATE), old))
            for _ in range(len(old) + 2):  # a picture at a time, then the question
                await asyncio.sleep(0)
            stale.cancel()
            new = tuple(shot(RED, n, value=n) for n in range(20))
            fresh = tasks.create_task(seat.review(2, ref(RED), new))
            await asyncio.to_thread(gate.write_text, "open")
        await seat.close()
        assert fresh.result().review_id == 2
        return fresh.result().hazard.text

    assert run(story()) == f"sums {[n * 6 * 8 * 3 for n in range(20)]}"
