"""From log-probabilities to a light: what is unsure, unsaid or no number is never GREEN."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdguard.brains.base import BrainError
from hdguard.brains.calibration import (
    UNCALIBRATED,
    Calibration,
    decide,
    read_calibration,
    shares,
    write_calibration,
)
from hdguard.core.types import Light, Scores


def scores(green: float, yellow: float, red: float) -> Scores:
    """From probabilities."""
    return Scores(math.log(green), math.log(yellow), math.log(red))


def test_uncalibrated_the_likelier_side_wins() -> None:
    assert decide(scores(0.8, 0.1, 0.05), UNCALIBRATED) is Light.GREEN
    assert decide(scores(0.45, 0.3, 0.2), UNCALIBRATED) is Light.YELLOW
    assert decide(scores(0.2, 0.2, 0.5), UNCALIBRATED) is Light.RED


def test_green_needs_more_than_half_even_if_it_is_the_likeliest_word() -> None:
    assert decide(scores(0.4, 0.3, 0.3), UNCALIBRATED) is Light.YELLOW
    assert decide(scores(0.5, 0.25, 0.25), UNCALIBRATED) is Light.YELLOW


def test_a_model_that_says_something_else_has_said_no_light() -> None:
    # "p(red) = 0.39" of a random model is noise: all three words together have 1.5 %.
    assert decide(scores(0.004, 0.005, 0.006), UNCALIBRATED) is None
    assert decide(scores(0.49, 0.005, 0.0049), UNCALIBRATED) is None


def test_least_mass_is_a_setting_of_the_calibration() -> None:
    light = decide(scores(0.001, 0.0001, 0.01), Calibration(least_mass=0.0))
    assert light is Light.RED


def test_thresholds_lower_than_half_warn_earlier() -> None:
    wary = Calibration(yellow=0.2, red=0.1)
    assert decide(scores(0.85, 0.1, 0.05), wary) is Light.GREEN
    assert decide(scores(0.75, 0.2, 0.05), wary) is Light.YELLOW
    assert decide(scores(0.85, 0.03, 0.12), wary) is Light.RED


def test_temperature_softens_and_bias_shifts() -> None:
    sure = scores(0.9, 0.05, 0.05)
    soft = shares(sure, Calibration(temperature=100.0))
    assert soft is not None
    assert soft.green == pytest.approx(1 / 3, abs=0.02)
    shifted = shares(sure, Calibration(bias=(0.0, 0.0, math.log(18.0))))
    assert shifted is not None
    assert shifted.red == pytest.approx(0.9 / 1.85)


def test_mass_is_what_the_model_said_not_what_temperature_makes_of_it() -> None:
    assert decide(scores(0.1, 0.1, 0.1), Calibration(temperature=0.01)) is None


probabilities = st.floats(min_value=-700.0, max_value=0.0)


@given(
    probabilities,
    probabilities,
    probabilities,
    st.floats(min_value=1e-300, max_value=100.0),
    st.floats(min_value=0.01, max_value=0.5),
)
def test_green_is_said_only_by_a_share_above_one_minus_the_yellow_threshold(
    green: float, yellow: float, red: float, temperature: float, limit: float
) -> None:
    found = Scores(green, yellow, red)
    calibration = Calibration(temperature=temperature, yellow=limit, least_mass=0.5)
    light = decide(found, calibration)
    if light is Light.GREEN:
        share = shares(found, calibration)
        assert share is not None
        assert share.yellow + share.red < limit
        assert found.mass >= 0.5


def test_scores_that_overflow_to_no_number_are_no_light() -> None:
    # All three impossible at a temperature next to nothing: there is no likeliest one.
    assert shares(Scores(-700.0, -700.0, -700.0), Calibration(temperature=1e-307)) is None
    assert decide(Scores(-700.0, -700.0, -700.0), Calibration(temperature=1e-307)) is None


def test_a_bias_that_is_no_number_makes_no_light() -> None:
    assert decide(scores(0.9, 0.05, 0.05), Calibration(bias=(math.nan, 0.0, 0.0))) is None
    assert decide(scores(0.9, 0.05, 0.05), Calibration(bias=(math.inf, 0.0, 0.0))) is None


def test_a_calibration_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    fitted = Calibration(
        fingerprint="0123456789abcdef", temperature=1.7, bias=(0.0, 0.1, -0.2), red=0.3
    )
    write_calibration(path, fitted)
    assert read_calibration(str(path), "0123456789abcdef") == fitted


def test_a_calibration_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    write_calibration(path, Calibration(fingerprint="0123456789abcdef"))
    with pytest.raises(BrainError, match=r"fitted for 0123456789abcdef, this is fedc.*tune"):
        read_calibration(str(path), "fedcba9876543210")


def test_a_calibration_without_a_fingerprint_holds_for_any_model(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    write_calibration(path, Calibration(least_mass=0.0))
    assert read_calibration(str(path), "fedcba9876543210").least_mass == 0.0


@pytest.mark.parametrize(
    ("defect", "names"),
    [
        ({"temperature": 0}, "temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"yellow": 1.2}, "yellow"),
        ({"red": -0.1}, "red"),
        ({"least_mass": 2}, "least_mass"),
        ({"bias": [0, 0]}, "bias"),
        ({"treshold": 0.5}, "treshold"),
        ({"format": "hdguard-calibration/2"}, "format"),
    ],
)
def test_a_defect_is_named(tmp_path: Path, defect: dict[str, object], names: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({"format": "hdguard-calibration/1", **defect}))
    with pytest.raises(BrainError, match=names) as caught:
        read_calibration(str(path), "")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"bias": [1e999, 0, 0]}', '{"red": NaN}'])
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(BrainError, match=r"calibration\.json"):
        read_calibration(str(path), "")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrainError, match=r"none\.json: cannot be read"):
        read_calibration(str(tmp_path / "none.json"), "")
