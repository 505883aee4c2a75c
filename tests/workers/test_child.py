"""The other side of the pipe, spoken to directly."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hdguard.core.types import Light
from hdguard.workers import child, wire
from hdguard.workers.channel import WorkerChannel
from hdguard.workers.ring import Ring
from tests.workers import command_brain
from tests.workers.command_brain import DARK, GREEN, RED, SPEC, UNPARSED
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
        assert pong == wire.Pong()
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
