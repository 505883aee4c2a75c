"""The files that a run leaves behind, and reading them back.

`results.json` is the run for programs, `results.csv` for spreadsheets, `predictions.json` for
anybody who scores with other tools. Each appears whole or not at all.
"""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hdguard.core.types import Light
from hdguard.replay.baselines import FIXED_TIMES
from hdguard.replay.labels import DIMENSIONS
from hdguard.replay.predictions import export_predictions
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.summary import (
    RunSummary,
    common_latency,
    percentile,
    summarise_run,
)
from hdguard.replay.video_result import (
    TIMES,
    Annotated,
    ByTime,
    FaultHalt,
    Outcome,
    Source,
    Stages,
    VideoResult,
    Warned,
    video_result,
)

__all__ = [
    "Annotated",
    "ByTime",
    "FaultHalt",
    "Outcome",
    "Results",
    "ResultsError",
    "RunSummary",
    "Source",
    "Stages",
    "VideoResult",
    "Warned",
    "common_latency",
    "decode_video",
    "encode_video",
    "percentile",
    "read_results",
    "summarise_run",
    "video_result",
    "write_atomic",
    "write_results",
]

LIGHTS = tuple(light.name.lower() for light in Light)


class ResultsError(Exception):
    """A result cannot be read: names the file and says what is wrong with it."""


class Results(Struct, frozen=True, kw_only=True):
    """What results.json holds.

    Attributes:
        run: how it was made: policy, pace, cost, versions, settings; the runner's words.
        videos: one result per video that was run.
        summary: computed from `videos`.
        left_out: what was not run and why: problems, absent and unlisted videos.
    """

    run: dict[str, Any]
    videos: list[VideoResult]
    summary: RunSummary
    left_out: list[str] = []


def write_results(
    out: Path,
    run: Mapping[str, Any],
    videos: Sequence[VideoResult],
    *,
    left_out: Sequence[str] = (),
    times: Sequence[float] = FIXED_TIMES,
) -> Results:
    """Write results.json, results.csv and predictions.json into the folder `out`.

    Args:
        out: made if it is not there.
        run: values that JSON knows; `pace` is read when the run is printed.
        videos: in any order; they are written in this one.
        left_out: one line for everything that was not run.
        times: seconds of the fixed-time baselines.

    Raises:
        ValueError: a video is there twice.
    """
    results = Results(
        run=dict(run),
        videos=list(videos),
        summary=summarise_run(videos, times),
        left_out=list(left_out),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / "results.csv", _csv(videos).encode())
    write_atomic(out / "predictions.json", _pretty(export_predictions(videos)))
    write_atomic(out / "results.json", _pretty(results))
    return results


def read_results(path: Path) -> Results:
    """Read a results.json, given itself or its folder.

    Raises:
        ResultsError: it is absent or not of this form.
    """
    file = path / "results.json" if path.is_dir() else path
    try:
        return msgspec.json.decode(file.read_bytes(), type=Results)
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ResultsError(f"{file}: not a results file: {error}") from error


def encode_video(video: VideoResult) -> bytes:
    """One video's result as JSON, for a worker's answer or a later --resume."""
    return msgspec.json.encode(video)


def decode_video(data: bytes) -> VideoResult:
    """Read what `encode_video` wrote.

    Raises:
        ResultsError: it is not that, or not all of it; the video has to be run again.
    """
    try:
        return msgspec.json.decode(data, type=VideoResult)
    except msgspec.DecodeError as error:
        raise ResultsError(f"not a video's result: {error}") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file that a reader, or a run killed meanwhile, sees whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _pretty(value: object) -> bytes:
    """JSON for programs that a person can read too."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _csv(videos: Sequence[VideoResult]) -> str:
    """One row per video, flat; an empty cell is "none"."""
    text = io.StringIO()
    rows = [_row(video) for video in videos]
    writer = csv.DictWriter(text, list(_row(_NOTHING)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(v: VideoResult) -> dict[str, Any]:
    """One video's cells; the same columns for every video."""
    k, w = v.annotated.keyframes, v.warning
    labels = {name: getattr(v.annotated, name) for name in DIMENSIONS}
    frames = {f.name: getattr(k, f.name) if k else None for f in fields(KeyFrames)}
    stages = {name: getattr(v.stages, name, None) for name in Stages.__struct_fields__}
    return {
        "video": v.video,
        "safe": v.safe,
        **labels,
        **frames,
        **{when: getattr(w, when, None) for when in TIMES},
        "cause": w and w.cause,
        "brain": w and w.brain,
        "hazard_category": w and w.hazard.category,
        "hazard_severity": w and w.hazard.severity,
        "hazard_text": w and w.hazard.text,
        **{f"phase_{when}": getattr(v.phase, when, None) for when in TIMES},
        **{f"score_{when}": getattr(v.score, when, None) for when in TIMES},
        **{f"latency_{name}": value for name, value in stages.items()},
        "fault_halts": len(v.fault_halts),
        "watched": v.watched,
        **{light: v.verdicts.get(light, 0) for light in LIGHTS},
        "dropped": v.dropped,
        "frames": v.source.frames,
        "corrupt": v.source.corrupt,
        "repaired": v.source.repaired,
        "failed": v.failed,
    }


_NOTHING = VideoResult(
    video="", annotated=Annotated(), safe=True, warning=None, phase=None, score=None
)
