"""From when to when the hang of a brain is measured."""

import pytest

from hdguard.core.types import HaltCause, Speed
from hdguard.faults import brain_faults
from hdguard.faults.rows import FaultError
from tests.actuators.support import run
from tests.faults.support import ToldStack, injected

LAST_JUDGED = -0.2
"""When the last judged frame was taken."""


def hung(*permits_at: float, cause: HaltCause = HaltCause.STALE_VERDICT) -> ToldStack:
    """A permit tells the age at which it was sent; one that comes at 0.6 was 0.15 s on its way."""
    stack = ToldStack()
    for at in permits_at:
        stack.permits(at, at - LAST_JUDGED - (0.15 if at == 0.6 else 0.0))
    stack.halts(0.9, cause)
    return stack


@pytest.fixture(autouse=True)
def _no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.kill", lambda *_: None)


def test_a_permit_that_was_long_on_its_way_does_not_shorten_the_time() -> None:
    async def story() -> None:
        (seconds,) = await injected(brain_faults.fast_hangs, hung(0.4, 0.6, 0.8))
        assert seconds == pytest.approx(1.1)

    run(story(), "asyncio")


def test_without_a_permit_before_the_halt_nothing_was_measured() -> None:
    async def story() -> None:
        with pytest.raises(FaultError, match=r"no permit came in the 0.5 s before the halt"):
            await injected(brain_faults.fast_hangs, hung(0.1, 1.0))

    run(story(), "asyncio")


def test_a_halt_for_another_cause_is_not_the_hangs() -> None:
    async def story() -> None:
        with pytest.raises(TimeoutError):
            await injected(brain_faults.fast_hangs, hung(0.8, cause=HaltCause.FROZEN_FRAME))

    run(story(), "asyncio")


def test_an_answer_that_counts_as_late_only_once_it_has_come_is_not_late_in_time() -> None:
    async def story() -> None:
        stack = ToldStack([2.0, 2.0])
        stack.workers = [1, 1]
        stack.permits(0.3, 0.6, Speed.REDUCED)
        with pytest.raises(FaultError, match="0 answers counted as late, not 1"):
            await injected(brain_faults.fast_slow, stack)

    run(story(), "asyncio")
