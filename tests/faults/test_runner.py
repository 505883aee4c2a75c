"""How injections are counted."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from hdguard.actuators.wire import WireError
from hdguard.faults.rows import FaultError, Outcome, Row, Scenario
from hdguard.faults.runner import SCENARIOS, _repeat, chosen, inject
from hdguard.faults.stack import Stack
from tests.actuators.support import run


class WellStack:
    """Nothing but what the runner asks of a stack."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.guard = self

    async def ready(self) -> None:
        self.did.append("ready")

    async def anew(self) -> None:
        self.did.append("anew")

    def end(self) -> None:
        self.did.append("end")


def injected(scenario: Scenario, repeat: int) -> tuple[list[str], tuple[Outcome, ...]]:
    stack, outcomes = WellStack(), tuple(map(Outcome, scenario.rows))
    run(_repeat(cast("Stack", stack), scenario, outcomes, repeat), "asyncio")
    return stack.did, outcomes


def test_every_row_of_a_scenario_gets_its_number() -> None:
    async def inject(_: Any) -> Sequence[float]:
        return 0.1, 0.2

    rows = (Row("a", "a", 1.0), Row("b", "b", 1.0))
    did, outcomes = injected(Scenario(rows, inject), 2)
    assert did == ["ready", "ready"]
    assert [o.seconds for o in outcomes] == [[0.1, 0.1], [0.2, 0.2]]


def test_a_fault_that_is_not_met_is_counted_and_the_next_meets_a_stack_that_is_well() -> None:
    reasons: list[Exception] = [FaultError("no halt"), TimeoutError(), WireError("not JSON")]

    async def inject(_: Any) -> Sequence[float]:
        if reasons:
            raise reasons.pop(0)
        return (0.1,)

    did, (outcome,) = injected(Scenario((Row("a", "a", 1.0),), inject), 4)
    assert did == ["ready", "anew"] * 3 + ["ready"]
    assert outcome.seconds == [0.1]
    assert outcome.failures == ["no halt", "nothing in 30 s", "not JSON"]
    assert not outcome.ok


def test_a_fault_that_uses_something_up_meets_a_fresh_guard_each_time() -> None:
    async def inject(_: Any) -> Sequence[float]:
        await asyncio.sleep(0)
        return (0.1,)

    did, _ = injected(Scenario((Row("a", "a", 1.0),), inject, fresh=True), 2)
    assert did == ["end", "ready", "end", "ready"]


def test_what_this_machine_lacks_is_told_and_no_stack_is_started_for_it() -> None:
    async def inject_it(_: Any) -> Sequence[float]:
        raise AssertionError

    told: list[Outcome] = []
    lacking = Scenario((Row("a", "a", 1.0),), inject_it, kind="recording", needs=lambda: "root")
    (outcome,) = run(inject([lacking], 3, told.append), "asyncio")
    assert told == [outcome]
    assert (outcome.not_run, outcome.count) == ("root", 0)


def test_one_row_names_its_whole_scenario_and_an_unknown_one_is_refused() -> None:
    assert chosen(()) == SCENARIOS
    (found,) = chosen(["broker-frozen"])
    assert [row.name for row in found.rows] == ["broker-frozen-robot", "broker-frozen"]
    with pytest.raises(ValueError, match=r"no fault is called 'fire'; there are .*camera-silent"):
        chosen(["fire"])


def test_no_two_rows_have_one_name() -> None:
    names = [row.name for scenario in SCENARIOS for row in scenario.rows]
    assert len(set(names)) == len(names)
