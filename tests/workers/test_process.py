"""One worker process: which interpreter it runs on, what it hears, and how it ends."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hdguard.core.events import BrainDown, BrainUp, CannotSee, FastVerdict, Remarked
from hdguard.workers import process as process_module
from hdguard.workers import wire
from hdguard.workers.channel import SupervisorChannel
from hdguard.workers.process import WorkerProcess
from hdguard.workers.ring import Ring
from hdguard.workers.supervisor import WorkerSettings
from tests.workers import command_brain
from tests.workers.command_brain import DARK, GATE, GREEN, PENSIVE, PONDER, RED, SPEC, WHERE
from tests.workers.support import (
    LOOPS,
    PATIENCE,
    REPOSITORY,
    Ear,
    children,
    fast,
    open_fds,
    reason,
    run,
    shot,
)

LOAD = wire.Load("fast", command_brain.FAST, {}, 2, SPEC.max_bytes)


async def interpreter_of(python: str) -> str:
    seat = fast(worker=WorkerSettings(python=python))
    await seat.start()
    answer = await seat.assess(shot(WHERE))
    await seat.close()
    assert isinstance(answer, FastVerdict)
    return answer.hazard.text


def test_a_worker_runs_on_this_interpreter_by_the_path_that_we_were_started_with() -> None:
    # Resolving the link of a virtual environment would lose the environment.
    assert run(interpreter_of("")) == sys.executable


def test_a_worker_runs_on_another_interpreter_by_the_path_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text(
        (Path(sys.prefix) / "pyvenv.cfg").read_text()
        if (Path(sys.prefix) / "pyvenv.cfg").exists()
        else f"home = {Path(sys.executable).parent}\n"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").symlink_to(Path(sys.prefix) / "lib")
    python = tmp_path / "bin" / "python"
    python.symlink_to(sys.executable)
    assert run(interpreter_of(str(python))) == str(python)


@pytest.mark.parametrize(
    ("python", "says"),
    [("/nowhere/python", "No such file or directory"), ("/", "Permission denied")],
)
def test_an_interpreter_that_cannot_be_started_is_a_clear_error(python: str, says: str) -> None:
    before = open_fds()
    message = run(reason(fast(worker=WorkerSettings(python=python)).start()))
    assert message == f"cannot start a worker on {python!r}: {says}"
    assert open_fds() == before


def test_an_interpreter_without_hdguard_says_so(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    base = Path(sys.base_prefix) / "bin" / "python3"
    message = run(reason(fast(worker=WorkerSettings(python=str(base))).start()))
    assert "worker died while loading: exit status 1; see stderr" in message
    assert "hdguard" in capfd.readouterr().err


class Impostor:
    """A module that is started in the child's place and says `reply` first of all."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
        (folder / "impostor.py").write_text(
            "import socket, sys\n"
            "from hdguard.workers import wire\n"
            "pipe = socket.socket(fileno=int(sys.argv[1]))\n"
            f"{code}\n"
            "pipe.recv(1 << 16)\n"
            "pipe.recv(1)\n"
        )
        monkeypatch.setenv("PYTHONPATH", f"{folder}:{REPOSITORY}")
        monkeypatch.setattr(process_module, "CHILD", "impostor")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "pipe.sendall(wire.encode(wire.Hello(99)))",
            "CommandFastBrain: the hdguard of its `python` is another one: it speaks protocol 99,"
            f" this one {wire.PROTOCOL}; install the same version there",
        ),
        ("pipe.sendall(b'GET / HTTP/1.1')", "over the limit"),
        ("pipe.sendall(b'\\0\\0\\0\\1\\xc1')", "cannot be read"),
        (
            "pipe.sendall(wire.encode(wire.Hello(wire.PROTOCOL)) + wire.encode(wire.Pong()))",
            "worker said Pong while loading",
        ),
    ],
)
def test_a_worker_that_speaks_otherwise_is_a_clear_error(
    code: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Impostor(tmp_path, monkeypatch, code)
    assert says in run(reason(fast().start()))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("pipe.sendall(b'GET / HTTP/1.1')", "over the limit"),
        ("pipe.sendall(wire.encode(wire.Hello(wire.PROTOCOL)))", "sent Hello out of turn"),
        ("pipe.close(); import threading; threading.Event().wait()", "closed its pipe"),
    ],
)
def test_a_loaded_worker_that_speaks_otherwise_is_of_no_more_use(
    code: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Impostor(tmp_path, monkeypatch, code)

    async def story() -> str:
        ring = Ring.create(2, SPEC.max_bytes)
        worker = await WorkerProcess.spawn("", ring)
        why = await worker.attend(PATIENCE, lambda _answer: None)
        await worker.reap()
        ring.close()
        return why

    assert says in run(story())


@pytest.mark.parametrize("loop", LOOPS)
def test_an_exit_is_noticed_where_the_kernel_does_not_tell(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pid: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", refuse)

    async def story() -> None:
        ring = Ring.create(2, SPEC.max_bytes)
        worker = await WorkerProcess.spawn("", ring)
        await worker.introduce(LOAD, PATIENCE)
        os.kill(worker.pid, signal.SIGKILL)
        why = await worker.attend(PATIENCE, lambda _answer: None)
        assert why in {"killed by SIGKILL", "closed its pipe"}
        await worker.reap()
        ring.close()
        assert children() == []

    run(story(), loop)


def test_a_stall_of_our_own_loop_does_not_read_as_a_missing_pong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interval = 0.005  # seconds, less than the stall
    pings: list[wire.Request] = []
    killers: list[Callable[[], None]] = []
    send = SupervisorChannel.send

    async def send_then_stall(channel: SupervisorChannel, message: wire.Request) -> None:
        await send(channel, message)
        if isinstance(message, wire.Ping):
            pings.append(message)
            if len(pings) == 5:
                killers[0]()
            # Takes the loop until the pong lies in our socket and its time is over.
            asyncio.get_running_loop().call_soon(subprocess.run, [sys.executable, "-c", "pass"])

    async def story() -> None:
        ring = Ring.create(2, SPEC.max_bytes)
        worker = await WorkerProcess.spawn("", ring)
        await worker.introduce(LOAD, PATIENCE)
        monkeypatch.setattr(SupervisorChannel, "send", send_then_stall)
        killers.append(worker.kill)
        assert await worker.attend(interval, lambda _answer: None) == "killed by SIGKILL"
        assert len(pings) == 5
        await worker.reap()
        ring.close()

    run(story())


def test_one_that_works_whenever_it_is_looked_for_tells_what_it_takes_after_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FastBrain at 5 FPS may be in mid call at every ping."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    pings: dict[SupervisorChannel, int] = {}
    send = SupervisorChannel.send

    async def counted(channel: SupervisorChannel, message: wire.Request) -> None:
        await send(channel, message)
        if isinstance(message, wire.Ping):
            pings[channel] = pings.get(channel, 0) + 1

    monkeypatch.setattr(SupervisorChannel, "send", counted)

    async def story() -> None:
        stopped = fast(worker=WorkerSettings(ping_interval=0.2, restarts_per_minute=0))
        busy = fast({"gate": str(gate)}, worker=WorkerSettings(ping_interval=0.02))
        ear = Ear()
        stopped.listen(ear)
        await stopped.start()
        await busy.start()
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(busy.assess(shot(GATE)))
            await asyncio.sleep(0)  # the call is on its way
            pings.clear()
            assert stopped.pid is not None
            os.kill(stopped.pid, signal.SIGSTOP)
            assert await ear.next() == BrainDown("command", latched=True)  # ten pings' time
            assert max(pings.values()) == 1  # who cannot answer is not asked again
            await asyncio.to_thread(gate.write_text, "open")
            await call
        await busy.assess(shot(GREEN))  # behind this answer the pong has come
        assert busy.numbers is not None
        await busy.close()
        await stopped.close()

    run(story())


def test_a_reaping_that_is_cancelled_leaves_no_zombie(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        ring = Ring.create(2, SPEC.max_bytes)
        worker = await WorkerProcess.spawn("", ring)
        monkeypatch.setattr(worker, "kill", lambda: None)  # it takes its time to end
        async with asyncio.TaskGroup() as tasks:
            reaping = tasks.create_task(worker.reap())
            for _ in range(3):
                await asyncio.sleep(0)
                reaping.cancel()
            await asyncio.sleep(0)
            assert not reaping.done()
            os.kill(worker.pid, signal.SIGKILL)
        assert reaping.cancelled()
        assert children() == []
        ring.close()

    before = open_fds()
    run(story())
    assert open_fds() == before


PARENT = """
import asyncio
from tests.workers.support import fast, shot
from tests.workers.command_brain import HANG

async def main():
    seat = fast()
    await seat.start()
    print(seat.pid, flush=True)
    await seat.assess(shot(HANG))

asyncio.run(main())
"""


def test_a_worker_in_mid_call_dies_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    ended, _, _ = select.select([worker], [], [], PATIENCE)
    os.close(worker)
    assert ended


def test_a_worker_lost_in_one_step_of_an_afterthought_is_not_taken_for_dead(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        stopped = fast(worker=WorkerSettings(ping_interval=0.2, restarts_per_minute=0))
        thinker = fast({"gate": str(gate)}, PENSIVE, WorkerSettings(ping_interval=0.02))
        stopped_ear, ear = Ear(), Ear()
        for seat, listener in ((stopped, stopped_ear), (thinker, ear)):
            seat.listen(listener)
            await seat.start()
        assert isinstance(await thinker.assess(shot(PONDER)), FastVerdict)
        assert stopped.pid is not None
        os.kill(stopped.pid, signal.SIGSTOP)
        # The time of twenty pings to the thinker, which it cannot answer.
        assert await stopped_ear.next() == BrainDown("command", latched=True)
        assert ear.heard.empty()
        await asyncio.to_thread(gate.write_text, "a blade")
        remark = await ear.next()
        assert isinstance(remark, Remarked)
        assert remark.hazard.text == "a blade"
        assert isinstance(await thinker.assess(shot(PONDER)), FastVerdict)  # the same worker
        await stopped.close()
        await thinker.close()
        assert ear.heard.empty()

    run(story())


def test_a_worker_that_never_comes_back_from_an_afterthought_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "THOUGHT_LIMIT", 0.3)
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        seat, ear = fast({"gate": str(gate)}, PENSIVE, WorkerSettings(ping_interval=0.02)), Ear()
        seat.listen(ear)
        await seat.start()
        await seat.assess(shot(PONDER))
        assert await ear.next() == BrainDown("command")
        why = await reason(seat.assess(shot(GREEN)))
        assert "answered no ping for 0.3 s while lost in an afterthought" in why
        assert await ear.next() == BrainUp("command")
        await seat.close()

    run(story())


def test_a_worker_whose_afterthought_is_over_must_answer_a_ping_as_any_idle_one() -> None:
    async def story() -> None:
        seat, ear = fast({}, PENSIVE, WorkerSettings(ping_interval=0.1)), Ear()
        seat.listen(ear)
        await seat.start()
        await seat.assess(shot(RED))
        assert isinstance(await ear.next(), Remarked)
        # What it says comes in order: behind this answer that thought is over, and there is no new.
        assert isinstance(await seat.assess(shot(DARK)), CannotSee)
        assert seat.pid is not None
        os.kill(seat.pid, signal.SIGSTOP)
        assert await ear.next() == BrainDown("command")
        assert "for 0.1 s while idle" in await reason(seat.assess(shot(GREEN)))
        await seat.close()

    run(story())
