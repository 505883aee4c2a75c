"""The cost of an inline brain is paid in the loop's time."""

import asyncio
import time

import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.core.events import BrainDown, BrainUp, CannotSee, FastVerdict
from hdguard.core.types import FrameRef, Light
from hdguard.runtime.virtual_time import run_virtual
from hdguard.workers.inline import Cost, InlineFastSeat, InlineSlowSeat
from tests.workers.command_brain import (
    GREEN,
    RAISE,
    UNPARSED,
    CommandFastBrain,
    CommandSettings,
    CommandSlowBrain,
)
from tests.workers.support import Ear, ref, shot

DECLARED = 0.25  # what the command brains declare, seconds


def fast(cost: Cost, fixed: float | None = None) -> InlineFastSeat:
    return InlineFastSeat(lambda: CommandFastBrain(CommandSettings()), cost, fixed)


async def took(seat: InlineFastSeat | InlineSlowSeat) -> float:
    loop = asyncio.get_running_loop()
    before = loop.time()
    if isinstance(seat, InlineFastSeat):
        await seat.assess(shot(GREEN))
    else:
        await seat.review(1, ref(GREEN), ())
    return loop.time() - before


COSTS: list[tuple[Cost, float | None, float]] = [
    ("fixed", 0.4, 0.4),
    ("fixed", 0.0, 0.0),
    ("fixed", None, DECLARED),
    ("trace", 0.4, DECLARED),
]


@pytest.mark.parametrize(("cost", "fixed", "expected"), [*COSTS, ("none", 0.4, 0.0)])
def test_a_verdict_comes_at_start_plus_cost(
    cost: Cost, fixed: float | None, expected: float
) -> None:
    assert run_virtual(took(fast(cost, fixed))) == pytest.approx(expected)


@pytest.mark.parametrize(("cost", "fixed", "expected"), [*COSTS, ("none", 0.4, DECLARED)])
def test_a_review_comes_at_start_plus_cost_even_where_verdicts_are_free(
    cost: Cost, fixed: float | None, expected: float
) -> None:
    seat = InlineSlowSeat(lambda: CommandSlowBrain(CommandSettings()), cost, fixed)
    assert run_virtual(took(seat)) == pytest.approx(expected)


def test_a_measured_cost_is_what_the_call_really_took() -> None:
    class BusyBrain(CommandFastBrain):
        worked = 0.0

        def assess(self, shot: Shot) -> FastVerdict | CannotSee:
            started = time.perf_counter()
            sum(range(100_000))
            self.worked = time.perf_counter() - started
            return super().assess(shot)

        def cost(self, _ref: FrameRef) -> float:
            raise AssertionError("a measured cost is not declared")

    brain = BusyBrain(CommandSettings())
    seconds = run_virtual(took(InlineFastSeat(lambda: brain, "measured", 9.0)))
    assert 0.0 < brain.worked <= seconds < 9.0


def test_a_failure_takes_its_cost_as_well() -> None:
    async def story() -> float:
        with pytest.raises(BrainError, match="unparsed"):
            await fast("fixed", 0.4).assess(shot(UNPARSED))
        return asyncio.get_running_loop().time()

    assert run_virtual(story()) == pytest.approx(0.4)


def test_a_defect_of_the_brain_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        run_virtual(fast("fixed", 0.4).assess(shot(RAISE)))


def test_a_killed_brain_is_built_anew_in_between_down_and_up() -> None:
    heard: list[object] = []

    def build() -> CommandFastBrain:
        heard.append("built")
        return CommandFastBrain(CommandSettings())

    async def story() -> None:
        seat = InlineFastSeat(build, "none")
        seat.listen(heard.append)
        await seat.start()
        await seat.kill("late")
        answer = await seat.assess(shot(GREEN))
        assert isinstance(answer, FastVerdict)
        assert answer.light is Light.GREEN

    run_virtual(story())
    assert heard == ["built", BrainDown("command"), "built", BrainUp("command")]


def test_a_caller_that_is_cancelled_leaves_the_seat_usable() -> None:
    async def story() -> None:
        seat, ear = fast("fixed", 9.0), Ear()
        seat.listen(ear)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await seat.assess(shot(GREEN))
        assert isinstance(await seat.assess(shot(GREEN, 5)), FastVerdict)
        assert asyncio.get_running_loop().time() == pytest.approx(10.0)
        assert ear.heard.empty()

    run_virtual(story())
