"""Severity calibration where a brain names one, and no figure where none does."""

from hdguard.core.types import Hazard
from hdguard.replay.html_report.published import published
from hdguard.replay.html_report.severity import severity_counts, severity_table
from hdguard.replay.results import Outcome, VideoResult
from tests.replay.html_report.stories import hazard, safe, warned


def video(said: str, truth: str) -> VideoResult:
    outcome = warned(4.0, hazard=Hazard("C4", said, ""))
    return hazard(f"{said}{truth}.mp4", outcome, severity=truth)


VIDEOS = [
    video("L1", "L3"),
    video("L2", "L2"),
    video("L4", "L2"),
    video("L3", "L1"),
    video("", "L2"),
    video("L2", ""),
    hazard("silent.mp4", Outcome()),
    safe("stopped.mp4", warned(1.0)),
]


def test_only_warnings_with_both_severities_count() -> None:
    counts = severity_counts(VIDEOS)
    assert counts == {"underestimated": 1, "correct": 1, "overestimated": 2}


def test_ours_stands_above_the_published_with_its_n() -> None:
    table = severity_table(VIDEOS, published())
    assert table is not None
    assert table.rows[0].cells == ("4", "25.0", "25.0", "50.0")
    assert table.rows[1].name == "InternVL3.5-8B"
    assert table.rows[1].cells == ("–", "23.3", "38.6", "38.1")
    assert table.rows[-1].cells == ("–", "–", "14.9", "82.3")  # not printed is not zero


def test_a_run_whose_brains_name_none_has_no_table() -> None:
    assert severity_table([video("", "L2")], published()) is None
