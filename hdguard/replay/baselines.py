"""What a clock would have scored: the figures that stand beside every score.

On a handful of short clips "always warn at t", which sees nothing, can score 100. A score is worth
reading only beside the best such t, which is hindsight, and beside some that are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hdguard.replay.scoring import KeyFrames, Summary, milliseconds, summarise

FIXED_TIMES = (2.0, 4.0, 6.0, 8.0)  # s; the benchmark's clips last about 8 s


@dataclass(frozen=True, slots=True)
class Baseline:
    """A policy that never looks.

    Attributes:
        name: what it does, for people.
        at: seconds of media time at which it always warns; None never warns.
        summary: its figures on the same videos.
    """

    name: str
    at: float | None
    summary: Summary


def fixed_time(t: float | None, keyframes: Sequence[KeyFrames]) -> Summary:
    """The figures of always warning at `t` seconds, or never; a video's length is not looked at."""
    return summarise((t, k) for k in keyframes)


def best_time(keyframes: Sequence[KeyFrames]) -> float | None:
    """The t at which always warning scores most, the earliest of equals; None without videos.

    Only the onsets need to be tried. At its onset a video's score rises from 0, and from then on
    it only falls (100, 50, 25, 0). So the mean rises at onsets alone, and from any other time one
    can go back to the nearest onset before it without losing anything; before the first onset
    every score is 0.
    """
    onsets = sorted({milliseconds(k.intent_onset) for k in keyframes})
    if not onsets:
        return None
    return max((ms / 1000 for ms in onsets), key=lambda t: fixed_time(t, keyframes).wss)


def baselines(
    keyframes: Sequence[KeyFrames], times: Sequence[float] = FIXED_TIMES
) -> list[Baseline]:
    """Always warn at each of `times` seconds, at the best time, and never; in this order."""
    found = [
        Baseline(f"always at {t:g} s", t, fixed_time(t, keyframes))
        for t in sorted({float(t) for t in times})
    ]
    best = best_time(keyframes)
    if best is not None:
        found.append(Baseline(f"best t: {best:g} s", best, fixed_time(best, keyframes)))
    found.append(Baseline("never", None, fixed_time(None, keyframes)))
    return found
