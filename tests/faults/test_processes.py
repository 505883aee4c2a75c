"""Programs: what they say, when they end, and that none is left."""

import asyncio
import os
import signal
import sys

import pytest

from hdguard.faults.processes import Program, workers_of
from hdguard.faults.rows import FaultError
from tests.actuators.support import run

WAITS = "print('up', flush=True); import signal; signal.pause()"


def python(code: str) -> Program:
    return Program("it", sys.executable, "-c", code)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_its_lines_have_times_and_its_end_has_a_code() -> None:
    async def story() -> None:
        program = python("print('one', flush=True); print('two'); raise SystemExit(7)")
        started = program.start()
        at, line = await program.said(lambda line: line == "one")
        assert line == "one"
        await program.ended.wait()
        assert program.code == 7
        assert started < at <= program.ended_at
        assert not program.running
        with pytest.raises(FaultError, match="it does not run"):
            _ = program.pid

    run(story(), "asyncio")


def test_a_stopped_process_is_ended_and_can_be_started_again() -> None:
    async def story() -> None:
        program = python(WAITS)
        pids = []
        for _ in range(2):
            since = program.start()
            await program.said(lambda line: line == "up", since)
            pids.append(program.pid)
            program.signal(signal.SIGSTOP)
            program.end()
            assert program.code == -signal.SIGKILL
        assert pids[0] != pids[1]
        assert not any(map(exists, pids))
        program.end()

    run(story(), "asyncio")


def test_what_the_process_before_said_is_not_heard_again() -> None:
    async def story() -> None:
        program = python(WAITS)
        program.start()
        await program.said(lambda line: line == "up")
        since = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await program.said(lambda line: line == "up", since)
        program.end()

    run(story(), "asyncio")


def test_whoever_waits_for_a_word_of_one_that_ends_is_told_and_not_left_waiting() -> None:
    async def story() -> None:
        program = python("print('the port is taken'); raise SystemExit(1)")
        program.start()
        with pytest.raises(FaultError, match=r"it does not run \(it said: the port is taken\)"):
            await program.said(lambda line: line == "up")

    run(story(), "asyncio")


def test_only_brains_count_as_workers() -> None:
    async def story() -> None:
        program = python(WAITS)
        program.start()
        await program.said(lambda line: line == "up")
        assert workers_of(os.getpid()) == ()
        program.end()

    run(story(), "asyncio")
