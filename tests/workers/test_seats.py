"""What is special about a brain in a process; the rest is in the seats' contract."""

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.core.events import FastVerdict, Remarked
from hdguard.workers.seats import SLOW_SLOTS, WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from tests.workers.command_brain import (
    GATE,
    GREEN,
    HANG,
    INTERRUPTIBLE,
    LISTEN,
    LOW_MASS,
    PENSIVE,
    RED,
    SCORES,
    SLOW,
    SPEC,
    SWALLOW,
    WORK,
)
from tests.workers.support import LOOPS, Ear, fast, reason, ref, run, shot, slow

every_loop = pytest.mark.parametrize("loop", LOOPS)


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


# What a loaded brain says of itself, and adds to its verdicts.


def test_what_a_brain_says_of_itself_is_known_when_it_is_loaded() -> None:
    async def story() -> None:
        seat = fast(target=PENSIVE)
        assert (seat.fingerprint, seat.warm_p99) == ("", None)
        await seat.start()
        assert (seat.fingerprint, seat.warm_p99) == ("weights 1, prompt 2", 0.125)
        await seat.close()

    run(story())


def test_the_scores_of_an_answer_that_meant_no_light_come_with_its_failure() -> None:
    async def story() -> None:
        seat = fast()
        await seat.start()
        with pytest.raises(BrainError, match="no label") as caught:
            await seat.assess(shot(LOW_MASS))
        assert caught.value.scores == SCORES
        await seat.close()

    run(story())


@every_loop
def test_a_remark_reaches_the_listener_after_the_verdict(loop: str) -> None:
    async def story() -> None:
        seat, ear = fast(target=PENSIVE), Ear()
        seat.listen(ear)
        await seat.start()
        assert isinstance(await seat.assess(shot(RED)), FastVerdict)
        remark = await ear.next()
        assert isinstance(remark, Remarked)
        assert (remark.ref, remark.hazard.category) == (ref(RED), "C3")
        await seat.close()

    run(story(), loop)


@every_loop
def test_frames_are_judged_one_after_the_other_while_every_afterthought_has_no_end(
    loop: str,
) -> None:
    async def story() -> None:
        seat = fast(target=PENSIVE)
        await seat.start()
        for seq in range(20):
            assert isinstance(await seat.assess(shot(WORK, seq)), FastVerdict)
        await seat.close()

    run(story(), loop)


# Cancellation of a review in hand.


@every_loop
def test_a_brain_lost_in_thought_is_called_back_and_answers_the_next_review(loop: str) -> None:
    async def story() -> None:
        seat, ear = slow(target=INTERRUPTIBLE), Ear()
        seat.listen(ear)
        await seat.start()
        pid = seat.pid
        for review_id in range(1, 6):
            async with asyncio.TaskGroup() as tasks:
                call = tasks.create_task(reason(seat.review(review_id, ref(WORK), (shot(WORK),))))
                for _ in range(review_id):  # from before the question is asked to after it is
                    await asyncio.sleep(0)
                seat.cancel(review_id)
            assert call.result() == "cancelled"
        assert (await seat.review(9, ref(RED), (shot(RED),))).danger
        assert seat.pid == pid
        await seat.close()
        assert ear.heard.empty()

    run(story(), loop)


@every_loop
def test_a_brain_that_waits_for_a_server_is_called_back(loop: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        seat = slow({"gate": str(gate)}, INTERRUPTIBLE)
        await seat.start()
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(reason(seat.review(1, ref(LISTEN), (shot(LISTEN),))))
            assert await asyncio.to_thread(gate.read_text) == "listening"
            seat.cancel(1)
        assert call.result() == "cancelled"
        assert not (await seat.review(2, ref(GREEN), (shot(GREEN),))).danger
        await seat.close()

    run(story(), loop)


def test_a_brain_that_swallows_the_interruption_goes_on_to_its_answer(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        seat = slow({"gate": str(gate)}, INTERRUPTIBLE)
        await seat.start()
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(seat.review(1, ref(SWALLOW), ()))
            assert await asyncio.to_thread(gate.read_text) == "listening"
            seat.cancel(1)
        assert call.result().hazard.text == "swallowed"
        assert (await seat.review(2, ref(RED), (shot(RED),))).danger
        await seat.close()

    run(story())


def test_a_brain_that_cannot_be_interrupted_stays_busy_until_it_has_answered(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        seat = slow({"gate": str(gate)})
        await seat.start()
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(seat.review(1, ref(GATE), ()))
            await asyncio.sleep(0)
            seat.cancel(1)
            await asyncio.to_thread(gate.write_text, "open")
        assert call.result().hazard.text == "open"
        await seat.close()

    run(story())


def test_a_cancel_of_another_review_or_of_none_changes_nothing(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        seat = slow({"gate": str(gate)}, INTERRUPTIBLE)
        seat.cancel(1)
        await seat.start()
        seat.cancel(1)
        assert (await seat.review(1, ref(RED), (shot(RED),))).danger
        seat.cancel(1)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(seat.review(2, ref(GATE), ()))
            await asyncio.sleep(0)
            seat.cancel(1)
            await asyncio.to_thread(gate.write_text, "open")
        assert call.result().hazard.text == "open"
        await seat.close()

    run(story())


def test_a_hung_brain_that_was_cancelled_in_vain_can_still_be_killed() -> None:
    async def story() -> None:
        seat, ear = slow(), Ear()
        seat.listen(ear)
        await seat.start()
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(reason(seat.review(1, ref(HANG), ())))
            await asyncio.sleep(0)
            seat.cancel(1)
            await seat.kill("late")
        assert call.result() == "worker killed: late"
        await ear.next()
        await seat.close()

    run(story())
