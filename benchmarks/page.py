"""What people who look cost a halt: capture to delivered with 50 of them and with none, in turns.

As in `capture_to_delivered` with an idle brain, and with status, metrics, pictures and the HTTP
server of the daemon in the same loop, in both kinds of segment; in every second one 50 viewers, of
whom 10 read slowly, and a scraper make full use of it. Each of the halts, several a second, is a
change that every viewer is told of at once; a real guard has one in a long while.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.broker import broker
from benchmarks.capture_to_delivered import SPEC, Onlookers, halts, policy_for
from benchmarks.clips import clips
from benchmarks.ratio import Ratio
from hdguard.core.guard import Guard
from hdguard.observe.http import HttpParts
from hdguard.observe.metrics import Metrics
from hdguard.observe.pictures import NewestPictures
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpSettings
from hdguard.observe.status import Status
from hdguard.workers.seats import WorkerFastBrain
from hdguard.workers.supervisor import WorkerSettings

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 4
LIMIT = 5e-3
"""Seconds that the viewers may add to the 99th percentile."""


class _Shown:
    """What the server shows: the guard of this segment."""

    def __init__(self, brain: str) -> None:
        self._now = asyncio.get_running_loop().time
        self._pictures = NewestPictures(self._now)
        self.guard(Guard(policy_for(brain), self._now(), boot=1))

    def guard(self, guard: Guard) -> Onlookers:
        """Show this one."""
        status, metrics = Status(guard, self._now), Metrics(guard, self._now, lambda: True)
        self.parts = HttpParts(status, metrics, lambda _: None, pictures=self._pictures)
        return (status, metrics), (self._pictures,)


def run() -> Iterator[Ratio]:
    """Alternate segments with and without; the percentiles are over all segments of a kind."""
    took: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as name:
        video = clips(Path(name))[0]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            for looking in [False, True] * ROUNDS:
                took[looking] += runner.run(_segment(video, looking=looking))
    p99 = {looking: float(np.percentile(each, 99)) for looking, each in took.items()}
    yield Ratio(
        "capture to delivered p99, 50 viewers and a scraper less none vs 5 ms, s "
        f"(with {p99[True]:.4f}, without {p99[False]:.4f}, "
        f"n {len(took[True])} and {len(took[False])}, "
        f"p50 with {np.median(took[True]):.4f}, without {np.median(took[False]):.4f})",
        p99[True] - p99[False],
        LIMIT,
        1.0,
    )


async def _segment(video: Path, *, looking: bool) -> list[float]:
    target = "benchmarks.timed_brain:TimedFastBrain"
    fast = WorkerFastBrain(target, {"seconds": 0.0}, "timed", SPEC, WorkerSettings())
    shown = _Shown(fast.name)
    server = HttpServer(HttpSettings(port=0), lambda: shown.parts)
    await fast.start()
    await server.start()
    try:
        async with broker() as (_, port), asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(), name="http")
            async with _viewers(server.port if looking else None):
                took = await halts(video, fast, port, shown.guard)
            serving.cancel()
    finally:
        server.close()
        await fast.close()
    return took


@asynccontextmanager
async def _viewers(port: int | None) -> AsyncIterator[None]:
    """They look while the block runs; nobody does without a port.

    Raises:
        RuntimeError: they did not get what they asked for.
    """
    if port is None:
        yield
        return
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.page_clients",
        str(port),
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()  # all of them are there
    try:
        yield
    finally:
        process.terminate()
    *_, last = (await process.stdout.read()).splitlines() or [b"nothing"]
    await process.wait()
    if b"0" in last.split() or b"nothing" in last:
        msg = f"the viewers did not get events, pictures and metrics: {last.decode()}"
        raise RuntimeError(msg)
