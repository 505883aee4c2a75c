"""What happens to the guard itself: killed, stopped, asked to end, wrongly configured, doubled."""

import asyncio
import signal

from hdguard.actuators import wire
from hdguard.faults.processes import Program, hdguard
from hdguard.faults.rows import FaultError, Row, Scenario
from hdguard.faults.stack import Stack
from hdguard.faults.stalling import HOLD_UP, STALL
from hdguard.runtime.lag import LOOK_EVERY

LATE = "hdguard_event_loop_lag_seconds_sum"

CONFIG_ERROR = 78
"""EX_CONFIG of sysexits.h."""


async def killed(stack: Stack) -> tuple[float]:
    """SIGKILL while the robot drives."""
    at = stack.guard.signal(signal.SIGKILL)
    return (await stack.robot_stands(at) - at,)


async def killed_while_halted(stack: Stack) -> tuple[float]:
    """SIGKILL while a halt is in force: the next guard has it, with its cause."""
    witness = stack.witness
    await stack.operator_halts()
    halt = witness.in_force
    assert halt is not None  # just seen
    stack.guard.signal(signal.SIGKILL)
    await stack.guard.ended.wait()
    started = stack.guard.start()

    def same(payload: bytes) -> bool:
        found = wire.decode_halt(payload)
        known = (halt.halt_id, halt.cause, halt.halt_class)
        return (
            found.active
            and found.boot > halt.boot
            and (found.halt_id, found.cause, found.halt_class) == known
        )

    again = await witness.first("halt", same, started)
    moved = [s for s in witness.since("permit", started) if _speed(s.payload) != "none"]
    if moved:
        raise FaultError("it permitted motion while halted")
    return (again.at - started,)


async def stopped(stack: Stack) -> tuple[float]:
    """SIGSTOP while the robot drives: no connection breaks."""
    at = stack.guard.signal(signal.SIGSTOP)
    try:
        stands = await stack.robot_stands(at)
    finally:
        stack.guard.signal(signal.SIGCONT)
    return (stands - at,)


async def stalled(stack: Stack) -> tuple[float]:
    """A callback holds the loop up for a second, and every other thread goes on."""
    pid, before = stack.guard.pid, await stack.metric(LATE)
    at = stack.guard.signal(HOLD_UP)
    stands = await stack.robot_stands(at)
    await stack.until(at + STALL)
    await stack.witness.first("permit", lambda _: True, stack.now())
    late = await stack.metric(LATE) - before
    if late < STALL - LOOK_EVERY:
        raise FaultError(f"its loop was late by {late:.2f} s, not by {STALL:g}")
    if stack.guard.pid != pid:
        raise FaultError("the guard was started anew")
    return (stands - at,)


async def terminated(stack: Stack) -> tuple[float, float]:
    """SIGTERM: a halt that says why, and a clean end."""
    at = stack.guard.signal(signal.SIGTERM)
    halt = await stack.witness.halt(at, "stopping")
    await stack.guard.ended.wait()
    if stack.guard.code != 0:
        raise FaultError(f"it ended with {stack.guard.code}{stack.guard.last_words()}")
    return halt.at - at, stack.guard.ended_at - at


async def bad_configuration(stack: Stack) -> tuple[float]:
    """An unknown key and a wrong type: it names the key and connects to nothing."""
    at_broker: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, w: at_broker.append(w), "127.0.0.1", 0)
    async with server:
        trap = f"port = {server.sockets[0].getsockname()[1]}\n"
        good = stack.config.read_text(encoding="utf-8")
        good = good.replace(f"port = {stack.broker.port}\n", trap)
        return (await _refused(stack, good, at_broker),)


async def _refused(stack: Stack, good: str, at_broker: list[asyncio.StreamWriter]) -> float:
    """Spoil it in each way; returns the longest time that a guard took to say so."""
    took = 0.0
    for key, wrong in {
        "policy.speed": f"{good}[policy]\nspeed = 1\n",
        "http.port": good.replace("[http]\nport =", "[http]\nport = 'any' #"),
    }.items():
        path = stack.folder / "wrong.toml"
        path.write_text(wrong, encoding="utf-8")
        connections = len(stack.camera.accepted)
        code, seconds, words = await _run(path)
        if code != CONFIG_ERROR or key not in words:
            raise FaultError(f"{key}: ended with {code}, said {words!r}")
        if at_broker or len(stack.camera.accepted) != connections:
            raise FaultError(f"{key}: it opened a socket")
        took = max(took, seconds)
    return took


async def second(stack: Stack) -> tuple[float]:
    """Another guard of the same robot is started: it refuses, and the first goes on."""
    pid = stack.guard.pid
    began = stack.now()
    code, seconds, words = await _run(stack.config)
    if code != CONFIG_ERROR or "lock" not in words:
        raise FaultError(f"the second guard ended with {code}, said {words!r}")
    if stack.guard.pid != pid or _new_boot(stack, began):
        raise FaultError("the first guard was disturbed")
    slower = [s for s in stack.witness.since("permit", began) if _speed(s.payload) == "none"]
    if slower:
        raise FaultError("the robot had to stand")
    return (seconds,)


async def _run(config: object) -> tuple[int, float, str]:
    """Another `hdguard run`, to its end: exit code, seconds, and what it said."""
    other = Program("another guard", *hdguard("run", "--config", str(config)))
    began = other.start()
    try:
        await other.ended.wait()
        await asyncio.sleep(0)
    finally:
        other.end()
    return other.code or 0, other.ended_at - began, other.last_words()


def _new_boot(stack: Stack, since: float) -> bool:
    """Whether more than one guard has published since then."""
    boots = {wire.decode_permit(s.payload).boot for s in stack.witness.since("permit", since)}
    return len(boots) > 1


def _speed(payload: bytes) -> str:
    return wire.decode_permit(payload).speed


SCENARIOS = (
    Scenario(
        (Row("daemon-killed", "daemon SIGKILL: the robot's lease ends", 0.6, clocked=True),),
        killed,
    ),
    Scenario(
        (Row("daemon-restarted", "restart after SIGKILL: halted again, same cause", 2.0),),
        killed_while_halted,
    ),
    Scenario(
        (Row("daemon-stopped", "daemon SIGSTOP: the robot's lease ends", 0.6, clocked=True),),
        stopped,
    ),
    Scenario(
        (
            Row(
                "loop-stalled",
                "event loop held up for 1 s: the robot's lease ends",
                0.6,
                clocked=True,
            ),
        ),
        stalled,
    ),
    Scenario(
        (
            Row("sigterm-halt", "SIGTERM: halt `stopping` published", 0.5),
            Row("sigterm", "SIGTERM: clean exit", 3.0),
        ),
        terminated,
    ),
    Scenario(
        (Row("bad-config", "bad configuration: exit 78, no socket opened", None),),
        bad_configuration,
    ),
    Scenario(
        (Row("second-guard", "second guard of one robot: refused", None),),
        second,
    ),
)
