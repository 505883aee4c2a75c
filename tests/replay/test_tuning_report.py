"""What a tuning says to people: what may be quoted, what may not, and what to be wary of."""

import io
from dataclasses import replace

import msgspec
import pytest

from hdguard.brains.calibration import Calibration, decide
from hdguard.brains.trace_format import SlowRow
from hdguard.core.policy import SIDECAR
from hdguard.core.types import Light, Scores
from hdguard.replay.candidates import UNRECORDED, Bench
from hdguard.replay.cases import Recording
from hdguard.replay.report import make_console
from hdguard.replay.tuning import Limits, Method, Tuning, tune
from hdguard.replay.tuning_report import (
    RECORD_WITH,
    fitted_on,
    policy_lines,
    print_tuning,
    warnings,
)
from tests.replay.recorded import cases, log_softmax, recording


@pytest.fixture(scope="module")
def tuned() -> tuple[Recording, Tuning]:
    made = recording(cases(10, 2, apart=3.0, slow=[SlowRow(t=1.0, verdict="danger")]))
    bench = Bench(SIDECAR, thresholds=(0.5,))
    return made, tune(made, Method(bench, Limits(20.0, 0.0)), lambda _: None)


def printed(made: Recording, found: Tuning) -> str:
    out = io.StringIO()
    print_tuning(make_console(out), made, found)
    return out.getvalue()


def test_the_held_out_score_is_the_one_to_quote(tuned: tuple[Recording, Tuning]) -> None:
    made, found = tuned
    text = printed(made, found)
    point = found.asked
    quoted = f"to quote: held-out WSS {point.held_out.scores.wss:.2f}, n = 10, 5 folds"
    assert quoted in text
    assert f"in-sample, do not quote: WSS {point.in_sample.scores.wss:.2f}" in text
    assert "10 annotated and 2 safe videos, recorded with vlm, reviews of thinker" in text
    assert "0 read from the videos, 12 supposed at 10 FPS" in text
    assert f"{found.reviews.asked} asked, {found.reviews.answered} answered by the trace" in text


def test_the_curve_has_a_row_per_limit_and_stands_beside_untuned_and_clock(
    tuned: tuple[Recording, Tuning],
) -> None:
    lines = printed(*tuned).splitlines()
    limits = [row[0] for row in rows_below(lines, " limit  ")]
    assert limits == ["0", "5", "10", "20", "40", "100"]
    assert [line.split()[0] for line in lines if line.startswith((" untuned", " best"))] == [
        "untuned",
        "best",
    ]
    assert not any("…" in line for line in lines)
    assert max(len(line) for line in lines if not line.startswith("note")) <= 100


def rows_below(lines: list[str], header: str) -> list[list[str]]:
    """The rows of the first table below such a header."""
    start = next(n for n, line in enumerate(lines) if line.startswith(header))
    table: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.strip():
            return table
        table.append(line.split())
    return table


def test_a_good_recording_gives_no_notes_about_itself(tuned: tuple[Recording, Tuning]) -> None:
    made, found = tuned
    notes = " ".join(warnings(made, found))
    assert "fingerprint" not in notes
    assert "adaptive" not in notes
    assert "safe material" not in notes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fingerprint": ""}, "do not say which model"),
        ({"sparse": 3}, "3 videos were recorded with over 0.5 s between frames"),
        ({"left_out": ("a.mp4: recorded until 1.0 s of 4.0 s: halted",)}, "that never halts"),
    ],
)
def test_a_poor_recording_is_said_to_be_one(
    tuned: tuple[Recording, Tuning], changes: dict[str, object], words: str
) -> None:
    made, found = tuned
    poor = replace(made, **changes)  # type: ignore[arg-type]
    assert any(words in line for line in warnings(poor, found))
    assert words in printed(poor, found)


def test_no_safe_material_is_said_and_is_no_zero(tuned: tuple[Recording, Tuning]) -> None:
    made = recording(cases(10, apart=3.0))
    bench = Bench(SIDECAR, thresholds=(0.5,))
    text = printed(made, tune(made, Method(bench, Limits(20.0)), lambda _: None))
    assert "no safe material" in text
    assert "no reviews" in text


def test_a_choice_that_breaks_its_limits_or_loses_to_a_clock_says_so(
    tuned: tuple[Recording, Tuning],
) -> None:
    made, found = tuned
    broken = replace(
        found, asked=replace(found.asked, chosen=replace(found.asked.chosen, kept=False))
    )
    assert any("nothing that was tried keeps the limits" in x for x in warnings(made, broken))
    worse = replace(found, asked=replace(found.asked, held_out=found.untuned))
    assert "held out, tuning is no better than the untuned brain" in warnings(made, worse)
    stuck = replace(found, fit=replace(found.fit, temperature=20.0))
    assert any("the temperature stopped at its limit" in x for x in warnings(made, stuck))


def test_answers_that_came_too_late_point_to_the_deadline(
    tuned: tuple[Recording, Tuning],
) -> None:
    made, found = tuned
    late = replace(found, failed={"a.mp4": "no brain gave a verdict: recorded: late"})
    assert "a.mp4 could not be run" in printed(made, late)
    assert "give --deadline as it was when recorded" in printed(made, late)


def test_a_video_whose_review_was_broken_off_is_named_and_how_to_record_it_is_said(
    tuned: tuple[Recording, Tuning],
) -> None:
    made, found = tuned
    reviews = replace(found.reviews, unrecorded=2)
    text = printed(made, replace(found, failed={"a.mp4": UNRECORDED}, reviews=reviews))
    assert f"a.mp4 is not judged, counted as missed: {UNRECORDED}" in text
    assert "record with a longer --drain" in text
    assert "2 broken off when recorded" in text


def test_the_policy_can_be_copied_into_a_configuration(tuned: tuple[Recording, Tuning]) -> None:
    _, found = tuned
    lines = policy_lines(SIDECAR, found.asked.chosen)
    assert lines.startswith('[policy]\npreset = "sidecar"\nreview_overdue = "')


def test_the_calibration_says_what_it_was_fitted_on(tuned: tuple[Recording, Tuning]) -> None:
    assert fitted_on(*tuned).startswith("10 annotated videos and 2 safe ones of vlm; held-out WSS")


@pytest.mark.parametrize("certain", [(-1e-9, -40.0, -40.0), (-40.0, -40.0, -1e-9)])
def test_the_calibration_to_record_with_never_halts(certain: tuple[float, float, float]) -> None:
    calibration = msgspec.json.decode(RECORD_WITH, type=Calibration)
    assert decide(Scores(*certain), calibration) is Light.GREEN
    assert decide(Scores(*log_softmax((-300.0, -300.0, 0.0))), calibration) is Light.GREEN
