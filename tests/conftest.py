"""What every test shares: the clean-up check and where the real inputs lie."""

import gc
import multiprocessing
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

# Models of random weights are too small for threads, and two processes that spin on two cores take
# turns for minutes. Before torch is imported, for its workers too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# transformers' loading threads end in their own time, after the test that loads a model.
os.environ.setdefault("HF_DEACTIVATE_ASYNC_LOAD", "1")

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


def pytest_collection_finish() -> None:
    """What is imported lives for ever.

    Every test ends in a garbage collection; walking over torch and transformers each time would
    add half a second to each.
    """
    gc.collect()
    gc.freeze()


def _children() -> set[str]:
    """Process ids of this process's children (Linux; elsewhere only multiprocessing's)."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    if path.exists():
        return set(path.read_text().split())
    return {str(p.pid) for p in multiprocessing.active_children()}


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """A test that leaves a thread or a child process behind fails."""
    threads = set(threading.enumerate())
    children = _children()
    yield
    gc.collect()
    left = [t for t in threading.enumerate() if t not in threads and t.is_alive()]
    assert not left, f"threads left behind: {left}"
    born = _children() - children
    assert not born, f"child processes left behind: {born}"


@pytest.fixture(scope="session")
def homesafe() -> Path:
    """The three real HomeSafe-Bench videos with their key frames."""
    folder = SHARED / "data" / "homesafe-bench"
    if not folder.is_dir():
        pytest.skip("the real HomeSafe-Bench videos are not beside this checkout (../shared)")
    return folder


@pytest.fixture(scope="session")
def published() -> Path:
    """The papers' published tables."""
    folder = SHARED / "data" / "published"
    if not folder.is_dir():
        pytest.skip("the papers' tables are not beside this checkout (../shared)")
    return folder
