"""The published figures are those of the paper, and whatever does not follow is named."""

import pytest

from hdguard.replay.html_report.published import PublishedRow, published
from hdguard.replay.labels import PUBLISHED_TOTAL
from hdguard.replay.scoring import EFFECTIVE, SCORE, Phase

QUOTED = published()
HALF = 0.005 + 1e-9  # percent; printed figures are rounded to two decimals
ROWS = pytest.mark.parametrize("row", QUOTED.rows, ids=lambda row: row.method)


def test_all_seventeen_methods_are_there_once() -> None:
    names = [row.method for row in QUOTED.rows]
    assert len(names) == len(set(names)) == 17
    assert {"HD-Guard", "InternVL3.5-8B", "GPT-5.1", "Claude-Opus-4.1"} <= set(names)
    assert QUOTED.n == PUBLISHED_TOTAL
    assert (QUOTED.source, QUOTED.status) == ("arXiv 2603.11975", "published, not re-run")


@ROWS
def test_wss_follows_from_the_shares_by_our_scoring_within_rounding(row: PublishedRow) -> None:
    wss = sum(SCORE[p] / 100 * row.phases[p] for p in Phase)
    slack = HALF * (1 + sum(SCORE[p] / 100 for p in Phase))
    assert row.wss == pytest.approx(wss, abs=slack)


@ROWS
def test_the_shares_make_a_whole_but_where_a_note_says_otherwise(row: PublishedRow) -> None:
    whole = abs(sum(row.phases.values()) - 100) <= 5 * HALF
    assert whole is ("lost" not in row.notes)


@ROWS
def test_warnings_after_impact_are_missed_in_every_row(row: PublishedRow) -> None:
    assert row.hdr + row.missed > 100


@ROWS
def test_ewp_follows_or_is_one_warning_short_where_a_note_says_so(row: PublishedRow) -> None:
    warned = round(row.hdr * row.n / 100)
    effective = round(sum(row.phases[p] for p in EFFECTIVE) * row.n / 100)
    short = "ewp" in row.notes
    assert row.ewp == pytest.approx(100 * (effective - short) / warned, abs=3 * HALF)


def is_share(percent: float, n: int) -> bool:
    return any(abs(100 * k / n - percent) <= HALF for k in range(n + 1))


@ROWS
def test_the_shares_are_of_so_many_videos(row: PublishedRow) -> None:
    figures = (row.hdr, *row.phases.values())
    assert all(is_share(x, row.n) for x in figures)
    if "fewer" in row.notes:
        assert row.n < QUOTED.n
        assert not all(is_share(x, QUOTED.n) for x in figures)
        assert f"1/{row.n} ({row.method})" in QUOTED.notes["fewer"]
    else:
        assert row.n == QUOTED.n


def test_figures_that_disagree_are_named_in_a_footnote_of_their_row() -> None:
    rows = {row.method: row for row in QUOTED.rows}
    points = {point.method: point for point in QUOTED.latencies}
    assert rows["MiniCPM-o-4.5"].notes == ("minicpm",)
    for figure in (rows["MiniCPM-o-4.5"].wss, points["MiniCPM-o-4.5 alone"].wss):
        assert f"{figure:.2f}" in QUOTED.notes["minicpm"]
    assert (rows["MiniCPM-o-4.5"].wss, points["MiniCPM-o-4.5 alone"].wss) == (17.75, 18.04)
    assert f"{sum(rows['HD-Guard'].phases.values()):.2f}" in QUOTED.notes["lost"]
    assert f"{rows['HD-Guard'].wss:.2f}" in QUOTED.notes["peak"]
    assert rows["HD-Guard"].wss == points["HD-Guard"].wss


def test_every_footnote_is_used_and_none_is_missing() -> None:
    assert {note for row in QUOTED.rows for note in row.notes} == set(QUOTED.notes)


def test_severities_make_a_whole_where_all_three_are_printed() -> None:
    for row in QUOTED.severities:
        if row.underestimated is not None and row.overestimated is not None:
            total = row.underestimated + row.correct + row.overestimated
            assert total == pytest.approx(100, abs=0.15), row.method
