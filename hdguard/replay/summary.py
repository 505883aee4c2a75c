"""The figures of a whole run: by the three times, beside the clock's, and by label.

Everything is computed from the videos' results and nothing else, so a resumed run, a run with many
workers and a file read back give the same numbers.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

from hdguard.replay.baselines import FIXED_TIMES, Baseline, baselines
from hdguard.replay.intervals import Rate, rate_per_hour
from hdguard.replay.labels import DIMENSIONS, group_by_label
from hdguard.replay.scoring import Summary, summarise
from hdguard.replay.video_result import ByTime, Stages, VideoResult, warning_time

STAGES = tuple(name for name in Stages.__struct_fields__ if name != "warning")


class Spread(Struct, frozen=True, kw_only=True):
    """How a duration varies, in seconds; with n = 0 the rest is None."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Latency(Spread, frozen=True, kw_only=True):
    """The warning latency, decided - captured, over all warnings; and each stage of it likewise."""

    stages: dict[str, Spread]


class Figures(Struct, frozen=True, kw_only=True):
    """Scores of some videos by the three times, and what a clock scores on the same ones."""

    trigger: Summary
    issued: Summary
    stopped: Summary
    baselines: list[Baseline]


class RunSummary(Figures, frozen=True, kw_only=True):
    """The summary of a run.

    Attributes:
        false_stops_per_hour: danger halts on safe material per hour watched of it, failed videos
            left out of both.
        fault_halts_per_hour: fault halts per hour watched, over all videos.
        latency: of the warnings, safe material's included.
        breakdowns: by label kind, then label; videos without that label stand under "".
        failed: videos that could not be run, and why; those with key frames are in n, as missed.
        warnings_by_cause: a review that was overdue is a warning, though nobody judged anything.
        verdicts: of FastBrains, by light; failed and blind ones too.
        unconfirmed: warnings after which no robot said that it stands still.
    """

    false_stops_per_hour: Rate
    fault_halts_per_hour: Rate
    latency: Latency
    breakdowns: dict[str, dict[str, Figures]]
    failed: dict[str, str]
    warnings_by_cause: dict[str, int]
    verdicts: dict[str, int]
    unconfirmed: int


def summarise_run(
    videos: Sequence[VideoResult], times: Sequence[float] = FIXED_TIMES
) -> RunSummary:
    """Sum up a run; `times` are the fixed-time baselines' seconds.

    Raises:
        ValueError: a video is there twice.
    """
    names = Counter(v.video for v in videos)
    if twice := sorted(name for name, count in names.items() if count > 1):
        raise ValueError(f"counted twice: {', '.join(twice)}")
    all_figures = figures(videos, times)
    scored = [v for v in videos if not v.safe]
    watched_safe = [v for v in videos if v.safe and v.failed is None]
    return RunSummary(
        trigger=all_figures.trigger,
        issued=all_figures.issued,
        stopped=all_figures.stopped,
        baselines=all_figures.baselines,
        false_stops_per_hour=rate_per_hour(
            sum(v.warning is not None for v in watched_safe),
            math.fsum(v.watched for v in watched_safe),
        ),
        fault_halts_per_hour=rate_per_hour(
            sum(len(v.fault_halts) for v in videos), math.fsum(v.watched for v in videos)
        ),
        latency=latency(videos),
        breakdowns={d: _by_label(scored, d, times) for d in DIMENSIONS},
        failed={v.video: v.failed for v in videos if v.failed is not None},
        warnings_by_cause=dict(Counter(v.warning.cause for v in videos if v.warning is not None)),
        verdicts=dict(sum((Counter(v.verdicts) for v in videos), Counter[str]())),
        unconfirmed=sum(
            v.stages is not None and v.stages.delivered_to_confirmed is None for v in videos
        ),
    )


def figures(videos: Iterable[VideoResult], times: Sequence[float] = FIXED_TIMES) -> Figures:
    """Scores of those videos that have key frames."""
    scored = [(v, v.annotated.keyframes) for v in videos]
    by_time: ByTime[Summary] = ByTime.of(
        lambda when: summarise((warning_time(v.warning, when), k) for v, k in scored if k)
    )
    return Figures(
        trigger=by_time.trigger,
        issued=by_time.issued,
        stopped=by_time.stopped,
        baselines=baselines([k for _, k in scored if k], times),
    )


def _by_label(
    videos: Sequence[VideoResult], dimension: str, times: Sequence[float]
) -> dict[str, Figures]:
    """Scores by label."""
    groups = group_by_label(videos, dimension, lambda v: str(getattr(v.annotated, dimension)))
    return {label: figures(group, times) for label, group in groups}


def latency(videos: Iterable[VideoResult]) -> Latency:
    """The warnings' latency, whole and by stage; a stage counts the warnings that have it."""
    stages = [v.stages for v in videos if v.warning is not None and v.stages is not None]
    whole = spread([s.warning for s in stages])
    parts = {
        name: spread([x for s in stages if (x := getattr(s, name)) is not None]) for name in STAGES
    }
    return Latency(
        n=whole.n, mean=whole.mean, p50=whole.p50, p95=whole.p95, p99=whole.p99, stages=parts
    )


def common_latency(runs: Mapping[str, Sequence[VideoResult]]) -> dict[str, Latency]:
    """Each run's latency over the videos on which every run warned: the only fair comparison.

    A run that warns on the easy videos alone would otherwise look quick.
    """
    warned = [
        {v.video for v in videos if v.warning is not None and v.stages is not None}
        for videos in runs.values()
    ]
    common = set.intersection(*warned) if warned else set()
    return {name: latency(v for v in videos if v.video in common) for name, videos in runs.items()}


def spread(values: Sequence[float]) -> Spread:
    """Mean and percentiles of durations in seconds."""
    if not values:
        return Spread(n=0)
    return Spread(
        n=len(values),
        mean=fmean(values),
        p50=percentile(values, 50),
        p95=percentile(values, 95),
        p99=percentile(values, 99),
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile with linear interpolation between the two nearest ranks.

    Type 7 of R. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
    Statistician 50, 1996; numpy's default. At least one value is needed.
    """
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
