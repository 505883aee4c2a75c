"""Which videos are held out together: decided by their names alone, so that it never changes.

A score is worth quoting only on videos that had no part in choosing what is scored. The folds
depend on no random numbers and on no order of files.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hdguard.replay.problems import DatasetError

FOLDS = 5
FEWEST = 10
"""Videos below which folds are refused unless each holds one video: a choice. With fewer, one
video more or less moves a fold's score by half of all that there is."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One division of the videos.

    Attributes:
        train: names of the videos on which everything is chosen.
        held_out: names of those on which the choice is scored, none of which is in `train`.
    """

    train: tuple[str, ...]
    held_out: tuple[str, ...]


def make_folds(scored: Sequence[str], safe: Sequence[str], count: int | None = None) -> list[Fold]:
    """Divide the videos; each is held out exactly once.

    Args:
        scored: names of the videos that count in n.
        safe: names of safe material, dealt out apart from them so that every fold gets its share.
        count: number of folds; None: 5.

    Raises:
        DatasetError: too few videos for so many folds, or for folds at all.
    """
    count = FOLDS if count is None else count
    n = len(scored)
    if n < 2 or count < 2:
        raise DatasetError(
            f"{n} annotated videos in {count} folds: some must be held out and some be left; "
            "two of each are the least"
        )
    if n < FEWEST and count != n:
        raise DatasetError(
            f"{n} annotated videos are too few for {count} folds ({FEWEST} are the least); "
            f"record more, or leave out one at a time: --folds {n}"
        )
    if count > n:
        raise DatasetError(
            f"{count} folds, but only {n} annotated videos; give --folds {n} or less"
        )
    dealt: list[list[str]] = [[] for _ in range(count)]
    for names in (scored, safe):
        for place, name in enumerate(_shuffled(names)):
            dealt[place % count].append(name)
    everything = [*scored, *safe]
    return [Fold(tuple(v for v in everything if v not in set(held)), tuple(held)) for held in dealt]


def _shuffled(names: Iterable[str]) -> list[str]:
    """In an order that has nothing to do with what the names say."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
