"""The numbers that nobody counts: read off when Prometheus asks, from whoever has them.

An age is worked out at the scrape: one that was stored would stay young when the frames stop. A
worker's memory is what the worker itself said last, and is not shown while there is no worker.
"""

import math
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hdguard import __version__
from hdguard.core.freshness import frame_limits
from hdguard.core.guard import Guard
from hdguard.core.roster import Lane, Watched
from hdguard.core.types import HaltClass, Light, Speed, State
from hdguard.observe.keeping import Keeping
from hdguard.runtime.pipeline import Pipeline
from hdguard.workers.base import NumberedSeat, Seat

Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values of one name, each with what its labels say."""


@dataclass(frozen=True, slots=True)
class IncidentNumbers:
    """What became of the pictures around halts: counts of incidents, and bytes on disk."""

    kept: int = 0
    dropped: int = 0
    failed: int = 0
    size: int = 0


class Collected(Collector):
    """What a registry asks at each scrape.

    Args:
        guard: whose numbers they are.
        now: seconds on the loop's clock.
        connected: whether there is a connection to the broker.
        keeping: the files and the hook; None: their numbers are not shown.
        incidents: of the recorder; None: nothing is recorded.

    Attributes:
        pipeline: what it left out, and what its workers take, is shown; None: there is none yet.
        clients: how many HTTP connections are open; None: there is no server.
        judged: frames that a brain has answered.
        speed: what the newest permit allows.
        escalated: the halt that was escalated last and is not acknowledged; empty: there is none.
        confirmed: the halt that the robot confirmed last: it stands still; empty: there is none.
    """

    def __init__(
        self,
        guard: Guard,
        now: Callable[[], float],
        connected: Callable[[], bool],
        keeping: Keeping | None = None,
        incidents: Callable[[], IncidentNumbers] | None = None,
    ) -> None:
        self.pipeline: Pipeline | None = None
        self.clients: Callable[[], int] | None = None
        self.judged = 0
        self.speed = Speed.NONE
        self.escalated = self.confirmed = ""
        self._guard = guard
        self._now = now
        self._connected = connected
        self._keeping = keeping
        self._incidents = incidents

    def collect(self) -> Iterator[Metric]:
        """All of them, as they are now."""
        yield from self._sources()
        yield from self._verdicts()
        yield from self._brains()
        yield from self._decisions()
        yield from self._halt()
        yield self._frames()
        words = "1 while there is a connection to the broker; no proof that anything arrives."
        yield GaugeMetricFamily("hdguard_mqtt_connected", words, value=self._connected())
        if self.clients is not None:
            words = "HTTP connections that are open, this scrape's own among them."
            yield GaugeMetricFamily("hdguard_http_clients", words, value=self.clients())
        yield from self._recorded()
        yield build_info()
        if self._keeping is not None:
            yield from self._keeping.numbers()

    def _sources(self) -> Iterator[Metric]:
        now, sources = self._now(), self._guard.roster.sources.values()
        words = "Age of the newest clean frame; absent before the first."
        yield _gauge(
            "hdguard_frame_age_seconds",
            words,
            ["source"],
            (
                ((w.plan.source_id,), now - w.frame.newest)
                for w in sources
                if w.frame.newest is not None
            ),
        )
        words = "Age of the newest frame at which a camera is blind; absent when it has ended."
        limits = (
            ((w.plan.source_id,), frame_limits(w.frame.interval).halt)
            for w in sources
            if not w.frame.ended
        )
        yield _gauge("hdguard_frame_age_limit_seconds", words, ["source"], limits)
        words = "0 GREEN, 1 YELLOW, 2 RED: the most severe of its brains; absent while unknown."
        lights = (
            ((w.plan.source_id,), light) for w in sources if (light := _known(w, now)) is not None
        )
        yield _gauge("hdguard_light", words, ["source"], lights)

    def _verdicts(self) -> Iterator[Metric]:
        now, sources = self._now(), self._guard.roster.sources.values()
        words = "Age of the newest frame that the brain has answered; absent before the first."
        yield _gauge(
            "hdguard_verdict_age_seconds",
            words,
            ["source", "brain"],
            (
                ((w.plan.source_id, lane.brain.name), now - lane.verdict.newest.captured_at)
                for w in sources
                for lane in w.lanes.values()
                if lane.verdict.newest is not None
            ),
        )

        words = "Age of the newest answered frame at which the brain is too late; absent: no limit."
        believed = (
            ((w.plan.source_id, lane.brain.name), limit)
            for w in sources
            for lane in w.lanes.values()
            if (limit := _verdict_limit(w, lane)) < math.inf
        )
        yield _gauge("hdguard_verdict_age_limit_seconds", words, ["source", "brain"], believed)

    def _brains(self) -> Iterator[Metric]:
        policy, down = self._guard.policy, self._guard.roster.down
        names = (*(brain.name for brain in policy.brains), *filter(None, [policy.slow]))
        words = "1 while the brain is loaded, 0 while its worker is down."
        ups = (((name,), name not in down) for name in names)
        yield _gauge("hdguard_brain_up", words, ["brain"], ups)
        words = "Memory of a brain's own process; gpu: what PyTorch has reserved. Absent when down."
        yield _gauge("hdguard_worker_memory_bytes", words, ["brain", "kind"], self._memory())

    def _memory(self) -> Samples:
        if self.pipeline is None:
            return
        fast, slow = self.pipeline.parts.fast, self.pipeline.parts.slow
        seats: tuple[Seat | None, ...] = (*fast.values(), slow)
        for seat in seats:
            if not isinstance(seat, NumberedSeat) or (numbers := seat.numbers) is None:
                continue
            for kind in ("resident", "gpu"):
                if (size := getattr(numbers, kind)) is not None:
                    yield (seat.name, kind), size

    def _decisions(self) -> Iterator[Metric]:
        guard = self._guard
        words = "1 for the guard's state."
        states = (((each,), each is guard.state) for each in State)
        yield _gauge("hdguard_state", words, ["state"], states)
        words = "What the newest permit allows the robot: 0 none, 1 reduced, 2 full."
        yield GaugeMetricFamily("hdguard_speed", words, value=self.speed)
        desks = [watched.desk for watched in guard.roster.sources.values()]
        reviews = (
            (("open",), sum(desk.open is not None for desk in desks)),
            (("waiting",), sum(desk.waiting is not None for desk in desks)),
        )
        words = "Reviews that the SlowBrain works on or should, and those that wait for their turn."
        yield _gauge("hdguard_reviews", words, ["state"], reviews)

    def _halt(self) -> Iterator[Metric]:
        halt = self._guard.halt
        classes = (((each,), halt is not None and halt.halt_class is each) for each in HaltClass)
        yield _gauge("hdguard_halt_active", "1 while a halt is in force.", ["class"], classes)
        words = "1 while the halt in force is escalated and the robot has not acknowledged it."
        silent = halt is not None and halt.halt_id == self.escalated
        yield GaugeMetricFamily("hdguard_halt_unacknowledged", words, value=silent)
        words = "1 while a halt is in force and the robot has not said that it stands still."
        moving = halt is not None and halt.halt_id != self.confirmed
        yield GaugeMetricFamily("hdguard_halt_unconfirmed", words, value=moving)

    def _frames(self) -> Metric:
        words = "What became of frames, once for each brain that was to judge them; corrupt: once."
        frames = CounterMetricFamily("hdguard_frames", words, labels=["outcome"])
        stale = busy = corrupt = 0
        if (seen := self.pipeline) is not None:
            stale = seen.stale
            busy = sum(m.dropped for m in seen.mailboxes.values())
            corrupt = sum(s.report.corrupt for s in seen.parts.sources)
        frames.add_metric(["judged"], self.judged)
        frames.add_metric(["dropped_stale"], stale)
        frames.add_metric(["dropped_busy"], busy)
        frames.add_metric(["corrupt"], corrupt)
        return frames

    def _recorded(self) -> Iterator[Metric]:
        """Where nothing is recorded, nothing was kept, and nobody knows what lies on the disk."""
        numbers = IncidentNumbers() if self._incidents is None else self._incidents()
        words = "Recordings of halts and of reviews that found danger; dropped: no room or no time."
        incidents = CounterMetricFamily("hdguard_incidents", words, labels=["outcome"])
        for outcome in ("kept", "dropped", "failed"):
            incidents.add_metric([outcome], getattr(numbers, outcome))
        yield incidents
        if self._incidents is not None:
            words = "What the recordings take on the disk."
            yield GaugeMetricFamily("hdguard_incident_bytes", words, value=numbers.size)


def _known(watched: Watched, now: float) -> Light | None:
    """The light that may be shown: old news stays YELLOW or RED, only fresh news is GREEN."""
    if watched.light is not Light.GREEN:
        return watched.light
    frame = watched.frame
    judged = (x.verdict for x in watched.lanes.values() if x.brain.required)
    seen = not frame.ended and now < frame.halt_at
    fresh = seen and all(v.newest is not None and now < v.halt_at for v in judged)
    return Light.GREEN if fresh else None


def _verdict_limit(watched: Watched, lane: Lane) -> float:
    """Seconds; of the newest verdict, or before the first what one would have."""
    verdict = lane.verdict
    if watched.frame.ended:
        return math.inf
    if verdict.newest is None:
        return verdict.limits(watched.frame.interval).halt
    return verdict.halt_at - verdict.newest.captured_at


def build_info() -> Metric:
    """What is running: always 1."""
    labels = ["version", "python"]
    info = GaugeMetricFamily("hdguard_build_info", "Always 1; what is running.", labels=labels)
    info.add_metric([__version__, platform.python_version()], 1)
    return info


def _gauge(name: str, words: str, labels: list[str], samples: Samples) -> Metric:
    gauge = GaugeMetricFamily(name, words, labels=labels)
    for said, value in samples:
        gauge.add_metric(said, value)
    return gauge
