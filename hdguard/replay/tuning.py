"""Chooses a calibration and policy settings on some videos and scores the choice on others.

Whatever is chosen on a video says nothing when it is scored on that video. So in each fold
temperature, thresholds and policy settings are chosen on the training videos alone, and the
held-out ones are scored with that choice; the figure to quote is over all held-out videos together.
What is written for use is chosen on all of them, and has no score of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdguard.replay.baselines import Baseline, best_time, fixed_time
from hdguard.replay.candidates import Bench, Cell, Choice, bend_of, run_all
from hdguard.replay.cases import Recording
from hdguard.replay.folds import Fold, make_folds
from hdguard.replay.intervals import Rate, rate_per_hour
from hdguard.replay.scoring import Phase, Summary, phase_of, score_of, summarise
from hdguard.replay.simulate import Case, Reviews
from hdguard.replay.temperature import Fit, fit, labelled
from hdguard.replay.video_result import warning_time

LADDER = (0.0, 5.0, 10.0, 20.0, 40.0, 100.0)
"""Percent of premature warnings at which the trade-off curve is drawn, with the limit asked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a choice must keep on the videos that it is made on.

    Attributes:
        premature: percent of the annotated videos with a premature warning, at most.
        false_stops: per hour of safe material, at most; None: any.
    """

    premature: float
    false_stops: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What choices did on some videos.

    Attributes:
        scores: over the annotated ones.
        false_stops: on safe material.
        fault_halts: on all of them.
    """

    scores: Summary
    false_stops: Rate
    fault_halts: int


@dataclass(frozen=True, slots=True)
class Picked:
    """A choice, and whether it kept the limits where it was made; if not, none did."""

    choice: Choice
    kept: bool


@dataclass(frozen=True, slots=True)
class Point:
    """The trade-off curve at one limit.

    Attributes:
        limits: on what is chosen.
        held_out: every video scored by a choice that it had no part in.
        fold_wss: the held-out WSS of each fold.
        by_fold: what each fold chose.
        chosen: on all videos; this is what is written for use.
        in_sample: `chosen` on the videos that it was chosen on: not to be quoted.
    """

    limits: Limits
    held_out: Figures
    fold_wss: tuple[float, ...]
    by_fold: tuple[Picked, ...]
    chosen: Picked
    in_sample: Figures


@dataclass(frozen=True, slots=True)
class Tuning:
    """All that tuning found.

    Attributes:
        by: the time of a warning that is scored.
        curve: by rising limit on premature warnings.
        asked: the point of the limit that was asked for; it is on the curve.
        fit: temperature and bias on all videos.
        fold_fits: on each fold's training videos.
        untuned: the model's own word and the preset, on all videos; chosen on none.
        clock: the best fixed time, chosen in hindsight.
        reviews: what became of them under the choice for use, summed over the videos.
        failed: videos that the choice for use could not be run on, and why.
    """

    by: str
    curve: tuple[Point, ...]
    asked: Point
    fit: Fit
    fold_fits: tuple[Fit, ...]
    untuned: Figures
    clock: Baseline | None
    reviews: Reviews
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Method:
    """How to tune.

    Attributes:
        bench: how candidates are run.
        limits: what to keep.
        by: "trigger", "issued" or "stopped": the time of a warning that is scored.
        folds: how many; None: as `make_folds` has it.
        with_bias: fit a bias per label too.
        workers: processes.
    """

    bench: Bench
    limits: Limits
    by: str = "issued"
    folds: int | None = None
    with_bias: bool = False
    workers: int = 1


def tune(recording: Recording, method: Method, done: Callable[[str], None]) -> Tuning:
    """Tune on the recording; `done` hears the name of each video that is finished.

    Raises:
        DatasetError: too few videos to hold some out.
    """
    cases = recording.cases
    scored = [c.video for c in cases if c.keyframes is not None]
    safe = [c.video for c in cases if c.keyframes is None]
    folds = make_folds(scored, safe, method.folds)
    frames = {case.video: labelled(case) for case in cases}
    fold_fits = tuple(fit((frames[v] for v in f.train), with_bias=method.with_bias) for f in folds)
    whole = fit(frames.values(), with_bias=method.with_bias)
    candidates = method.bench.candidates(reviewed=bool(recording.slow))
    bends = dict.fromkeys(map(bend_of, [whole, *fold_fits]))
    choices = [Choice(bend, candidate) for bend in bends for candidate in candidates]
    choices = list(dict.fromkeys([method.bench.untuned, *choices]))
    cells = run_all(cases, choices, method.bench, done, method.workers)
    table = Table(cases, choices, cells, method.by)
    ladder = sorted({*LADDER, method.limits.premature})
    curve = tuple(
        cross_validate(table, folds, fold_fits, whole, Limits(p, method.limits.false_stops))
        for p in ladder
    )
    asked = curve[ladder.index(method.limits.premature)]
    used = table.cells_of(asked.chosen.choice)
    return Tuning(
        by=method.by,
        curve=curve,
        asked=asked,
        fit=whole,
        fold_fits=fold_fits,
        untuned=_figures(table.cells_of(choices[0]), method.by),
        clock=_clock(cases),
        reviews=_sum_of(used),
        failed={case.video: cell.failed for case, cell in used if cell.failed},
    )


class Table:
    """What every choice did to every video: rows are choices, columns videos.

    Args:
        cases: the videos.
        choices: what was tried; the first is to change nothing, and may always be chosen.
        cells: of each video, in the order of the choices.
        by: the time of a warning that is scored.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        choices: Sequence[Choice],
        cells: Mapping[str, Sequence[Cell]],
        by: str,
    ) -> None:
        self.by = by
        self._cases = cases
        self._cells = cells
        self._rows = {choice: row for row, choice in enumerate(choices)}
        self._choices = choices
        columns = [_column(c, cells[c.video], by) for c in cases]
        array = np.array(columns, np.float64).reshape(len(cases), len(choices), 4)
        self._score, self._premature, self._stopped, self._watched = array.transpose(2, 1, 0)

    def cells_of(self, choice: Choice, videos: Sequence[str] = ()) -> list[tuple[Case, Cell]]:
        """What the choice did, on these videos or on all."""
        row, names = self._rows[choice], set(videos)
        return [
            (case, self._cells[case.video][row])
            for case in self._cases
            if not videos or case.video in names
        ]

    def pick(self, fitted: Fit, videos: Sequence[str], limits: Limits) -> Picked:
        """The best choice of this fit on these videos.

        Of those that keep the limits it has the highest WSS; of equals the fewest premature
        warnings, then the fewest false stops, then it is the one most like the untuned. If none
        keeps the limits it is the one that breaks them least, premature warnings first.
        """
        bend, names = bend_of(fitted), set(videos)
        rows = np.flatnonzero([n == 0 or c.bend == bend for n, c in enumerate(self._choices)])
        mine = np.array([case.video in names for case in self._cases])
        is_safe = np.array([case.keyframes is None for case in self._cases])
        at = np.ix_(rows, np.flatnonzero(mine & ~is_safe))
        calm = np.ix_(rows, np.flatnonzero(mine & is_safe))
        wss = self._score[at].mean(axis=1)
        premature = 100.0 * self._premature[at].mean(axis=1)
        stops = _per_hour(self._stopped[calm].sum(axis=1), self._watched[calm].sum(axis=1))
        most = np.inf if limits.false_stops is None else limits.false_stops
        kept = (premature <= limits.premature) & (stops <= most)
        # The last key sorts first; of equal rows the earlier one stays first.
        order = (
            np.lexsort((stops, premature, -wss, ~kept))
            if kept.any()
            else np.lexsort((-wss, stops, premature))
        )
        best = int(order[0])
        return Picked(self._choices[rows[best]], bool(kept[best]))


def _column(case: Case, cells: Sequence[Cell], by: str) -> list[tuple[float, float, float, float]]:
    """Of each cell: score, is premature, is a false stop, seconds watched."""
    k = case.keyframes
    found = []
    for cell in cells:
        at = warning_time(cell.warning, by)
        if k is None:
            found.append((0.0, 0.0, float(at is not None), cell.watched))
        else:
            early = float(phase_of(at, k) is Phase.PREMATURE)
            found.append((score_of(at, k), early, 0.0, 0.0))
    return found


def _per_hour(counts: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rates; 0 where nothing was watched, as nothing is known against it."""
    hours = seconds / 3600
    return np.divide(counts, hours, out=np.zeros_like(counts), where=hours > 0)


def cross_validate(
    table: Table, folds: Sequence[Fold], fits: Sequence[Fit], whole: Fit, limits: Limits
) -> Point:
    """Choose in each fold, score what it holds out, and choose on all videos for use.

    Args:
        table: of everything that was tried.
        folds: which videos are held out together.
        fits: on each fold's training videos.
        whole: the fit on all videos.
        limits: on what is chosen.
    """
    picked = [table.pick(f, fold.train, limits) for f, fold in zip(fits, folds, strict=True)]
    held = [table.cells_of(p.choice, fold.held_out) for p, fold in zip(picked, folds, strict=True)]
    everything = [case.video for case, _ in table.cells_of(picked[0].choice)]
    chosen = table.pick(whole, everything, limits)
    return Point(
        limits=limits,
        held_out=_figures([pair for pairs in held for pair in pairs], table.by),
        fold_wss=tuple(_figures(pairs, table.by).scores.wss for pairs in held),
        by_fold=tuple(picked),
        chosen=chosen,
        in_sample=_figures(table.cells_of(chosen.choice), table.by),
    )


def _figures(pairs: Sequence[tuple[Case, Cell]], by: str) -> Figures:
    calm = [cell for case, cell in pairs if case.keyframes is None]
    return Figures(
        summarise(
            (warning_time(cell.warning, by), case.keyframes)
            for case, cell in pairs
            if case.keyframes is not None
        ),
        rate_per_hour(sum(c.warning is not None for c in calm), sum(c.watched for c in calm)),
        sum(cell.fault_halts for _, cell in pairs),
    )


def _clock(cases: Sequence[Case]) -> Baseline | None:
    keyframes = [case.keyframes for case in cases if case.keyframes is not None]
    t = best_time(keyframes)
    return None if t is None else Baseline(f"best t: {t:g} s", t, fixed_time(t, keyframes))


def _sum_of(pairs: Sequence[tuple[Case, Cell]]) -> Reviews:
    every = [cell.reviews for _, cell in pairs]
    return Reviews(
        sum(r.asked for r in every),
        sum(r.answered for r in every),
        sum(r.borrowed for r in every),
        sum(r.failed for r in every),
        sum(r.unrecorded for r in every),
    )
