"""What tuning chooses from, as data, and what each choice would have done to each video.

The table is computed once, by really running the guard; everything after it is indexing. Many
thresholds give a video the same lights, and then it is run once for all of them.
"""

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial

from hdguard.brains.calibration import UNCALIBRATED, Calibration
from hdguard.brains.rejudging import rejudge
from hdguard.brains.trace_format import BrainTrace, FastRow
from hdguard.core.policy import BrainPlan, Overdue, Policy
from hdguard.replay.results import Warned
from hdguard.replay.simulate import FAST, STOP_TIME, Case, Reviews, Simulated, simulate
from hdguard.replay.temperature import Fit

THRESHOLDS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Tried for YELLOW and for RED; closer together near 0 and 1, where a step is more on the odds."""
OVERDUE: tuple[Overdue, ...] = ("halt", "caution")
REVIEW_DEADLINES = (1.0, 2.0, 10.0)
"""Seconds: those of an embedded, a served and a large SlowBrain (DESIGN, "Reviews")."""

UNRECORDED = "it waits for a review that was broken off when it was recorded"
"""Why a choice is not judged on a video: nobody knows what that review would have said."""

Bend = tuple[float, tuple[float, float, float]]
"""Temperature and bias."""

STRAIGHT: Bend = (UNCALIBRATED.temperature, UNCALIBRATED.bias)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Thresholds and policy settings that are tried together; as in `Calibration` and `Policy`."""

    yellow: float
    red: float
    review_overdue: Overdue
    review_deadline: float

    def policy(self, base: Policy) -> Policy:
        """The policy with these settings."""
        return replace(
            base, review_overdue=self.review_overdue, review_deadline=self.review_deadline
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """All that is tuned."""

    bend: Bend
    candidate: Candidate

    def calibration(self) -> Calibration:
        """Its half that goes into the calibration file."""
        return _calibration(self.bend, self.candidate.yellow, self.candidate.red)


@dataclass(frozen=True, slots=True)
class Cell:
    """What a choice did to a video.

    Attributes:
        warning: the first danger halt, None if there was none.
        watched: as in `VideoResult`; 0 for a video that failed.
        fault_halts: how many.
        reviews: what became of them.
        failed: why it could not be run, or how it went is not known; empty if it was. Then there is
            no warning, and nothing was watched.
    """

    warning: Warned | None
    watched: float
    fault_halts: int
    reviews: Reviews
    failed: str


@dataclass(frozen=True, slots=True)
class Bench:
    """How the candidates are run.

    Attributes:
        policy: the preset that candidates change.
        adaptive: the brain is shown 1 frame a second in GREEN, else always 5.
        deadline: seconds for one answer of the FastBrain; None: the policy's.
        stop_time: seconds from issued to stopped.
        thresholds: tried for YELLOW and for RED.
    """

    policy: Policy
    adaptive: bool = True
    deadline: float | None = None
    stop_time: float = STOP_TIME
    thresholds: tuple[float, ...] = THRESHOLDS

    @property
    def base(self) -> Policy:
        """The policy with its one brain."""
        plan = BrainPlan(FAST, adaptive=self.adaptive, deadline=self.deadline)
        return replace(self.policy, brains=(plan,))

    @property
    def untuned(self) -> Choice:
        """What there is without tuning: the model's own word and the preset."""
        p = self.policy
        plain = Candidate(
            UNCALIBRATED.yellow, UNCALIBRATED.red, p.review_overdue, p.review_deadline
        )
        return Choice(STRAIGHT, plain)

    def candidates(self, *, reviewed: bool) -> list[Candidate]:
        """All of them, those most like the untuned one first.

        Args:
            reviewed: there is a SlowBrain; else nothing of reviews matters and nothing is tried.
        """
        plain = self.untuned.candidate
        # A preset that ignores what is overdue is the paper's, to be repeated as it is.
        free = reviewed and plain.review_overdue in OVERDUE
        overdue = OVERDUE if free else (plain.review_overdue,)
        deadlines = {plain.review_deadline, *(REVIEW_DEADLINES if free else ())}
        every = itertools.product(self.thresholds, self.thresholds, overdue, deadlines)
        return sorted(itertools.starmap(Candidate, every), key=partial(_distance, plain))


def _distance(plain: Candidate, other: Candidate) -> tuple[float, ...]:
    thresholds = abs(other.red - plain.red) + abs(other.yellow - plain.yellow)
    deadline = abs(other.review_deadline - plain.review_deadline)
    changed = other.review_overdue != plain.review_overdue
    # The rest only makes the order a total one.
    return (round(thresholds, 6), changed, deadline, -other.red, -other.yellow)


def bend_of(fit: Fit) -> Bend:
    """Temperature and bias that were fitted."""
    return (fit.temperature, fit.bias)


def _calibration(bend: Bend, yellow: float, red: float) -> Calibration:
    return Calibration(temperature=bend[0], bias=bend[1], yellow=yellow, red=red)


def run_choices(case: Case, choices: Sequence[Choice], bench: Bench) -> list[Cell]:
    """Run every choice on one video; cells in the order of the choices."""
    rows: dict[Calibration, tuple[BrainTrace[FastRow], tuple[str | None, ...]]] = {}
    done: dict[tuple[object, ...], Cell] = {}
    cells = []
    for choice in choices:
        calibration = choice.calibration()
        if calibration not in rows:
            fast = rejudge(case.fast, calibration)
            lights = tuple(row.light for each in fast.videos.values() for row in each)
            rows[calibration] = (fast, lights)
        fast, lights = rows[calibration]
        policy = choice.candidate.policy(bench.base)
        settings = (lights, policy.review_overdue, policy.review_deadline)
        cell = done.get(settings) or done.get((lights,))
        if cell is None:
            cell = done[settings] = _cell(simulate(case, fast, policy, bench.stop_time))
            if cell.reviews.asked == 0:  # how reviews are handled has then changed nothing
                done[lights,] = cell
        cells.append(cell)
    return cells


def _cell(simulated: Simulated) -> Cell:
    seen = simulated.outcome
    failed = seen.failed or ""
    if not failed and simulated.reviews.unrecorded:
        failed = UNRECORDED
    return Cell(
        None if failed else seen.warning,
        0.0 if failed else seen.watched,
        len(seen.fault_halts),
        simulated.reviews,
        failed,
    )


def run_all(
    cases: Sequence[Case],
    choices: Sequence[Choice],
    bench: Bench,
    done: Callable[[str], None],
    workers: int = 1,
) -> dict[str, list[Cell]]:
    """Run every choice on every video: cells in the order of the choices, by the video.

    Args:
        cases: which videos.
        choices: what to try on each.
        bench: how.
        done: hears the name of each video that is finished.
        workers: processes.
    """
    work = partial(run_choices, choices=choices, bench=bench)
    finished: dict[str, list[Cell]] = {}

    def take(case: Case, cells: list[Cell]) -> None:
        finished[case.video] = cells
        done(case.video)

    if workers == 1:
        for case in cases:
            take(case, work(case))
    else:
        _in_pool(cases, work, take, workers)
    return finished


def _in_pool(
    cases: Iterable[Case],
    work: Callable[[Case], list[Cell]],
    take: Callable[[Case, list[Cell]], None],
    workers: int,
) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running = {pool.submit(work, case): case for case in cases}
        try:
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    take(running.pop(future), future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)  # waits only for the videos in hand
            raise
