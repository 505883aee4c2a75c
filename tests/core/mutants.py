"""Guards with one thing wrong, each of which the exhaustive test must find out."""

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from hdguard.core import expiry, release_rules
from hdguard.core.clearance import Clearance
from hdguard.core.debounce import Hold
from hdguard.core.freshness import FrameAge, Stillness, VerdictAge
from hdguard.core.guard import Guard
from hdguard.core.halts import HaltLedger
from hdguard.core.motion import RobotMotion
from hdguard.core.permits import PermitClock
from hdguard.core.review_rules import ReviewRules
from hdguard.core.roster import Roster, Watched


@dataclass(frozen=True)
class Mutant:
    """In `owner.method`, or the function of that name in a module, `old` reads `new`.

    `shows` is the start from which it shows soonest, where that is worth naming.
    """

    name: str
    owner: type | ModuleType
    method: str
    old: str
    new: str
    shows: str = ""

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Put the mutant in the guard's place."""
        original = inspect.getattr_static(self.owner, self.method)
        function: Callable[..., Any] = getattr(original, "fget", original)
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.old) == 1, f"{self.name}: {self.old!r} is not in {source}"
        module = self.owner
        if isinstance(module, type):
            module = sys.modules[module.__module__]
        scope = dict(vars(module))
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
        expiry,
        "expired",
        "now >= lane.verdict.halt_at",
        "now < 0",
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
        release_rules,
        "may_reset",
        "roster.fresh_green(now, policy.release_greens)",
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
    Mutant(
        "two reviews at a time", ReviewRules, "trigger", "watched.desk.open is not None", "False"
    ),
    Mutant("overdue never noticed", Guard, "_expire", "self._now >= review.due", "False"),
    Mutant("danger on a review ignored", ReviewRules, "answered", "danger=True", "danger=None"),
    Mutant(
        "a down SlowBrain is waited for",
        Guard,
        "_on_worker",
        "(review := watched.desk.awaited) is not None",
        "(review := None) is not None",
    ),
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
    Mutant("moves while halted", Guard, "_settle", "self._halts.active is not None", "False"),
    Mutant("moves before it has started", Clearance, "speed", "not self.started", "False"),
    Mutant("moves without a link", Clearance, "speed", "not self.link", "False"),
    Mutant("full speed under review", Watched, "calm", "self.desk.open is None", "True"),
    Mutant("full speed whatever the light", Watched, "calm", "self.light is Light.GREEN", "True"),
    Mutant(
        "permits when asked only",
        PermitClock,
        "strike",
        "self.due = now + PERMIT_EVERY",
        "self.due = now + 1e6",
    ),
    Mutant(
        "frozen picture ignored",
        Watched,
        "frozen",
        ">= FROZEN_HALT",
        ">= 1e9",
        shows="picture still, robot moving for 0.96 s",
    ),
    Mutant(
        "a picture stands still for ever",
        Stillness,
        "seen",
        "elif not frozen",
        "elif False",
        shows="picture still, robot moving for 0.96 s",
    ),
    Mutant(
        "full speed on a frozen picture",
        Watched,
        "doubtful",
        ">= FROZEN_DEGRADED",
        ">= 1e9",
        shows="picture still for 2.88 s",
    ),
    Mutant(
        "a robot that stands is moving",
        RobotMotion,
        "seen",
        "if event.moving",
        "if True",
        shows="picture still for 2.88 s",
    ),
    Mutant(
        "a robot that was heard of long ago is moving",
        RobotMotion,
        "since",
        "now - self._at <= ROBOT_SILENT",
        "True",
        shows="picture still, robot heard of long ago",
    ),
    Mutant(
        "a frozen fault ends frozen",
        release_rules,
        "recovered",
        "thawed and",
        "True and",
        shows="frozen halt, long since calm",
    ),
    Mutant(
        "full speed on damaged pictures",
        Roster,
        "impairments",
        "if watched.damaged",
        "if False",
        shows="pictures damaged",
    ),
    Mutant(
        "damaged for ever",
        Watched,
        "seen",
        "self.damaged = event.damaged",
        "self.damaged |= event.damaged",
        shows="pictures damaged",
    ),
    Mutant("stop does not halt", Guard, "_handle", "self._halt(fault(HaltCause.STOPPING))", "pass"),
)
