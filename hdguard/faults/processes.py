"""Processes that we start, signal and end, by their ids and no others; nothing is left running.

Each is in a session of its own, so that Ctrl-C reaches us alone and we end them in order.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from hdguard.faults.rows import FaultError

KEPT_LINES = 400
"""Of what a process says: enough to tell why it ended, and no leak."""


class Program:
    """A program that can be started again and again; all times are on the loop's clock.

    Args:
        name: for messages.
        command: program and arguments.

    Attributes:
        lines: what the present process has said on standard output and error, with the times.
        ended: set when it has ended; `ended_at` and `code` say when and how.
        started_at: when the present process was started.
    """

    def __init__(self, name: str, *command: str) -> None:
        self.lines: deque[tuple[float, str]] = deque(maxlen=KEPT_LINES)
        self.ended = asyncio.Event()
        self.started_at = self.ended_at = 0.0
        self.code: int | None = None
        self._name = name
        self._command = command
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._news = asyncio.Event()
        self._rest = b""

    @property
    def pid(self) -> int:
        """Of the present process.

        Raises:
            FaultError: there is none.
        """
        if self._process is None or self.ended.is_set():
            raise FaultError(f"{self._name} does not run{self.last_words()}")
        return self._process.pid

    @property
    def running(self) -> bool:
        """There is a process, perhaps a stopped one."""
        return self._process is not None and not self.ended.is_set()

    def start(self) -> float:
        """Start it; returns when.

        The interpreter executes within about a millisecond, which is the loop's time that it takes.
        """
        self.end()
        self.lines.clear()
        self.ended.clear()
        self.code, self._rest = None, b""
        self.started_at = self._loop.time()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(pidfd, self._on_end, self._process, pidfd)
        assert self._process.stdout is not None
        out = self._process.stdout.fileno()
        os.set_blocking(out, False)
        self._loop.add_reader(out, self._on_output, self._process)
        return self.started_at

    def _on_end(self, process: "subprocess.Popen[bytes]", pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
        code = process.wait()
        if process is self._process and not self.ended.is_set():
            self.ended_at, self.code = self._loop.time(), code
            self.ended.set()
            self._news.set()

    def _on_output(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        data = process.stdout.read(1 << 16)
        if data == b"":
            self._loop.remove_reader(process.stdout.fileno())
            process.stdout.close()
        if process is not self._process or not data:
            return
        *whole, self._rest = (self._rest + data).split(b"\n")
        now = self._loop.time()
        self.lines.extend((now, line.decode("utf-8", "replace")) for line in whole)
        self._news.set()

    def signal(self, number: signal.Signals) -> float:
        """Send it a signal; returns when."""
        at = self._loop.time()
        os.kill(self.pid, number)
        return at

    def end(self) -> None:
        """Kill it, stopped or not; returns when it has gone. Ends nothing if it has ended."""
        process = self._process
        if process is not None and not self.ended.is_set():
            process.kill()
            self.code = process.wait()
            self.ended_at = self._loop.time()
            self.ended.set()

    async def said(self, fits: Callable[[str], bool], since: float = 0.0) -> tuple[float, str]:
        """The first line since then that fits; waits for it.

        Raises:
            FaultError: it has ended without one.
        """
        while True:
            for at, line in self.lines:
                if at >= since and fits(line):
                    return at, line
            if self.ended.is_set():
                raise FaultError(f"{self._name} does not run{self.last_words()}")
            self._news.clear()
            await self._news.wait()

    def last_words(self) -> str:
        """What it said last, for messages; empty if it said nothing."""
        said = "; ".join(line for _, line in list(self.lines)[-3:])
        return f" (it said: {said})" if said else ""


def hdguard(*words: str) -> tuple[str, ...]:
    """The command line of one of our own commands."""
    return (sys.executable, "-m", "hdguard", *words)


def workers_of(pid: int) -> tuple[int, ...]:
    """The brains' processes of that guard, in the order of their start."""
    found = []
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    for child in map(int, children.split()):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except FileNotFoundError:  # it has ended meanwhile
            continue
        if b"hdguard.workers.child" in words:
            found.append(child)
    return tuple(sorted(found))
