"""What to do about a halt, in words."""

import pytest

from hdguard.core.halts import danger, fault, operator
from hdguard.core.policy import SIDECAR
from hdguard.core.types import FrameRef, HaltCause
from hdguard.observe.advice import BECAUSE, WORDS, advice, because

REF = FrameRef("kitchen", 41, 12.25, 1.4)


@pytest.mark.parametrize("cause", list(HaltCause))
def test_every_cause_has_words_of_its_own(cause: HaltCause) -> None:
    said = advice(fault(cause, "kitchen", "reflex", "out of memory"), SIDECAR)
    assert cause in WORDS
    assert "{" not in said
    assert len(said) > 20


def test_a_stale_camera_is_named_and_so_is_the_end_of_the_halt() -> None:
    said = advice(fault(HaltCause.STALE_FRAME, "kitchen"), SIDECAR)
    assert said == (
        "No picture comes from kitchen: see to its power, cable and network. "
        "The halt ends by itself after 3 s in which all is GREEN."
    )


def test_a_danger_and_a_latched_fault_ask_for_a_reset() -> None:
    for halt in (
        danger(HaltCause.FAST_RED, "reflex", REF),
        operator("anna"),
        fault(HaltCause.BRAIN_LATCHED, "kitchen", "reflex"),
    ):
        assert "`hdguard reset " in advice(halt, SIDECAR)


def test_nobody_is_told_to_reset_a_guard_that_is_stopping() -> None:
    assert "reset" not in advice(fault(HaltCause.STOPPING), SIDECAR)


def test_a_brains_own_words_cannot_break_the_sentence() -> None:
    said = advice(fault(HaltCause.BRAIN_FAILED, "kitchen", "reflex", "{halt_id} {0}"), SIDECAR)
    assert "{halt_id} {0}" in said


@pytest.mark.parametrize("cause", list(HaltCause))
def test_every_cause_is_told_as_the_end_of_a_sentence(cause: HaltCause) -> None:
    said = because(fault(cause, "kitchen", "reflex", "out of {memory}."))
    assert cause in BECAUSE
    assert not said.endswith(".")
    assert "{brain}" not in said
    assert len(said) > 15
