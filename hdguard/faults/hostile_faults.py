"""What strangers do: commands that nobody may obey, and abuse of the HTTP port."""

import asyncio
import itertools
from collections.abc import Iterator

from hdguard.actuators import wire
from hdguard.actuators.signing import seal
from hdguard.faults.rows import FaultError, Row, Scenario
from hdguard.faults.stack import ROBOT, Stack

COMMANDS = 1000
"""In one injection; ten of them make the ten thousand of DESIGN section 6."""

LEASE = 0.6
"""Seconds: with a longer gap between two permits the robot would stand."""


REPLAYS = 20
"""Of a reset that was good once."""


async def commands(stack: Stack) -> tuple[float]:
    """Resets that must not be obeyed, in a halt: the longest gap between permits meanwhile."""
    witness = stack.witness
    began = await stack.operator_halts()
    halt = witness.in_force
    assert halt is not None  # just seen
    state = await witness.first("state", lambda p: wire.decode_state(p).nonce is not None, began)
    nonce = wire.decode_state(state.payload).nonce or ""
    for topic, payload in itertools.islice(_everything(stack, halt.halt_id, nonce), COMMANDS):
        await witness.publish(topic, payload)
    await _still_halted(stack, began)
    over = stack.now()
    await stack.ready()  # by an operator's own reset
    good = witness.last("reset")
    if good is None or good.at < over:
        raise FaultError("the operator's own reset was not seen")
    again = await stack.operator_halts()
    for _ in range(REPLAYS):
        await witness.publish("reset", good.payload)
    await _still_halted(stack, again)
    times = [seen.at for seen in witness.since("permit", began)]
    return (max(b - a for a, b in itertools.pairwise(times)),)


async def _still_halted(stack: Stack, since: float) -> None:
    """Raise if the halt has ended; the guard has time to hear what was said before."""
    await stack.until(stack.now() + LEASE)
    for seen in stack.witness.since("halt", since):
        if not wire.decode_halt(seen.payload).active:
            raise FaultError("a reset was accepted that nobody may give")


def _everything(stack: Stack, halt_id: str, nonce: str) -> Iterator[tuple[str, bytes]]:
    """Commands that are forged and messages that are none, in turn, without end."""
    rubbish = (b"", b"\xff\xfe\x00", b"[" * 2000, b"{}", b'{"boot":-1}', b"7" * 5000, b"null")
    nonsense = itertools.product(("robot", "ack", "reset"), rubbish)
    forged = _bad_resets(stack, halt_id, nonce)
    for message in itertools.cycle(nonsense):
        yield "reset", next(forged)
        yield message


def _bad_resets(stack: Stack, halt_id: str, nonce: str) -> Iterator[bytes]:
    """Unsigned, signed by a stranger, for another topic, with a spent or invented nonce."""
    topic = f"hdguard/{ROBOT}/reset"
    key = stack.reset_key.encode()
    message = wire.ResetMessage(halt_id=halt_id, nonce=nonce, operator="stranger")
    invented = wire.ResetMessage(halt_id=halt_id, nonce="0" * 32, operator="stranger")
    other = wire.ResetMessage(halt_id="999999-1", nonce="0" * 32, operator="stranger")
    body = wire.encode(message)
    while True:
        yield body
        yield seal(topic, body, b"a stranger's own key")
        yield seal("hdguard/other/reset", body, key)
        yield seal(topic, wire.encode(invented), key)
        yield seal(topic, wire.encode(other), key)
        yield seal(topic, body[:-1] + b',"force":true}', b"a stranger's own key")


async def http_abuse(stack: Stack) -> tuple[float]:
    """Bodies too big, headers that never end, more connections than there is room for."""
    began = stack.now()
    writers = [await _open(stack, b"GET /livez HTTP/1.1\r\nX-Slow: ") for _ in range(60)]
    try:
        big = await _open(
            stack, b"POST /api/v1/halt HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
        )
        writers.append(big)
        for _ in range(100):
            big.write(b"x" * 20_000)
            await asyncio.sleep(0)
        for _ in range(100):
            await stack.ask("GET", "/metrics")
        over = stack.now()
        await stack.witness.first("permit", lambda _: True, over)
    finally:
        for writer in writers:
            writer.transport.abort()
    if [s for s in stack.witness.since("halt", began) if wire.decode_halt(s.payload).active]:
        raise FaultError("somebody without a token halted the robot, or the flood did")
    times = [seen.at for seen in stack.witness.since("permit", began)]
    return (max((b - a for a, b in itertools.pairwise(times)), default=0.0),)


async def _open(stack: Stack, head: bytes) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", stack.http)
    writer.write(head)
    return writer


SCENARIOS = (
    Scenario(
        (
            Row(
                "commands",
                f"{COMMANDS} forged commands: none accepted; longest gap between permits",
                LEASE,
            ),
        ),
        commands,
    ),
    Scenario(
        (Row("http-abuse", "HTTP abuse: longest gap between permits", LEASE),),
        http_abuse,
    ),
)
