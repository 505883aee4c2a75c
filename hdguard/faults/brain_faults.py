"""What brains do: answer late, not at all, or die."""

import os
import signal

from hdguard.actuators import wire
from hdguard.faults.rows import FaultError, Row, Scenario
from hdguard.faults.stack import Stack
from hdguard.faults.witness import Seen

HUNG = ("stale_verdict", "brain_failed")
"""Causes of a halt for want of verdicts: whichever is past its limit first."""

STILL = 0.5
"""Seconds before the halt in which no frame is judged any more: half of the shorter limit."""

SLOW = 0.66
"""Seconds that the process stands still: up to 0.25 until it is asked again, 0.4 for the deadline.
Far below the 1.5 s at which it is killed."""


async def fast_slow(stack: Stack) -> tuple[float]:
    """One answer comes too late: its process stands still for a while."""
    worker, witness = stack.worker(), stack.witness
    late = 'hdguard_verdicts_total{brain="model",verdict="late"}'
    before = await stack.metric(late)
    stopped = _stop(stack, worker)
    try:
        slowed = await witness.first("permit", _not_full, stopped)
        await stack.until(stopped + SLOW)
        counted = await stack.metric(late)  # while there is still no answer: at its deadline
    finally:
        os.kill(worker, signal.SIGCONT)
    await stack.ready()
    if counted != before + 1:
        raise FaultError(f"{counted - before:g} answers counted as late, not 1")
    if stack.worker() != worker:
        raise FaultError("the worker was replaced")
    return (slowed.at - stopped,)


async def fast_hangs(stack: Stack) -> tuple[float]:
    """It never answers again; measured from when the last judged frame was taken."""
    worker = stack.worker()
    return (await _until_halt(stack, worker, _stop(stack, worker)),)


async def fast_hangs_green(stack: Stack) -> tuple[float]:
    """The same at 1 frame a second, with an answer that does not come: see `stack.GREENS`.

    To stop the process would not do: it is found by its silence between two frames.
    """
    return (await _until_halt(stack, stack.worker(), stack.now()),)


async def _until_halt(stack: Stack, worker: int, since: float) -> float:
    """Seconds from the capture of the last judged frame to the halt; mended then."""
    witness = stack.witness
    halt = await witness.halt(since, *HUNG)
    # All of these speak of one frame. The one that was on its way the shortest tells its time best.
    permits = [s for s in witness.since("permit", halt.at - STILL) if s.at <= halt.at]
    if not permits:
        raise FaultError(f"no permit came in the {STILL:g} s before the halt")
    judged = min(map(_taken, permits))
    await stack.ready()
    if worker == stack.worker():
        raise FaultError("the worker was not replaced")
    return halt.at - judged


def _taken(seen: Seen) -> float:
    """When the last judged frame was taken, by what the permit says of its age."""
    age = wire.decode_permit(seen.payload).verdict_age
    return float("-inf") if age is None else seen.at - age


async def slow_killed(stack: Stack) -> tuple[float]:
    """The SlowBrain's process dies: found, told, and replaced."""
    return (await _slow_lost(stack, signal.SIGKILL),)


async def slow_hangs(stack: Stack) -> tuple[float]:
    """The SlowBrain's process stands still: found by its silence, told, and replaced."""
    return (await _slow_lost(stack, signal.SIGSTOP),)


async def _slow_lost(stack: Stack, how: signal.Signals) -> float:
    pid, worker = stack.guard.pid, stack.worker()
    lost = stack.now()
    os.kill(worker, how)
    slowed = await stack.witness.first("permit", _not_full, lost)
    await stack.ready()
    if stack.guard.pid != pid or stack.worker() == worker:
        raise FaultError("not the SlowBrain's process was replaced, but something else")
    if [s for s in stack.witness.since("halt", lost) if wire.decode_halt(s.payload).active]:
        raise FaultError("the robot was halted")
    return slowed.at - lost


def _stop(stack: Stack, pid: int) -> float:
    at = stack.now()
    os.kill(pid, signal.SIGSTOP)
    return at


def _not_full(payload: bytes) -> bool:
    return wire.decode_permit(payload).speed != "full"


SCENARIOS = (
    Scenario(
        # A frame may just have been judged: the next one is asked about 0.2 s later, and its
        # deadline is 0.4 s after that.
        (
            Row(
                "fast-slow",
                "FastBrain slow: failed at its deadline, robot slowed",
                0.6,
                clocked=True,
            ),
        ),
        fast_slow,
        kind="model",
    ),
    Scenario(
        (Row("fast-hangs", "FastBrain hangs at 5 FPS: fault halt", 1.0, clocked=True),),
        fast_hangs,
        kind="model",
        fresh=True,
    ),
    Scenario(
        (Row("fast-hangs-green", "FastBrain hangs at 1 FPS: fault halt", 2.5, clocked=True),),
        fast_hangs_green,
        kind="adaptive",
        fresh=True,
    ),
    Scenario(
        (Row("slow-killed", "SlowBrain killed: noticed, robot slowed", 0.2),),
        slow_killed,
        fresh=True,
    ),
    Scenario(
        (Row("slow-hangs", "SlowBrain hangs: noticed, robot slowed", None),),
        slow_hangs,
        fresh=True,
    ),
)
