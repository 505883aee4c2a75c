"""What strangers do: commands that nobody may obey, and abuse of the HTTP port."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator

from hdguard.actuators import wire
from hdguard.actuators.signing import seal
from hdguard.faults.rows import FaultError, Row, Scenario
from hdguard.faults.stack import ROBOT, STARTING, Stack

COMMANDS = 1000
"""In one injection; ten of them make the ten thousand of DESIGN section 6."""

LEASE = 0.6
"""Seconds: with a longer gap between two permits the robot would stand."""

REPLAYS = 20
"""Of a reset that was good once."""

SLOW = 60
"""Connections whose head never ends: about twice what the guard holds (`http.max_connections`)."""

_HALT = b"POST /api/v1/halt HTTP/1.1\r\nHost: x\r\n"
TOO_MUCH = {
    "a huge body": _HALT + b"Content-Length: 99999999\r\n\r\n",
    "a huge head": _HALT + b"X-Long: " + b"x" * 60_000 + b"\r\n\r\n",
    "a halt without a token": _HALT + b"Content-Length: 0\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\r\n\r\n",
}
"""What must be refused."""


async def commands(stack: Stack) -> tuple[float]:
    """Resets that must not be obeyed, in a halt: the longest gap between permits meanwhile.

    At the end a guard starts whom a retained one awaits.
    """
    witness = stack.witness
    began = await stack.operator_halts()
    halt_id, nonce = await _halted(stack, began)
    for topic, payload in itertools.islice(_everything(stack, halt_id, nonce), COMMANDS):
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
    gap = witness.longest_gap("permit", began)
    await _retained(stack, again)
    return (gap,)


async def _halted(stack: Stack, since: float) -> tuple[str, str]:
    """The id of the halt in force and a nonce of the guard's: what a reset must name."""
    while True:
        seen = await stack.witness.first("state", lambda p: b'"nonce":"' in p, since)
        state = wire.decode_state(seen.payload)
        if state.halt_id is not None and state.nonce is not None:
            return state.halt_id, state.nonce
        since = stack.now()


async def _retained(stack: Stack, since: float) -> None:
    """An operator's own reset, signed and never obeyed, lies on the broker when a guard starts."""
    halt_id, nonce = await _halted(stack, since)
    message = wire.ResetMessage(halt_id=halt_id, nonce=nonce, operator="faults")
    sealed = seal(f"hdguard/{ROBOT}/reset", wire.encode(message), stack.reset_key.encode())
    stack.guard.end()
    noted = len(stack.audited())
    await stack.witness.publish("reset", sealed, retain=True)
    started = stack.guard.start()
    again, _ = await _halted(stack, started + STARTING)
    if again != halt_id:
        raise FaultError(f"it came back with halt {again}, not {halt_id}")
    await _still_halted(stack, started)
    if not any("reset: retained" in line for line in stack.audited()[noted:]):
        raise FaultError("nothing is audited of a retained reset: it was not met")
    await stack.witness.publish("reset", b"", retain=True)


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
    opened = [await _open(stack, b"GET /livez HTTP/1.1\r\nX-Slow: ") for _ in range(SLOW)]
    try:
        opened.append(await _open(stack, TOO_MUCH["a huge body"]))
        for _ in range(100):
            opened[-1][1].write(b"x" * 20_000)
            await asyncio.sleep(0)
        for what, request in TOO_MUCH.items():
            opened.append(await _open(stack, request))
            if not 400 <= (said := await _status(opened[-1][0])) < 500:
                raise FaultError(f"{what} was answered {said or 'nothing'}, not 4xx")
        flood = Counter([await stack.ask("GET", "/metrics") for _ in range(100)])
        if set(flood) != {200, 429}:
            raise FaultError(f"100 times GET /metrics: {dict(flood)}, not 200 and then 429")
        await stack.witness.first("permit", lambda _: True, stack.now())
    finally:
        for _, writer in opened:
            writer.transport.abort()
    if [s for s in stack.witness.since("halt", began) if wire.decode_halt(s.payload).active]:
        raise FaultError("somebody without a token halted the robot, or the flood did")
    return (stack.witness.longest_gap("permit", began),)


async def _open(stack: Stack, head: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.http)
    writer.write(head)
    return reader, writer


async def _status(reader: asyncio.StreamReader) -> int:
    """Of the answer; 0 if there is none."""
    try:
        words = (await reader.readline()).split()
    except OSError:
        return 0
    return int(words[1]) if len(words) > 1 else 0


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
