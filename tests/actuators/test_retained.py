"""What a guard learns from what the broker kept, and what it must not take for nothing."""

import pytest

from hdguard.actuators import wire
from hdguard.actuators.retained import Retained
from hdguard.actuators.signing import seal
from hdguard.actuators.translate import halt_message
from hdguard.core.actions import Notify
from hdguard.core.types import State
from tests.actuators.support import HALT

TOPICS = wire.Topics("rosie")
KEY = b"a key that guard and robot share"
NOTE = Notify(State.STARTING, "starting: waits for kitchen")


def sealed(name: str, message: wire.Message, key: bytes = KEY) -> bytes:
    return seal(TOPICS[name], wire.encode(message), key)


def halt(boot: int) -> wire.HaltMessage:
    return halt_message(HALT, 1, boot, 3)


def state(boot: int) -> wire.StateMessage:
    return wire.StateMessage(
        boot=boot,
        seq=1,
        state=State.STARTING,
        why="",
        sources=(),
        brains=(),
        halt_id=None,
        nonce=None,
    )


def test_the_greatest_number_is_known_from_the_halt_or_from_the_state() -> None:
    kept = Retained(TOPICS, 8, KEY)
    kept.take("halt", sealed("halt", halt(6)))
    kept.take("state", sealed("state", state(7)))
    assert kept.halt is not None
    assert (kept.halt.halt_id, kept.newest_boot) == (HALT.halt_id, 7)
    assert kept.explained(NOTE) == NOTE


@pytest.mark.parametrize(
    "payload", [b"{}", sealed("halt", halt(7), b"a key that nobody knows any more")]
)
def test_a_halt_that_cannot_be_read_is_refused_remembered_and_said(payload: bytes) -> None:
    kept = Retained(TOPICS, 8, KEY)
    kept.explained(NOTE)
    with pytest.raises(wire.WireError, match="halt: "):
        kept.take("halt", payload)
    assert kept.halt is None
    assert kept.unread
    assert kept.explained() == Notify(
        State.STARTING, "the retained halt cannot be read; starting: waits for kitchen"
    )


def test_a_state_that_cannot_be_read_is_no_halt() -> None:
    kept = Retained(TOPICS, 8, KEY)
    with pytest.raises(wire.WireError, match="state: "):
        kept.take("state", b"{}")
    assert not kept.unread


def test_its_own_words_over_a_connection_that_broke_are_no_other_guards() -> None:
    kept = Retained(TOPICS, 8, KEY)
    kept.greetings = 2
    kept.take("state", sealed("state", state(8)))
    assert kept.newest_boot == 0
    kept.take("state", sealed("state", state(9)))
    assert kept.newest_boot == 9
