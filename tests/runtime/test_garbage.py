"""The collector runs when nothing waits for it, and memory that goes in circles is freed."""

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from hdguard.runtime.garbage import collect_garbage, set_aside
from hdguard.runtime.virtual_time import run_virtual


class Node:
    """Goes in a circle."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """pytest sets aside what it imported, and must find it so."""
    yield
    assert gc.isenabled()
    gc.collect()
    gc.freeze()


def test_nothing_is_collected_by_itself_and_all_is_as_before_afterwards() -> None:
    with set_aside():
        assert not gc.isenabled()
        node = weakref.ref(Node())
        many = [[n] for n in range(10_000)]  # enough to wake an automatic collector
        assert node() is not None
        del many


def test_circles_are_freed_by_the_timer() -> None:
    async def story() -> object:
        with set_aside():
            node = weakref.ref(Node())
            async with asyncio.TaskGroup() as group:
                collector = group.create_task(collect_garbage(every=1.0))
                await asyncio.sleep(1.5)
                collector.cancel()
            return node()

    assert run_virtual(story()) is None


def test_a_collection_after_loading_takes_no_time_that_a_decision_would_feel() -> None:
    """All of the daemon's objects are set aside: what is left is what a second of work made."""
    with set_aside():
        took = []
        for _ in range(20):
            made = [Node() for _ in range(1000)]  # far more than a second of decisions leaves
            del made
            began = time.perf_counter()  # measures work
            gc.collect(1)
            took.append(time.perf_counter() - began)
    assert sorted(took)[len(took) // 2] < 0.005
