"""The clock that stands beside every score."""

import random

from hdguard.replay.baselines import baselines, best_time, fixed_time
from hdguard.replay.scoring import KeyFrames

REAL = (
    KeyFrames(3.5, 4.5, 4.7, 8.0),
    KeyFrames(3.3, 4.2, 4.4, 5.1),
    KeyFrames(3.1, 3.7, 3.9, 7.9),
)


def test_the_three_real_videos() -> None:
    rows = {b.name: (b.at, round(b.summary.wss, 2), b.summary.n) for b in baselines(REAL)}
    assert rows == {
        "always at 2 s": (2.0, 0.0, 3),
        "always at 4 s": (4.0, 75.0, 3),
        "always at 6 s": (6.0, 16.67, 3),
        "always at 8 s": (8.0, 8.33, 3),
        "best t: 3.5 s": (3.5, 100.0, 3),
        "never": (None, 0.0, 3),
    }


def test_given_times_are_sorted_and_said_once() -> None:
    names = [b.name for b in baselines(REAL, (5, 3.25, 5.0))]
    assert names == ["always at 3.25 s", "always at 5 s", "best t: 3.5 s", "never"]


def test_always_warns_even_after_impact() -> None:
    assert fixed_time(9.0, REAL).hdr == 100.0
    assert fixed_time(9.0, REAL).wss == 0.0


def test_no_other_millisecond_beats_the_best_time() -> None:
    rng = random.Random(11)
    for _ in range(25):
        frames = []
        for _ in range(rng.randrange(1, 6)):
            onset, deadline, pnr, impact = sorted(rng.randrange(0, 400) / 1000 for _ in range(4))
            frames.append(KeyFrames(onset, deadline, pnr, impact))
        best = best_time(frames)
        assert best is not None
        scores = [fixed_time(ms / 1000, frames).wss for ms in range(401)]
        assert fixed_time(best, frames).wss == max(scores)


def test_of_equally_good_times_the_earliest() -> None:
    apart = [KeyFrames(1.0, 2.0, 2.2, 3.0), KeyFrames(5.0, 6.0, 6.2, 7.0)]
    assert best_time(apart) == 1.0


def test_without_videos_there_is_no_best_time() -> None:
    assert best_time([]) is None
    assert [b.name for b in baselines([], (2,))] == ["always at 2 s", "never"]
