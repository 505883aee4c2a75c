"""How long the stages take, from stamps at literal times."""

import pytest

from hdguard.core import events
from hdguard.core.halts import fault
from hdguard.core.types import FrameRef, HaltCause, Light
from hdguard.observe.latency import MOST, WINDOW, Latency, percentile
from hdguard.runtime.observer import Judged, Reviewed
from tests.observe.support import Watched

REF = FrameRef("kitchen", 1, 100.0, 0.0)


def judged(at: float, took: float) -> Judged:
    """A frame that was captured at that time and judged in so long."""
    ref = FrameRef("kitchen", 1, at, 0.0)
    return Judged("reflex", ref, at + 0.01, at + 0.03, at + 0.03 + took)


def test_the_newest_frame_and_the_last_minute_by_stage() -> None:
    latency = Latency(7)
    for n in range(1, 101):
        latency.judged(judged(100.0, n / 1000))
    (brain,) = latency.report(101.0)["brains"]
    assert brain["newest"] == {"sample": 0.01, "wait": 0.02, "judge": 0.1}
    assert (brain["p50"]["judge"], brain["p95"]["judge"]) == (0.05, 0.095)
    assert brain["count"] == 100
    assert brain["whole"] == {"p50": 0.08, "p95": 0.125}


def test_what_is_older_than_a_minute_does_not_count() -> None:
    latency = Latency(7)
    latency.judged(judged(100.0, 3.0))
    latency.judged(judged(100.0 + WINDOW, 0.02))
    (brain,) = latency.report(104.0 + WINDOW)["brains"]
    assert (brain["count"], brain["p95"]["judge"]) == (1, 0.02)
    (brain,) = latency.report(300.0 + WINDOW)["brains"]
    assert (brain["count"], brain["p50"]) == (0, {})


def test_the_worst_of_two_stages_that_never_meet_are_not_added_up() -> None:
    latency = Latency(7)
    for n in range(10):
        ref, wait = FrameRef("kitchen", n, 100.0, 0.0), 0.5 * (n % 2)
        latency.judged(Judged("reflex", ref, 100.0, 100.0 + wait, 100.5))
    (brain,) = latency.report(101.0)["brains"]
    assert brain["p95"] == {"sample": 0.0, "wait": 0.5, "judge": 0.5}
    assert brain["whole"]["p95"] == 0.5


def test_a_minute_is_counted_once_a_second_at_most() -> None:
    latency = Latency(7)
    latency.judged(judged(100.0, 0.02))
    assert latency.report(101.0)["brains"][0]["count"] == 1
    latency.judged(judged(101.0, 0.02))
    assert latency.report(101.5)["brains"][0]["count"] == 1
    assert latency.report(102.0)["brains"][0]["count"] == 2


def test_memory_is_bounded() -> None:
    latency = Latency(7)
    for _ in range(MOST + 10):
        latency.judged(judged(100.0, 0.02))
    assert latency.report(101.0)["brains"][0]["count"] == MOST


def test_a_review_has_one_stage() -> None:
    latency = Latency(7)
    latency.judged(Reviewed("thinker", 1, REF, 100.0, 101.5))
    (brain,) = latency.report(102.0)["brains"]
    assert (brain["name"], brain["newest"]) == ("thinker", {"review": 1.5})


def test_the_last_halt_from_capture_to_the_broker() -> None:
    watched = Watched()
    watched.starts()
    assert watched.status.report()["latency"]["halt"] is None
    watched.sees(Light.RED)
    shown = watched.status.report()["latency"]["halt"]
    assert shown == {"halt_id": "7-1", "decide": pytest.approx(0.05), "deliver": None}
    watched.step(events.HaltDelivered("7-0"), after=0.01)
    watched.step(events.HaltDelivered("7-1"), after=0.02)
    watched.step(events.HaltDelivered("7-1"), after=0.2)  # a repeat's receipt
    shown = watched.status.report()["latency"]["halt"]
    assert shown["deliver"] == pytest.approx(0.03)


def test_a_halt_of_an_earlier_life_was_decided_on_another_clock() -> None:
    watched = Watched(restored=fault(HaltCause.BRAIN_LATCHED, "kitchen", "reflex"))
    watched.step(events.DeadlineReached())
    assert watched.status.report()["latency"]["halt"] is None


@pytest.mark.parametrize(
    ("times", "share", "expected"),
    [([1.0], 0.5, 1.0), ([1.0, 2.0], 0.5, 1.0), ([1.0, 2.0], 0.95, 2.0), ([1, 2, 3], 0.5, 2)],
)
def test_percentiles_are_times_that_were_measured(
    times: list[float], share: float, expected: float
) -> None:
    assert percentile(times, share) == expected
