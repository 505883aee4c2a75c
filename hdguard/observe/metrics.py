"""The guard's numbers for Prometheus: counted as things happen, put into words when scraped.

One registry in the daemon's process. What a worker's process does is counted here, from what the
guard hears of it, so that a worker that dies leaves no number behind. What can be read off when it
is asked for is not counted: see `hdguard.observe.collected`.
"""

from collections.abc import Callable, Mapping
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
from hdguard.core.actions import Action, Escalate, Halt, Permit
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import Policy
from hdguard.core.types import HaltCause, HaltClass, Light, Scores
from hdguard.observe.collected import Collected, IncidentNumbers
from hdguard.observe.keeping import Keeping
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Pipeline

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GOALS = (0.02, 0.35, 0.5)
"""Seconds: of the software without a model, and from capture to halt (field.md section 6)."""

BUCKETS = tuple(
    sorted((*GOALS, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 5, 10))
)
"""Seconds: field.md section 5, around the objectives of DESIGN section 6. With the goals, because
only at a bound a percentile or a share is no guess."""

LAG_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds: the limits are 5 ms more under load and 50 ms at all."""

MASS_BUCKETS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
"""Shares; dense near 1, where a model that understands the question has all of its mass."""

STAGES = ("sample", "wait", "judge", "review", "deliver")
LIGHTS = tuple(light.name.lower() for light in Light)

_NO_FAULTS = {
    HaltClass.DANGER: (HaltCause.FAST_RED, HaltCause.SLOW_DANGER, HaltCause.REVIEW_OVERDUE),
    HaltClass.OPERATOR: (HaltCause.OPERATOR,),
}
CAUSES: Mapping[HaltClass, tuple[HaltCause, ...]] = {
    **_NO_FAULTS,
    HaltClass.FAULT: tuple(c for c in HaltCause if all(c not in x for x in _NO_FAULTS.values())),
}
"""What each class of halt can be caused by."""


class _Counts:
    """What is counted. All that can happen is shown as 0 at first, or its first would be no rise.

    That is how Prometheus sees a number that begins with 1: as one that has always been 1.
    """

    def __init__(self, registry: CollectorRegistry, policy: Policy) -> None:
        words = "Answers of the brains: lights, cannot_see, late, failed; safe, danger."
        self.verdicts = Counter("hdguard_verdicts", words, ["brain", "verdict"], registry=registry)
        words = "Halts decided, without their repeats."
        self.halts = Counter("hdguard_halts", words, ["class", "cause"], registry=registry)
        words = "Workers that were lost and are loaded again."
        self.restarts = Counter("hdguard_worker_restarts", words, ["brain"], registry=registry)
        words = "Halts that the robot did not acknowledge in time."
        self.escalations = Counter("hdguard_escalations", words, registry=registry)
        said = {b.name: (*LIGHTS, "cannot_see", "late", "failed") for b in policy.brains}
        if policy.slow:
            said[policy.slow] = ("safe", "danger", "failed")
        for brain, verdicts in said.items():
            self.restarts.labels(brain)
            for verdict in verdicts:
                self.verdicts.labels(brain, verdict)
        for halt_class, causes in CAUSES.items():
            for cause in causes:
                self.halts.labels(halt_class, cause)


class _Measured:
    """What is measured: seconds, but for the label mass, which is a share."""

    def __init__(self, registry: CollectorRegistry) -> None:
        words = "sample, wait, judge: of a frame; review; deliver: of a halt to the broker."
        self.stages = Histogram(
            "hdguard_stage_duration_seconds", words, ["stage"], registry=registry, buckets=BUCKETS
        )
        for stage in STAGES:
            self.stages.labels(stage)
        words = "From the capture of the frame that caused a danger halt to the decision."
        self.halt = Histogram(
            "hdguard_capture_to_halt_seconds", words, ["cause"], registry=registry, buckets=BUCKETS
        )
        for cause in CAUSES[HaltClass.DANGER]:
            self.halt.labels(cause)
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
        words = "How probable it was that the model says any light at all, of those that tell."
        self.mass = Histogram(
            "hdguard_label_mass", words, ["brain"], registry=registry, buckets=MASS_BUCKETS
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
        incidents: the recorder's numbers; None: nothing is recorded.
    """

    def __init__(
        self,
        guard: Guard,
        now: Callable[[], float],
        connected: Callable[[], bool],
        keeping: Keeping | None = None,
        incidents: Callable[[], IncidentNumbers] | None = None,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # wall-clock times, one per number
        self.registry = registry = CollectorRegistry()
        self._guard = guard
        self._collected = Collected(guard, now, connected, keeping, incidents)
        self._counts = _Counts(registry, guard.policy)
        self._measured = _Measured(registry)
        self._asked = _Asked("", now())
        self._permit_at: float | None = None
        self._down: set[str] = set()
        registry.register(self._collected)

    def watch(self, pipeline: Pipeline) -> None:
        """Show what this pipeline left out and its workers take; it is made after its observers."""
        self._collected.pipeline = pipeline

    def serve(self, clients: Callable[[], int]) -> None:
        """Show how many HTTP connections are open; the server is made after its pages."""
        self._collected.clients = clients

    def lagged(self, seconds: float) -> None:
        """The event loop came so much too late to a timer."""
        self._measured.lag.observe(seconds)

    def text(self) -> bytes:
        """What a scrape is answered, of CONTENT_TYPE."""
        return generate_latest(self.registry)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """A brain has answered."""
        stage = self._measured.stages.labels
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
                        self._measured.permits.observe(now - self._permit_at)
                    self._permit_at = now
                    self._collected.speed = action.speed
                case Escalate():
                    self._counts.escalations.inc()
                    self._collected.escalated = action.halt_id
                case Halt(repeat=0) if action.halt_id.startswith(f"{self._guard.boot}-"):
                    self._halted(action, now)  # a restored one was counted by the guard before us
                case _:
                    pass
        match event:  # last: one that answers late is stepped together with the escalation
            case events.HaltAcknowledged(self._collected.escalated) | events.HaltConfirmed(
                self._collected.escalated
            ):
                self._collected.escalated = ""
            case _:
                pass
        if isinstance(event, events.HaltConfirmed):
            self._collected.confirmed = event.halt_id

    def _count(self, event: Event) -> None:
        verdicts = self._counts.verdicts.labels
        match event:
            case events.FastVerdict():
                verdicts(event.brain, event.light.name.lower()).inc()
                self._weigh(event.brain, event.scores)
            case events.CannotSee():
                verdicts(event.brain, "cannot_see").inc()
            case events.BrainFailed():
                verdicts(event.brain, "late" if event.reason == "late" else "failed").inc()
                self._weigh(event.brain, event.scores)
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

    def _weigh(self, brain: str, scores: Scores | None) -> None:
        if scores is not None:
            self._measured.mass.labels(brain).observe(min(1.0, scores.mass))  # but for rounding

    def _halted(self, halt: Halt, now: float) -> None:
        self._counts.halts.labels(halt.halt_class, halt.cause).inc()
        self._asked = _Asked(halt.halt_id, now)
        if halt.ref is not None and halt.halt_class is HaltClass.DANGER:
            self._measured.halt.labels(halt.cause).observe(halt.decided_at - halt.ref.captured_at)

    def _answered(self, event: Event, now: float) -> None:
        asked = self._asked
        match event:
            case events.HaltDelivered(asked.halt_id) if not asked.delivered:
                asked.delivered = True
                self._measured.stages.labels("deliver").observe(now - asked.at)
            case events.HaltAcknowledged(asked.halt_id) | events.HaltConfirmed(asked.halt_id) if (
                not asked.answered
            ):
                asked.answered = True
                self._measured.ack.observe(now - asked.at)
            case _:
                pass
