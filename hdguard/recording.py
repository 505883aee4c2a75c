"""Whether incidents are recorded, and what stands in their records: a part of the composition root.

Both the daemon and a replay make their recorder here, from the same configuration.
"""

import asyncio
import hashlib
import importlib.util
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from hdguard import __version__
from hdguard.config import Config, ConfigError, shown
from hdguard.core.policy import Policy
from hdguard.observe.incidents.record import About, BrainMade
from hdguard.observe.incidents.recorder import Recorder
from hdguard.observe.incidents.shelf import Shelf
from hdguard.replay.runner import Crew
from hdguard.seating import Seating
from hdguard.workers.base import Seat


def check_recording(config: Config) -> None:
    """Refuse what cannot be recorded, before anything is opened.

    Raises:
        ConfigError: MCAP files are asked for, and nothing here can write them.
    """
    if config.incidents.mcap and importlib.util.find_spec("mcap") is None:
        msg = "incidents.mcap: needs the package mcap: pip install 'hdguard[mcap]', or set false"
        raise ConfigError(msg)


def make_recorder(
    seating: Seating, policy: Policy, crew: Crew, folder: Path, *, boot: int
) -> Recorder:
    """The recorder, with nothing begun; `work` is its task.

    Args:
        seating: of the brains.
        policy: of the guard.
        crew: the brains, ready.
        folder: where incidents are kept.
        boot: of the guard.
    """
    config = seating.config
    settings = config.incidents
    # A replay's are kept with its results, unless an age is set.
    shelf = Shelf(folder, settings.max_bytes, settings.keep_days or math.inf)
    return Recorder(shelf, settings, _about(seating, crew), policy, boot=boot)


@asynccontextmanager
async def recording(recorder: Recorder) -> AsyncIterator[Recorder]:
    """The recorder at work for a replay: at the end every clip is made."""
    async with asyncio.TaskGroup() as group:
        work = group.create_task(recorder.work(), name="incidents")
        try:
            yield recorder
        finally:
            if not work.done():  # also where a person has broken the replay off
                await recorder.finished()
            work.cancel()
            await recorder.close()


def _about(seating: Seating, crew: Crew) -> About:
    config = seating.config
    text = msgspec.json.encode(shown(config), order="sorted")
    digests = seating.digests
    brains: dict[str, BrainMade] = {}
    fast = [*crew.fast.values()]
    seats: list[tuple[str, Seat]] = [(f"fast.{n}", seat) for n, seat in enumerate(fast)]
    if crew.slow is not None:
        seats.append(("slow", crew.slow))
    for where, seat in seats:
        prefix = f"{where}.settings."
        files = {k.removeprefix(prefix): d for k, d in digests.items() if k.startswith(prefix)}
        brains[seat.name] = BrainMade(fingerprint=seat.fingerprint, files=files)
    return About(
        hdguard=__version__,
        robot=config.mqtt.robot,
        configuration=hashlib.sha256(text).hexdigest(),
        brains=brains,
    )
