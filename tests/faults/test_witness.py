"""What the witness keeps, and the hook's wire."""

import asyncio
from pathlib import Path

import pytest

from hdguard.actuators import wire
from hdguard.actuators.client import SafeClient
from hdguard.core.types import HaltCause
from hdguard.faults.rows import FaultError
from hdguard.faults.witness import HookWire, Seen, Witness
from hdguard.runtime.hooks import FallBackHook, HookSettings
from tests.actuators.support import HALT, run


def halt(active: bool, cause: str = "stale_frame") -> bytes:
    return wire.encode(
        wire.HaltMessage(
            boot=1,
            seq=1,
            active=active,
            halt_id="1-1",
            halt_class=HALT.halt_class,
            cause=HaltCause(cause),
            latched=False,
            source="k",
            brain="",
            light=None,
            hazard=wire.HazardField(),
            stop_category=1,
            captured_at=None,
            decided_at=0.0,
            evidence_id="1-1",
        )
    )


def test_it_finds_what_was_said_on_a_topic_from_a_time_on() -> None:
    async def story() -> None:
        witness = Witness(1, "rosie")
        for n, name in enumerate(("permit", "halt", "permit", "permit")):
            witness.seen.append(Seen(float(n), name, str(n).encode()))
        assert [s.payload for s in witness.since("permit", 1.0)] == [b"2", b"3"]
        newest = witness.last("halt")
        assert newest is not None
        assert newest.at == 1.0
        first = await witness.first("permit", lambda p: p != b"2", 0.5)
        assert first.payload == b"3"

    run(story(), "asyncio")


def test_a_halt_counts_only_with_its_cause_and_while_it_is_active() -> None:
    async def story() -> None:
        witness = Witness(1, "rosie")
        witness.seen.append(Seen(1.0, "halt", halt(active=True, cause="operator")))
        witness.seen.append(Seen(2.0, "halt", halt(active=True)))
        assert (await witness.halt(0.0, "stale_frame")).at == 2.0
        before = witness.in_force
        witness.seen.append(Seen(3.0, "halt", halt(active=False)))
        after = witness.in_force
        assert before is not None
        assert after is None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await witness.halt(2.5, "stale_frame")

    run(story(), "asyncio")


def permits_at(*times: float) -> Witness:
    witness = Witness(1, "rosie")
    witness.seen.extend(Seen(at, "permit", b"{}") for at in times)
    return witness


def test_a_gap_that_began_before_the_fault_or_has_not_ended_counts() -> None:
    async def story() -> None:
        now = asyncio.get_running_loop().time()
        began_before = permits_at(now - 3.2, now - 3.0, now - 1.0, now - 0.1)
        assert began_before.longest_gap("permit", now - 2.0) == pytest.approx(2.0)
        lasts = permits_at(now - 5.2, now - 5.0, now - 4.9)
        assert lasts.longest_gap("permit", now - 5.1) == pytest.approx(4.9, abs=0.1)

    run(story(), "asyncio")


def test_a_gap_without_messages_on_both_sides_is_not_measured() -> None:
    async def story() -> None:
        now = asyncio.get_running_loop().time()
        for times in ((), (now - 3.0,), (now - 1.0,)):
            with pytest.raises(FaultError, match="no permit was seen before it, or none since"):
                permits_at(*times).longest_gap("permit", now - 2.0)

    run(story(), "asyncio")


def test_what_could_not_be_said_is_a_fault_that_was_not_injected() -> None:
    async def story() -> None:
        witness = Witness(1, "rosie")
        witness.client = SafeClient("127.0.0.1", 1)  # was never connected
        with pytest.raises(FaultError, match="nothing could be said on reset"):
            await witness.publish("reset", b"{}")

    run(story(), "asyncio")


def test_a_permit_of_the_past_is_no_permit() -> None:
    async def story() -> None:
        witness = Witness(1, "rosie")
        now = asyncio.get_running_loop().time()
        witness.seen.append(Seen(now - 1.0, "permit", b"{}"))
        assert witness.permit is None

    run(story(), "asyncio")


def test_the_hooks_wire_tells_when_the_guards_hook_was_switched_on(tmp_path: Path) -> None:
    async def story() -> None:
        hook_wire = HookWire(tmp_path)
        hook = FallBackHook(HookSettings(gpio=str(hook_wire.path)))
        began = asyncio.get_running_loop().time()
        assert await hook._call("")
        assert await hook._call("the broker is gone")
        assert began <= await hook_wire.on(began)
        assert [word for _, word in hook_wire.changes] == ["0", "1"]
        hook_wire.close()

    run(story(), "asyncio")
