"""Before a model is ready: whether it sees what it is shown, and how long it takes.

Caches have made model servers answer for the picture before while every health check was green, and
a half-loaded model answers fluently with noise. Neither shows in an exception: the canaries are
pictures whose answers are compared with each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter  # measures work; when something happened is the loop's clock
from typing import Any, TypeVar

import numpy as np

from hdguard.brains.base import BrainError, Rgb
from hdguard.core.types import ImageSpec

T = TypeVar("T")

LEAST, MOST = (
    20,
    60,
)  # scores of a warm-up; the first is `model-backends.md` 7.3's, both are choices
SETTLED = 0.1  # two p95 in a row this near each other have settled
CLEARLY = 2.0  # a choice; a model that answers for the picture before has 1


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that calls took; percentiles by nearest rank."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Pace":
        """The percentiles of these, at least one."""
        return cls(*(_percentile(seconds, p) for p in (0.5, 0.95, 0.99)))


def canaries(spec: ImageSpec) -> dict[str, Rgb]:
    """Pictures by name, of the size that a brain asks for: (height, width, 3), uint8."""
    shape = (spec.height or spec.width, spec.width, 3)
    noise = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    red, green = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
    red[..., 0], green[..., 1] = 255, 255
    return {"red": red, "green": green, "blank": np.zeros(shape, np.uint8), "noise": noise}


def check_sight(look: Callable[[T], Any], pictures: dict[str, T]) -> None:
    """Show each picture twice in a row and compare the answers.

    Some kernels add up in another order each time, so one picture's two answers may differ a
    little; but two pictures' answers must differ by more than `CLEARLY` times that. A model that
    answers for the picture before has its two answers as far apart as two pictures.

    Args:
        look: from a picture, or several, to the next token's logits, a tensor of float32.
        pictures: by name, at least two.

    Raises:
        BrainError: logits that are no numbers, or pictures that it does not tell apart.
    """
    seen: dict[str, Any] = {}
    wavers = 0.0
    for name, picture in pictures.items():
        first, seen[name] = (np.asarray(look(picture).cpu()) for _ in range(2))
        if not (np.isfinite(first).all() and np.isfinite(seen[name]).all()):
            raise BrainError(
                f"canary {name!r}: the model's logits are not finite: its weights are damaged, or "
                "its dtype does not suit it"
            )
        wavers = max(wavers, _apart(first, seen[name]))
    for one, other in combinations(seen, 2):
        apart = _apart(seen[one], seen[other])
        if apart <= CLEARLY * wavers or apart == 0:
            raise BrainError(
                f"canaries {one!r} and {other!r}: the answers to two pictures are {apart:.3g} "
                f"apart, and to one picture shown twice {wavers:.3g}: the model does not see the "
                "picture that it is shown, or answers for the one before"
            )


def _apart(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max())


def measure(score: Callable[[Rgb], object], pictures: dict[str, Rgb]) -> Pace:
    """Score until it takes a steady time; the pace of the last `LEAST` calls.

    At least `LEAST` calls, until the p95 of the last ten is within `SETTLED` of that of the ten
    before; after `MOST` calls it is taken as it is.
    """
    shown = list(pictures.values())
    took: list[float] = []
    while len(took) < LEAST or (not _settled(took) and len(took) < MOST):
        start = perf_counter()
        score(shown[len(took) % len(shown)])
        took.append(perf_counter() - start)
    return Pace.of(took[-LEAST:])


def _settled(took: Sequence[float]) -> bool:
    before, last = _percentile(took[-20:-10], 0.95), _percentile(took[-10:], 0.95)
    return abs(last - before) <= SETTLED * before


def _percentile(values: Sequence[float], share: float) -> float:
    rank = max(1, -(-len(values) * round(share * 100) // 100))  # rounded up
    return sorted(values)[rank - 1]
