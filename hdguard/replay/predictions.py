"""Anybody's warnings, scored by the same rules without running anything.

The form is the released evaluation's: `{video: {"status": "red", "timestamp": seconds}}`. A status
other than red is "no warning". A red that does not say when cannot be scored and is refused, since
counting it as missed, or as a warning at 0 s, would make up a result.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdguard.replay.annotations import Annotation, Truth, not_a_time, video_key
from hdguard.replay.baselines import FIXED_TIMES, Baseline, baselines
from hdguard.replay.labels import DIMENSIONS, group_by_label
from hdguard.replay.problems import DatasetError, Problem, read_json
from hdguard.replay.scoring import KeyFrames, Phase, Summary, phase_of, score_of, summarise
from hdguard.replay.video_result import VideoResult

RED = "red"


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a predictions file says.

    Attributes:
        file: where it was read.
        times: by the video's name as written: seconds of media time of the warning, or None.
    """

    file: str
    times: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Scored:
    """Figures of some videos and what a clock scores on the same ones."""

    summary: Summary
    baselines: list[Baseline]


@dataclass(frozen=True, slots=True)
class VideoScore:
    """One video's warning time in seconds (None: no warning), phase and score."""

    video: str
    at: float | None
    phase: Phase
    score: float


@dataclass(frozen=True, slots=True)
class PredictionScore:
    """Predictions scored against a truth.

    Attributes:
        file: the predictions file.
        total: figures over all videos with key frames; its n is the number of them.
        breakdowns: the same by label kind, then label; videos without that label under "".
        videos: each video in n.
        unpredicted: videos in n that the file does not mention; they count as missed.
        safe: number of safe videos that the file judges.
        false_stops: safe videos that it warns of.
        problems: names that the truth does not know, then the truth's own problems.
    """

    file: str
    total: Scored
    breakdowns: dict[str, dict[str, Scored]]
    videos: tuple[VideoScore, ...]
    unpredicted: tuple[str, ...]
    safe: int
    false_stops: tuple[str, ...]
    problems: tuple[Problem, ...]


def load_predictions(path: Path) -> Predictions:
    """Read a predictions file.

    Raises:
        DatasetError: it cannot be read, or an entry cannot be scored; names every such entry.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise DatasetError(f"{path}: not a mapping from video to status and timestamp")
    times: dict[str, float | None] = {}
    problems: list[Problem] = []
    first: dict[str, str] = {}
    for video, entry in content.items():
        other = first.setdefault(video_key(video), video)
        name, message = _wrong(entry)
        if other != video:
            name, message = "video", f"given twice: also as {other}"
        if message:
            problems.append(Problem(str(path), video, name, message))
        else:
            red = entry["status"].strip().lower() == RED
            times[video] = float(entry["timestamp"]) if red else None
    if problems:
        raise DatasetError("the predictions cannot be scored:", problems)
    return Predictions(str(path), times)


def _wrong(entry: object) -> tuple[str, str]:
    """(field, message) of what keeps a prediction from being scored; the message may be empty."""
    if not isinstance(entry, dict):
        return "entry", "not a mapping with a status and a timestamp"
    status = entry.get("status")
    if not isinstance(status, str):
        return "status", "missing" if status is None else f"{status!r} is not a word"
    if status.strip().lower() != RED:
        return "status", ""
    message = not_a_time(entry.get("timestamp"))
    return "timestamp", f"a red needs the time of its warning: {message}" if message else ""


def score_predictions(
    predictions: Predictions, truth: Truth, times: Sequence[float] = FIXED_TIMES
) -> PredictionScore:
    """Score warnings against what the truth files say; `times` are the baselines' seconds.

    Names match with or without their ending. Entries that the truth declares invalid are in
    neither the figures nor the problems.
    """
    given = {video_key(video): t for video, t in predictions.times.items()}
    rows = [
        (a, a.keyframes, given.get(video_key(a.video)))
        for a in truth.annotations
        if a.keyframes is not None
    ]
    judged_safe = [a.video for a in truth.annotations if a.safe and video_key(a.video) in given]
    known = {video_key(a.video) for a in truth.annotations} | {video_key(v) for v in truth.invalid}
    bad = {video_key(p.entry) for p in truth.problems if p.left_out}
    unknown = [v for v in predictions.times if video_key(v) not in known | bad]
    return PredictionScore(
        file=predictions.file,
        total=_scored(rows, times),
        breakdowns={d: _by_label(rows, d, times) for d in DIMENSIONS},
        videos=tuple(VideoScore(a.video, t, phase_of(t, k), score_of(t, k)) for a, k, t in rows),
        unpredicted=tuple(a.video for a, _, _ in rows if video_key(a.video) not in given),
        safe=len(judged_safe),
        false_stops=tuple(v for v in judged_safe if given[video_key(v)] is not None),
        problems=(
            *(Problem(predictions.file, v, "video", "not in the truth") for v in unknown),
            *truth.problems,
        ),
    )


def export_predictions(videos: Iterable[VideoResult]) -> dict[str, dict[str, Any]]:
    """A run's warnings, by trigger, in the form that `load_predictions` reads.

    A video that failed to run is "unknown", which is no warning, as missed is in the run itself.
    """
    return {video.video: _prediction(video) for video in videos}


def _prediction(video: VideoResult) -> dict[str, Any]:
    """One video's warning."""
    if video.warning is not None:
        return {"status": RED, "timestamp": video.warning.trigger}
    return {"status": "green" if video.failed is None else "unknown", "timestamp": None}


_Row = tuple[Annotation, KeyFrames, float | None]


def _scored(rows: Sequence[_Row], times: Sequence[float]) -> Scored:
    """Figures of some videos."""
    return Scored(summarise((t, k) for _, k, t in rows), baselines([k for _, k, _ in rows], times))


def _by_label(rows: Sequence[_Row], dimension: str, times: Sequence[float]) -> dict[str, Scored]:
    """Figures by label."""
    groups = group_by_label(rows, dimension, lambda row: str(getattr(row[0], dimension)))
    return {label: _scored(group, times) for label, group in groups}
