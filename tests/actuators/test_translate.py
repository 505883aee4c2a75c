"""A halt must leave whatever a model wrote into it."""

from dataclasses import replace

import pytest

from hdguard.actuators import wire
from hdguard.actuators.translate import clip, halt_message, permit_message, restored_halt
from hdguard.core.types import Hazard, Light, Speed
from tests.actuators.support import GO, HALT

WORST = ("\U0001f525", "\ud800", "\x00", '"', "\\", "\x9b", "\u2028", "é")


@pytest.mark.parametrize("character", WORST)
def test_the_longest_halt_with_the_worst_words_fits_and_can_be_read(character: str) -> None:
    long = character * 5000
    halt = replace(
        HALT,
        halt_id="9" * 16 + "-" + "9" * 16,
        source_id=long,
        brain=long,
        hazard=Hazard(long, long, long),
        decided_at=123456789.123456789,
    )
    payload = wire.encode(halt_message(halt, 1, 2**53 - 1, 2**53 - 1))
    assert len(payload) < wire.LIMIT - 100  # room for the signature
    assert len(wire.decode_halt(payload).hazard.text) == wire.TEXT


def test_control_characters_and_half_characters_do_not_reach_a_terminal() -> None:
    assert clip("a\x1b[2Jb\ud800c\x9bd\n", 100) == "a [2Jb?c d "
    assert clip("abc", 2) == "ab"


def test_a_halt_restored_from_the_wire_is_the_halt_but_for_its_frame() -> None:
    restored = restored_halt(halt_message(HALT, 2, 7, 1), now=3.0)
    assert restored == replace(HALT, ref=None, decided_at=3.0)
    plain = replace(HALT, light=None, ref=None)
    assert restored_halt(halt_message(plain, 2, 7, 1), now=plain.decided_at) == plain


def test_the_times_of_a_halt_are_the_guards() -> None:
    message = halt_message(HALT, 2, 7, 1)
    assert (message.captured_at, message.decided_at, message.stop_category) == (12.25, 12.375, 2)


@pytest.mark.parametrize(
    ("age", "sent"), [(None, None), (-0.5, 0.0), (0.1234567, 0.123457), (float("inf"), 1e9)]
)
def test_an_age_is_never_a_reason_to_refuse_a_permit(age: float | None, sent: float | None) -> None:
    message = permit_message(replace(GO, frame_age=age, verdict_age=age, robot=None), 7, 1)
    assert wire.decode_permit(wire.encode(message)).frame_age == sent


def test_every_speed_and_light_has_a_word() -> None:
    words = [permit_message(replace(GO, speed=s, light=s), 7, 1) for s in (0, 1, 2)]  # type: ignore[arg-type]
    assert [w.speed for w in words] == ["none", "reduced", "full"]
    assert [w.light for w in words] == ["GREEN", "YELLOW", "RED"]
    assert [Speed(n).name.lower() for n in range(3)] == [w.speed for w in words]
    assert [Light(n).name for n in range(3)] == [w.light for w in words]
