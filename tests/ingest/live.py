"""Watching a live source in a test, on the loop that the daemon runs on."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

import uvloop

from hdguard.ingest.base import Frame, SourceError

T = TypeVar("T")

Seen = list[tuple[Frame, float]]


class Source(Protocol):
    """What `frames` gives can be closed."""

    def frames(self) -> AsyncGenerator[Frame, None]: ...


def run(main: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await main

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())


async def watch(source: Source, count: int) -> Seen:
    """The first frames and when each came, on the loop's clock."""
    loop = asyncio.get_running_loop()
    got: Seen = []
    async with aclosing(source.frames()) as frames:
        async for frame in frames:
            got.append((frame, loop.time()))
            if len(got) == count:
                break
    return got


async def watch_to_the_end(source: Source) -> tuple[Seen, str]:
    """All frames, and the words of the error that ended them."""
    loop = asyncio.get_running_loop()
    got: Seen = []
    try:
        async for frame in source.frames():
            got.append((frame, loop.time()))
    except SourceError as error:
        return got, str(error)
    raise AssertionError("a camera's frames never end without an error")


def decoder_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("decoder of")]
