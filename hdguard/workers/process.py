"""One worker process from its start to its end; who replaces it is the supervisor's business."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

from hdguard.brains.base import BrainError
from hdguard.workers import wire
from hdguard.workers.channel import SupervisorChannel
from hdguard.workers.ring import Ring

CHILD = "hdguard.workers.child"  # named, never imported: it runs in another interpreter
EXIT_GRACE = 0.05  # seconds between a closed pipe and the exit status that explains it
LOOK_INTERVAL = 0.02  # seconds, where the kernel does not tell of an exit
THOUGHT_LIMIT = 5.0
"""Seconds for one step of an afterthought, a model's forward, between two of which a ping is heard.
A choice: on a processor alone it may take longer than a ping may, and a frame that comes meanwhile
has a deadline of its own."""
STALL_GRACE = 0.05  # seconds in which a pong that waits in our own socket can be read


class WorkerGoneError(Exception):
    """The worker is of no more use; the message says why."""


def _start(python: str, fds: tuple[int, int]) -> "subprocess.Popen[bytes]":
    """Start the interpreter; takes the loop's time until it executes, about a millisecond.

    asyncio's own subprocesses do so as well. They are not used here because one whose start is
    cancelled is lost (uvloop 0.23) or waited for for ever (CPython 3.11, when the loop ends), and
    because Python 3.11 makes a thread for each.
    """
    command = [python, "-m", CHILD, *map(str, fds), str(os.getpid())]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=fds)


class WorkerProcess:
    """A running worker; whoever has one must `reap` it."""

    def __init__(self, process: "subprocess.Popen[bytes]", channel: SupervisorChannel) -> None:
        self._process = process
        self._channel = channel
        self._pong = asyncio.Event()  # not set: a ping is not answered yet
        self._pong.set()
        self._exited = asyncio.Event()
        self._reaped = asyncio.Event()
        self._pidfd: int | None = None
        self._thinking = False  # an afterthought is at work
        self.numbers: wire.Numbers | None = None  # what it took at its last pong
        self.unanswered: set[int] = set()  # ids of calls sent; while there are any it is busy
        self._watch_exit()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @classmethod
    async def spawn(cls, python: str, ring: Ring) -> "WorkerProcess":
        """Start a worker on the interpreter `python` (empty: this one).

        It inherits the environment and the working directory, and nothing else but its end of the
        pipe, the ring and our standard error.

        Raises:
            BrainError: the interpreter cannot be started.
        """
        python = python or sys.executable
        ours, theirs = socket.socketpair()
        with theirs:
            channel = await SupervisorChannel.open(ours)
            try:
                process = _start(python, (theirs.fileno(), ring.fd))
            except OSError as error:
                await channel.close()
                why = error.strerror or str(error)
                raise BrainError(f"cannot start a worker on {python!r}: {why}") from error
        return cls(process, channel)

    async def introduce(self, load: wire.Load, within: float) -> wire.Ready:
        """Have the worker load its brain, for at most `within` seconds.

        Raises:
            BrainError: it cannot load it, took too long, or ended.
        """
        try:
            async with asyncio.timeout(within):
                await self._channel.send(load)
                hello = await self._channel.receive()
                if isinstance(hello, wire.Hello) and hello.protocol != wire.PROTOCOL:
                    spoken = f"it speaks protocol {hello.protocol}, this one {wire.PROTOCOL}"
                    other = f"{load.target}: the hdguard of its `python` is another one"
                    raise BrainError(f"{other}: {spoken}; install the same version there")
                reply = hello if hello is None else await self._channel.receive()
        except TimeoutError:
            raise BrainError(f"{load.target} was not ready within {within} s") from None
        match reply:
            case wire.Ready():
                return reply
            case wire.Failed():
                raise BrainError(reply.reason)
            case None:
                how = await self._how_it_ended()
                raise BrainError(f"{load.target}: worker died while loading: {how}; see stderr")
            case _:
                raise BrainError(f"{load.target}: worker said {type(reply).__name__} while loading")

    async def send(self, request: wire.Call) -> None:
        """Send a call.

        Raises:
            BrainError: it cannot be written; the worker has not got it.
        """
        self.unanswered.add(request.call_id)
        try:
            await self._channel.send(request)
        except BrainError:
            self.unanswered.discard(request.call_id)
            raise

    async def attend(self, ping_interval: float, on_word: Callable[[wire.Word], None]) -> str:
        """Hand over its answers and remarks until it is of no more use; returns why."""
        why = "unknown"
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(on_word), name=f"worker {self.pid}: read")
                tasks.create_task(
                    self._keep_pinging(ping_interval), name=f"worker {self.pid}: ping"
                )
                tasks.create_task(self._await_exit(), name=f"worker {self.pid}: exit")
        except* WorkerGoneError as gone:
            why = str(gone.exceptions[0])
        return why

    async def stop(self, within: float) -> None:
        """Ask an idle worker to end and wait for it; a busy one does not hear it."""
        if self.unanswered:
            return
        await self._channel.send(wire.Stop())
        try:
            async with asyncio.timeout(within):
                await self._exited.wait()
        except TimeoutError:
            return

    def nudge(self) -> None:
        """Have it look whether its call was cancelled: SIGUSR1."""
        self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """SIGKILL, which also ends a worker that is stopped or hung."""
        self._process.kill()

    async def reap(self) -> None:
        """End it if it still lives, and leave nothing of it: no zombie, no open file.

        A cancellation waits: after SIGKILL the end is near, and leaving now would leave a zombie.
        """
        self.kill()
        cancelled: asyncio.CancelledError | None = None
        while not self._exited.is_set():
            try:
                await self._exited.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        try:
            await self._channel.close()
        finally:
            self._reaped.set()
        if cancelled is not None:
            raise cancelled

    async def reaped(self) -> None:
        """Wait until somebody has reaped it."""
        await self._reaped.wait()

    async def _read(self, on_word: Callable[[wire.Word], None]) -> None:
        try:
            while (reply := await self._channel.receive()) is not None:
                match reply:
                    case wire.Pong():
                        self.numbers = reply.numbers
                        self._pong.set()
                    case wire.Hello() | wire.Ready():
                        raise WorkerGoneError(f"sent {type(reply).__name__} out of turn")
                    case wire.Settled():
                        self._thinking = False
                    case wire.Remarked():
                        on_word(reply)
                    case _:
                        self._thinking = isinstance(reply, wire.Assessed) and reply.goes_on
                        self.unanswered.discard(reply.call_id)
                        on_word(reply)
        except BrainError as error:
            raise WorkerGoneError(str(error)) from error
        raise WorkerGoneError(await self._how_it_ended())

    async def _keep_pinging(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            works = bool(self.unanswered)
            if works and not self._pong.is_set():
                continue  # it was asked while it worked already
            self._pong.clear()
            limit, doing = interval, "idle"
            if self._thinking:
                limit, doing = max(interval, THOUGHT_LIMIT), "lost in an afterthought"
            await self._channel.send(wire.Ping())
            # One that works answers for its numbers' sake, after its call, which has a deadline.
            if not works and not await self._ponged(limit):
                raise WorkerGoneError(f"answered no ping for {limit} s while {doing}")

    async def _ponged(self, within: float) -> bool:
        """Wait for the pong, and once more: a stall of our own loop must not read as a death."""
        for limit in (within, STALL_GRACE):
            try:
                async with asyncio.timeout(limit):
                    return await self._pong.wait()
            except TimeoutError:
                continue
        return False

    async def _await_exit(self) -> None:
        await self._exited.wait()
        raise WorkerGoneError(await self._how_it_ended())

    async def _how_it_ended(self) -> str:
        try:
            async with asyncio.timeout(EXIT_GRACE):
                await self._exited.wait()
        except TimeoutError:
            return "closed its pipe"
        status = self._process.wait()  # known by now
        if status >= 0:
            return f"exit status {status}"
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"

    def _watch_exit(self) -> None:
        """Hear of the process's end from the kernel; where that is not offered, look for it."""
        if sys.platform == "linux":
            try:
                self._pidfd = os.pidfd_open(self.pid)
            except OSError:  # forbidden or unknown to this kernel
                self._look_for_exit()
            else:
                asyncio.get_running_loop().add_reader(self._pidfd, self._look_for_exit)
        else:
            self._look_for_exit()

    def _look_for_exit(self) -> None:
        loop = asyncio.get_running_loop()
        if self._process.poll() is None:
            if self._pidfd is None:
                loop.call_later(LOOK_INTERVAL, self._look_for_exit)
            return
        if self._pidfd is not None:
            loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._exited.set()
