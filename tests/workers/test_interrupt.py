"""A call that nobody waits for is left, and no other, whenever the signal comes."""

import os
import signal
from collections.abc import Iterator

import pytest

from hdguard.workers.interrupt import Cancelled, Interruption
from hdguard.workers.ring import Ring


@pytest.fixture
def ring() -> Iterator[Ring]:
    ring = Ring.create(1, 3)
    yield ring
    ring.close()


@pytest.fixture
def interruption(ring: Ring) -> Iterator[Interruption]:
    before = signal.getsignal(signal.SIGUSR1)
    made = Interruption(ring)
    made.install()
    yield made
    signal.signal(signal.SIGUSR1, before)


def ring_up() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def cancel(ring: Ring, call_id: int) -> None:
    ring.cancel(call_id)
    ring_up()


def test_a_signal_with_the_number_of_the_call_in_hand_breaks_it_off(
    ring: Ring, interruption: Interruption
) -> None:
    done: list[str] = []

    def work() -> None:
        cancel(ring, 7)
        for _ in range(1000):
            pass
        done.append("went on")

    with pytest.raises(Cancelled):
        interruption.run(7, work)
    assert done == []
    assert interruption.run(8, lambda: "the next call") == "the next call"


def test_a_signal_that_came_before_the_call_was_in_hand_is_not_lost(
    ring: Ring, interruption: Interruption
) -> None:
    cancel(ring, 7)
    with pytest.raises(Cancelled):
        interruption.run(7, lambda: pytest.fail("the work began"))


def test_a_signal_for_the_call_before_does_not_touch_the_one_in_hand(
    ring: Ring, interruption: Interruption
) -> None:
    cancel(ring, 6)

    def work() -> str:
        ring_up()
        return "done"

    assert interruption.run(7, work) == "done"


def test_a_signal_when_nothing_is_in_hand_is_ignored(
    ring: Ring, interruption: Interruption
) -> None:
    assert interruption.run(7, lambda: "done") == "done"
    cancel(ring, 7)
    assert interruption.run(8, lambda: "done") == "done"


def test_a_second_signal_does_not_disturb_the_clearing_up_after_the_first(
    ring: Ring, interruption: Interruption
) -> None:
    cleared: list[str] = []

    def work() -> None:
        try:
            cancel(ring, 7)
        finally:
            ring_up()
            cleared.append("up")

    with pytest.raises(Cancelled):
        interruption.run(7, work)
    assert cleared == ["up"]


def test_it_is_no_exception_that_a_brain_would_catch() -> None:
    assert not issubclass(Cancelled, Exception)
