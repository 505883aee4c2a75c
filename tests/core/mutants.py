"""Guards with one thing wrong, each of which the exhaustive test must find out."""

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hdguard.core.debounce import Hold
from hdguard.core.freshness import FrameAge, VerdictAge
from hdguard.core.guard import Guard
from hdguard.core.halts import HaltLedger
from hdguard.core.permits import PermitClock
from hdguard.core.reviews import ReviewDesk
from hdguard.core.roster import Roster, Watched


@dataclass(frozen=True)
class Mutant:
    """In `owner.method`, `old` reads `new`."""

    name: str
    owner: type
    method: str
    old: str
    new: str

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Put the mutant in the guard's place."""
        original = inspect.getattr_static(self.owner, self.method)
        function: Callable[..., Any] = getattr(original, "fget", original)
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.old) == 1, f"{self.name}: {self.old!r} is not in {source}"
        scope = dict(vars(sys.modules[self.owner.__module__]))
        exec(source.replace(self.old, self.new), scope)
        mutated = scope[self.method]
        setattr(self.owner, self.method, mutated)
        try:
            yield
        finally:
            setattr(self.owner, self.method, original)


MUTANTS = (
    Mutant(
        "deadlines checked after the event",
        Guard,
        "step",
        "self._expire()\n    self._settle(self._handle(event))",
        "cause = self._handle(event)\n    self._expire()\n    self._settle(cause)",
    ),
    Mutant(
        "halts not first",
        Guard,
        "step",
        "not isinstance(a, Halt | actions.Release)",
        "isinstance(a, Halt | actions.Release)",
    ),
    Mutant("late GREEN counts", Guard, "_on_verdict", "not event.late\n", "True\n"),
    Mutant(
        "out-of-order GREEN counts",
        Guard,
        "_on_verdict",
        "lane.verdict.follows(event.ref)",
        "True",
    ),
    Mutant(
        "old RED ignored",
        Guard,
        "_on_verdict",
        "not fresh and event.light is not Light.RED",
        "not fresh",
    ),
    Mutant("failures never count", Guard, "_on_failure", "lane.verdict.failures.add()", "pass"),
    Mutant("one failure too many", Guard, "_on_failure", "count >= limit", "count > limit"),
    Mutant("stale frame ignored", FrameAge, "halt_at", "self.newest is None or self.ended", "True"),
    Mutant(
        "stale verdict ignored",
        Guard,
        "_expire",
        "self._now >= lane.verdict.halt_at",
        "self._now < 0",
    ),
    Mutant(
        "a rise of the rate shortens nothing", VerdictAge, "set_rate", "fps > LOW_FPS", "fps > 1e9"
    ),
    Mutant("blind counts as seen", VerdictAge, "fresh", "self.blind.since is None", "True"),
    Mutant("failed counts as seen", VerdictAge, "fresh", "self.failures.count == 0", "True"),
    Mutant("old counts as fresh", VerdictAge, "fresh", "now < self.degraded_at", "True"),
    Mutant(
        "danger does not supersede a fault",
        HaltLedger,
        "supersedes",
        "new.halt_class is not HaltClass.FAULT or",
        "",
    ),
    Mutant(
        "a fault supersedes a danger halt",
        HaltLedger,
        "supersedes",
        "self.active.halt_class is not HaltClass.FAULT:\n        return False",
        "self.active.halt_class is not HaltClass.FAULT:\n        return True",
    ),
    Mutant("any reset will do", Guard, "_on_reset", "active.halt_id != event.halt_id", "False"),
    Mutant(
        "reset without GREEN",
        Guard,
        "_on_reset",
        "self.roster.fresh_green(self._now, self.policy.release_greens)",
        "True",
    ),
    Mutant("one brain's GREEN is enough", Roster, "fresh_green", "return all(", "return any("),
    Mutant(
        "a brain that is down may be GREEN",
        Roster,
        "fresh_green",
        "lane.brain.name not in self.down",
        "True",
    ),
    Mutant(
        "danger halts clear themselves",
        HaltLedger,
        "clears_itself",
        "self.active.halt_class is HaltClass.FAULT",
        "True",
    ),
    Mutant("fault halts clear at once", Hold, "due", "self.since + self._duration", "self.since"),
    Mutant(
        "any review's verdict counts",
        Roster,
        "review",
        "watched.desk.open.review_id == review_id",
        "True",
    ),
    Mutant("two reviews at a time", Guard, "_trigger", "watched.desk.open is not None", "False"),
    Mutant("overdue never noticed", ReviewDesk, "due", "self.open.due", "math.inf"),
    Mutant("danger on a review ignored", Guard, "_on_review", "danger=True", "danger=None"),
    Mutant("a down SlowBrain is waited for", Guard, "_on_worker", "self._overdue(watched)", "pass"),
    Mutant("reviews go on while halted", Guard, "_halt", "each.desk.open is not None", "False"),
    Mutant("halt said once", HaltLedger, "overdue", "now >= self._repeat_at", "False"),
    Mutant(
        "a confirmed halt is repeated",
        HaltLedger,
        "confirmed",
        "self._repeat_at = self._escalate_at",
        "self._escalate_at",
    ),
    Mutant("escalates for ever", HaltLedger, "overdue", "self._escalate_at = math.inf", "pass"),
    Mutant("moves while halted", Guard, "_speed", "self._halts.active is not None", "False"),
    Mutant("moves before it has started", Guard, "_speed", "not self._started", "False"),
    Mutant("moves without a link", Guard, "_speed", "not self._link", "False"),
    Mutant("full speed under review", Watched, "calm", "self.desk.open is None", "True"),
    Mutant("full speed whatever the light", Watched, "calm", "self.light is Light.GREEN", "True"),
    Mutant(
        "permits when asked only",
        PermitClock,
        "strike",
        "self.due = now + PERMIT_EVERY",
        "self.due = now + 1e6",
    ),
    Mutant("stop does not halt", Guard, "_handle", "self._halt(fault(HaltCause.STOPPING))", "pass"),
)
