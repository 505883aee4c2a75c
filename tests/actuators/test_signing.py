"""Signatures and nonces: what may not pass for the guard, the robot or an operator."""

import hashlib
import hmac
import itertools

import pytest

from hdguard.actuators.signing import Nonces, check_key, seal, unseal
from hdguard.actuators.wire import LIMIT, WireError

KEY = check_key("sixteen letters!", "key")
BODY = b'{"halt_id":"7-1"}'
TOPIC = "hdguard/rosie/reset"


def test_anyone_can_compute_the_signature_from_the_bytes_that_are_sent() -> None:
    assert KEY == b"sixteen letters!"
    digest = hmac.new(KEY, b"hdguard/rosie/reset\n" + BODY, hashlib.sha256).hexdigest()
    assert seal(TOPIC, BODY, KEY) == b'{"signature":"%s","halt_id":"7-1"}' % digest.encode()


def test_what_was_sealed_is_unsealed() -> None:
    assert unseal(TOPIC, seal(TOPIC, BODY, KEY), KEY) == BODY


def test_without_a_key_nothing_is_signed_and_a_signature_is_passed_over() -> None:
    assert seal(TOPIC, BODY, None) == BODY
    assert unseal(TOPIC, BODY, None) == BODY
    assert unseal(TOPIC, seal(TOPIC, BODY, KEY), None) == BODY


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (BODY, "not signed"),
        (b'{"halt_id":"7-1","signature":"' + b"0" * 64 + b'"}', "not signed"),
        (b'{"signature":"","halt_id":"7-1"}', "not signed"),
        (b'{"signature":"' + b"0" * 64 + b'","halt_id":"7-1"}', "wrong signature"),
        (seal(TOPIC, BODY, KEY).replace(b"7-1", b"7-2"), "wrong signature"),
        (seal("hdguard/rosie/ack", BODY, KEY), "wrong signature"),
        (seal(TOPIC, BODY, b"another long key"), "wrong signature"),
        (seal(TOPIC, BODY, KEY) + b" ", "wrong signature"),
        (seal(TOPIC, b'{"x":"' + b"x" * LIMIT + b'"}', KEY), "over the limit"),
    ],
)
def test_what_was_not_signed_so_is_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        unseal(TOPIC, payload, KEY)


def test_a_key_is_taken_as_a_file_holds_it_and_not_too_short() -> None:
    assert check_key(None, "key") is None
    assert check_key("sixteen letters!\n", "key") == KEY
    with pytest.raises(ValueError, match=r"reset_key: .* 16 characters"):
        check_key(" short          \n", "reset_key")


def nonces() -> Nonces:
    count = itertools.count()
    return Nonces(lambda: f"n{next(count)}")


def test_a_nonce_is_good_once_and_for_five_seconds() -> None:
    n = nonces()
    first, second = n.issue(0.0), n.issue(2.0)
    assert n.spend(first, 4.999)
    assert not n.spend(first, 4.999)
    assert n.spend(second, 6.999)
    third = n.issue(10.0)
    assert not n.spend(third, 15.0)
    assert not n.spend("n9", 10.0)


def test_a_nonce_is_renewed_after_two_seconds_or_use() -> None:
    n = nonces()
    assert [n.current(t) for t in (0.0, 1.999, 2.0, 2.5)] == ["n0", "n0", "n1", "n1"]
    assert n.spend("n1", 2.5)
    assert n.current(2.5) == "n2"


def test_nonces_of_a_halt_that_is_over_are_not_good() -> None:
    n = nonces()
    nonce = n.issue(0.0)
    n.clear()
    assert not n.spend(nonce, 0.0)
