"""A halt's story as a value: it survives being written down, to the digit."""

from dataclasses import replace

import msgspec
import pytest

from hdguard.core.actions import Halt
from hdguard.core.types import HaltCause, HaltClass
from hdguard.runtime.halt_story import HaltStory, Stamps, decode, encode
from tests.runtime.samples import sample

HALT = HaltStory("7-3", HaltClass.FAULT, HaltCause.STALE_FRAME, 7)


@pytest.mark.parametrize("salt", range(3))
def test_every_field_is_read_back_as_it_was_written(salt: int) -> None:
    halt = sample(Halt, salt)
    shared = ("halt_id", "source_id", "brain", "ref", "light", "hazard", "latched")
    story = replace(HALT, **{name: getattr(halt, name) for name in shared})
    story = replace(story, stamps=sample(Stamps, salt), called="blind", review_id=3)
    story = replace(story, since=0.1 + 0.2, released_by="ada")
    line = encode(story)
    assert decode(line) == story
    assert b"\n" not in line
    assert b"0.30000000000000004" in line


def test_what_is_no_story_is_refused() -> None:
    for wrong in (b"", b"{}", b'{"halt_id":"7-3"}', encode(HALT)[:-3], b"\xff"):
        with pytest.raises(msgspec.MsgspecError):
            decode(wrong)


def test_a_halt_of_another_boot_is_restored() -> None:
    assert not HALT.restored
    assert replace(HALT, boot=8).restored
    assert replace(HALT, halt_id="77-3").restored


def test_it_has_ended_when_it_is_released_or_another_took_its_place() -> None:
    assert not HALT.ended
    assert replace(HALT, stamps=Stamps(released=9.0)).ended
    assert replace(HALT, superseded_by="7-4").ended
    assert not HALT.escalated
    assert replace(HALT, stamps=Stamps(escalated=9.0)).escalated
