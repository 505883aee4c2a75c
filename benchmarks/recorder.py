"""What the incident recorder costs a halt: capture to delivered with it and without it, in turns.

As in `capture_to_delivered` with an idle brain: many halts a second, for the sake of the 99th
percentile. The recorder sees every picture, and one halt in two seconds, each of which begins an
incident: so there are always three open, every picture is spooled for each of them, and clips are
made beside it. A real guard's halts are latched: it does so once in a long while.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.broker import broker
from benchmarks.capture_to_delivered import SPEC, halts, policy_for
from benchmarks.clips import clips
from benchmarks.ratio import Ratio
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.observe.incidents.record import About
from hdguard.observe.incidents.recorder import Recorder
from hdguard.observe.incidents.settings import IncidentSettings
from hdguard.observe.incidents.shelf import Shelf
from hdguard.recording import recording
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.workers.seats import WorkerFastBrain
from hdguard.workers.supervisor import WorkerSettings

ROUNDS = 4
HALT_EVERY = 2.0  # seconds between two incidents; a choice
LIMIT = 1e-3
"""Seconds that the recorder may add to the 99th percentile."""

ABOUT = About(hdguard="bench", robot="bench", configuration="", brains={})


def run() -> Iterator[Ratio]:
    """Alternate segments with and without; the percentiles are over all segments of a kind."""
    took: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name:
        video = clips(Path(name))[0]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            for number, on in enumerate([False, True] * ROUNDS):
                place = Path(name) / f"incidents-{number}" if on else None
                took[on] += runner.run(_segment(video, place))
    p99 = {on: float(np.percentile(each, 99)) for on, each in took.items()}
    yield Ratio(
        "capture to delivered p99, incident recorder on less off vs 1 ms, s "
        f"(on {p99[True]:.4f}, off {p99[False]:.4f}, n {len(took[True])} and {len(took[False])}, "
        f"p50 on {np.median(took[True]):.4f}, off {np.median(took[False]):.4f})",
        p99[True] - p99[False],
        LIMIT,
        1.0,
    )


async def _segment(video: Path, place: Path | None) -> list[float]:
    target = "benchmarks.timed_brain:TimedFastBrain"
    fast = WorkerFastBrain(target, {"seconds": 0.0}, "timed", SPEC, WorkerSettings())
    await fast.start()
    try:
        async with broker() as (_, port), _recorder(place, fast.name) as recorder:
            if recorder is None:
                return await halts(video, fast, port)
            seldom = _Seldom(recorder)
            return await halts(video, fast, port, lambda _: ((seldom,), (recorder,)))
    finally:
        await fast.close()


class _Seldom:
    """Shows the recorder what happens, but few of the halts.

    Args:
        recorder: who looks on.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._next_at = 0.0

    def judged(self, stamps: Judged | Reviewed) -> None:
        """All of them."""
        self._recorder.judged(stamps)

    def stepped(self, now: float, event: Event, decided: tuple[Action, ...]) -> None:
        """Without the halt, if there was one short time ago."""
        if any(isinstance(each, Halt) for each in decided):
            if now < self._next_at:
                decided = tuple(each for each in decided if not isinstance(each, Halt))
            else:
                self._next_at = now + HALT_EVERY
        self._recorder.stepped(now, event, decided)


@asynccontextmanager
async def _recorder(place: Path | None, brain: str) -> AsyncIterator[Recorder | None]:
    """A recorder at work, as in the daemon; None without a place."""
    if place is None:
        yield None
        return
    settings = IncidentSettings(keep_days=1.0)
    shelf = Shelf(place, settings.max_bytes, settings.keep_days)
    recorder = Recorder(shelf, settings, ABOUT, policy_for(brain), boot=1)
    async with recording(recorder):
        yield recorder
    if not recorder.outcomes["kept"]:
        msg = f"nothing was recorded: {recorder.outcomes}"
        raise RuntimeError(msg)
