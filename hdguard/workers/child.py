"""The other side of a worker: `python -m hdguard.workers.child <pipe> <ring> <parent>`.

Loads one brain and answers one call at a time. A `BrainError` is an answer; any other exception
is a defect of the brain, which ends the process with its traceback on standard error: the
supervisor starts a fresh one. It ends with its parent however that one ends.
"""

import ctypes
import dataclasses
import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from hdguard.brains.base import BrainError, FastBrain, Shot, SlowBrain
from hdguard.core.events import FastVerdict
from hdguard.workers import wire
from hdguard.workers.channel import WorkerChannel
from hdguard.workers.ring import Ring

log = logging.getLogger(__name__)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_VERBS: Mapping[wire.Role, str] = {"fast": "assess", "slow": "review"}


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
    channel.send(wire.Ready(brain.name, brain.spec))
    while True:
        match channel.receive():
            case wire.Ping():
                channel.send(wire.Pong())
            case wire.Assess() | wire.Review() as call:
                channel.send(answer(brain, ring, call))
            case wire.Stop() | None:
                return
            case wire.Load():
                sys.exit("a second Load")


def answer(brain: Any, ring: Ring, call: wire.Call) -> wire.Answer:
    """The brain's answer, or its BrainError."""
    try:
        match call:
            case wire.Assess():
                verdict = brain.assess(_shot(ring, call.picture))
                if isinstance(verdict, FastVerdict):
                    return wire.Assessed(call.call_id, verdict)
                return wire.Unseen(call.call_id, verdict)
            case wire.Review():
                shots = tuple(_shot(ring, picture) for picture in call.pictures)
                review = brain.review(call.review_id, call.trigger, shots)
                return wire.Reviewed(call.call_id, review)
    except BrainError as error:
        return wire.Failed(call.call_id, str(error))


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
