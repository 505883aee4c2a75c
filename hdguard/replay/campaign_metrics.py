"""A replay's numbers for Prometheus while it runs: how far it is, and how it scores so far.

Everything is computed from the videos' results and by the lines that make the report, so that the
dashboard and the report agree, at either pace and with any number of processes. It is fed between
videos and only read when it is scraped: the scrapes come on a thread of their own, and must not
take the processor from a video whose latency is measured.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hdguard.core.types import HaltClass
from hdguard.observe.collected import build_info
from hdguard.observe.metrics import BUCKETS, CAUSES
from hdguard.observe.settings import HttpError
from hdguard.replay.results import LIGHTS
from hdguard.replay.scoring import KeyFrames, Phase, summarise
from hdguard.replay.summary import STAGES
from hdguard.replay.video_result import TIMES, VideoResult, Warned, warning_time

FALSE_STOP = "false_stop"
MATERIALS = SAFE, UNSAFE = "safe", "unsafe"
"""Of safe material it is said that it was `safe`, or a false stop; of other, the phase. The hours
of both are told apart, because false stops an hour are those in an hour of safe material."""


class _Progress:
    """How far it is."""

    def __init__(self, registry: CollectorRegistry) -> None:
        words = "Videos: total, to be run; done, run to their end; failed, could not be run."
        self.videos = Gauge("hdguard_replay_videos", words, ["state"], registry=registry)
        words = "Media time that was watched, of safe and of unsafe material."
        self.watched = Counter(
            "hdguard_replay_watched_seconds", words, ["material"], registry=registry
        )
        for material in MATERIALS:
            self.watched.labels(material)
        for state in ("total", "done", "failed"):
            self.videos.labels(state)


class _Scores:
    """How well it warns. Percent, by the rules of HomeSafe-Bench; 0 before the first video."""

    def __init__(self, registry: CollectorRegistry) -> None:
        words = "Videos by the phase of their warning as issued; safe and false_stop: of safe ones."
        self.results = Counter("hdguard_replay_results", words, ["phase"], registry=registry)
        words = "Weighted safety score so far, in percent, by each of a warning's three times."
        self.wss = Gauge("hdguard_replay_wss", words, ["time"], registry=registry)
        words = "Weighted safety score of the warnings as issued so far, in percent."
        self.score = Gauge("hdguard_replay_score", words, registry=registry)
        words = "Hazard detection rate so far, in percent: videos with a warning."
        self.hdr = Gauge("hdguard_replay_hdr", words, registry=registry)
        words = "Effective warning precision so far, in percent: warnings from onset to impact."
        self.ewp = Gauge("hdguard_replay_ewp", words, registry=registry)
        words = "Danger halts on safe material."
        self.false_stops = Counter("hdguard_replay_false_stops", words, registry=registry)
        for phase in (*Phase, SAFE, FALSE_STOP):
            self.results.labels(phase)
        for when in TIMES:
            self.wss.labels(when)


class _Work:
    """What the guard did, and how long it took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        words = "From the capture of the frame that caused the warning to the decision."
        self.latency = Histogram(
            "hdguard_replay_warning_latency_seconds", words, registry=registry, buckets=BUCKETS
        )
        words = "The warning's latency by stage, where both of the stage's stamps exist."
        self.stages = Histogram(
            "hdguard_replay_stage_duration_seconds",
            words,
            ["stage"],
            registry=registry,
            buckets=BUCKETS,
        )
        words = "Answers of the FastBrains; blind: they could not see, failed: none was usable."
        self.verdicts = Counter("hdguard_replay_verdicts", words, ["light"], registry=registry)
        words = "Fault halts, which are no warnings."
        self.faults = Counter("hdguard_replay_fault_halts", words, ["cause"], registry=registry)
        for stage in STAGES:
            self.stages.labels(stage)
        for light in (*LIGHTS, "blind", "failed"):
            self.verdicts.labels(light)
        for cause in CAUSES[HaltClass.FAULT]:
            self.faults.labels(cause)


class _Build(Collector):
    """What is running."""

    def collect(self) -> Iterator[Metric]:
        yield build_info()


class CampaignMetrics:
    """The numbers of one run; all that is known before the first video is that there is none.

    Attributes:
        registry: of this run alone.
    """

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # wall-clock times, one per number
        self.registry = CollectorRegistry()
        self.registry.register(_Build())
        self._progress = _Progress(self.registry)
        self._scores = _Scores(self.registry)
        self._work = _Work(self.registry)
        self._warnings: list[tuple[Warned | None, KeyFrames]] = []

    def expect(self, total: int) -> None:
        """So many videos belong to the run, those that an earlier start finished among them."""
        self._progress.videos.labels("total").set(total)

    def finished(self, video: VideoResult) -> None:
        """Count this video, which was not counted before."""
        failed = video.failed is not None
        self._progress.videos.labels("failed" if failed else "done").inc()
        self._progress.watched.labels(SAFE if video.safe else UNSAFE).inc(video.watched)
        for light, count in video.verdicts.items():
            self._work.verdicts.labels(light).inc(count)
        for halt in video.fault_halts:
            self._work.faults.labels(halt.cause).inc()
        if video.warning is not None and video.stages is not None:
            self._work.latency.observe(video.stages.warning)
            for stage in STAGES:
                if (seconds := getattr(video.stages, stage)) is not None:
                    self._work.stages.labels(stage).observe(seconds)
        if not video.safe:
            self._score(video)
        elif not failed:
            stopped = video.warning is not None
            self._scores.results.labels(FALSE_STOP if stopped else SAFE).inc()
            self._scores.false_stops.inc(stopped)

    def _score(self, video: VideoResult) -> None:
        """One that failed counts as missed, as in the report."""
        if video.phase is None or video.annotated.keyframes is None:
            return
        self._scores.results.labels(video.phase.issued).inc()
        self._warnings.append((video.warning, video.annotated.keyframes))
        for when in TIMES:
            so_far = summarise((warning_time(w, when), k) for w, k in self._warnings)
            self._scores.wss.labels(when).set(so_far.wss)
            if when == "issued":
                self._scores.score.set(so_far.wss)
                self._scores.hdr.set(so_far.hdr)
                self._scores.ewp.set(so_far.ewp)


@contextmanager
def serving(metrics: CampaignMetrics, host: str, port: int) -> Iterator[str]:
    """Answer scrapes until the block ends; yields the address to scrape. Port 0: any that is free.

    Raises:
        HttpError: the port cannot be opened.
    """
    try:
        server, thread = start_http_server(port, host, registry=metrics.registry)
    except OSError as error:
        why = error.strerror or error
        raise HttpError(f"--metrics-port {port}: cannot listen on {host}: {why}") from error
    try:
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
