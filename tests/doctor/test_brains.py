"""What is said of brains: loaded, in time, late, hung, blind, useless; in virtual time."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest

from hdguard.brains.base import BrainError
from hdguard.config import ConfigError
from hdguard.core.policy import SIDECAR, BrainPlan, Policy
from hdguard.core.types import FrameRef
from hdguard.doctor.brains import check_brains
from hdguard.doctor.findings import Finding, Status
from hdguard.ingest.base import Frame
from hdguard.replay.runner import Crew
from hdguard.runtime.virtual_time import run_virtual
from hdguard.seating import Seating
from tests.fakes import GREEN, FakeImage, FastLine, Says, ScriptedFastSeat, ScriptedSlowSeat

FRAMES = [Frame(FrameRef("cam", n, n / 5, n / 5), FakeImage()) for n in range(8)]


class Seats:
    """Seats that are made elsewhere; stands for a `Seating`."""

    def __init__(
        self,
        *fast: ScriptedFastSeat,
        refuses: str = "",
        broken: str = "",
        required: bool = True,
    ) -> None:
        self._fast = fast
        self._required = required
        self._refuses = refuses
        self._broken = broken
        self.closed = False

    @property
    def policy(self) -> Policy:
        brains = tuple(BrainPlan(seat.name, required=self._required) for seat in self._fast)
        return replace(SIDECAR, brains=brains)

    @asynccontextmanager
    async def crew(self) -> AsyncIterator[Crew]:
        if self._broken:
            raise BrainError(self._broken)
        try:
            yield Crew({seat.name: seat for seat in self._fast}, ScriptedSlowSeat())
        finally:
            self.closed = True

    def check_live(self, crew: Crew) -> None:
        assert crew.fast
        if self._refuses:
            raise ConfigError(self._refuses)


def found_of(seats: Seats, frames: Sequence[Frame] = FRAMES) -> list[Finding]:
    return run_virtual(check_brains(cast("Seating", seats), frames))


def of_brain(line: FastLine | Says[FastLine], frames: Sequence[Frame] = FRAMES) -> Finding:
    return found_of(Seats(ScriptedFastSeat({0.0: line})), frames)[-1]


def test_brains_that_answer_in_time_are_well_and_are_let_go() -> None:
    seats = Seats(ScriptedFastSeat(name="reflex"), ScriptedFastSeat(name="qwen"))
    found = found_of(seats)
    assert [(f.step, f.status) for f in found] == [
        ("brains", Status.OK),
        ("brain reflex", Status.OK),
        ("brain qwen", Status.OK),
    ]
    assert found[0].said == "reflex, qwen loaded in 0.0 s, and slow for reviews"
    said = "8 pictures in 10 ms each, 10 ms at worst; its deadline is 400 ms"
    assert found[1].said == said
    assert seats.closed


def test_a_brain_that_the_load_check_refuses_fails_and_is_timed_all_the_same() -> None:
    found = found_of(Seats(ScriptedFastSeat(), refuses="brain fast: takes 0.9 s here"))
    assert [f.status for f in found] == [Status.FAIL, Status.OK]
    assert "brain fast: takes 0.9 s here" in found[0].said
    assert "hdguard models" in found[0].do


def test_a_brain_slower_than_its_deadline_fails() -> None:
    assert of_brain(Says(GREEN, latency=0.5)).status is Status.FAIL


def test_one_late_answer_warns() -> None:
    seat = ScriptedFastSeat({0.0: GREEN, 0.6: Says(GREEN, latency=0.5), 0.8: GREEN})
    found = found_of(Seats(seat))[-1]
    assert (found.status, "500 ms at worst" in found.said) == (Status.WARN, True)


def test_a_brain_that_hangs_is_asked_nothing_more() -> None:
    seat = ScriptedFastSeat({0.0: Says(GREEN, hangs=True)})
    found = found_of(Seats(seat))[-1]
    assert (found.status, found.said) == (Status.FAIL, "no answer in 1.5 s")
    assert len(seat.given) == 1


def scripted(answers: str) -> dict[float, FastLine | Says[FastLine]]:
    """An answer per picture, five a second: . a verdict, u useless, b blind."""
    said: dict[str, FastLine] = {".": GREEN, "u": BrainError("no light in: hello"), "b": "dark"}
    return {n / 5: said[answer] for n, answer in enumerate(answers)}


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ("u.......", Status.WARN),
        ("u.u.u.u.", Status.WARN),
        ("u.uu.uu.", Status.FAIL),
        ("..uuu...", Status.FAIL),
        ("b......b", Status.OK),
        ("..bbb...", Status.FAIL),
        ("..ubu...", Status.FAIL),
        ("b.bb.bb.", Status.FAIL),
    ],
)
def test_a_required_brain_fails_where_it_would_halt_the_robot(answers: str, status: Status) -> None:
    found = found_of(Seats(ScriptedFastSeat(scripted(answers))))[-1]
    assert found.status is status


def test_an_optional_brain_only_warns() -> None:
    seats = Seats(ScriptedFastSeat(scripted("uuuuuuuu")), required=False)
    assert found_of(seats)[-1].status is Status.WARN


def test_useless_answers_and_blindness_fail_with_the_last_reason() -> None:
    useless = of_brain(BrainError("no light in: hello"))
    assert useless.status is Status.FAIL
    assert useless.said.endswith("8 answers are of no use: no light in: hello")
    blind = of_brain("dark: detail in 0% of the picture")
    assert blind.status is Status.FAIL
    assert "could not see 8 of them: dark" in blind.said
    first_alone = ScriptedFastSeat({0.0: "first frame", 0.2: GREEN})
    assert found_of(Seats(first_alone))[-1].status is Status.OK


def test_without_a_camera_test_pictures_are_shown() -> None:
    found = of_brain(GREEN, frames=())
    assert (found.status, found.said[:10]) == (Status.OK, "4 pictures")
    broken = [Frame(FrameRef("cam", 0, 0.0, 0.0), FakeImage(broken=True))]
    assert of_brain(GREEN, broken).said.startswith("4 pictures")


def test_a_brain_that_cannot_be_loaded_is_the_steps_failure() -> None:
    with pytest.raises(BrainError, match="no weights"):
        found_of(Seats(ScriptedFastSeat(), broken="qwen: no weights in models/qwen"))
