"""From a model's label probabilities to a light: temperature, bias and thresholds from a file.

A model's probabilities are no probabilities of danger until they are calibrated on frames whose
truth is known, and a calibration holds for one model, precision, processor, prompt and label set
only: the fingerprint in the file says which (`hdguard tune` writes it).
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from hdguard.brains.base import BrainError
from hdguard.core.types import Light, Scores

FORMAT: Final = "hdguard-calibration/1"

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How scores become a light.

    Attributes:
        format: of the file.
        fingerprint: of the model that it was fitted for; empty: any (not fitted for one).
        temperature: divides the log-probabilities; above 1 it makes the model less sure.
        bias: added to them after that; GREEN, YELLOW, RED.
        yellow: p(YELLOW) + p(RED) from which the light is at least YELLOW.
        red: p(RED) from which it is RED.
        least_mass: p(any label at all) below which the model has said nothing: no light.
        fitted_on: for people: on what.
    """

    format: Literal["hdguard-calibration/1"] = FORMAT
    fingerprint: str = ""
    temperature: Annotated[float, msgspec.Meta(gt=0.0, le=100.0)] = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    yellow: Share = 0.5
    red: Share = 0.5
    least_mass: Share = 0.5
    fitted_on: str = ""


UNCALIBRATED = Calibration()
"""As the model says it: RED if that is likelier than not, GREEN only if that is."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Probabilities of the three lights; they add up to 1."""

    green: float
    yellow: float
    red: float


def shares(scores: Scores, calibration: Calibration) -> Shares | None:
    """Calibrated probabilities over the three labels; None if the scores are no numbers."""
    raw = (scores.green, scores.yellow, scores.red)
    bent = [x / calibration.temperature + b for x, b in zip(raw, calibration.bias, strict=True)]
    top = max(bent)
    # A small temperature may make one or two of them -inf, impossible; NaN and +inf are defects.
    if any(math.isnan(x) for x in bent) or not math.isfinite(top):
        return None
    weights = [math.exp(x - top) for x in bent]
    total = sum(weights)
    return Shares(*(w / total for w in weights))


def decide(scores: Scores, calibration: Calibration) -> Light | None:
    """The light, or None: the model said none of the labels, or no number at all."""
    found = shares(scores, calibration)
    if found is None or not scores.mass >= calibration.least_mass:
        return None
    if found.red >= calibration.red:
        return Light.RED
    if found.yellow + found.red >= calibration.yellow:
        return Light.YELLOW
    return Light.GREEN


def read_calibration(path: str, fingerprint: str) -> Calibration:
    """Read a calibration file, for the model of that fingerprint.

    Raises:
        BrainError: names the file and the field, or says that it was fitted for another model.
    """
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=Calibration)
    except OSError as error:
        raise BrainError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise BrainError(f"{path}: is no calibration: {error}") from error
    if not all(math.isfinite(b) for b in found.bias):
        raise BrainError(f"{path}: bias: must be finite numbers, not {found.bias}")
    if found.fingerprint and found.fingerprint != fingerprint:
        raise BrainError(
            f"{path}: was fitted for {found.fingerprint}, this is {fingerprint}: model, precision, "
            "prompt or labels have changed; run `hdguard tune` anew"
        )
    return found


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write it, for people to read too."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n")
