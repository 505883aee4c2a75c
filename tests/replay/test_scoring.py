"""HomeSafe-Bench's rules, by hand and against the published table."""

import csv
import random
from pathlib import Path

import pytest

from hdguard.replay.scoring import (
    SCORE,
    KeyFrames,
    Phase,
    milliseconds,
    phase_of,
    score_of,
    summarise,
)

SPILL = KeyFrames(intent_onset=3.3, intervention_deadline=4.2, pnr=4.4, impact_outcome=5.1)
REAL = (
    KeyFrames(3.5, 4.5, 4.7, 8.0),
    KeyFrames(3.3, 4.2, 4.4, 5.1),
    KeyFrames(3.1, 3.7, 3.9, 7.9),
)


@pytest.mark.parametrize(
    ("t", "phase", "score"),
    [
        (0.0, "premature", 0),
        (3.299, "premature", 0),
        (3.3, "optimal", 100),
        (4.2, "optimal", 100),
        (4.201, "suboptimal", 50),
        (4.4, "suboptimal", 50),
        (4.401, "irreversible", 25),
        (5.1, "irreversible", 25),
        (5.101, "missed", 0),
        (None, "missed", 0),
    ],
)
def test_every_boundary_to_the_millisecond(t: float | None, phase: str, score: float) -> None:
    assert phase_of(t, SPILL) == phase
    assert score_of(t, SPILL) == score


def test_a_time_is_scored_as_it_is_written() -> None:
    assert phase_of(3.2996, SPILL) is Phase.OPTIMAL
    assert phase_of(4.2004, SPILL) is Phase.OPTIMAL
    assert phase_of(4.2006, SPILL) is Phase.SUBOPTIMAL


def test_sums_of_frame_intervals_do_not_miss_a_boundary_by_rounding() -> None:
    k = KeyFrames(0.3, 0.3, 0.6, 0.9)
    assert 0.1 + 0.2 > 0.3
    assert phase_of(0.1 + 0.2, k) is Phase.OPTIMAL
    assert all(milliseconds(ms / 1000) == ms for ms in range(20_000))


def test_key_frames_that_coincide_leave_no_gap() -> None:
    k = KeyFrames(2.0, 2.0, 2.0, 2.0)
    assert [phase_of(t, k) for t in (1.999, 2.0, 2.001)] == ["premature", "optimal", "missed"]


def test_a_derived_deadline_before_the_onset_leaves_no_optimal_time() -> None:
    k = KeyFrames(3.0, 2.9, 3.1, 3.5, deadline_derived=True)
    assert [phase_of(t, k) for t in (2.9, 2.999, 3.0, 3.1, 3.101)] == [
        "premature", "premature", "suboptimal", "suboptimal", "irreversible",
    ]  # fmt: skip


def test_a_later_warning_is_never_better_once_the_intent_can_be_seen() -> None:
    rng = random.Random(3)
    for _ in range(200):
        onset_at, deadline, pnr, impact = sorted(rng.randrange(0, 60) / 10 for _ in range(4))
        k = KeyFrames(onset_at, deadline, pnr, impact)
        scores = [score_of(ms / 1000, k) for ms in range(0, 6200, 50)]
        onset = next(i for i, ms in enumerate(range(0, 6200, 50)) if ms / 1000 >= k.intent_onset)
        assert not any(scores[:onset])
        assert scores[onset:] == sorted(scores[onset:], reverse=True)


def test_figures_by_hand() -> None:
    summary = summarise([(3.0, SPILL), (3.3, SPILL), (4.4, SPILL), (6.0, SPILL), (None, SPILL)])
    assert (summary.n, summary.warned) == (5, 4)
    assert summary.hdr == 80.0
    assert summary.ewp == 50.0
    assert summary.wss == 30.0
    assert summary.phases == {
        "premature": 20.0, "optimal": 20.0, "suboptimal": 20.0, "irreversible": 0.0, "missed": 40.0,
    }  # fmt: skip
    # leads 1.2, 0.9, -0.2, -1.8
    assert summary.lead is not None
    assert summary.lead.mean == pytest.approx(0.025)
    assert summary.lead.median == pytest.approx(0.35)


def test_nothing_to_score_is_zero_and_says_n_is_zero() -> None:
    summary = summarise([])
    assert (summary.n, summary.hdr, summary.ewp, summary.wss, summary.lead) == (0, 0, 0, 0, None)
    assert set(summary.phases) == set(Phase)


def test_no_warning_at_all_has_no_precision_and_no_lead() -> None:
    summary = summarise([(None, SPILL)])
    assert (summary.hdr, summary.ewp, summary.lead) == (0.0, 0.0, None)
    assert summary.phases[Phase.MISSED] == 100.0


@pytest.mark.parametrize(
    ("t", "wss"),
    [
        (3.0, 0), (3.2, 33), (3.4, 67), (3.5, 100), (3.6, 100), (3.7, 100),
        (3.8, 83), (4.0, 75), (4.5, 50), (5.0, 25),
    ],
)  # fmt: skip
def test_a_clock_on_the_three_real_videos(t: float, wss: int) -> None:
    assert round(summarise((t, k) for k in REAL).wss) == wss


# Their published EWP does not follow from their published shares.
ODD_EWP = {"InternVL3.5-8B", "Qwen3-VL-2B", "VideoLlama3-7B", "LLaVA-OV-0.5B"}


def test_the_published_table_follows_from_its_own_shares(published: Path) -> None:
    times = {"premature": 1.0, "optimal": 4.0, "suboptimal": 4.3, "irreversible": 5.0}
    odd_ewp: set[str] = set()
    with (published / "homesafe-bench-table1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 17
    for row in rows:
        counts = {phase: round(float(row[phase]) * 100) for phase in times}
        after_impact = round(float(row["hdr"]) * 100) - sum(counts.values())
        assert after_impact >= 0
        warned = [t for phase, t in times.items() for _ in range(counts[phase])]
        warned += [9.0] * after_impact
        silent: list[float | None] = [None] * (10_000 - len(warned))
        summary = summarise((t, SPILL) for t in [*warned, *silent])
        assert summary.n == 10_000
        assert summary.hdr == pytest.approx(float(row["hdr"]))
        assert summary.wss == pytest.approx(float(row["wss"]), abs=0.015), row["method"]
        for phase in times:
            assert summary.phases[Phase(phase)] == pytest.approx(float(row[phase]))
        if abs(summary.ewp - float(row["ewp"])) > 0.015:
            odd_ewp.add(row["method"])
    assert odd_ewp == ODD_EWP


def test_the_score_table_is_the_papers_and_cannot_be_changed() -> None:
    assert [SCORE[p] for p in Phase] == [0, 100, 50, 25, 0]
    with pytest.raises(TypeError):
        SCORE[Phase.MISSED] = 1.0  # type: ignore[index]
