"""What brokers do: not there, killed, frozen; and a robot that does not answer."""

import itertools
import signal

from hdguard.actuators import wire
from hdguard.faults.rows import FaultError, Row, Scenario
from hdguard.faults.stack import Stack

AWAY = 1.0
"""Seconds that the broker stays away: field.md, F10."""

STILL_MUTE = 0.3
"""Seconds after the escalation; three repetitions more."""


async def absent(stack: Stack) -> tuple[float]:
    """A guard starts without a broker, is not ready, and says its state when the broker comes."""
    stack.guard.end()
    stack.broker.end()
    stack.guard.start()
    await stack.answers("/livez", 200)
    if (said := await stack.ask("GET", "/readyz")) != 503:
        raise FaultError(f"GET /readyz without a broker: {said}, not 503")
    up = await stack.broker.up()
    state = await stack.witness.first("state", lambda _: True, up)
    return (state.at - up,)


async def restarted(stack: Stack) -> tuple[float, float]:
    """The broker is killed and comes back after a second."""
    pid = stack.guard.pid
    stack.broker.end()
    killed = stack.broker.ended_at
    stands = await stack.robot_stands(killed)
    await stack.hook.on(killed)
    if (said := await stack.ask("GET", "/readyz")) != 503:
        raise FaultError(f"GET /readyz without a broker: {said}, not 503")
    await stack.until(killed + AWAY)
    up = await stack.broker.up()
    state = await stack.witness.first("state", lambda _: True, up)
    if stack.guard.pid != pid:
        raise FaultError("the guard was started anew")
    return stands - killed, state.at - up


async def frozen(stack: Stack) -> tuple[float, float]:
    """The broker is stopped: connections stay open, and nothing arrives."""
    stopped = stack.broker.signal(signal.SIGSTOP)
    try:
        stands = await stack.robot_stands(stopped)
        found = await stack.hook.on(stopped)
    finally:
        stack.broker.signal(signal.SIGCONT)
    return stands - stopped, found - stopped


async def not_acknowledged(stack: Stack) -> tuple[float, float]:
    """The robot is mute while it is halted: the slowest repetition, and the escalation.

    It is repeated after the escalation too, until the robot confirms.
    """
    witness = stack.witness
    stack.robot.signal(signal.SIGSTOP)
    try:
        halted = await stack.operator_halts()
        escalated = await stack.hook.on(halted)
        await stack.until(escalated + STILL_MUTE)
        over = stack.now()
    finally:
        stack.robot.signal(signal.SIGCONT)
    times = [seen.at for seen in witness.since("halt", halted) if seen.at <= over]
    await witness.first("ack", _confirmed, over)
    return max(b - a for a, b in itertools.pairwise([*times, over])), escalated - halted


def _confirmed(payload: bytes) -> bool:
    return wire.decode_ack(payload).stopped


SCENARIOS = (
    Scenario(
        (Row("broker-absent", "broker absent at start: state published after it came", 0.5),),
        absent,
    ),
    Scenario(
        (
            Row("broker-killed-robot", "broker killed: the robot's lease ends", 0.6, clocked=True),
            Row("broker-restarted", "broker restarted: state published again", 0.5),
        ),
        restarted,
    ),
    Scenario(
        (
            Row("broker-frozen-robot", "broker frozen: the robot's lease ends", 0.6, clocked=True),
            Row("broker-frozen", "broker frozen: found, the hook runs", 1.0, clocked=True),
        ),
        frozen,
    ),
    Scenario(
        (
            Row("halt-repeated", "halt not acknowledged: repeated", 0.1, clocked=True),
            Row("halt-escalated", "halt not acknowledged: escalated", 0.5, clocked=True),
        ),
        not_acknowledged,
    ),
)
