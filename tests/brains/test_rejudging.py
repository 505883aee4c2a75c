"""A trace judged again under another calibration."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.calibration import UNCALIBRATED, Calibration, write_calibration
from hdguard.brains.rejudging import rejudge, rejudged
from hdguard.brains.trace import TraceFastBrain, TraceFastSettings
from hdguard.brains.trace_format import BrainTrace, FastRow
from hdguard.core.events import FastVerdict
from hdguard.core.types import FrameRef, Light

HALF_RED = (math.log(0.3), math.log(0.1), math.log(0.5))
MUMBLED = (math.log(0.1), math.log(0.1), math.log(0.1))


def row(**fields: object) -> FastRow:
    return FastRow(t=1.0, latency=0.3, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("yellow", "red", "light"), [(0.5, 0.5, "red"), (0.5, 0.9, "yellow"), (0.9, 0.9, "green")]
)
def test_the_light_follows_the_thresholds(yellow: float, red: float, light: str) -> None:
    found = rejudged(row(light="red", scores=HALF_RED), Calibration(yellow=yellow, red=red))
    assert found == row(light=light, scores=HALF_RED)


def test_scores_that_mean_no_light_are_a_failure_and_never_green() -> None:
    found = rejudged(row(light="green", scores=MUMBLED), UNCALIBRATED)
    assert found.light is None
    assert found.error == "the labels have 0.300 of the probability, less than 0.5"
    again = rejudged(found, Calibration(least_mass=0.2, yellow=0.9, red=0.9))
    assert (again.light, again.error) == ("green", None)


@pytest.mark.parametrize("fields", [{"error": "late"}, {"blind": "dark"}])
def test_what_no_calibration_can_judge_stays_what_it_is(fields: dict[str, str]) -> None:
    assert rejudged(row(**fields), Calibration(least_mass=0.0)) == row(**fields)


def test_a_light_without_scores_is_refused_and_not_kept() -> None:
    brain = BrainTrace(0.1, {"v.mp4": [row(light="green")]}, "mark")
    with pytest.raises(BrainError, match=r"t\.json: recorded by a brain that gives no scores"):
        rejudge(brain, UNCALIBRATED, "t.json")


def test_latency_and_fingerprint_stay() -> None:
    brain = BrainTrace(0.1, {"v.mp4": [row(light="red", scores=HALF_RED)]}, "mark")
    found = rejudge(brain, Calibration(red=0.9))
    assert (found.latency, found.fingerprint) == (0.1, "mark")
    assert found.videos["v.mp4"][0].latency == 0.3


def test_a_run_is_repeated_under_a_calibration_of_its_own_model_only(tmp_path: Path) -> None:
    rows = [{"t": 0.0, "light": "red", "scores": HALF_RED}]
    part = {"videos": {"v.mp4": rows}, "fingerprint": "mine"}
    trace, calibration = tmp_path / "t.json", tmp_path / "c.json"
    trace.write_text(json.dumps({"format": "hdguard-trace/1", "fast": {"trace": part}}))
    settings = TraceFastSettings(str(trace), calibration=str(calibration))
    shot = Shot(FrameRef("v.mp4", 0, 0.0, 0.0), np.zeros((1, 1, 3), np.uint8))

    write_calibration(calibration, Calibration(fingerprint="mine", red=0.9))
    brain = TraceFastBrain(settings)
    assert brain.fingerprint == "mine"
    verdict = brain.assess(shot)
    assert isinstance(verdict, FastVerdict)
    assert verdict.light is Light.YELLOW
    assert TraceFastBrain(TraceFastSettings(str(trace))).assess(shot) != verdict

    write_calibration(calibration, Calibration(fingerprint="another"))
    with pytest.raises(BrainError, match="was fitted for another, this is mine"):
        TraceFastBrain(settings)
