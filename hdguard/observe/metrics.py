"""The guard's numbers for Prometheus: counted as things happen, put into words when scraped.

One registry in the daemon's process. What a worker's process does is counted here, from what the
guard hears of it, so that a worker that dies leaves no number behind. What can be read off when it
is asked for is not counted: see `hdguard.observe.collected`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from hdguard.core import events
from hdguard.core.actions import Action, Halt, Permit
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.types import HaltClass
from hdguard.observe.collected import Collected
from hdguard.observe.keeping import Keeping
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Pipeline

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Seconds: field.md section 5, around the objectives of DESIGN section 6."""

LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds: the limits are 5 ms more under load and 50 ms at all."""


class _Counts:
    """What is counted."""

    def __init__(self, registry: CollectorRegistry) -> None:
        words = "Answers of the brains: lights, cannot_see, late, failed; safe, danger."
        self.verdicts = Counter("hdguard_verdicts", words, ["brain", "verdict"], registry=registry)
        words = "Halts decided, without their repeats."
        self.halts = Counter("hdguard_halts", words, ["class", "cause"], registry=registry)
        words = "Workers that were lost and are loaded again."
        self.restarts = Counter("hdguard_worker_restarts", words, ["brain"], registry=registry)


class _Times:
    """What is measured, in seconds."""

    def __init__(self, registry: CollectorRegistry) -> None:
        words = "sample, wait, judge: of a frame; review; deliver: of a halt to the broker."
        self.stages = Histogram(
            "hdguard_stage_duration_seconds", words, ["stage"], registry=registry, buckets=BUCKETS
        )
        words = "From the capture of the frame that caused a danger halt to the decision."
        self.halt = Histogram(
            "hdguard_capture_to_halt_seconds", words, registry=registry, buckets=BUCKETS
        )
        words = "From the decision to halt to the robot's first acknowledgement."
        self.ack = Histogram("hdguard_halt_ack_seconds", words, registry=registry, buckets=BUCKETS)
        words = "Between two permits as they are decided."
        self.permits = Histogram(
            "hdguard_permit_interval_seconds", words, registry=registry, buckets=BUCKETS
        )
        words = "How much too late the event loop comes to a timer."
        self.lag = Histogram(
            "hdguard_event_loop_lag_seconds", words, registry=registry, buckets=LAG_BUCKETS
        )


@dataclass(slots=True)
class _Asked:
    """The newest halt, since when it is asked for, and how far it has come."""

    halt_id: str
    at: float
    delivered: bool = False
    answered: bool = False


class Metrics:
    """An `Observer`, and what `/metrics` shows.

    Args:
        guard: whose numbers they are.
        now: seconds on the loop's clock.
        connected: whether there is a connection to the broker.
        keeping: the files and the hook whose numbers are shown too.
    """

    def __init__(
        self,
        guard: Guard,
        now: Callable[[], float],
        connected: Callable[[], bool],
        keeping: Keeping | None = None,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # wall-clock times, one per number
        self.registry = registry = CollectorRegistry()
        self._guard = guard
        self._collected = Collected(guard, now, connected, keeping)
        self._counts = _Counts(registry)
        self._times = _Times(registry)
        self._asked = _Asked("", now())
        self._permit_at: float | None = None
        self._down: set[str] = set()
        registry.register(self._collected)

    def watch(self, pipeline: Pipeline) -> None:
        """Show what this pipeline left out; it is made after its observers."""
        self._collected.pipeline = pipeline

    def lagged(self, seconds: float) -> None:
        """The event loop came so much too late to a timer."""
        self._times.lag.observe(seconds)

    def text(self) -> bytes:
        """What a scrape is answered, of CONTENT_TYPE."""
        return generate_latest(self.registry)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """A brain has answered."""
        stage = self._times.stages.labels
        match stamps:
            case Judged():
                self._collected.judged += 1
                stage("sample").observe(stamps.sampled - stamps.ref.captured_at)
                stage("wait").observe(stamps.given - stamps.sampled)
                stage("judge").observe(stamps.assessed - stamps.given)
            case Reviewed():
                stage("review").observe(stamps.assessed - stamps.given)
            case _:
                assert_never(stamps)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """The guard has decided."""
        self._count(event)
        self._answered(event, now)
        for action in actions:
            match action:
                case Permit():
                    if self._permit_at is not None:
                        self._times.permits.observe(now - self._permit_at)
                    self._permit_at = now
                case Halt(repeat=0) if action.halt_id.startswith(f"{self._guard.boot}-"):
                    self._halted(action, now)  # a restored one was counted by the guard before us
                case _:
                    pass

    def _count(self, event: Event) -> None:
        verdicts = self._counts.verdicts.labels
        match event:
            case events.FastVerdict():
                verdicts(event.brain, event.light.name.lower()).inc()
            case events.CannotSee():
                verdicts(event.brain, "cannot_see").inc()
            case events.BrainFailed():
                verdicts(event.brain, "late" if event.reason == "late" else "failed").inc()
            case events.SlowVerdict():
                said = "danger" if event.danger else "safe"
                verdicts(self._guard.policy.slow, said).inc()
            case events.ReviewFailed():
                verdicts(self._guard.policy.slow, "failed").inc()
            case events.BrainDown():
                self._down.add(event.brain)
            case events.BrainUp() if event.brain in self._down:
                self._down.discard(event.brain)
                self._counts.restarts.labels(event.brain).inc()
            case _:
                pass

    def _halted(self, halt: Halt, now: float) -> None:
        self._counts.halts.labels(halt.halt_class, halt.cause).inc()
        self._asked = _Asked(halt.halt_id, now)
        if halt.ref is not None and halt.halt_class is HaltClass.DANGER:
            self._times.halt.observe(halt.decided_at - halt.ref.captured_at)

    def _answered(self, event: Event, now: float) -> None:
        asked = self._asked
        match event:
            case events.HaltDelivered(asked.halt_id) if not asked.delivered:
                asked.delivered = True
                self._times.stages.labels("deliver").observe(now - asked.at)
            case events.HaltAcknowledged(asked.halt_id) | events.HaltConfirmed(asked.halt_id) if (
                not asked.answered
            ):
                asked.answered = True
                self._times.ack.observe(now - asked.at)
            case _:
                pass
