"""The limits in dashboards and rules are the guard's own."""

import re

import pytest

from hdguard.core.freshness import frame_limits
from hdguard.core.policy import SIDECAR
from hdguard.observe.dashboards import goals
from hdguard.observe.metrics import BUCKETS, GOALS, LAG_BUCKETS
from tests.observe.dashboards.shipped import BOARDS, panels, read, rules

ALERTS = {rule["alert"]: rule["expr"] for _, rule in rules("alert")}


def last_number(expr: str) -> float:
    return float(re.findall(r"[\d.]+", expr)[-1])


def test_the_alerts_stand_at_the_guards_limits() -> None:
    assert "hdguard_frame_age_limit_seconds" in ALERTS["HdguardFrameOld"]
    assert last_number(ALERTS["HdguardHaltsSlow"]) == goals.TO_HALT_P95
    (late,) = [rule["expr"] for _, rule in rules("record") if "permits_late" in rule["record"]]
    assert f'le="{goals.PERMIT_GAP}"' in late


def test_every_line_in_a_histogram_is_a_bound_of_it() -> None:
    """Between two bounds a percentile is a guess: 0.31 s would be 0.35, and 0.41 s 0.6."""
    assert {goals.TO_HALT_P50, goals.TO_HALT_P95, goals.OWN_TIME} == set(GOALS)
    lines = {goals.PERMIT_GAP, goals.FAST_DEADLINE, goals.REVIEW_DEADLINE, goals.UNACKNOWLEDGED}
    assert {*GOALS, *lines} <= set(BUCKETS)
    assert set(goals.LAG) <= set(LAG_BUCKETS)
    assert sorted(set(BUCKETS)) == list(BUCKETS)


def test_a_share_of_a_limit_is_the_guards_wherever_frames_come_often() -> None:
    for interval in (0.0, 1 / 30, 0.2, 1 / 3):
        limits = frame_limits(interval)
        assert limits.degraded / limits.halt == goals.SLOWER
    assert frame_limits(5.0).degraded / frame_limits(5.0).halt == pytest.approx(0.6)


def test_the_deadlines_are_those_of_the_policy_that_guards_robots() -> None:
    assert SIDECAR.fast_deadline == goals.FAST_DEADLINE
    assert SIDECAR.review_deadline == goals.REVIEW_DEADLINE


def test_the_panels_show_them() -> None:
    shown = {
        panel["title"]: [
            step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]
        ]
        for path in BOARDS
        for panel in panels(read(path))
    }
    assert shown["Oldest frame, of its limit"] == [0.5, 1.0]
    assert shown["Oldest verdict, of its limit"] == [0.5, 1.0]
    assert shown["Time between permits"] == [0.6]
    assert shown["Halt to acknowledgement"] == [0.5]
    assert shown["Half of the FastBrain's halts within"] == [0.35]
    assert shown["95 % of the FastBrain's halts within"] == [0.5]
    assert shown["Judge (FastBrain)"] == [0.4]
    assert shown["Review (SlowBrain)"] == [1.0]
    assert shown["Sample and wait, 99th percentile"] == [0.02]
    assert shown["Event loop lag"] == [0.005, 0.05]
