"""What is measured: a fault, its limit, and what ten injections came to."""

import math
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from hdguard.faults.stack import Stack

CLOCKED = 0.05
"""Seconds allowed above a limit that is a timer's very setting: a timer rings after its time, and
whoever measures must wake too. A choice; the README's table shows what was measured."""

Kind = Literal["reflex", "recording", "model", "adaptive"]
"""Which guard it is. Its brains are the embedded ones (two cores, no GPU); the same, with a disk of
its own on which it records incidents; one FastBrain in a process of its own that calls every frame
GREEN, at 5 frames a second; the same at 1 in GREEN."""


class FaultError(Exception):
    """The stack did not do what it must: says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the table.

    Attributes:
        name: short, for `--only`.
        fault: in words: the fault, and what is measured.
        limit: seconds; None: nothing of it is timed, but it must not go wrong.
        clocked: the limit is the setting of a timer; see `CLOCKED`.
    """

    name: str
    fault: str
    limit: float | None
    clocked: bool = False

    def holds(self, seconds: float) -> bool:
        """True if that is within the limit; less than nothing, or no number, is no measurement."""
        most = math.inf if self.limit is None else self.limit + (CLOCKED if self.clocked else 0.0)
        return 0.0 <= seconds <= most and seconds < math.inf


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to break the stack, with what is measured of it.

    Attributes:
        rows: of the table; `inject` gives as many numbers, in seconds.
        inject: breaks a stack that is well, measures, and mends what it broke. Raises a
            `FaultError`, or lets the time run out, if something that must happen does not.
        kind: the brains that it needs.
        fresh: each injection needs a guard that has just started: the fault uses up something.
        needs: says what this machine lacks for it; empty if nothing.
    """

    rows: tuple[Row, ...]
    inject: "Callable[[Stack], Awaitable[Sequence[float]]]"
    kind: Kind = "reflex"
    fresh: bool = False
    needs: Callable[[], str] = str


@dataclass(slots=True)
class Outcome:
    """What the injections of one row came to.

    Attributes:
        seconds: one for each that was measured.
        failures: why each of the others was not.
        not_run: what this machine lacks for it; then there is neither.
    """

    row: Row
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    not_run: str = ""

    @property
    def count(self) -> int:
        """How many injections there were."""
        return len(self.seconds) + len(self.failures)

    @property
    def ok(self) -> bool:
        """Every one of them was met in time."""
        return bool(self.seconds) and not self.failures and all(map(self.row.holds, self.seconds))

    @property
    def median(self) -> float | None:
        """Seconds; of those measured."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def worst(self) -> float | None:
        """Seconds; of those measured."""
        return max(self.seconds, default=None)

    def plain(self) -> dict[str, Any]:
        """As a row of the JSON file; times to the millisecond, null for what is not known."""
        return {
            "fault": self.row.name,
            "limit_s": self.row.limit,
            "median_s": None if self.median is None else round(self.median, 3),
            "worst_s": None if self.worst is None else round(self.worst, 3),
            "n": self.count,
            "ok": None if self.not_run else self.ok,
        }
