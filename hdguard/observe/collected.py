"""The numbers that nobody counts: read off when Prometheus asks, from whoever has them.

An age is worked out at the scrape: one that was stored would stay young when the frames stop.
"""

import platform
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hdguard import __version__
from hdguard.core.guard import Guard
from hdguard.core.types import State
from hdguard.observe.keeping import Keeping
from hdguard.runtime.pipeline import Pipeline


class Collected(Collector):
    """What a registry asks at each scrape.

    Args:
        guard: whose numbers they are.
        now: seconds on the loop's clock.
        connected: whether there is a connection to the broker.
        keeping: the files and the hook; None: their numbers are not shown.

    Attributes:
        pipeline: what it left out is shown; None: there is none yet.
        judged: frames that a brain has answered.
    """

    def __init__(
        self,
        guard: Guard,
        now: Callable[[], float],
        connected: Callable[[], bool],
        keeping: Keeping | None = None,
    ) -> None:
        self.pipeline: Pipeline | None = None
        self.judged = 0
        self._guard = guard
        self._now = now
        self._connected = connected
        self._keeping = keeping

    def collect(self) -> Iterator[Metric]:
        """All of them, as they are now."""
        yield self._ages()
        yield self._frames()
        connected = "1 while there is a connection to the broker; no proof that anything arrives."
        yield GaugeMetricFamily("hdguard_mqtt_connected", connected, value=self._connected())
        state = GaugeMetricFamily("hdguard_state", "1 for the guard's state.", labels=["state"])
        for each in State:
            state.add_metric([each], each is self._guard.state)
        yield state
        words = "Always 1; what is running."
        info = GaugeMetricFamily("hdguard_build_info", words, labels=["version", "python"])
        info.add_metric([__version__, platform.python_version()], 1)
        yield info
        if self._keeping is not None:
            yield from self._keeping.numbers()

    def _ages(self) -> Metric:
        words = "Age of the newest clean frame; absent before the first."
        ages = GaugeMetricFamily("hdguard_frame_age_seconds", words, labels=["source"])
        now = self._now()
        for name, watched in self._guard.roster.sources.items():
            if watched.frame.newest is not None:
                ages.add_metric([name], now - watched.frame.newest)
        return ages

    def _frames(self) -> Metric:
        words = "What became of frames."
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
