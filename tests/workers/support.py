"""What the tests of the seats share: loops to run on, shots to send, ears to hear with."""

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import uvloop

from hdguard.brains.base import BrainError, Shot
from hdguard.core.types import FrameRef
from hdguard.workers.base import Notice
from hdguard.workers.seats import WorkerFastBrain, WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from tests.workers.command_brain import FAST, RELEASE, SLOW, SPEC

REPOSITORY = Path(__file__).resolve().parents[2]  # a child imports `tests` from here
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
PATIENCE = 20.0  # seconds until a test gives up waiting for what must come
T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], loop: str = "asyncio", *, tidy: bool = True) -> T:
    """Run on that loop, leaving no task unless it is not meant to be tidy."""

    async def patiently() -> T:
        async with asyncio.timeout(3 * PATIENCE):
            result = await main
        left = set() if not tidy else asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(patiently())


def ref(command: float, seq: int = 0) -> FrameRef:
    return FrameRef("kitchen.mp4", seq, 100.0 + seq, command)


def shot(command: float, seq: int = 0, value: int = 1) -> Shot:
    return Shot(ref(command, seq), np.full((SPEC.height or 0, SPEC.width, 3), value, np.uint8))


async def reason(call: Coroutine[Any, Any, object]) -> str:
    """What the BrainError says in which the call must end."""
    try:
        answer = await call
    except BrainError as error:
        return str(error)
    raise AssertionError(f"answered {answer}")


class Ear:
    """Hears BrainDown, BrainUp and Remarked."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Notice] = asyncio.Queue()

    def __call__(self, event: Notice) -> None:
        self.heard.put_nowait(event)

    async def next(self) -> Notice:
        async with asyncio.timeout(PATIENCE):
            return await self.heard.get()


def fast(
    settings: Mapping[str, object] | None = None,
    target: str = FAST,
    worker: WorkerSettings | None = None,
) -> WorkerFastBrain:
    return WorkerFastBrain(target, settings or {}, "command", SPEC, worker or WorkerSettings())


def slow(
    settings: Mapping[str, object] | None = None,
    target: str = SLOW,
    worker: WorkerSettings | None = None,
) -> WorkerSlowBrain:
    return WorkerSlowBrain(target, settings or {}, "command", SPEC, worker or WorkerSettings())


def open_fds() -> set[str]:
    """What this process holds open, by target; pipes and sockets count one by one."""
    folder = Path("/proc/self/fd")
    names = [folder / name for name in os.listdir(folder)]  # noqa: PTH208
    return {f"{path.name} {path.readlink()}" for path in names if path.is_symlink()}


def children() -> list[str]:
    """The process ids of this process's children, zombies included.

    Not multiprocessing's resource tracker: other tests' pools start it, for the whole session.
    """
    tracker = str(getattr(resource_tracker._resource_tracker, "_pid", None))
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [pid for pid in found if pid != tracker]


def brain_threads() -> "list[threading.Thread]":  # noqa: TID251 - looked at, not made
    """The threads of thread seats."""
    return [thread for thread in threading.enumerate() if thread.name == "brain command"]


def let_brains_go() -> None:
    """Let hung threads end, and see them end."""
    RELEASE.set()
    for thread in brain_threads():
        thread.join(PATIENCE)
