"""Whether what must outlive the guard is on disk, and how its fall-back hook fares.

None of it makes the guard unready: a full disk holds up no decision, and a robot need not stand
for it. But it is seen only after a crash or a lost link, when it is too late, unless it is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from hdguard.runtime.audit import AuditLog
from hdguard.runtime.halt_log import HaltLog
from hdguard.runtime.hooks import FallBackHook
from hdguard.runtime.state_file import StateKeeper

COMMANDS = ("halt", "reset", "whip")
"""What people and cameras ask for; what the robot sends is counted too when it is refused."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Those who write and call, read whenever somebody asks.

    Attributes:
        state: writes the halt in force.
        audit: writes who did what.
        halts: writes the story of each halt.
        hook: what is called when broker or robot do not answer; None: none is set.
    """

    state: StateKeeper
    audit: AuditLog
    halts: HaltLog
    hook: FallBackHook | None = None

    def report(self) -> dict[str, Any]:
        """How each fares, as plain data; `on` is null while that is not known."""
        state, hook = self.state, self.hook
        called = None
        if hook is not None:
            called = {"on": hook.is_on, "calls": hook.calls, "failures": hook.failures}
        return {
            "state_file": {"failing": state.failing, "failures": state.failures},
            "audit_log": _written(self.audit),
            "halt_log": _written(self.halts),
            "hook": called,
        }

    def warnings(self) -> list[str]:
        """What a person should see to, in words; empty if there is nothing."""
        found = []
        if self.state.failing:
            found.append("the state file cannot be written: only the broker keeps the newest halt")
        if self.audit.failing:
            found.append("the audit log cannot be written")
        if self.audit.dropped:
            found.append(f"lines of the audit log that were lost: {self.audit.dropped}")
        if self.halts.failing:
            found.append("the halt log cannot be written: hdguard explain lacks the newest halts")
        if self.halts.dropped:
            found.append(f"stories of halts that were lost: {self.halts.dropped}")
        if self.hook is not None and self.hook.is_on is None and self.hook.failures:
            # None alone may mean that no call has ended yet.
            found.append("the last call of the fall-back hook failed: whether it is on is unknown")
        return found

    def numbers(self) -> Iterator[Metric]:
        """The same for Prometheus. Without a hook nothing was called."""
        words = "Writes that failed."
        failures = CounterMetricFamily("hdguard_write_failures", words, labels=["file"])
        failures.add_metric(["state"], self.state.failures)
        failures.add_metric(["audit"], self.audit.failures)
        failures.add_metric(["halts"], self.halts.failures)
        yield failures
        words = "Lines of the audit log that were lost because the disk did not take them in time."
        yield CounterMetricFamily("hdguard_audit_dropped", words, value=self.audit.dropped)
        words = "Messages and requests that were refused: malformed, replayed or not admitted."
        refused = CounterMetricFamily("hdguard_refused", words, labels=["topic"])
        for topic, count in {**dict.fromkeys(COMMANDS, 0), **self.audit.refused}.items():
            refused.add_metric([topic], count)
        yield refused
        hook = self.hook
        words = "Calls of the fall-back hook."
        calls = 0 if hook is None else hook.calls
        yield CounterMetricFamily("hdguard_hook_calls", words, value=calls)
        words = "Calls of the fall-back hook that failed, took too long or were broken off."
        failed = 0 if hook is None else hook.failures
        yield CounterMetricFamily("hdguard_hook_failures", words, value=failed)
        words = "1 while the fall-back hook is on; absent while that is unknown or none is set."
        on = GaugeMetricFamily("hdguard_hook_on", words)
        if hook is not None and hook.is_on is not None:
            on.add_metric([], hook.is_on)
        yield on


def _written(log: AuditLog | HaltLog) -> dict[str, Any]:
    return {"failing": log.failing, "failures": log.failures, "dropped": log.dropped}
