"""Truth files: what people wrote down about each video, checked before anything is run.

The released benchmark keeps three copies of `anno_truth.json`, and hand-made ones have typing
errors. So several files that agree are one truth, files that disagree are refused, and everything
wrong with an entry is said with the file, the entry and the field instead of being guessed around.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from hdguard.replay.labels import read_labels
from hdguard.replay.problems import DatasetError, Problem, read_json
from hdguard.replay.scoring import KeyFrames, milliseconds

VIDEO_SUFFIXES = frozenset({".mp4", ".mkv", ".webm", ".avi", ".mov", ".ts", ".m4v"})
DEADLINE_BEFORE_PNR = 0.2  # s; the paper's definition of the intervention deadline
_ORDER = ("intent_onset", "intervention_deadline", "pnr", "impact_outcome", "action_end")
_OPTIONAL = frozenset({"intervention_deadline", "action_end"})
_TIME_LIMIT = 1e9  # s; anything beyond is no media time, and NaN is within no limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """What a truth file says about one video.

    Attributes:
        video: its name as written, usually with its ending.
        keyframes: None declares the video safe material, which is never in n.
        category, severity, difficulty, room: labels; an empty one is not known.
        extra: fields that mean nothing here, kept; unknown key frames under `keyframes`.
        truth_file: the first file that lists it; empty for material in no truth file.
    """

    video: str
    keyframes: KeyFrames | None
    category: str = ""
    severity: str = ""
    difficulty: str = ""
    room: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    truth_file: str = ""

    @property
    def safe(self) -> bool:
        """Nothing unsafe happens in it: a halt there is a false stop."""
        return self.keyframes is None


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything that the truth files say.

    Attributes:
        files: the files read.
        annotations: usable entries in the order of the files, safe ones included.
        invalid: names of entries whose `is_valid` is false; never in n.
        problems: what is wrong; an entry left out for it is not among `annotations`.
    """

    files: tuple[Path, ...]
    annotations: tuple[Annotation, ...]
    invalid: tuple[str, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """One entry as it stands in a file."""

    file: str
    video: str
    fields: dict[str, Any]


def video_key(name: str) -> str:
    """What two spellings of one video have in common: its name without the ending."""
    path = PurePosixPath(name.replace("\\", "/"))
    return str(path.with_suffix("") if path.suffix.lower() in VIDEO_SUFFIXES else path)


def load_truth(*paths: Path, strict: bool = False) -> Truth:
    """Read one or several truth files without looking for any video.

    Raises:
        DatasetError: a file cannot be read, files disagree, or (`strict`) anything is wrong.
    """
    problems: list[Problem] = []
    rows = [row for path in paths for row in _rows(path, problems)]
    annotations: list[Annotation] = []
    invalid: list[str] = []
    for row in _merge(rows, problems):
        valid = row.fields.get("is_valid", True)
        if not isinstance(valid, bool):
            problems.append(_problem(row, "is_valid", f"{valid!r} is neither true nor false"))
        elif not valid:
            invalid.append(row.video)
        elif annotation := _annotation(row, problems):
            annotations.append(annotation)
    if strict and problems:
        raise DatasetError("the annotations have problems:", problems)
    return Truth(tuple(paths), tuple(annotations), tuple(invalid), tuple(problems))


def _rows(path: Path, problems: list[Problem]) -> list[_Row]:
    """A file's entries: a list under `annotations`, a plain list, or a mapping from the video."""
    content = read_json(path)
    where = "annotations"
    if isinstance(content, dict) and "annotations" in content:
        content = content["annotations"]
    if isinstance(content, list):
        placed: Iterable[tuple[str, Any]] = ((f"{where}[{i}]", e) for i, e in enumerate(content))
        named = False
    elif isinstance(content, dict):
        placed, named = content.items(), True
    else:
        raise DatasetError(f"{path}: {where}: neither a list of entries nor a mapping of them")
    rows: list[_Row] = []
    for place, entry in placed:
        if not isinstance(entry, dict):
            problems.append(Problem(str(path), place, "entry", "not a mapping of fields"))
            continue
        video = entry.get("video_name", place if named else None)
        if not isinstance(video, str) or not video.strip():
            message = "missing" if video is None else f"{video!r} is not a name"
            problems.append(Problem(str(path), place, "video_name", message))
        elif named and video_key(video) != video_key(place):
            message = f"{video!r} stands under the key {place!r}"
            problems.append(Problem(str(path), place, "video_name", message))
        else:
            rows.append(_Row(str(path), video, {**entry, "video_name": video}))
    return rows


def _merge(rows: Iterable[_Row], problems: list[Problem]) -> list[_Row]:
    """One row per video; what one file leaves out another may give.

    Raises:
        DatasetError: files disagree about a video.
    """
    by_video: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_video[video_key(row.video)].append(row)
    merged: list[_Row] = []
    conflicts: list[Problem] = []
    for versions in by_video.values():
        first, usable = versions[0], True
        for other in versions[1:]:
            for name, mine, theirs in _differences(first.fields, other.fields):
                usable = False
                if other.file == first.file:
                    message = f"listed twice, with {mine!r} and with {theirs!r}"
                    problems.append(_problem(first, name, message))
                else:
                    message = f"{mine!r} here, {theirs!r} in {other.file}"
                    conflicts.append(_problem(first, name, message))
        if usable:
            merged.append(_Row(first.file, first.video, _union([r.fields for r in versions])))
    if conflicts:
        raise DatasetError("truth files disagree; pass --truth FILE to choose one:", conflicts)
    return merged


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(dotted field, a's value, b's value) where both give a field and the values differ."""
    a, b = {"is_valid": True, **a}, {"is_valid": True, **b}
    found: list[tuple[str, Any, Any]] = []
    for name in a.keys() & b.keys() - {"video_name"}:
        mine, theirs = a[name], b[name]
        if name == "keyframes" and isinstance(mine, dict) and isinstance(theirs, dict):
            found.extend(
                (f"keyframes.{k}", mine[k], theirs[k])
                for k in mine.keys() & theirs.keys()
                if mine[k] != theirs[k]
            )
        elif mine != theirs:
            found.append((name, mine, theirs))
    return sorted(found, key=lambda difference: difference[0])


def _union(versions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of versions that do not contradict each other."""
    fields: dict[str, Any] = {}
    frames: dict[str, Any] = {}
    for version in versions:
        fields = {**version, **fields}
        if isinstance(version.get("keyframes"), dict):
            frames = {**version["keyframes"], **frames}
    return {**fields, "keyframes": frames} if frames else fields


def _annotation(row: _Row, problems: list[Problem]) -> Annotation | None:
    """A row as an annotation, or None once its problems are written down."""
    if "keyframes" not in row.fields:
        message = "missing; write null if the video is safe material"
        problems.append(_problem(row, "keyframes", message))
        return None
    given = row.fields["keyframes"]
    keyframes = None
    if given is not None:
        if not isinstance(given, dict):
            problems.append(_problem(row, "keyframes", f"{given!r} is not a mapping of times"))
            return None
        keyframes = _keyframes(row, given, problems)
        if keyframes is None:
            return None
    reading = read_labels(row.video, row.fields)
    problems.extend(_problem(row, name, text, left_out=False) for name, text in reading.problems)
    known = {"video_name", "is_valid", "keyframes", *reading.used}
    extra = {name: value for name, value in row.fields.items() if name not in known}
    if unknown := {k: v for k, v in (given or {}).items() if k not in _ORDER}:
        extra["keyframes"] = unknown
    return Annotation(
        video=row.video,
        keyframes=keyframes,
        category=reading.labels.category,
        severity=reading.labels.severity,
        difficulty=reading.labels.difficulty,
        room=reading.labels.room,
        extra=extra,
        truth_file=row.file,
    )


def _keyframes(row: _Row, given: Mapping[str, Any], problems: list[Problem]) -> KeyFrames | None:
    """The key frames, or None once everything wrong with them is written down."""
    wrong: list[Problem] = []
    times: dict[str, float] = {}
    for name in _ORDER:
        value = given.get(name)
        if value is None and name in _OPTIONAL:
            continue
        if message := not_a_time(value):
            wrong.append(_problem(row, f"keyframes.{name}", message))
        else:
            times[name] = float(value)  # type: ignore[arg-type]  # not_a_time has checked it
    if not wrong:
        inside = [name for name in _ORDER if name in times]
        for earlier, later in itertools.pairwise(inside):
            if milliseconds(times[earlier]) > milliseconds(times[later]):
                message = f"out of order: {times[later]} s is before {earlier}, {times[earlier]} s"
                wrong.append(_problem(row, f"keyframes.{later}", message))
    if wrong:
        problems.extend(wrong)
        return None
    derived = "intervention_deadline" not in times
    if derived:
        times["intervention_deadline"] = round(times["pnr"] - DEADLINE_BEFORE_PNR, 3)
    return KeyFrames(**times, deadline_derived=derived)


def not_a_time(value: object) -> str:
    """What keeps a value from being a media time, or empty."""
    if value is None:
        return "missing"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{value!r} is not a number of seconds"
    if not -_TIME_LIMIT < value < _TIME_LIMIT:
        return f"{value} is not a number of seconds"
    if value < 0:
        return f"{value} s is negative"
    return ""


def _problem(row: _Row, name: str, message: str, *, left_out: bool = True) -> Problem:
    """A problem of this row."""
    return Problem(row.file, row.video, name, message, left_out)
