"""What makes a row good or bad."""

import math

import pytest

from hdguard.faults.rows import CLOCKED, Outcome, Row

SILENT = Row("camera-silent", "camera silent", 1.1)


def test_a_row_is_judged_by_its_worst_injection() -> None:
    assert Outcome(SILENT, [0.9, 1.1, 0.8]).ok
    assert not Outcome(SILENT, [0.9, 1.101, 0.8]).ok


def test_an_injection_that_was_not_met_spoils_the_row_however_quick_the_others() -> None:
    outcome = Outcome(SILENT, [0.9], ["nothing in 30 s"])
    assert not outcome.ok
    assert outcome.plain() == {
        "fault": "camera-silent",
        "limit_s": 1.1,
        "median_s": 0.9,
        "worst_s": 0.9,
        "n": 2,
        "ok": False,
    }


def test_nothing_measured_is_never_ok() -> None:
    assert not Outcome(SILENT).ok
    assert Outcome(SILENT).plain()["worst_s"] is None
    assert not Outcome(Row("x", "x", None), [], ["it crashed"]).ok


@pytest.mark.parametrize("limit", [1.1, None])
@pytest.mark.parametrize("wrong", [-0.001, math.inf, math.nan])
def test_what_cannot_have_been_measured_is_never_within_a_limit(
    limit: float | None, wrong: float
) -> None:
    assert not Row("camera-silent", "camera silent", limit).holds(wrong)


def test_what_was_not_run_is_not_said_to_be_ok_or_not() -> None:
    outcome = Outcome(SILENT, not_run="needs root")
    assert not outcome.ok
    assert outcome.plain()["ok"] is None


def test_a_timers_own_setting_may_be_passed_by_the_waking_and_no_more() -> None:
    row = Row("halt-escalated", "escalated", 0.5, clocked=True)
    assert row.holds(0.5 + 0.9 * CLOCKED)
    assert not row.holds(0.5 + 1.1 * CLOCKED)


def test_a_row_without_a_limit_only_must_not_go_wrong() -> None:
    assert Outcome(Row("bad-config", "bad configuration", None), [99.0]).ok
