"""Messages survive the pipe; what is no message is a BrainError."""

import math
import struct

import pytest

from hdguard.brains.base import BrainError
from hdguard.core.events import CannotSee, FastVerdict, Remarked, SlowVerdict
from hdguard.core.types import Hazard, ImageSpec, Light, Scores
from hdguard.workers import wire
from tests.workers.support import ref

PICTURE = wire.Picture(ref(1.25, 3), 1, 6, 8)
REQUESTS: list[wire.Request] = [
    wire.Load("slow", "a.b:C", {"path": "x", "depth": 2, "names": ["é", ""]}, 32, 99),
    wire.Assess(1, PICTURE),
    wire.Review(2, 9, ref(0.1), (PICTURE, PICTURE)),
    wire.Ping(),
    wire.Stop(),
]
REPLIES: list[wire.Reply] = [
    wire.Hello(wire.PROTOCOL),
    wire.Ready("reflex", ImageSpec(448, None)),
    wire.Assessed(1, FastVerdict(ref(1 / 3), "b", Light.RED, Hazard("C1", "L4", "ü"))),
    wire.Assessed(1, FastVerdict(ref(0.5), "b", Light.GREEN, scores=Scores(-0.1, -3.0, -1 / 3))),
    wire.Assessed(1, FastVerdict(ref(0.5), "b", Light.RED), goes_on=True),
    wire.Settled(1),
    wire.Remarked(1, Remarked(ref(0.5), "b", Hazard(text="ü"), ("child", "pan"))),
    wire.Ready("vlm", ImageSpec(448, 448), "weights 1", 0.125, interruptible=True),
    wire.Unseen(2, CannotSee(ref(0.2), "b", "dark")),
    wire.Reviewed(3, SlowVerdict(9, danger=True)),
    wire.Failed(4, "unparsed"),
    wire.Failed(4, "no label", Scores(-5.0, -6.0, -7.0)),
    wire.Pong(),
    wire.Pong(wire.Numbers(resident=1 << 40, gpu=0)),
]


@pytest.mark.parametrize("message", REQUESTS, ids=lambda m: type(m).__name__)
def test_a_request_comes_out_as_it_went_in(message: wire.Request) -> None:
    data = wire.encode(message)
    assert int.from_bytes(data[: wire.PREFIX], "big") == len(data) - wire.PREFIX
    assert wire.decode_request(data[wire.PREFIX :]) == message


@pytest.mark.parametrize("message", REPLIES, ids=lambda m: type(m).__name__)
def test_a_reply_comes_out_as_it_went_in(message: wire.Reply) -> None:
    assert wire.decode_reply(wire.encode(message)[wire.PREFIX :]) == message


@pytest.mark.parametrize("message", REPLIES, ids=lambda m: type(m).__name__)
def test_a_reply_that_is_cut_short_anywhere_is_an_error(message: wire.Reply) -> None:
    body = wire.encode(message)[wire.PREFIX :]
    for length in range(len(body)):
        with pytest.raises(BrainError, match="cannot be read"):
            wire.decode_reply(body[:length])


@pytest.mark.parametrize("body", [b"\xc1", b"\xff" * 9, b"\x80", b"\xa3\xff\xff\xff", b"\x93\x01"])
def test_noise_is_an_error(body: bytes) -> None:
    for decode in (wire.decode_request, wire.decode_reply):
        with pytest.raises(BrainError, match="cannot be read"):
            decode(body)


def test_a_light_that_does_not_exist_is_an_error() -> None:
    body = wire.encode(REPLIES[2])[wire.PREFIX :]
    assert body.count(b"\xa5light\x02") == 1
    with pytest.raises(BrainError, match="cannot be read"):
        wire.decode_reply(body.replace(b"\xa5light\x02", b"\xa5light\x07"))


def test_each_side_understands_only_what_the_other_says() -> None:
    with pytest.raises(BrainError, match="cannot be read"):
        wire.decode_reply(wire.encode(wire.Ping())[wire.PREFIX :])
    with pytest.raises(BrainError, match="cannot be read"):
        wire.decode_request(wire.encode(wire.Pong())[wire.PREFIX :])


def test_a_message_over_the_limit_is_an_error_on_both_sides() -> None:
    with pytest.raises(BrainError, match="over the limit"):
        wire.encode(wire.Failed(1, "x" * wire.LIMIT))
    with pytest.raises(BrainError, match="over the limit"):
        wire.check_length(wire.LIMIT + 1)


def test_settings_that_are_not_plain_data_are_an_error() -> None:
    with pytest.raises(BrainError, match="Load message holds more than plain data"):
        wire.encode(wire.Load("fast", "a:B", {"brain": object()}, 2, 9))


def test_scores_that_are_no_numbers_do_not_pass() -> None:
    body = wire.encode(wire.Failed(4, "no label", Scores(-5.0, -6.0, -7.0)))[wire.PREFIX :]
    five, nan = struct.pack(">d", -5.0), struct.pack(">d", math.nan)
    assert body.count(five) == 1
    with pytest.raises(BrainError, match="scores must be finite"):
        wire.decode_reply(body.replace(five, nan))
