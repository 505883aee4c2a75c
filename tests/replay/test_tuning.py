"""Tuning: what it finds, what it may not know, and that its figures are those of real replays."""

from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import resource_tracker

import numpy as np
import pytest

from hdguard.brains.trace_format import SlowRow
from hdguard.core.policy import SIDECAR
from hdguard.replay.candidates import STRAIGHT, Bench, Cell, Choice
from hdguard.replay.folds import make_folds
from hdguard.replay.problems import DatasetError
from hdguard.replay.results import Warned
from hdguard.replay.scoring import KeyFrames, Phase, summarise
from hdguard.replay.simulate import Case, Reviews
from hdguard.replay.temperature import fit
from hdguard.replay.tuning import LADDER, Limits, Method, Point, Table, Tuning, cross_validate, tune
from tests.replay.recorded import cases, hazard, recording

BENCH = Bench(SIDECAR, thresholds=(0.05, 0.2, 0.5))


def tuned(made: Sequence[Case], limits: Limits = Limits(100.0), **changes: object) -> Tuning:  # noqa: B008
    method = replace(Method(BENCH, limits), **changes)  # type: ignore[arg-type]
    return tune(recording(made), method, lambda _: None)


@pytest.fixture(autouse=True, scope="module")
def _tracker() -> None:
    """Python's own helper of `spawn` outlives every pool; it is not a child left behind."""
    resource_tracker.ensure_running()


@pytest.fixture(scope="module")
def shy() -> list[Case]:
    """A model that sees the danger coming and does not dare to say RED before it is too late."""
    return cases(12, 3, apart=3.0, early=0.6, seed=1)


@pytest.fixture(scope="module")
def found(shy: list[Case]) -> Tuning:
    return tuned(shy, Limits(25.0))


def test_tuning_finds_thresholds_that_do_better_on_videos_that_it_has_not_seen(
    found: Tuning,
) -> None:
    assert found.asked.held_out.scores.n == found.untuned.scores.n == 12
    assert found.asked.held_out.scores.wss > found.untuned.scores.wss + 5
    assert found.asked.chosen.choice.candidate.red < 0.5


def test_each_fold_chooses_without_its_held_out_videos(shy: list[Case], found: Tuning) -> None:
    """Their truth is changed for a lie: nothing that is chosen without them may change."""
    scored = [c.video for c in shy if c.keyframes is not None]
    first = make_folds(scored, [c.video for c in shy if c.keyframes is None])[0]
    lie = KeyFrames(0.0, 0.1, 0.2, 0.3)
    lied = [
        replace(c, keyframes=lie) if c.video in first.held_out and c.keyframes is not None else c
        for c in shy
    ]
    other = tuned(lied, Limits(25.0))
    for before, after in zip(found.curve, other.curve, strict=True):
        assert after.by_fold[0] == before.by_fold[0]
    assert other.fold_fits[0] == found.fold_fits[0]
    assert other.fold_fits[1] != found.fold_fits[1]
    assert other.asked.fold_wss[0] == 0.0


def test_the_best_of_many_that_know_nothing_is_no_better_on_other_videos() -> None:
    """Four times, 81 choices warn of 50 videos at random: the best owes all to chance."""
    rng = np.random.default_rng(0)
    one = cases(1)[0]
    choices = [Choice(STRAIGHT, c) for c in Bench(SIDECAR).candidates(reviewed=False)]

    def cell() -> Cell:
        at = float(rng.uniform(0.0, 4.6))
        warning = Warned(trigger=at, issued=at, stopped=at, cause="fast_red")
        return Cell(warning, at, 0, Reviews(), "")

    found = []
    for _ in range(4):
        made = [replace(one, video=f"{n}.mp4", keyframes=hazard(rng)) for n in range(50)]
        cells = {case.video: [cell() for _ in choices] for case in made}
        table, flat = Table(made, choices, cells, "issued"), fit([])
        folds = make_folds([case.video for case in made], [])
        point = cross_validate(table, folds, [flat] * 5, flat, Limits(100.0))
        chance = np.mean([summary(table, choice) for choice in choices])
        found.append((point.in_sample.scores.wss - chance, point.held_out.scores.wss - chance))
    in_sample, held_out = np.mean(found, axis=0)
    assert in_sample > 8.0
    assert held_out == pytest.approx(0.0, abs=6.0)


def summary(table: Table, choice: Choice) -> float:
    pairs = table.cells_of(choice)
    return summarise((c.warning and c.warning.issued, case.keyframes) for case, c in pairs).wss  # type: ignore[misc]


def test_a_trace_of_other_hazards_than_the_truths_looks_good_only_in_sample(
    found: Tuning,
) -> None:
    result = tuned(cases(12, apart=3.0, early=0.6, seed=1, shuffled=True))
    assert result.clock is not None
    assert result.asked.held_out.scores.wss < result.asked.in_sample.scores.wss
    assert result.asked.held_out.scores.wss < result.clock.summary.wss - 20
    assert result.asked.held_out.scores.wss < found.asked.held_out.scores.wss - 10


def test_the_limits_are_kept_where_the_choice_is_made(shy: list[Case]) -> None:
    limited = tuned(shy, Limits(10.0, 0.0))
    for point in limited.curve:
        if point.chosen.kept:
            assert point.in_sample.scores.phases[Phase.PREMATURE] <= point.limits.premature
            assert point.in_sample.false_stops.count == 0
    assert limited.asked.chosen.kept
    assert limited.asked.limits == Limits(10.0, 0.0)


def test_a_tighter_limit_never_scores_higher_where_it_is_chosen(found: Tuning) -> None:
    kept: list[Point] = [p for p in found.curve if p.chosen.kept]
    wss = [p.in_sample.scores.wss for p in kept]
    assert wss == sorted(wss)
    assert [p.limits.premature for p in found.curve] == sorted({*LADDER, 25.0})


def test_where_nothing_keeps_the_limits_the_least_bad_is_taken_and_it_is_said() -> None:
    blind_to_time = cases(10, seed=1, apart=0.0, certain=(0.0, 0.0, 9.0))
    result = tuned(blind_to_time, Limits(0.0), bench=replace(BENCH, thresholds=(0.05,)))
    assert result.asked.held_out.scores.phases[Phase.PREMATURE] == 100.0
    assert not result.asked.chosen.kept
    assert not any(picked.kept for picked in result.asked.by_fold)


def test_every_video_is_held_out_once(found: Tuning) -> None:
    for point in found.curve:
        assert len(point.by_fold) == len(point.fold_wss) == 5
        assert point.held_out.scores.n == point.in_sample.scores.n
        assert point.held_out.false_stops.hours > 0


def test_the_same_recording_gives_the_same_tuning_with_any_number_of_processes() -> None:
    made = cases(10, 1, seed=2, apart=3.0, early=0.6)
    small = replace(BENCH, thresholds=(0.2,))
    one, two = (tuned(made, bench=small, workers=n) for n in (1, 2))
    assert one == two
    shuffled = tuned(made[::-1], bench=small)
    assert shuffled.asked.held_out == one.asked.held_out
    assert shuffled.asked.chosen == one.asked.chosen


def test_the_score_is_by_the_time_that_was_asked_for(shy: list[Case]) -> None:
    one = replace(BENCH, thresholds=(0.5,))
    by = {when: tuned(shy, by=when, bench=one).untuned.scores for when in ("trigger", "stopped")}
    assert by["trigger"].lead is not None
    assert by["stopped"].lead is not None
    assert by["trigger"].lead.mean == pytest.approx(by["stopped"].lead.mean + 0.8)


def test_too_few_videos_are_refused() -> None:
    with pytest.raises(DatasetError, match="too few"):
        tuned(cases(9))


def test_reviews_are_counted_under_the_choice_for_use() -> None:
    made = cases(10, apart=3.0, slow=[SlowRow(t=1.0, verdict="danger")])
    result = tuned(made, bench=replace(BENCH, thresholds=(0.5,)))
    assert result.reviews.asked >= result.reviews.answered > 0
    assert result.reviews.failed + result.reviews.answered <= result.reviews.asked
    assert not result.failed
