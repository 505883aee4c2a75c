"""What the guard says, and what it goes on saying."""

import itertools
from dataclasses import replace

import pytest

from hdguard.actuators import wire
from hdguard.actuators.statements import Statements
from hdguard.actuators.translate import halt_message
from hdguard.core.actions import Escalate, Notify, Release
from hdguard.core.types import HaltCause, State
from tests.actuators.support import GO, HALT, WHY


def statements(names: tuple[str, ...] = ()) -> Statements:
    count = itertools.count()
    return Statements(wire.Topics("rosie"), 7, None, 1, (names, ()), lambda: f"n{next(count)}")


def halt_of(says: Statements) -> wire.HaltMessage:
    payload = says.halt_payload()
    assert payload is not None
    return wire.decode_halt(payload)


def state_of(says: Statements, now: float = 0.0) -> wire.StateMessage:
    return wire.decode_state(says.state_payload(now))


def test_the_end_of_another_halt_does_not_end_the_one_in_force() -> None:
    says = statements()
    says.on_halt(HALT)
    says.on_halt(Release("6-1"))
    assert says.in_force == HALT.halt_id
    says.on_halt(Release(HALT.halt_id))
    assert says.in_force is None


def test_sequences_count_per_topic_and_a_repeat_has_a_number_of_its_own() -> None:
    says = statements()
    assert says.halt_payload() is None
    says.on_halt(HALT)
    assert [halt_of(says).seq for _ in range(3)] == [1, 2, 3]
    assert [says.permit_payload(GO)[0] for _ in range(2)] == [1, 2]
    assert state_of(says).seq == 1
    assert {halt_of(says).boot, state_of(says).boot} == {7}


def test_a_release_says_the_same_halt_as_inactive() -> None:
    says = statements()
    says.on_halt(HALT)
    said = halt_of(says)
    says.on_halt(Release(HALT.halt_id))
    ended = halt_of(says)
    assert says.in_force is None
    assert (ended.active, ended.seq) == (False, 2)
    assert (ended.halt_id, ended.cause, ended.hazard) == (said.halt_id, said.cause, said.hazard)


def test_the_release_of_what_the_broker_kept_says_what_was_kept() -> None:
    says = statements()
    old = replace(HALT, halt_id="6-2", cause=HaltCause.STALE_FRAME)
    says.found = halt_message(old, 1, 6, 9)
    says.on_halt(Release("6-2"))
    assert halt_of(says).cause is HaltCause.STALE_FRAME
    assert (halt_of(says).boot, halt_of(says).active) == (7, False)


def test_the_release_of_a_halt_from_the_state_file_is_that_of_stopping() -> None:
    says = statements()
    says.on_halt(Release("6-3"))
    ended = halt_of(says)
    assert (ended.halt_id, ended.active, ended.cause) == ("6-3", False, HaltCause.STOPPING)


def test_a_nonce_is_shown_only_while_halted_and_renewed_every_two_seconds() -> None:
    says = statements()
    assert (state_of(says).nonce, state_of(says).halt_id) == (None, None)
    says.on_halt(HALT)
    says.on_note(WHY)
    shown = [state_of(says, t) for t in (0.0, 1.9, 2.1)]
    assert [s.nonce for s in shown] == ["n0", "n0", "n1"]
    assert {s.halt_id for s in shown} == {HALT.halt_id}
    says.on_halt(Release(HALT.halt_id))
    says.on_note(Notify(State.MONITORING, ""))
    assert (state_of(says).nonce, state_of(says).halt_id) == (None, None)


def test_the_nonces_of_a_halt_end_with_it_but_not_with_its_repeat() -> None:
    says = statements()
    says.on_halt(HALT)
    first, second = says.nonces.issue(0.0), says.nonces.issue(0.0)
    says.on_halt(replace(HALT, repeat=1))
    assert says.nonces.spend(first, 0.0)
    says.on_halt(replace(HALT, halt_id="7-2"))
    assert not says.nonces.spend(second, 0.0)


def test_an_escalation_stands_in_the_state_until_the_next_note() -> None:
    says = statements()
    says.on_halt(HALT)
    says.on_note(WHY)
    says.on_note(Escalate(HALT.halt_id))
    said = state_of(says).why
    assert said == "the robot has not acknowledged halt 7-1; halted: fast_red"
    says.on_note(WHY)
    assert state_of(says).why == "halted: fast_red"


def test_the_longest_state_fits() -> None:
    says = statements(names=("\U0001f525" * 63,) * 3)
    says.on_halt(HALT)
    says.on_note(Notify(State.HALTED, "\U0001f525" * 5000))
    assert len(says.state_payload(0.0)) < wire.LIMIT - 100
    with pytest.raises(ValueError, match="shorten them"):
        statements(names=("kitchen",) * 200)
