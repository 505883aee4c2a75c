"""One suite for every seat: whatever a brain sits in, the runtime sees the same."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from hdguard.brains.base import BrainError
from hdguard.core.events import BrainDown, BrainUp, CannotSee, FastVerdict
from hdguard.core.types import Light
from hdguard.workers.base import FastSeat, Seat, SlowSeat
from hdguard.workers.inline import InlineFastSeat, InlineSlowSeat
from hdguard.workers.seats import WorkerFastBrain, WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from hdguard.workers.thread import ThreadFastSeat
from tests.workers import support
from tests.workers.command_brain import (
    DARK,
    GREEN,
    INTERRUPTIBLE,
    LOW_MASS,
    PENSIVE,
    RED,
    SCORES,
    SPEC,
    UNPARSED,
    WORK,
    CommandFastBrain,
    CommandSettings,
    CommandSlowBrain,
    InterruptibleSlowBrain,
    PensiveFastBrain,
)
from tests.workers.support import Ear, ref, run, shot


def fast_brain() -> CommandFastBrain:
    return CommandFastBrain(CommandSettings())


def slow_brain() -> CommandSlowBrain:
    return CommandSlowBrain(CommandSettings())


def interruptible_brain() -> InterruptibleSlowBrain:
    return InterruptibleSlowBrain(CommandSettings())


FAST_SEATS: dict[str, Callable[[], FastSeat]] = {
    "inline": lambda: InlineFastSeat(fast_brain, "none"),
    "thread": lambda: ThreadFastSeat(fast_brain),
    "process": support.fast,
}
SLOW_SEATS: dict[str, Callable[[], SlowSeat]] = {
    "inline": lambda: InlineSlowSeat(slow_brain, "fixed", 0.0),
    "process": support.slow,
}
SEATS: dict[str, Callable[[], Seat]] = {
    **{f"fast-{name}": build for name, build in FAST_SEATS.items()},
    **{f"slow-{name}": build for name, build in SLOW_SEATS.items()},
}

every_loop = pytest.mark.parametrize("loop", support.LOOPS)
every_seat = pytest.mark.parametrize("build", SEATS.values(), ids=SEATS)
every_fast = pytest.mark.parametrize("build", FAST_SEATS.values(), ids=FAST_SEATS)
every_slow = pytest.mark.parametrize("build", SLOW_SEATS.values(), ids=SLOW_SEATS)


@pytest.fixture(autouse=True)
def _tests_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(support.REPOSITORY))


async def ask(seat: Seat, command: float) -> object:
    """Any answer of a seat of either kind."""
    if isinstance(seat, InlineFastSeat | ThreadFastSeat | WorkerFastBrain):
        return await seat.assess(shot(command))
    assert isinstance(seat, InlineSlowSeat | WorkerSlowBrain)
    return await seat.review(1, ref(command), (shot(command),))


@every_seat
def test_name_and_spec_are_known_before_the_start(build: Callable[[], Seat]) -> None:
    seat = build()
    assert (seat.name, seat.spec) == ("command", SPEC)


@every_loop
@every_fast
def test_a_fast_seat_answers_what_its_brain_answers(
    build: Callable[[], FastSeat], loop: str
) -> None:
    async def story() -> None:
        seat, brain = build(), fast_brain()
        await seat.start()
        for seq, command in enumerate((GREEN, RED, DARK, RED)):
            seen = shot(command, seq, value=seq + 1)
            assert await seat.assess(seen) == brain.assess(seen)
        answers = [await seat.assess(shot(command)) for command in (GREEN, RED, DARK)]
        await seat.close()
        assert isinstance(answers[2], CannotSee)
        lights = [a.light for a in answers if isinstance(a, FastVerdict)]
        assert lights == [Light.GREEN, Light.RED]

    run(story(), loop)


@every_loop
@every_slow
def test_a_slow_seat_answers_what_its_brain_answers(
    build: Callable[[], SlowSeat], loop: str
) -> None:
    async def story() -> None:
        seat, brain = build(), slow_brain()
        await seat.start()
        shots = tuple(shot(RED, seq, value=seq) for seq in range(32))
        for command in (GREEN, RED):
            answer = await seat.review(7, ref(command), shots)
            assert answer == brain.review(7, ref(command), shots)
            assert answer.danger is (command == RED)
        await seat.close()

    run(story(), loop)


@every_loop
@pytest.mark.parametrize(
    ("build", "command"),
    [
        # Inline the work is done at once, and its cost is waited for; in a process it is done.
        (lambda: InlineSlowSeat(interruptible_brain, "fixed", 1e6), RED),
        (lambda: support.slow(target=INTERRUPTIBLE), WORK),
    ],
    ids=SLOW_SEATS,
)
def test_a_cancelled_review_ends_at_once_where_the_brain_bears_it_and_the_next_begins(
    build: Callable[[], SlowSeat], command: float, loop: str
) -> None:
    async def story() -> None:
        seat, ear = build(), Ear()
        seat.listen(ear)
        await seat.start()
        for review_id in (1, 2):
            async with asyncio.TaskGroup() as tasks:
                call = tasks.create_task(
                    support.reason(seat.review(review_id, ref(command), (shot(command),)))
                )
                await asyncio.sleep(0.01)
                seat.cancel(review_id + 5)
                seat.cancel(review_id)
            assert call.result() == "cancelled"
        await seat.close()
        assert ear.heard.empty()

    run(story(), loop)


@pytest.mark.parametrize(
    ("build", "bears_it"),
    [
        *((build, False) for build in SLOW_SEATS.values()),
        (lambda: InlineSlowSeat(interruptible_brain, "fixed", 0.0), True),
        (lambda: support.slow(target=INTERRUPTIBLE), True),
    ],
)
def test_a_slow_seat_tells_whether_its_brain_can_be_interrupted(
    build: Callable[[], SlowSeat], *, bears_it: bool
) -> None:
    async def story() -> None:
        seat = build()
        await seat.start()
        assert seat.interruptible is bears_it
        await seat.close()

    run(story())


@every_slow
def test_a_cancelled_review_of_any_other_brain_is_answered(build: Callable[[], SlowSeat]) -> None:
    async def story() -> None:
        seat = build()
        await seat.start()
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(seat.review(1, ref(RED), ()))
            await asyncio.sleep(0)
            seat.cancel(1)
        assert call.result().danger
        await seat.close()

    run(story())


@every_seat
def test_a_brain_that_tells_nothing_of_itself_has_no_fingerprint(
    build: Callable[[], Seat],
) -> None:
    async def story() -> None:
        seat = build()
        await seat.start()
        assert (seat.fingerprint, seat.warm_p99) == ("", None)
        await seat.close()

    run(story())


PENSIVE_SEATS: dict[str, Callable[[], FastSeat]] = {
    "inline": lambda: InlineFastSeat(lambda: PensiveFastBrain(CommandSettings()), "none"),
    "thread": lambda: ThreadFastSeat(lambda: PensiveFastBrain(CommandSettings())),
    "process": lambda: support.fast(target=PENSIVE),
}


@pytest.mark.parametrize("build", PENSIVE_SEATS.values(), ids=PENSIVE_SEATS)
def test_what_a_brain_tells_of_itself_and_its_scores_come_through_every_seat(
    build: Callable[[], FastSeat],
) -> None:
    async def story() -> None:
        seat = build()
        await seat.start()
        assert (seat.fingerprint, seat.warm_p99) == ("weights 1, prompt 2", 0.125)
        answer = await seat.assess(shot(WORK))
        assert isinstance(answer, FastVerdict)
        assert answer.scores == SCORES
        with pytest.raises(BrainError) as caught:
            await seat.assess(shot(LOW_MASS))
        assert caught.value.scores == SCORES
        await seat.close()

    run(story())


@every_seat
def test_a_brain_error_passes_through_and_the_brain_lives_on(build: Callable[[], Seat]) -> None:
    async def story() -> None:
        seat, ear = build(), Ear()
        seat.listen(ear)
        await seat.start()
        assert await support.reason(ask(seat, UNPARSED)) == "unparsed"
        assert await ask(seat, GREEN)
        await seat.close()
        assert ear.heard.empty()

    run(story())


@every_loop
@every_seat
def test_after_a_kill_the_listener_hears_down_then_up_and_calls_work(
    build: Callable[[], Seat], loop: str
) -> None:
    async def story() -> None:
        seat, ear = build(), Ear()
        await seat.start()
        seat.listen(ear)
        await seat.kill("the test says so")
        assert await ear.next() == BrainDown("command")
        assert await ear.next() == BrainUp("command")
        assert await ask(seat, GREEN)
        await seat.close()
        assert ear.heard.empty()

    run(story(), loop)


@every_seat
def test_a_seat_without_a_listener_is_replaced_all_the_same(build: Callable[[], Seat]) -> None:
    async def story() -> None:
        seat, ear = build(), Ear()
        seat.listen(ear)
        await seat.start()
        seat.listen(None)
        await seat.kill("nobody hears it")
        seat.listen(ear)
        if isinstance(seat, InlineFastSeat | InlineSlowSeat):
            assert ear.heard.empty()
        else:  # it hears what it has missed
            assert await ear.next() == BrainDown("command")
            assert await ear.next() == BrainUp("command")
        assert await ask(seat, GREEN)
        await seat.close()

    run(story())


NEVER_REPLACED: dict[str, Callable[[], FastSeat]] = {
    "thread": lambda: ThreadFastSeat(fast_brain, restarts_per_minute=0),
    "process": lambda: support.fast(worker=WorkerSettings(restarts_per_minute=0)),
}


@pytest.mark.parametrize("build", NEVER_REPLACED.values(), ids=NEVER_REPLACED)
def test_a_listener_that_comes_too_late_hears_that_the_brain_is_down_for_good(
    build: Callable[[], FastSeat],
) -> None:
    async def story() -> None:
        seat, early, ear = build(), Ear(), Ear()
        seat.listen(early)
        await seat.start()
        assert early.heard.empty()
        seat.listen(None)
        await seat.kill("nobody hears it")
        seat.listen(ear)
        assert await ear.next() == BrainDown("command", latched=True)
        await seat.close()
        assert ear.heard.empty()

    run(story())


@every_loop
@every_seat
def test_close_leaves_no_task_thread_child_or_open_file(
    build: Callable[[], Seat], loop: str
) -> None:
    async def story() -> None:
        # What uvloop opens for its first stream, it keeps.
        warm = build()
        await warm.start()
        await warm.close()
        before, threads = support.open_fds(), set(threading.enumerate())
        seat = build()
        await seat.start()
        await ask(seat, GREEN)
        await seat.close()
        await seat.close()
        assert support.open_fds() == before
        assert set(threading.enumerate()) == threads

    run(story(), loop)


@every_seat
def test_a_seat_can_be_closed_that_was_never_started(build: Callable[[], Seat]) -> None:
    run(build().close())
