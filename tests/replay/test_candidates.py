"""The table of what every choice does to every video."""

from multiprocessing import resource_tracker

import pytest

from hdguard.brains.rejudging import rejudge
from hdguard.brains.trace_format import SlowRow
from hdguard.core.policy import PAPER, SIDECAR
from hdguard.replay import candidates
from hdguard.replay.candidates import (
    STRAIGHT,
    UNRECORDED,
    Bench,
    Candidate,
    Choice,
    run_all,
    run_choices,
)
from hdguard.replay.simulate import Case, simulate
from tests.replay.recorded import cases

REVIEWS = [SlowRow(t=0.0, verdict="safe", latency=1.5), SlowRow(t=2.5, verdict="danger")]
BENCH = Bench(SIDECAR, thresholds=(0.2, 0.5, 0.9))


@pytest.fixture(autouse=True, scope="module")
def _tracker() -> None:
    """Python's own helper of `spawn` outlives every pool; it is not a child left behind."""
    resource_tracker.ensure_running()


def everything() -> list[Choice]:
    found = BENCH.candidates(reviewed=True)
    return [Choice(bend, c) for bend in (STRAIGHT, (2.0, (0.0, 0.0, 0.0))) for c in found]


def test_the_untuned_candidate_is_tried_and_comes_first() -> None:
    for bench in (Bench(SIDECAR), Bench(PAPER)):
        found = bench.candidates(reviewed=True)
        assert found[0] == bench.untuned.candidate
        assert len(set(found)) == len(found)
    assert Bench(SIDECAR).untuned.candidate == Candidate(0.5, 0.5, "halt", 1.0)


def test_settings_of_reviews_are_tried_only_where_there_are_reviews_to_set() -> None:
    bench = Bench(SIDECAR)
    assert len(bench.candidates(reviewed=True)) == 81 * 2 * 3
    assert len(bench.candidates(reviewed=False)) == 81
    assert {c.review_overdue for c in Bench(PAPER).candidates(reviewed=True)} == {"ignore"}


def test_a_candidate_becomes_calibration_and_policy() -> None:
    choice = Choice((2.0, (0.0, 0.5, 1.0)), Candidate(0.2, 0.9, "caution", 10.0))
    c, p = choice.calibration(), choice.candidate.policy(BENCH.base)
    assert (c.temperature, c.bias, c.yellow, c.red) == (2.0, (0.0, 0.5, 1.0), 0.2, 0.9)
    assert (p.review_overdue, p.review_deadline, p.brains) == ("caution", 10.0, BENCH.base.brains)


def test_what_is_run_once_for_many_is_what_each_would_have_done_alone() -> None:
    for case in cases(1, 1, slow=REVIEWS, apart=1.5, seed=3):
        choices = everything()
        together = run_choices(case, choices, BENCH)
        for choice, cell in list(zip(choices, together, strict=True))[
            :: 7 if case.keyframes else 5
        ]:
            fast = rejudge(case.fast, choice.calibration())
            alone = simulate(case, fast, choice.candidate.policy(BENCH.base))
            assert cell.warning == alone.outcome.warning
            assert cell.watched == alone.outcome.watched
            assert cell.reviews == alone.reviews


def test_thresholds_between_which_no_frame_lies_are_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = []

    def counted(case: Case, *rest: object) -> object:
        runs.append(rest)
        return simulate(case, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(candidates, "simulate", counted)
    sure = cases(1, apart=8.0)[0]  # every p is 0 or 1
    run_choices(
        sure, [Choice(STRAIGHT, c) for c in Bench(SIDECAR).candidates(reviewed=False)], BENCH
    )
    assert len(runs) == 1


def test_a_video_on_which_no_brain_says_a_word_has_failed_and_warned_of_nothing() -> None:
    late = Bench(SIDECAR, deadline=0.01)
    [cell] = run_choices(cases(0, 1, apart=8.0)[0], [late.untuned], late)
    assert cell.failed == "no brain gave a verdict: recorded: late"
    assert (cell.warning, cell.watched) == (None, 0.0)


def test_a_choice_that_waits_for_a_review_that_was_broken_off_is_not_judged() -> None:
    broken_off = [SlowRow(t=0.0, error="cancelled", latency=0.1)]
    case = cases(1, slow=broken_off, apart=8.0)[0]
    [cell] = run_choices(case, [BENCH.untuned], BENCH)
    assert cell.reviews.unrecorded == 1
    assert cell.failed == UNRECORDED
    assert (cell.warning, cell.watched) == (None, 0.0)


def test_two_processes_find_what_one_finds() -> None:
    made, choices = cases(3, 1, slow=REVIEWS), everything()[:6]
    heard: list[str] = []
    one = run_all(made, choices, BENCH, heard.append)
    assert heard == [c.video for c in made]
    two = run_all(made, choices, BENCH, heard.append, workers=2)
    assert one == two
    assert sorted(heard[4:]) == sorted(heard[:4])


def test_an_interrupt_ends_the_processes() -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(cases(3), [BENCH.untuned], BENCH, interrupt, workers=2)


def test_the_rate_of_an_adaptive_brain_follows_the_light() -> None:
    case = cases(0, 1, apart=8.0)[0]
    seen = {}
    for adaptive in (True, False):
        bench = Bench(SIDECAR, adaptive=adaptive)
        fast = rejudge(case.fast, bench.untuned.calibration())
        seen[adaptive] = simulate(case, fast, bench.base).outcome.verdicts
    assert seen == {True: {"green": 5}, False: {"green": 24}}
