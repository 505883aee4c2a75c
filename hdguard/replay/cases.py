"""Traces and truth put together into the cases that tuning works on, and what was left out of it.

A recording is only as good as what it saw. A run ends at its first danger halt, so a trace made
with working thresholds knows nothing of what came after; such a video is left out and named, for
what is unknown must not be tuned on.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hdguard.brains.base import BrainError
from hdguard.brains.trace_format import REST, BrainTrace, FastRow, Row, SlowRow, Trace, read_trace
from hdguard.ingest.base import SourceError
from hdguard.ingest.frame_times import frame_times
from hdguard.replay.annotations import Annotation, Truth, load_truth, video_key
from hdguard.replay.dataset import load_dataset
from hdguard.replay.problems import DatasetError
from hdguard.replay.simulate import Case

TRACE_NAME = "trace.json"
BETWEEN = 0.1
"""Seconds between the frames that are supposed where the video is not there: 10 FPS, a choice."""
HOLDS = 1.0
"""Seconds for which a recorded answer may stand for later frames: the period of 1 FPS. What comes
later has not been recorded."""
SLACK = 0.25
"""Seconds above `HOLDS` by which the last row may lie before a video's end: frames do not fall on
the grid exactly, and the last sample may have been dropped."""
SPARSE = 0.5
"""Seconds between rows above which a recording was made at less than 5 FPS."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What can be tuned on.

    Attributes:
        cases: scored ones and safe ones, in the order of the truth.
        brain: the FastBrain that was recorded.
        slow: the SlowBrain, or empty.
        fingerprint: of the FastBrain; empty if the traces do not say.
        left_out: one line per video or trace that is not used, and why.
        demuxed: cases whose frame times come from the video itself.
        sparse: cases with over half a second between rows: recorded at 1 FPS in GREEN.
    """

    cases: tuple[Case, ...]
    brain: str
    slow: str
    fingerprint: str
    left_out: tuple[str, ...]
    demuxed: int
    sparse: int


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One video's rows and the file that they stand in."""

    file: Path
    name: str
    fast: BrainTrace[FastRow]
    slow: BrainTrace[SlowRow] | None


def load_recording(
    traces: Sequence[Path],
    labels: Path,
    *,
    safe: Sequence[Path] = (),
    fast: str = "",
    slow: str = "",
) -> Recording:
    """Read traces and truth.

    Args:
        traces: trace files, or run folders that hold one.
        labels: a dataset's folder, or a truth file alone.
        safe: folders of safe material, where `labels` is a folder.
        fast: the FastBrain to tune; empty: the only one with scores.
        slow: the SlowBrain; empty: the only one, if there is one.

    Raises:
        BrainError: a trace cannot be used; says which file or brain.
        DatasetError: the truth cannot be used, or nothing of it was recorded.
    """
    files = [path / TRACE_NAME if path.is_dir() else path for path in traces]
    read = {path: read_trace(str(path)) for path in files}
    chosen, thinker = fast or _the_scoring(read), slow or _the_slow(read)
    recorded = _recorded(read, chosen, thinker)
    truth, annotations, paths = _truth(labels, safe)
    left_out = [str(problem) for problem in truth.problems if problem.left_out]
    cases: list[Case] = []
    demuxed = sparse = 0
    for annotation in annotations:
        key = video_key(annotation.video)
        found = recorded.pop(key, None)
        if found is None:
            left_out.append(f"{annotation.video}: in no trace")
        elif isinstance(made := _case(annotation, found, paths.get(key)), str):
            left_out.append(f"{annotation.video}: {made}")
        else:
            cases.append(made)
            demuxed += key in paths
            sparse += _longest_gap(found.fast) > SPARSE
    left_out += [f"{each.name}: in {each.file}, but in no truth" for each in recorded.values()]
    if not cases:
        raise DatasetError("\n  ".join([f"{labels}: none of its videos can be used:", *left_out]))
    mark = _fingerprint(read, chosen)
    return Recording(tuple(cases), chosen, thinker, mark, tuple(left_out), demuxed, sparse)


def _the_scoring(read: Mapping[Path, Trace]) -> str:
    """The one FastBrain that gives scores."""
    brains = {
        name
        for trace in read.values()
        for name, brain in trace.fast.items()
        if any(row.scores is not None for rows in brain.videos.values() for row in rows)
    }
    where = ", ".join(map(str, read))
    if not brains:
        raise BrainError(f"{where}: recorded by a brain that gives no scores; nothing can be tuned")
    if len(brains) > 1:
        raise BrainError(f"{where}: several brains give scores; choose by --fast: {sorted(brains)}")
    return brains.pop()


def _the_slow(read: Mapping[Path, Trace]) -> str:
    """The one SlowBrain, or empty."""
    brains = {name for trace in read.values() for name in trace.slow}
    if len(brains) > 1:
        where = ", ".join(map(str, read))
        raise BrainError(f"{where}: several SlowBrains; choose one by --slow: {sorted(brains)}")
    return brains.pop() if brains else ""


def _recorded(read: Mapping[Path, Trace], fast: str, slow: str) -> dict[str, _Recorded]:
    """The chosen brains' rows by the key of the video."""
    found: dict[str, _Recorded] = {}
    for path, trace in read.items():
        brain = trace.fast.get(fast)
        if brain is None:
            raise BrainError(f"{path}: has no FastBrain {fast!r}; it has {sorted(trace.fast)}")
        thinker = trace.slow.get(slow) if slow else None
        for name, rows in brain.videos.items():
            key = video_key(name)
            if key in found:
                raise BrainError(f"{name}: in {found[key].file} and again in {path}")
            if name != REST:
                found[key] = _Recorded(
                    path,
                    name,
                    BrainTrace(brain.latency, {REST: rows}),
                    _reviews(thinker, name) if slow else None,
                )
    return found


def _reviews(brain: BrainTrace[SlowRow] | None, video: str) -> BrainTrace[SlowRow]:
    """The reviews of one video; none where the file has none, so that each of them fails."""
    if brain is None:
        return BrainTrace(0.0, {})
    rows = brain.videos.get(video, brain.videos.get(REST))
    kept: dict[str, Sequence[SlowRow]] = {} if rows is None else {REST: rows}
    return BrainTrace(brain.latency, kept, interruptible=brain.interruptible)


def _truth(
    labels: Path, safe: Sequence[Path]
) -> tuple[Truth, Sequence[Annotation], dict[str, Path]]:
    """The truth, its videos and other safe material, and where the videos are, by their keys."""
    if labels.is_file():
        if safe:
            raise DatasetError(f"{labels}: --safe needs --labels to be the dataset's folder")
        truth = load_truth(labels)
        return truth, truth.annotations, {}
    dataset = load_dataset(labels, safe=safe)
    paths = {video_key(entry.video): entry.path for entry in dataset.entries}
    told = {video_key(each.video) for each in dataset.truth.annotations}
    more = [entry for entry in dataset.entries if video_key(entry.video) not in told]
    return dataset.truth, [*dataset.truth.annotations, *more], paths


def _case(annotation: Annotation, found: _Recorded, path: Path | None) -> Case | str:
    """The case, or why there is none."""
    rows = found.fast.videos[REST]
    if not any(row.scores is not None for row in rows):
        return "not one frame has scores"
    if bare := [row.t for row in rows if row.light is not None and row.scores is None]:
        return f"has no scores at {bare[0]:.3f} s"
    try:
        times = _supposed(rows) if path is None else frame_times(path)
    except SourceError as error:
        return str(error)
    # What comes after impact scores nothing, so it need not have been seen.
    impact = math.inf if annotation.keyframes is None else annotation.keyframes.impact_outcome
    last, needed = rows[-1].t, min(impact, times[-1])
    if path is None and annotation.keyframes is not None:
        needed = impact  # where the video ends is not known
    if last + HOLDS + SLACK < needed:
        return f"recorded until {last:.3f} s of {needed:.3f} s: the run that recorded it halted"
    kept = tuple(t for t in times if t <= last + HOLDS)
    return Case(annotation.video, annotation.keyframes, kept, found.fast, found.slow)


def _supposed(rows: Sequence[Row]) -> tuple[float, ...]:
    """Frame times of a video that is not there: the rows', and 10 FPS or more between them."""
    times = [0.0]
    for row in rows:
        gap = row.t - times[-1]
        parts = max(1, math.ceil(gap / BETWEEN - 1e-6))  # 0.1 s apart in floats is not more
        times += [times[-1] + gap * n / parts for n in range(1, parts)]
        if gap > 0:
            times.append(row.t)
    return tuple(times)


def _longest_gap(brain: BrainTrace[FastRow]) -> float:
    """The longest time between two rows, in seconds."""
    times = [row.t for row in brain.videos[REST]]
    return max((b - a for a, b in itertools.pairwise(times)), default=0.0)


def _fingerprint(read: Mapping[Path, Trace], fast: str) -> str:
    """The model's fingerprint; a tuning holds for one model."""
    marks = {path: trace.fast[fast].fingerprint for path, trace in read.items()}
    if len(set(marks.values())) > 1:
        said = "; ".join(f"{path} by {mark or 'unknown'}" for path, mark in marks.items())
        raise BrainError(f"the traces were recorded by different models: {said}")
    return next(iter(marks.values()), "")
