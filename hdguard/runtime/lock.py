"""One guard per robot: two would throw each other off the broker and contradict each other."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LockedError(Exception):
    """Another process guards this robot: names the file and the process."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock; the system lets go of it when the process dies, whatever it dies of.

    Raises:
        LockedError: another process holds it.
        OSError: the file cannot be made.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.read(file, 20).decode("ascii", "replace").strip() or "unknown"
            msg = f"{path}: process {who} guards this robot already; end it first"
            raise LockedError(msg) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)
