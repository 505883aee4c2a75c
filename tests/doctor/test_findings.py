"""Whatever fails, the steps behind it are taken, and the finding says what to do."""

import asyncio
from collections.abc import Sequence

import pytest

from hdguard.actuators.base import ActuatorError
from hdguard.brains.base import BrainError
from hdguard.config import ConfigError
from hdguard.doctor.findings import Finding, Status, Step, examine, fail, ok, warn
from hdguard.ingest.base import SourceError
from hdguard.observe.settings import HttpError
from hdguard.runtime.lock import LockedError
from hdguard.runtime.state_file import StateFileError
from hdguard.runtime.virtual_time import run_virtual


def taken(*steps: Step) -> list[Finding]:
    told: list[Finding] = []
    run_virtual(examine(steps, told.append))
    return told


async def fine() -> Sequence[Finding]:
    return [ok("last", "is fine")]


LAST = Step("last", fine, 1.0, "")


@pytest.mark.parametrize(
    "error",
    [
        ActuatorError("no broker"),
        BrainError("no weights"),
        ConfigError("no such key"),
        SourceError("no picture"),
        HttpError("no certificate"),
        LockedError("a guard runs"),
        StateFileError("torn"),
        PermissionError(13, "Permission denied", "/var/lib/x"),
        ValueError("no number"),
    ],
)
def test_a_step_that_raises_is_a_failure_and_hides_nothing_behind_it(error: Exception) -> None:
    async def broken() -> Sequence[Finding]:
        raise error

    told = taken(Step("first", broken, 1.0, "mend it"), LAST)
    assert told == [fail("first", str(error), "mend it"), ok("last", "is fine")]


def test_errors_of_tasks_are_told_one_by_one() -> None:
    async def one(text: str) -> None:
        raise ActuatorError(text)

    async def broken() -> Sequence[Finding]:
        async with asyncio.TaskGroup() as group:
            group.create_task(one("first"))
            group.create_task(one("second"))
        return []

    (found, _) = taken(Step("both", broken, 1.0, "mend it"), LAST)
    assert found == fail("both", "first; second", "mend it")


def test_a_step_that_never_ends_is_given_up_and_the_next_is_taken() -> None:
    async def hangs() -> Sequence[Finding]:
        await asyncio.Event().wait()
        return []

    told = taken(Step("first", hangs, 30.0, "look at it"), LAST)
    assert told[0] == fail("first", "gave no result in 30 s", "look at it")
    assert told[1].status is Status.OK


def test_a_defect_of_ours_is_no_finding() -> None:
    async def defect() -> Sequence[Finding]:
        raise TypeError("ours")

    with pytest.raises(TypeError, match="ours"):
        taken(Step("first", defect, 1.0, ""))


def test_findings_are_told_as_soon_as_their_step_is_done() -> None:
    told: list[Finding] = []

    async def second() -> Sequence[Finding]:
        assert told == [warn("first", "slow", "hurry")]
        return []

    async def first() -> Sequence[Finding]:
        return [warn("first", "slow", "hurry")]

    run_virtual(examine([Step("1", first, 1.0, ""), Step("2", second, 1.0, "")], told.append))
    assert len(told) == 1


def test_what_a_failed_step_could_not_look_at_is_named() -> None:
    async def broken() -> Sequence[Finding]:
        raise ActuatorError("no broker")

    told = taken(Step("broker", broken, 1.0, "start it", hides=("echo", "robot")))
    assert [f.step for f in told] == ["broker", "echo", "robot"]
    assert told[2] == fail("robot", "was not looked at", "first mend: broker")
