"""What the doctor says of one thing, and how it goes on to the next whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hdguard.actuators.base import ActuatorError
from hdguard.brains.base import BrainError
from hdguard.config import ConfigError
from hdguard.ingest.base import SourceError
from hdguard.observe.settings import HttpError
from hdguard.runtime.error_groups import leaves
from hdguard.runtime.lock import LockedError
from hdguard.runtime.state_file import StateFileError

EXPECTED = (
    ActuatorError,
    BrainError,
    ConfigError,
    HttpError,
    LockedError,
    SourceError,
    StateFileError,
    OSError,
    ValueError,
)
"""What parts raise when they are not to blame; a defect of ours is told as one."""


class Status(StrEnum):
    """How well one thing is; only `FAIL` keeps the robot from being guarded."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's.

    Attributes:
        step: what was looked at.
        status: how well it is.
        said: what was seen, with its numbers.
        do: what to do about it; empty where nothing is to be done.
    """

    step: str
    status: Status
    said: str
    do: str = ""


def ok(step: str, said: str) -> Finding:
    """All is well."""
    return Finding(step, Status.OK, said)


def warn(step: str, said: str, do: str) -> Finding:
    """The robot can be guarded, though not as well as it could be."""
    return Finding(step, Status.WARN, said, do)


def fail(step: str, said: str, do: str) -> Finding:
    """The robot cannot be guarded."""
    return Finding(step, Status.FAIL, said, do)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to look at.

    Attributes:
        name: of the step, for a failure that it does not report itself.
        look: looks; what it finds, in order.
        within: seconds after which it is given up.
        do: what to do where it raises or takes too long.
        hides: steps that it then could not take.
    """

    name: str
    look: Callable[[], Awaitable[Sequence[Finding]]]
    within: float
    do: str
    hides: tuple[str, ...] = ()


async def examine(steps: Sequence[Step], tell: Callable[[Finding], None]) -> None:
    """Take every step, and tell each finding as soon as it is there.

    A part that fails says why, and the steps behind it are taken all the same.
    """
    for step in steps:
        for finding in await _taken(step):
            tell(finding)


async def _taken(step: Step) -> Sequence[Finding]:
    said: list[str] = []
    try:
        async with asyncio.timeout(step.within):
            return await step.look()
    except* EXPECTED as group:
        said += (str(error) or f"gave no result in {step.within:g} s" for error in leaves(group))
    hidden = (fail(name, "was not looked at", f"first mend: {step.name}") for name in step.hides)
    return [fail(step.name, "; ".join(said), step.do), *hidden]
