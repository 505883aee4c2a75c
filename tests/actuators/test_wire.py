"""The payloads, byte for byte, and everything that must not pass for one."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hdguard.actuators import wire
from hdguard.actuators.signing import check_key, seal
from hdguard.actuators.statements import Statements
from hdguard.core.actions import Release
from tests.actuators.support import GO, HALT, WHY

GOLDEN = Path(__file__).parent / "golden"
TOPICS = wire.Topics("rosie")
DECODERS: dict[str, Callable[[bytes], object]] = {
    "robot": wire.decode_robot,
    "permit": wire.decode_permit,
    "halt": wire.decode_halt,
    "ack": wire.decode_ack,
    "state": wire.decode_state,
    "reset": wire.decode_reset,
    "availability": wire.decode_availability,
}


def statements(key: bytes | None = None) -> Statements:
    names = (("kitchen",), ("reflex", "slow"))
    return Statements(TOPICS, 7, key, 1, names, token=lambda: "0123456789abcdef" * 2)


def payloads() -> dict[str, bytes]:
    """One of each."""
    says, signs = statements(), statements(check_key("guard and robot's long secret", "key"))
    state = says.state_payload(0.0)
    says.on_halt(HALT)
    signs.on_halt(HALT)
    halted, signed = says.halt_payload(), signs.halt_payload()
    says.on_note(WHY)
    state_halted = says.state_payload(0.0)
    says.on_halt(Release(HALT.halt_id))
    released = says.halt_payload()
    assert halted is not None
    assert signed is not None
    assert released is not None
    robot = wire.RobotMessage(boot=3, seq=100, moving=True, speed=0.5)
    ack = wire.AckMessage(halt_id="7-1", guard_boot=7, stopped=False)
    reset = wire.ResetMessage(halt_id="7-1", nonce="0123456789abcdef" * 2, operator="ada")
    key = check_key("the operators' long secret", "key")
    return {
        "robot": wire.encode(robot),
        "permit": says.permit_payload(GO)[1],
        "halt": halted,
        "halt_signed": signed,
        "halt_released": released,
        "ack": wire.encode(ack),
        "state": state,
        "state_halted": state_halted,
        "reset": seal(TOPICS["reset"], wire.encode(reset), key),
    }


@pytest.mark.parametrize("name", payloads())
def test_a_payload_is_what_it_always_was(name: str, update_golden: bool) -> None:
    path, payload = GOLDEN / f"{name}.json", payloads()[name]
    if update_golden:
        path.write_bytes(payload + b"\n")
    assert payload + b"\n" == path.read_bytes()
    assert len(payload) <= wire.LIMIT


def test_the_schemas_are_what_they_always_were(update_golden: bool) -> None:
    path = GOLDEN / "schemas.json"
    text = json.dumps(wire.schemas(), indent=1) + "\n"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text()


def test_every_topic_has_a_schema_and_the_schema_names_every_field() -> None:
    schemas = wire.schemas()
    assert set(schemas) == set(DECODERS)
    for name, payload in payloads().items():
        topic = name.partition("_")[0]
        fields, schema = json.loads(payload), schemas[topic]
        assert set(fields) <= set(schema["properties"])
        assert set(schema["required"]) <= set(fields)


@pytest.mark.parametrize("name", ["robot", "permit", "halt", "halt_released", "ack", "state"])
def test_what_is_encoded_is_decoded(name: str) -> None:
    payload = payloads()[name]
    message: Any = DECODERS[name.partition("_")[0]](payload)
    assert wire.encode(message) == payload


@pytest.mark.parametrize("name", ["permit", "halt", "reset"])
def test_a_command_with_a_field_nobody_knows_is_refused(name: str) -> None:
    body = b'{"halt_id":"7-1","nonce":"n","operator":"ada"}' if name == "reset" else None
    known = body or payloads()[name]
    assert DECODERS[name](known)
    with pytest.raises(wire.WireError, match="unknown field"):
        DECODERS[name](b'{"force":true,' + known[1:])


@pytest.mark.parametrize("name", ["robot", "ack", "state"])
def test_a_report_may_say_more_than_we_know(name: str) -> None:
    assert DECODERS[name](b'{"battery":{"percent":80},' + payloads()[name][1:])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seq": -1}, "seq"),
        ({"seq": True}, "seq"),
        ({"seq": "5"}, "seq"),
        ({"seq": 1.5}, "seq"),
        ({"seq": 2**53}, "seq"),
        ({"seq": 10**3000}, "seq"),
        ({"speed": "fast"}, "speed"),
        ({"speed": None}, "speed"),
        ({"light": "green"}, "light"),
        ({"state": "resting"}, "state"),
        ({"frame_age": -0.1}, "frame_age"),
        ({"robot": [3, 99]}, "robot"),
        ({"robot": {"boot": 3}}, "seq"),
        ({"robot": {"boot": 3, "seq": 99, "at": 1}}, "unknown field"),
    ],
)
def test_a_permit_with_a_wrong_value_is_refused(change: dict[str, object], reason: str) -> None:
    fields = {**json.loads(payloads()["permit"]), **change}
    with pytest.raises(wire.WireError, match=f"permit: .*{reason}"):
        wire.decode_permit(json.dumps(fields).encode())


@pytest.mark.parametrize("name", sorted(json.loads(payloads()["permit"])))
def test_a_permit_without_one_of_its_fields_is_refused(name: str) -> None:
    fields = json.loads(payloads()["permit"])
    del fields[name]
    with pytest.raises(wire.WireError, match=name):
        wire.decode_permit(json.dumps(fields).encode())


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"1junk",
        b"null",
        b"[]",
        b"\xff\xfe{}",
        b'{"boot":1,"seq":1,"moving":true,"speed":NaN}',
        b'{"boot":1,"seq":1,"moving":true,"speed":Infinity}',
        b'{"boot":1,"seq":1,"moving":true,"speed":1e999}',
        b'{"boot":1,"seq":1,"moving":true,"speed":null}{}',
        b'{"boot":1,"seq":1,"moving":true,"speed":null,"x":"\xff"}',
        b'{"boot":1,"seq":1,"moving":true,"speed":null,"x":"\\ud800"}',
        b'{"boot":1,"seq":1,"moving":true,"speed":null,"x":' + b"[" * 4000,
        b'{"boot":1,"seq":1,"moving":true,"speed":null,"x":"' + b"x" * 4096 + b'"}',
    ],
)
def test_what_is_no_robot_message_is_refused(payload: bytes) -> None:
    with pytest.raises(wire.WireError, match=r"^robot: "):
        wire.decode_robot(payload)


@given(st.binary(max_size=200) | st.sampled_from([b"[", b'{"a":']).map(lambda b: b * 700))
@example(b"\xed\xa0\x80")
@settings(max_examples=1500, deadline=None)
def test_noise_is_refused_by_every_decoder(payload: bytes) -> None:
    for name, decode in DECODERS.items():
        if name == "availability" and payload in {b"online", b"offline"}:
            continue
        with pytest.raises(wire.WireError):
            decode(payload)


def test_damaged_payloads_are_decoded_or_refused_and_nothing_else_happens() -> None:
    noise = random.Random(5)
    good = list(payloads().items())
    refused = 0
    for _ in range(10_000):
        name, payload = noise.choice(good)
        damaged = bytearray(payload)
        for _ in range(noise.randrange(1, 6)):
            damaged[noise.randrange(len(damaged))] = noise.randrange(256)
        cut = noise.choice((len(damaged), noise.randrange(len(damaged))))
        try:
            DECODERS[name.partition("_")[0]](bytes(damaged[:cut]))
        except wire.WireError:
            refused += 1
    assert refused > 5000


@pytest.mark.parametrize("name", ["", "a/b", "a+b", "#", "a" * 65, "rösie", "a b", "a\n"])
def test_a_robot_cannot_have_a_name_that_is_no_topic_level(name: str) -> None:
    with pytest.raises(ValueError, match="robot: "):
        wire.Topics(name)


def test_topics_begin_with_the_robot() -> None:
    assert wire.Topics("rosie_2-b")["halt"] == "hdguard/rosie_2-b/halt"


def test_only_what_is_above_the_newest_is_new() -> None:
    newest = wire.Newest()
    pairs = [(2, 5), (2, 5), (2, 4), (1, 99), (2, 6), (3, 0), (2, 7), (3, 1)]
    assert [newest.admits(*pair) for pair in pairs] == [1, 0, 0, 0, 1, 1, 0, 1]
