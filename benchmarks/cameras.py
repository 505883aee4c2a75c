"""How many 720p30 cameras one core guards; the reflex judges each of them five times a second.

A camera's share of a core is measured with one camera and with four; the row says whether the share
stays the same, and its name how many cameras a core has room for. CPU seconds of the whole process.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.camera_stream import FPS, camera_stream
from benchmarks.ratio import Ratio
from benchmarks.watching import watch
from hdguard.brains.reflex import ReflexFastBrain, ReflexSettings
from hdguard.core.policy import BrainPlan
from hdguard.workers.thread import ThreadFastSeat

SECONDS = 8
ROUNDS = 3
MANY = 4
GOAL = 1.1


def run() -> Iterator[Ratio]:
    """Measure in turn; the median of each counts."""
    with tempfile.TemporaryDirectory() as name, camera_stream(Path(name), SECONDS) as url:
        rounds = [(_share(url, MANY), _share(url, 1)) for _ in range(ROUNDS + 1)][1:]
    many, one = (float(np.median(shares)) for shares in zip(*rounds, strict=True))
    yield Ratio(
        f"core a 720p30 camera, {MANY} guarded at once vs 1 ({1 / many:.1f} cameras a core)",
        many,
        one,
        GOAL,
    )


def _share(url: str, cameras: int) -> float:
    """CPU seconds for each second of each camera."""
    seen = watch(
        [url] * cameras,
        lambda: ThreadFastSeat(lambda: ReflexFastBrain(ReflexSettings())),
        BrainPlan("reflex", adaptive=False),
    )
    watched = seen.frames / FPS
    assert seen.verdicts > 4 * watched, f"{seen.verdicts} verdicts in {watched:.1f} camera seconds"
    return seen.cpu / watched
