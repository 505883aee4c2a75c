"""Keeps Python's garbage collector out of the decision path.

The collector runs by itself when enough objects were made, which is in the middle of whatever makes
them, and its full collection goes through every object of the process: 36 ms with what the daemon
imports. So what is there after loading is set aside for good, the automatic collector is switched
off, and a timer collects what has come since, in a step of its own.

Measured on a 2-core machine, a guard with one camera and the embedded brains, a minute each: by
itself the collector ran 17 times, 0.3 ms in the median and 4.2 ms at worst, its full collection not
among them; by the timer 64 young collections took 0.2 ms, at worst 0.6 ms, the full one 1.6 ms.
"""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECT_EVERY = 1.0
"""Seconds between two collections of young objects; each then has little to do."""

ALL_EVERY = 60
"""So many of them, and the next goes through all objects made since the start."""


@contextmanager
def set_aside() -> Iterator[None]:
    """Nothing that exists now is looked at again, and nothing is collected by itself."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


async def collect_garbage(every: float = COLLECT_EVERY) -> None:
    """Collect cycles until cancelled, each time in a step of its own."""
    count = 0
    while True:
        await asyncio.sleep(every)
        count += 1
        gc.collect(2 if count % ALL_EVERY == 0 else 1)
