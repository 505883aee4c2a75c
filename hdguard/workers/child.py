"""The other side of a worker: `python -m hdguard.workers.child <pipe> <ring> <parent>`.

Loads one brain and answers one call at a time. A `BrainError` is an answer; any other exception
is a defect of the brain, which ends the process with its traceback on standard error: the
supervisor starts a fresh one. It ends with its parent however that one ends.

It imports nothing but what a brain needs: it may run in an environment made for one model.
"""

import ctypes
import dataclasses
import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hdguard.brains.base import (
    CANCELLED,
    BrainError,
    FastBrain,
    Remark,
    RemarkingBrain,
    Shot,
    SlowBrain,
)
from hdguard.core.events import FastVerdict, Remarked
from hdguard.core.types import FrameRef, Hazard
from hdguard.workers import wire
from hdguard.workers.channel import WorkerChannel
from hdguard.workers.interrupt import Cancelled, Interruption
from hdguard.workers.ring import Ring

log = logging.getLogger(__name__)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
STATM = Path("/proc/self/statm")
"""Sizes in pages, the second one resident: proc(5) of Linux; elsewhere there is no such file."""
_VERBS: Mapping[wire.Role, str] = {"fast": "assess", "slow": "review"}
MOST_TEXT, MOST_SIGHTS, MOST_NAME = 300, 16, 40
"""Characters of a remark's text, its sights, and characters of a sight's name; more is cut off.
People read them on a screen, and a model may go on for ever; the numbers are a choice."""


def main(pipe_fd: int, ring_fd: int, parent: int) -> None:
    """Serve until the supervisor says Stop or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the parent's to handle
    die_with(parent)
    os.dup2(2, 1)  # what a model prints must not mix with the parent's output
    for fd in (pipe_fd, ring_fd):
        os.set_inheritable(fd, False)
    sock = socket.socket(fileno=pipe_fd)  # closed by our end, so that the exit status is there too
    try:
        serve(WorkerChannel(sock), ring_fd)
    except ConnectionError:
        return  # the supervisor went away while we answered
    except Exception:
        log.exception("the brain raised; this worker ends")
        os._exit(1)  # the supervisor kills what lingers, perhaps before the traceback is out


def die_with(parent: int) -> None:
    """Have the kernel kill us when the parent's thread that started us ends (Linux).

    Elsewhere the closed pipe does it, though not before a call in progress returns.
    """
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != parent:  # it ended before the kernel knew
            sys.exit("the supervisor is gone")


def serve(channel: WorkerChannel, ring_fd: int) -> None:
    """Greet, load what is asked for, and answer."""
    channel.send(wire.Hello(wire.PROTOCOL))
    load = channel.receive()
    if not isinstance(load, wire.Load):
        return
    try:
        brain = build(load)
    except BrainError as error:
        channel.send(wire.Failed(0, str(error)))
        return
    ring = Ring(ring_fd, load.slots, load.slot_bytes)
    interruption = Interruption(ring)
    interruption.install()
    channel.send(introduction(brain))
    thought: Afterthought | None = None
    while True:
        if thought is not None and not channel.waits():
            if not thought.step(channel):
                channel.send(wire.Settled(thought.call_id))
                thought = None
            continue
        match channel.receive():
            case wire.Ping():
                channel.send(wire.Pong(numbers()))
            case wire.Assess() as call:
                if thought is not None:
                    thought.end()
                reply = assess(brain, ring, call)
                channel.send(reply)
                goes_on = isinstance(reply, wire.Assessed) and reply.goes_on
                thought = Afterthought(brain, call) if goes_on else None
            case wire.Review() as call:
                channel.send(review(brain, ring, call, interruption))
            case wire.Stop() | None:
                return
            case wire.Load():
                sys.exit("a second Load")


def introduction(brain: Any) -> wire.Ready:
    """What the brain says of itself; but name and spec all of it is optional."""
    return wire.Ready(
        brain.name,
        brain.spec,
        str(getattr(brain, "fingerprint", "")),
        getattr(brain, "warm_p99", None),
        bool(getattr(brain, "interruptible", False)),
    )


def numbers() -> wire.Numbers:
    """What this process takes now; PyTorch is asked only where the brain has brought it."""
    resident = gpu = None
    if STATM.exists():
        resident = int(STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        gpu = sum(torch.cuda.memory_reserved(n) for n in range(torch.cuda.device_count()))
    return wire.Numbers(resident, gpu)


def assess(brain: Any, ring: Ring, call: wire.Assess) -> wire.Answer:
    """The brain's verdict, or its BrainError."""
    try:
        verdict = brain.assess(_shot(ring, call.picture))
    except BrainError as error:
        return wire.Failed(call.call_id, str(error), error.scores)
    if isinstance(verdict, FastVerdict):
        return wire.Assessed(call.call_id, verdict, goes_on=isinstance(brain, RemarkingBrain))
    return wire.Unseen(call.call_id, verdict)


def review(brain: Any, ring: Ring, call: wire.Review, interruption: Interruption) -> wire.Answer:
    """The brain's answer, its BrainError, or that it was interrupted."""

    def ask() -> wire.Answer:
        shots = tuple(_shot(ring, picture) for picture in call.pictures)
        return wire.Reviewed(call.call_id, brain.review(call.review_id, call.trigger, shots))

    bears_it = getattr(brain, "interruptible", False)
    try:
        return interruption.run(call.call_id, ask) if bears_it else ask()
    except Cancelled:
        return wire.Failed(call.call_id, CANCELLED)
    except BrainError as error:
        return wire.Failed(call.call_id, str(error))


class Afterthought:
    """A brain's thinking about a frame that it has judged, done only while nobody calls."""

    def __init__(self, brain: Any, call: wire.Assess) -> None:
        self._name: str = brain.name
        self.call_id = call.call_id
        self._ref = call.picture.ref
        self._steps: Generator[Remark | None, None, None] = brain.afterthought()

    def step(self, channel: WorkerChannel) -> bool:
        """Think one step further; False when there is nothing more to think."""
        try:
            remark = next(self._steps)
        except StopIteration:
            return False
        except BrainError as error:
            log.info("%s adds nothing: %s", self._name, error)
            return False
        if remark is not None:
            said = _remarked(self._ref, self._name, remark)
            channel.send(wire.Remarked(self.call_id, said))
        return True

    def end(self) -> None:
        """Drop it, finished or not: the next frame is judged, whatever it says to that."""
        try:
            self._steps.close()
        except BrainError as error:
            log.info("%s dropped an afterthought: %s", self._name, error)


def _remarked(ref: FrameRef, brain: str, remark: Remark) -> Remarked:
    hazard = remark.hazard
    return Remarked(
        ref,
        brain,
        Hazard(hazard.category, hazard.severity, hazard.text[:MOST_TEXT]),
        tuple(sight[:MOST_NAME] for sight in remark.sights[:MOST_SIGHTS]),
    )


def build(load: wire.Load) -> FastBrain | SlowBrain:
    """The brain that is asked for.

    Raises:
        BrainError: there is no such class, it does not follow the house's convention for brains,
            the settings do not fit, or the brain's own.
    """
    module_name, colon, class_name = load.target.partition(":")
    if not (module_name and colon and class_name):
        raise BrainError(f"brain {load.target!r} must be named as module:Class")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BrainError(f"{load.target}: cannot import {module_name}: {error}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise BrainError(f"{load.target}: {module_name} has no class {class_name}")
    cls: Any = found
    verb = _VERBS[load.role]
    for needed in ("Settings", verb):
        if not hasattr(cls, needed):
            raise BrainError(f"{load.target}: is no {load.role} brain, it has no {needed}")
    brain: FastBrain | SlowBrain = cls(_settings(load, cls.Settings))
    return brain


def _settings(load: wire.Load, kind: Any) -> Any:
    unknown = sorted(set(load.settings) - {field.name for field in dataclasses.fields(kind)})
    if unknown:
        raise BrainError(f"{load.target}: {kind.__name__} has no field {', '.join(unknown)}")
    try:
        return msgspec.convert(load.settings, kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise BrainError(f"{load.target}: {kind.__name__}: {error}") from error


def _shot(ring: Ring, picture: wire.Picture) -> Shot:
    return Shot(picture.ref, ring.read(picture.slot, picture.height, picture.width))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
