"""When a body makes contact, from many predictions at once, and whether it will stop before.

A body at distance Z and speed v predicts the instant I = t + Z / v. At constant speed I stays; at
constant braking a it recedes at the rate s = Z a / v^2. From Z = v^2 / (2 a) follows: it stops
short exactly if s > 1/2, and else makes contact after tau * (1 - sqrt(1 - 2 s)) / s.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from hdguard.brains.looming_policy import SMALLEST, agree, comes_at_us
from hdguard.brains.regions import Body, Sight

ENOUGH = 3  # predictions that agree
FAR = 30.0  # seconds; a scale of 1 but for noise predicts a contact in hours
OUTLINE = 1.5  # times the horizon; an outline that grows slower than this is not a contact


@dataclass(frozen=True, slots=True)
class Sample:
    """A body as one frame showed it; `t` in seconds, the rest as in `Body`."""

    t: float
    body: Body

    @property
    def instant(self) -> float:
        """Seconds at which it makes contact at constant speed."""
        return self.t + self.body.tau


Track = tuple[Sample, ...]


class Tracks:
    """Joins the bodies of successive frames to tracks by the pixels that they share."""

    def __init__(self) -> None:
        self.ends: dict[int, Track] = {}

    def add(self, t: float, sight: Sight) -> None:
        """Add the next frame; t in seconds, ascending."""
        self.ends = {b.label: (*self._past(b.parents), Sample(t, b)) for b in sight.bodies}

    def _past(self, parents: Sequence[int]) -> Track:
        """Every sample of the parents, oldest first; two that merged share their past."""
        past = {id(s): s for parent in parents for s in self.ends.get(parent, ())}
        return tuple(sorted(past.values(), key=lambda s: s.t))


@dataclass(frozen=True, slots=True)
class Approach:
    """What a track's predictions say together.

    Attributes:
        tau: seconds from the end of the window to contact; infinite if it stops short.
        slope: rate at which the predicted instant recedes, seconds a second (s above).
        spread: median distance of the predictions from the fit, seconds.
        count: how many predictions agree.
        size: share of the frame, of the newest.
        miss: median of the newest three, in widths.
        background: the camera drives at it.
    """

    tau: float
    slope: float
    spread: float
    count: int
    size: float
    miss: float
    background: bool


def fit_approach(track: Track, end: float, enough: int = ENOUGH) -> Approach | None:
    """Fit the track's predictions (Theil-Sen).

    Args:
        track: of one body.
        end: seconds of the newest frame, from which tau counts.
        enough: predictions that must agree, at least 2; else the answer is None.
    """
    chain = _chain([s for s in track if comes_at_us(s.body) and s.body.tau < FAR])
    if len(chain) < enough:
        return None
    slopes = [(b.instant - a.instant) / (b.t - a.t) for a, b in combinations(chain, 2)]
    middle = median(slopes)
    doubt = 1.5 * median(abs(s - middle) for s in slopes) / math.sqrt(len(chain))
    # A slope within its doubt is none: the median of the instants is steadier than a line.
    slope = math.copysign(max(0.0, abs(middle) - doubt), middle)
    instant = median(s.instant - slope * (s.t - end) for s in chain)
    spread = median(abs(s.instant - slope * (s.t - end) - instant) for s in chain)
    newest = chain[-1].body
    return Approach(
        _braked(max(0.0, instant - end), slope),
        slope,
        spread,
        len(chain),
        newest.size,
        median(s.body.miss for s in chain[-3:]),
        newest.label == 0,
    )


def _braked(tau: float, slope: float) -> float:
    """Seconds to contact under the braking (slope > 0) or speeding up that the slope shows."""
    if slope > 0.5:
        return math.inf
    if abs(slope) < 1e-3:
        return tau
    return tau * (1 - math.sqrt(1 - 2 * slope)) / slope


def _chain(samples: Sequence[Sample]) -> list[Sample]:
    """The longest row of samples in which each agrees with the next, ending at the newest.

    The very newest may be an outlier, so the one before may be the end instead. A row that leaves
    out a third of the frames that it spans is none.
    """
    best: list[Sample] = []
    for skip in (0, 1):
        chain: list[Sample] = []
        for sample in reversed(samples[: len(samples) - skip]):
            later = chain[-1] if chain else None
            if later is None or (
                sample.t < later.t and agree(later.body.tau, sample.instant, later.instant)
            ):
                chain.append(sample)
        if len(chain) > len(best):
            best = chain
    spanned = {s.t for s in samples if best and s.t >= best[-1].t}
    return best[::-1] if 3 * len(best) > 2 * len(spanned) else []


def contradicts(track: Track, horizon: float) -> bool:
    """Whether two of the newest three frames see a contact within the horizon.

    Asked of a track without a fit, this is more than noise and less than a prediction.
    """
    newest = [s.body for s in track[-3:]]
    near = [b for b in newest if comes_at_us(b) and b.size >= SMALLEST and b.tau < horizon]
    return len(near) >= 2


def outline_grows(track: Track, horizon: float, frame: tuple[int, int]) -> bool:
    """Whether a body that the flow cannot measure grows as one does that hits within the horizon.

    Width and height of what approaches both grow: d ln(width) / dt = 1 / tau. What only moves is
    often seen in its old and its new place at once, which stretches one of them.

    Args:
        track: of the body.
        horizon: seconds.
        frame: width and height of the picture; a body that spans it cannot be seen to grow.

    Returns:
        True also when there are too few frames to know.
    """
    recent = track[-4:]
    if len(recent) < ENOUGH:
        return True
    sides = (
        [(s.t, s.body.width) for s in recent if s.body.width < 0.95 * frame[0]],
        [(s.t, s.body.height) for s in recent if s.body.height < 0.95 * frame[1]],
    )
    rates = [_growth(side) for side in sides if len(side) >= ENOUGH]
    return not rates or min(rates) > 1 / (OUTLINE * horizon)


def _growth(side: Sequence[tuple[float, int]]) -> float:
    """Relative growth a second, the median over pairs of frames."""
    pairs = [(a, b) for a, b in combinations(side, 2) if b[0] > a[0]]
    return median(math.log(b[1] / a[1]) / (b[0] - a[0]) for a, b in pairs)
