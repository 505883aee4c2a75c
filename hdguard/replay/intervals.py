"""How little a handful of events says about a rate: the interval beside every rate per hour.

The exact two-sided interval for a Poisson count (F. Garwood, "Fiducial limits for the Poisson
distribution", Biometrika 28, 1936): the lower end is the mean that would give `count` or more
with probability 2.5 %, the upper end the mean that would give `count` or fewer with 2.5 %. Found
by bisection on the distribution function, so that no statistics package is needed for one number.
"""

import math
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Rate:
    """Events per hour of exposure.

    Attributes:
        count: events.
        hours: exposure in hours.
        rate: count / hours; None without exposure.
        low: lower end of the 95 % interval, per hour; None without exposure.
        high: upper end, likewise.
    """

    count: int
    hours: float
    rate: float | None
    low: float | None
    high: float | None


def rate_per_hour(count: int, seconds: float) -> Rate:
    """The rate of `count` events in `seconds` of exposure, with its exact 95 % interval.

    Raises:
        ValueError: a negative count or exposure.
    """
    if seconds < 0:
        raise ValueError(f"exposure of {seconds} s: it cannot be negative")
    low, high = poisson_interval(count)
    hours = seconds / 3600
    if hours == 0:
        return Rate(count, 0.0, None, None, None)
    return Rate(count, hours, count / hours, low / hours, high / hours)


def poisson_interval(count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Garwood's lower and upper limit of the mean behind a count.

    Raises:
        ValueError: a negative count.
    """
    if count < 0:
        raise ValueError(f"a count of {count}: it cannot be negative")
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else _mean_with_cdf(count - 1, 1 - tail)
    return low, _mean_with_cdf(count, tail)


def _mean_with_cdf(count: int, probability: float) -> float:
    """The mean at which a Poisson variable is at most `count` with this probability."""
    low, high = 0.0, count + 10.0
    while _cdf(count, high) > probability:
        high *= 2
    while True:  # the distribution function falls as the mean rises
        middle = (low + high) / 2
        if middle in {low, high}:
            return middle  # no double lies between them
        if _cdf(count, middle) > probability:
            low = middle
        else:
            high = middle


def _cdf(count: int, mean: float) -> float:
    """P(X <= count) for a Poisson variable; summed in logarithms, so a large mean underflows not.

    `mean` is above 0.
    """
    log_mean = math.log(mean)
    logs = [i * log_mean - math.lgamma(i + 1) for i in range(count + 1)]
    top = max(logs)
    return math.exp(top - mean + math.log(math.fsum(math.exp(x - top) for x in logs)))
