"""Traces with scores, made by code: a model whose mistakes are known, watching hazards that are."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hdguard.brains.trace_format import REST, BrainTrace, FastRow, SlowRow
from hdguard.core.types import Light
from hdguard.replay.cases import Recording
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.simulate import Case
from hdguard.replay.temperature import light_at

LATENCY = 0.1  # s
UNTIL = 4.6  # s
Score = tuple[float, float, float]


def log_softmax(logits: Sequence[float]) -> Score:
    top = max(logits)
    total = top + math.log(sum(math.exp(x - top) for x in logits))
    return (logits[0] - total, logits[1] - total, logits[2] - total)


def hazard(rng: np.random.Generator) -> KeyFrames:
    """A hazard somewhere in the middle of a clip; all times are multiples of 0.1 s."""
    onset = round(float(rng.uniform(1.0, 2.6)), 1)
    return KeyFrames(onset, onset + 0.8, onset + 1.0, onset + 1.8)


def rows(
    rng: np.random.Generator,
    seen: KeyFrames | None,
    until: float,
    *,
    apart: float = 4.0,
    times: float = 1.0,
    early: float = 0.0,
    certain: Score = (0.0, 0.0, 0.0),
) -> list[FastRow]:
    """What a model says that sees this hazard, at 5 FPS.

    Its logits are `apart` times a Gaussian around the label's corner, the logarithm of the true
    likelihood; `times` multiplies them and so makes it surer than it should be. `early` is how much
    of what speaks for RED it sees in YELLOW already, without daring to say so. `certain` is added
    whatever it sees.
    """
    found = []
    for n in range(round(until * 5) + 1):
        light = light_at(n / 5, seen)
        corner = np.zeros(3)
        corner[0 if light is None else int(light)] = apart
        corner[2] += early * apart * (light is Light.YELLOW)
        logits = times * apart * (corner + rng.normal(size=3)) + np.array(certain)
        scores = log_softmax([float(x) for x in logits])
        found.append(FastRow(t=n / 5, light="green", latency=LATENCY, scores=scores))
    return found


def case(
    name: str,
    keyframes: KeyFrames | None,
    fast: Sequence[FastRow],
    slow: Sequence[SlowRow] | None = None,
) -> Case:
    until = fast[-1].t
    times = tuple(n / 10 for n in range(round(until * 10) + 1))
    reviews = None if slow is None else BrainTrace(0.3, {REST: list(slow)})
    return Case(name, keyframes, times, BrainTrace(0.0, {REST: list(fast)}), reviews)


def cases(
    count: int,
    safe: int = 0,
    *,
    seed: int = 0,
    apart: float = 4.0,
    times: float = 1.0,
    early: float = 0.0,
    certain: Score = (0.0, 0.0, 0.0),
    shuffled: bool = False,
    slow: Sequence[SlowRow] | None = None,
) -> list[Case]:
    """Videos of 4.6 s; `shuffled`: in each the model sees the hazard of another video."""
    rng = np.random.default_rng(seed)
    real: list[KeyFrames | None] = [hazard(rng) for _ in range(count)]
    seen = [real[i] for i in rng.permutation(count)] if shuffled else real
    found = []
    for n, keyframes in enumerate([*real, *([None] * safe)]):
        watched = seen[n] if n < count else None
        fast = rows(rng, watched, UNTIL, apart=apart, times=times, early=early, certain=certain)
        name = f"{'video' if n < count else 'safe'}-{n}.mp4"
        found.append(case(name, keyframes, fast, slow))
    return found


def recording(made: Sequence[Case]) -> Recording:
    slow = "thinker" if made[0].slow is not None else ""
    return Recording(tuple(made), "vlm", slow, "0123456789abcdef", (), 0, 0)


def trace_of(made: Sequence[Case], **brain: object) -> dict[str, Any]:
    """The trace file that would have been recorded."""

    def entry(row: FastRow) -> dict[str, Any]:
        return {"t": row.t, "light": row.light, "latency": row.latency, "scores": row.scores}

    videos = {c.video: [entry(row) for row in c.fast.videos[REST]] for c in made}
    return {"format": "hdguard-trace/1", "fast": {"vlm": {"videos": videos, **brain}}}


def truth_of(made: Sequence[Case]) -> dict[str, Any]:
    """The truth file."""

    def frames(k: KeyFrames | None) -> dict[str, float] | None:
        if k is None:
            return None
        names = ("intent_onset", "intervention_deadline", "pnr", "impact_outcome")
        return {name: round(getattr(k, name), 3) for name in names}

    return {
        "annotations": [{"video_name": c.video, "keyframes": frames(c.keyframes)} for c in made]
    }


def write(path: Path, data: object) -> Path:
    path.write_text(json.dumps(data))
    return path
