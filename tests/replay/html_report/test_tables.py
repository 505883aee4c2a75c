"""Tables: every score beside n and the clock, ours marked, theirs as printed."""

from hdguard.replay.html_report.published import published
from hdguard.replay.html_report.tables import (
    best_clock,
    breakdown_tables,
    comparison_table,
    counts_table,
    latency_table,
    rates_table,
    scores_table,
)
from hdguard.replay.results import FaultHalt, Outcome
from tests.replay.html_report.stories import hazard, results, safe, warned

HALTS = (FaultHalt(at=12.345, cause="stale_verdict"),)
RUN = results(
    hazard("early.mp4", warned(3.1), severity="L2"),  # premature, then in the window
    hazard("silent.mp4", Outcome(watched=1800.0, fault_halts=HALTS), severity=""),
    safe("quiet.mp4", Outcome(watched=3600.0)),
    safe("stopped.mp4", warned(3599.7)),
)


def test_the_three_times_stand_above_the_clocks() -> None:
    table = scores_table(RUN.summary)
    names = [row.name for row in table.rows]
    assert names[:3] == ["by trigger", "by issued", "by stopped"]
    assert names[-2:] == ["best t: 3.3 s", "never"]
    assert {len(row.cells) for row in table.rows} == {len(table.columns) - 1}
    cells = dict(zip(table.columns[1:], table.rows[1].cells, strict=True))
    assert (cells["n"], cells["WSS"], cells["optimal"], cells["lead"]) == (
        "2", "50.00", "50.00", "+0.80",
    )  # fmt: skip


def test_ours_and_all_published_rows_stand_together_the_best_first() -> None:
    table = comparison_table(RUN.summary, published(), ("n",))
    kinds = [row.kind for row in table.rows]
    assert kinds == ["group"] + ["ours"] * 3 + ["clock", "group"] + ["quoted"] * 17
    assert table.rows[0].name == "This run, n = 2"
    assert table.rows[5].name == "arXiv 2603.11975, published, not re-run, n = 438"
    assert table.rows[1].notes == ("trigger", "n")
    assert table.rows[2].notes == ("n",)
    best = table.rows[6]
    assert (best.name, best.cells[:2]) == ("InternVL3.5-8B", ("438", "28.42"))
    assert table.rows[-1].name == "LLaVA-OV-0.5B"
    minicpm = next(row for row in table.rows if row.name == "MiniCPM-o-4.5")
    assert (minicpm.cells[1], minicpm.notes) == ("17.75", ("minicpm",))
    assert table.notes["missed"] == ("missed",)
    inferred = {row.name: row.cells[0] for row in table.rows if "?" in "".join(row.cells)}
    assert inferred == {"VideoLlama3-7B": "287?", "LLaVA-OV-0.5B": "294?"}  # not printed, so asked


def test_without_key_frames_there_is_no_clock_to_compare_with() -> None:
    quiet = results(safe("quiet.mp4", Outcome(watched=3600.0)))
    assert best_clock(quiet.summary.baselines) is None
    assert "clock" not in [
        row.kind for row in comparison_table(quiet.summary, published(), ()).rows
    ]
    assert breakdown_tables(quiet.summary) == []
    assert scores_table(quiet.summary).rows[0].cells == ("0", *["–"] * 9)  # no score is not 0


def test_breakdowns_say_how_many_of_the_benchmarks_videos_they_are() -> None:
    found = dict(breakdown_tables(RUN.summary))
    assert list(found) == ["category", "severity"]
    (category,) = found["category"].rows
    assert category.name == "C4 environmental damage"
    assert category.cells[:2] == ("2", "283")
    severities = {row.name: row.cells[:2] for row in found["severity"].rows}
    assert severities == {"L2 needs treatment": ("1", "139"), "none given": ("1", "–")}


def test_a_latency_that_was_not_measured_is_not_to_be_quoted() -> None:
    assert "realtime pace" in latency_table(RUN.summary.latency, "").caption
    table = latency_table(RUN.summary.latency, "played back")
    assert "not to be quoted: played back" in table.caption
    assert table.rows[0].cells == ("2", "0.300", "0.300", "0.300", "0.300")
    unknown = next(row for row in table.rows if row.name == "sampled to assessed")
    assert unknown.cells == ("0", "–", "–", "–", "–")


def test_rates_carry_their_interval_and_nothing_watched_has_none() -> None:
    stops, faults = rates_table(RUN.summary).rows
    assert stops.cells[:3] == ("1", "2.0000", "0.50")
    assert stops.cells[3].startswith("0.01 to 2.7")
    assert faults.cells[0] == "1"
    nothing = rates_table(results(hazard("a.mp4", warned(4.0))).summary).rows[0]
    assert nothing.cells == ("0", "0", "–", "–")


def test_counts_are_in_order_of_frequency_without_zeros() -> None:
    table = counts_table("Causes", "cause", {"fast_red": 1, "slow_danger": 3, "none": 0})
    assert [(row.name, row.cells) for row in table.rows] == [
        ("slow danger", ("3", "75.0")),
        ("fast red", ("1", "25.0")),
    ]
