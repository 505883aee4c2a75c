"""The other side of the pipe, spoken to directly."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hdguard.core.events import Remarked
from hdguard.core.types import Light
from hdguard.workers import child, wire
from hdguard.workers.channel import WorkerChannel
from hdguard.workers.ring import Ring
from tests.workers import command_brain
from tests.workers.command_brain import (
    DARK,
    GATE,
    GREEN,
    LISTEN,
    RED,
    SCORES,
    SPEC,
    UNPARSED,
    WORK,
)
from tests.workers.support import PATIENCE, ref

LOAD = wire.Load("fast", command_brain.FAST, {}, 2, SPEC.max_bytes)
CHATTY = """
from tests.workers.command_brain import CommandFastBrain

class Chatty(CommandFastBrain):
    def __init__(self, settings):
        print("loading shards", flush=True)
        super().__init__(settings)
"""


class Child:
    """A real child process, and our end of its pipe."""

    def __init__(self, process: "subprocess.Popen[str]", pipe: socket.socket, ring: Ring) -> None:
        self.process = process
        self.pipe = pipe
        self.ring = ring

    def tell(self, message: wire.Request) -> None:
        self.pipe.sendall(wire.encode(message))

    def hear(self) -> wire.Reply:
        return wire.decode_reply(self._exactly(int.from_bytes(self._exactly(wire.PREFIX), "big")))

    def _exactly(self, size: int) -> bytes:
        data = self.pipe.recv(size, socket.MSG_WAITALL)
        assert len(data) == size
        return data

    def assess(self, call_id: int, command: float) -> wire.Reply:
        self.tell(wire.Assess(call_id, wire.Picture(ref(command), 0, 6, 8)))
        return self.hear()

    def hear_past_remarks(self) -> wire.Reply:
        while isinstance(reply := self.hear(), wire.Remarked):
            pass
        return reply


@contextmanager
def a_child(parent: int | None = None) -> Iterator[Child]:
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    ring = Ring.create(2, SPEC.max_bytes)
    fds = (theirs.fileno(), ring.fd)
    command = [sys.executable, "-m", child.__name__, *map(str, fds), str(parent or os.getpid())]
    process = subprocess.Popen(
        command, pass_fds=fds, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with theirs, ours, process:
        theirs.close()
        try:
            yield Child(process, ours, ring)
        finally:
            process.kill()
            ring.close()


def test_it_greets_loads_answers_and_stops() -> None:
    with a_child() as it:
        assert it.hear() == wire.Hello(wire.PROTOCOL)
        it.tell(LOAD)
        assert it.hear() == wire.Ready("command", SPEC)
        it.ring.write(1, np.full((6, 8, 3), 2, np.uint8))
        for call_id, command in enumerate((GREEN, RED, DARK, UNPARSED)):
            it.tell(wire.Assess(call_id, wire.Picture(ref(command), 1, 6, 8)))
        it.tell(wire.Ping())
        green, red, dark, failed, pong = [it.hear() for _ in range(5)]
        assert isinstance(green, wire.Assessed)
        assert (green.call_id, green.verdict.light) == (0, Light.GREEN)
        assert isinstance(red, wire.Assessed)
        assert red.verdict.hazard.text == "sum 288 of (6, 8, 3)"
        assert isinstance(dark, wire.Unseen)
        assert dark.blind.reason == "dark"
        assert failed == wire.Failed(3, "unparsed")
        assert isinstance(pong, wire.Pong)
        it.tell(wire.Stop())
        assert it.process.wait(PATIENCE) == 0


def test_a_picture_that_is_not_in_the_ring_is_an_answer_too() -> None:
    with a_child() as it:
        it.tell(LOAD)
        it.tell(wire.Assess(1, wire.Picture(ref(GREEN), 9, 6, 8)))
        assert [it.hear() for _ in range(2)][1] == wire.Ready("command", SPEC)
        failed = it.hear()
        assert isinstance(failed, wire.Failed)
        assert "does not fit into slot 9" in failed.reason


def test_a_terminal_interrupt_is_left_to_the_parent() -> None:
    with a_child() as it:
        assert it.hear() == wire.Hello(wire.PROTOCOL)
        os.kill(it.process.pid, signal.SIGINT)
        it.tell(LOAD)
        assert it.hear() == wire.Ready("command", SPEC)


def test_what_a_model_prints_does_not_mix_with_the_parents_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chatty.py").write_text(CHATTY)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ['PYTHONPATH']}")
    with a_child() as it:
        it.tell(wire.Load("fast", "chatty:Chatty", {}, 2, SPEC.max_bytes))
        it.tell(wire.Stop())
        out, err = it.process.communicate(timeout=PATIENCE)
    assert out == ""
    assert "loading shards" in err


@pytest.mark.parametrize("when", ["before the load", "after it"])
def test_it_ends_when_the_pipe_is_closed(when: str) -> None:
    with a_child() as it:
        it.hear()
        if when == "after it":
            it.tell(LOAD)
            it.hear()
        it.pipe.close()
        assert it.process.wait(PATIENCE) == 0


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a process of its parent's end"
)
def test_it_ends_when_its_parent_was_gone_before_it_looked() -> None:
    with a_child(parent=1) as it:
        assert it.process.wait(PATIENCE) == 1
        assert it.process.stderr is not None
        assert "the supervisor is gone" in it.process.stderr.read()


def test_a_second_load_ends_it() -> None:
    with a_child() as it:
        it.tell(LOAD)
        it.tell(LOAD)
        assert it.process.wait(PATIENCE) == 1


def test_a_supervisor_that_goes_away_in_mid_answer_is_no_traceback() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        with pytest.raises(ConnectionError):
            child.serve(WorkerChannel(theirs), -1)


def test_the_supervisor_names_the_child_that_there_is() -> None:
    from hdguard.workers.process import CHILD  # noqa: PLC0415

    assert child.__name__ == CHILD


# What it takes.


def test_its_pong_says_what_the_kernel_says_that_it_takes() -> None:
    with a_child() as it:
        it.tell(LOAD)
        it.tell(wire.Ping())
        *_, pong = [it.hear() for _ in range(3)]
        assert isinstance(pong, wire.Pong)
        status = Path(f"/proc/{it.process.pid}/status").read_text()
        (kibibytes,) = (int(x.split()[1]) for x in status.splitlines() if x.startswith("VmRSS"))
        assert pong.numbers.resident == pytest.approx(kibibytes * 1024, rel=0.05)
        assert pong.numbers.gpu is None


def test_where_the_kernel_does_not_say_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "STATM", Path("/nowhere/statm"))
    assert child.numbers().resident is None


class Cuda:
    """Two GPUs, as PyTorch tells of them."""

    def __init__(self, *, used: bool) -> None:
        self.is_initialized = lambda: used
        self.device_count = lambda: 2
        self.memory_reserved = (512, 4096).__getitem__


@pytest.mark.parametrize(("used", "gpu"), [(True, 4608), (False, None)])
def test_a_gpus_memory_is_told_only_where_the_brain_uses_one(
    used: bool, gpu: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=Cuda(used=used)))
    assert child.numbers().gpu == gpu


# Afterthoughts.


@contextmanager
def a_pensive_child(**settings: str) -> Iterator[Child]:
    with a_child() as it:
        it.tell(wire.Load("fast", command_brain.PENSIVE, dict(settings), 2, SPEC.max_bytes))
        it.hear()
        ready = it.hear()
        assert isinstance(ready, wire.Ready)
        assert (ready.fingerprint, ready.warm_p99) == ("weights 1, prompt 2", 0.125)
        it.ring.write(0, np.zeros((6, 8, 3), np.uint8))
        yield it


def test_a_reason_follows_its_verdict_and_is_cut_to_what_a_screen_holds() -> None:
    with a_pensive_child() as it:
        assert isinstance(it.assess(3, RED), wire.Assessed)
        remarked = it.hear()
        assert isinstance(remarked, wire.Remarked)
        assert remarked.call_id == 3
        said = remarked.remark
        assert isinstance(said, Remarked)
        assert (said.ref, said.brain) == (ref(RED), "command")
        assert (said.hazard.category, said.hazard.severity) == ("C3", "L2")
        assert len(said.hazard.text) == child.MOST_TEXT == 300
        assert said.sights == tuple(f"thing {n}" for n in range(child.MOST_SIGHTS))


def test_an_afterthought_without_an_end_never_delays_the_next_frame(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with a_pensive_child(closed=str(closed)) as it:
        yellow = it.assess(1, LISTEN)
        assert isinstance(yellow, wire.Assessed)
        assert yellow.verdict.scores == SCORES
        assert isinstance(it.hear(), wire.Remarked)
        it.tell(wire.Ping())
        assert isinstance(it.hear_past_remarks(), wire.Pong)
        assert isinstance(it.hear(), wire.Remarked)  # a sign of life does not end the thought
        assert not closed.exists()
        it.tell(wire.Assess(2, wire.Picture(ref(WORK), 0, 6, 8)))
        again = replace(yellow.verdict, ref=ref(WORK))
        assert it.hear_past_remarks() == wire.Assessed(2, again, goes_on=True)
        assert closed.exists()
        it.tell(wire.Stop())
        assert it.process.wait(PATIENCE) == 0


def test_a_brain_that_fails_when_its_afterthought_is_dropped_judges_the_next_frame() -> None:
    with a_pensive_child(closed="/nowhere/closed") as it:
        for call_id in range(3):
            it.tell(wire.Assess(call_id, wire.Picture(ref(LISTEN), 0, 6, 8)))
            answer = it.hear_past_remarks()
            assert isinstance(answer, wire.Assessed)
            assert answer.call_id == call_id
            assert isinstance(it.hear(), wire.Remarked)  # the afterthought is at work


def test_it_is_told_whether_an_afterthought_goes_on_and_when_it_has_ended() -> None:
    with a_pensive_child() as it:
        red = it.assess(1, RED)
        assert isinstance(red, wire.Assessed)
        assert red.goes_on
        assert it.hear_past_remarks() == wire.Settled(1)
        it.tell(wire.Ping())
        assert isinstance(it.hear(), wire.Pong)
    with a_child() as it:
        it.tell(LOAD)
        it.hear()
        it.hear()
        green = it.assess(1, GREEN)
        assert isinstance(green, wire.Assessed)
        assert not green.goes_on


def test_a_brain_that_has_nothing_to_add_lives_on_and_one_with_a_defect_does_not() -> None:
    with a_pensive_child() as it:
        assert isinstance(it.assess(1, GREEN), wire.Assessed)
        assert it.hear() == wire.Settled(1)
        assert isinstance(it.assess(2, DARK), wire.Unseen)
        assert isinstance(it.assess(3, GATE), wire.Assessed)
        assert it.process.wait(PATIENCE) == 1
        assert it.process.stderr is not None
        assert "ZeroDivisionError: a defect of the afterthought" in it.process.stderr.read()


# Where it may run.


def test_it_imports_only_what_an_environment_made_for_one_model_has() -> None:
    code = "import hdguard.workers.child, sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    ours = {name for name in loaded if name.startswith("hdguard.")}
    core = {name for name in ours if name.startswith("hdguard.core")}
    assert ours - core == {
        "hdguard.brains",
        "hdguard.brains.base",
        "hdguard.workers",
        *(f"hdguard.workers.{name}" for name in ("channel", "child", "interrupt", "ring", "wire")),
    }
    bare = subprocess.run(
        [sys.executable, "-c", "import numpy.typing, msgspec, sys; print(*sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    tops = {name.split(".")[0] for name in loaded - set(bare.stdout.split())}
    assert tops - set(sys.stdlib_module_names) == {"hdguard"}
