"""The guard run over a recorded video: what a replay with the same lights would have done."""

from dataclasses import replace
from typing import Any

import pytest

from hdguard.brains.trace_format import REST, BrainTrace, FastRow, SlowRow
from hdguard.core.policy import SIDECAR, BrainPlan
from hdguard.core.types import Light
from hdguard.replay.results import Outcome
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.simulate import FAST, BlindSource, Case, Simulated, simulate
from tests.fakes import ScriptedFastSeat, ScriptedSlowSeat, every
from tests.replay import stage
from tests.replay.recorded import case

POLICY = replace(SIDECAR, brains=(BrainPlan(FAST, adaptive=False),))
KEYFRAMES = KeyFrames(1.0, 2.0, 3.0, 4.0)


def story(*lights: tuple[float, str], until: float = 4.0, latency: float = 0.1) -> list[FastRow]:
    """Rows at 5 FPS; each light lasts until the next."""
    times = every(0.2, until)
    said = {t: [light for at, light in lights if at <= t][-1] for t in times}
    return [FastRow(t=t, light=said[t], latency=latency) for t in times]


def run(rows: list[FastRow], slow: list[SlowRow] | None = None, **changes: Any) -> Simulated:
    made = case("v.mp4", KEYFRAMES, rows, slow)
    return simulate(made, made.fast, replace(POLICY, **changes))


def test_red_halts_when_its_recorded_latency_has_passed() -> None:
    found = run(story((0, "green"), (2.0, "red")))
    assert found.outcome.warning is not None
    assert found.outcome.warning.trigger == 2.0
    assert found.outcome.warning.issued == 2.1
    assert found.outcome.warning.stopped == 2.8


def test_it_ends_as_any_replay_of_the_same_answers_does() -> None:
    lights = story((0, "green"), (1.0, "yellow"), (1.6, "green"), (2.4, "red"))
    found = run(lights, [SlowRow(t=0.0, verdict="safe")])
    said = {r.t: Light[r.light.upper()] for r in lights if r.light is not None}
    seat = ScriptedFastSeat(said, name=FAST, latency=0.1)
    slow = ScriptedSlowSeat({0.0: False}, latency=0.3)
    outcome, _ = stage.run(
        every(0.1, 4.0), seat, slow=slow, brains=[BrainPlan(FAST, adaptive=False)]
    )
    assert same(found.outcome) == same(outcome)


def same(outcome: Outcome) -> object:
    warned = outcome.warning
    return (warned and (warned.trigger, warned.issued, warned.cause), outcome.fault_halts)


def test_a_review_is_answered_by_the_trace() -> None:
    danger = [SlowRow(t=0.0, verdict="safe"), SlowRow(t=1.8, verdict="danger")]
    found = run(story((0, "green"), (2.0, "yellow")), danger)
    assert found.outcome.warning is not None
    assert found.outcome.warning.cause == "slow_danger"
    assert found.outcome.warning.trigger == 2.0
    assert (found.reviews.asked, found.reviews.answered, found.reviews.borrowed) == (1, 1, 0)


def test_an_answer_to_an_older_question_is_counted_as_borrowed() -> None:
    found = run(
        story((0, "green"), (2.0, "yellow"), (2.2, "green")), [SlowRow(t=0.5, verdict="safe")]
    )
    assert found.reviews.borrowed == found.reviews.answered >= 1


@pytest.mark.parametrize(("overdue", "warns"), [("halt", True), ("caution", False)])
def test_a_review_that_the_trace_knows_nothing_of_has_failed(overdue: str, warns: bool) -> None:
    found = run(story((0, "green"), (2.0, "yellow")), [], review_overdue=overdue)
    assert found.reviews.failed >= 1
    assert found.reviews.answered == 0
    assert (found.outcome.warning is not None) is warns


BROKEN_OFF = [SlowRow(t=0.0, verdict="safe"), SlowRow(t=2.0, error="cancelled", latency=0.25)]


@pytest.mark.parametrize(
    ("overdue", "deadline"), [("halt", 1.0), ("caution", 0.3), ("ignore", 9.0)]
)
def test_a_review_that_was_broken_off_when_recorded_is_not_known_where_it_is_waited_for(
    overdue: str, deadline: float
) -> None:
    lights = story((0, "green"), (2.0, "yellow"), (2.2, "green"))
    found = run(lights, BROKEN_OFF, review_overdue=overdue, review_deadline=deadline)
    assert (found.reviews.asked, found.reviews.unrecorded) == (1, 1)
    assert (found.reviews.answered, found.reviews.failed) == (0, 0)


def test_a_review_that_is_broken_off_as_early_as_when_recorded_hides_nothing() -> None:
    lights = story((0, "green"), (2.0, "yellow"), (2.2, "red"))  # 0.2 s from YELLOW to RED
    found = run(lights, BROKEN_OFF)
    assert found.outcome.warning is not None
    assert found.outcome.warning.cause == "fast_red"
    assert (found.reviews.asked, found.reviews.unrecorded) == (1, 0)
    longer = story((0, "green"), (2.0, "yellow"), (2.4, "red"))
    assert run(longer, BROKEN_OFF).reviews.unrecorded == 1


def test_without_a_slowbrain_nobody_is_asked() -> None:
    found = run(story((0, "green"), (2.0, "yellow")))
    assert found.reviews.asked == 0
    assert found.outcome.warning is None


def test_an_answer_past_the_deadline_is_a_failure_and_a_late_red_halts() -> None:
    good = story((0, "green"), until=1.0)
    slow = run([*good, FastRow(t=1.2, light="green", latency=0.6)])
    assert slow.outcome.verdicts["failed"] > 0
    assert slow.outcome.warning is None
    late = run([*good, FastRow(t=1.2, light="red", latency=0.6)])
    assert late.outcome.warning is not None
    assert late.outcome.warning.issued == 1.8


def test_before_its_first_row_a_trace_knows_nothing() -> None:
    rows = [FastRow(t=2.0, light="green")]
    blind = Case("v.mp4", None, tuple(every(0.1, 4.0)), BrainTrace(0.0, {REST: rows}), None)
    found = simulate(blind, blind.fast, POLICY)
    assert found.outcome.verdicts == {"failed": 10, "green": 11}


def test_the_blind_source_hands_over_every_frame_at_its_time() -> None:
    source = BlindSource("v.mp4", [0.0, 0.1, 0.25])
    assert source.interval == 0.125
    assert BlindSource("v.mp4", [0.0]).interval == 0.0
