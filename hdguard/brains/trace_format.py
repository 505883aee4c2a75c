"""The trace file: what brains said of which video when, checked down to the last field.

One trace file holds any number of brains and videos, so a run can be repeated without its models:

    {"format": "hdguard-trace/1",
     "fast": {"<brain>": {"latency": 0.05, "videos": {"<video>": [
         {"t": 0.0, "light": "green", "scores": [-0.1, -2.6, -4.2]},
         {"t": 3.6, "light": "red", "latency": 0.4,
          "hazard": {"category": "C4", "severity": "L1", "text": "a cup at the table's edge"}},
         {"t": 5.0, "blind": "dark"},
         {"t": 6.0, "error": "unparsed"}]}}},
     "slow": {"<brain>": {"latency": 3.1, "videos": {"<video>": [
         {"t": 0.0, "verdict": "danger", "latency": 2.0},
         {"t": 4.0, "error": "timeout"},
         {"t": 7.5, "error": "cancelled", "latency": 0.4}]}}}}

`t` is media time in seconds, ascending. An entry holds for frames (slow: triggers) at or after its
`t`, a microsecond less, until the next entry. `latency` is in seconds: the entry's, else the
brain's, else 0. `scores` are a FastBrain's raw log p of green, yellow and red (`types.Scores`),
also beside the `error` of an answer that meant no light; a brain's `fingerprint` beside its
`latency` says of which model they are, a SlowBrain's `interruptible` whether a review that nobody
waits for is broken off. The brain "*" stands for every brain that is not named, the video "*" for
every video that its brain does not name. A video's name is the frame's `source_id`, with or without
the ending of a video file. Where nothing is written nothing is known: a `BrainError`, never GREEN.

The error "cancelled" is no answer: the review was broken off `latency` seconds after it was asked,
when nobody waited for it any more, and what it would have said is not known. The entry stands there
so that no older one answers in its place.
"""

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Generic, Literal, TypeVar

import msgspec

from hdguard.brains.base import CANCELLED, BrainError
from hdguard.core.types import NO_HAZARD, Hazard, Light, Scores

FORMAT = "hdguard-trace/1"
REST = "*"
_EARLY = 1e-6  # seconds; media times are written with rounding, an entry's own frame must find it
_ENDINGS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm"})


class HazardRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A hazard; an empty field is "not given"."""

    category: str = ""
    severity: str = ""
    text: str = ""


class Row(
    msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, kw_only=True
):
    """What the entries of both kinds of brain share."""

    t: float
    error: str | None = None
    hazard: HazardRow | None = None
    latency: float | None = None

    def found(self) -> Hazard:
        """The hazard as the core knows it."""
        row = self.hazard
        return Hazard(row.category, row.severity, row.text) if row else NO_HAZARD

    def scored(self) -> Scores | None:
        """The scores as the core knows them; only a FastBrain's entries can have some."""
        return None


class FastRow(Row, frozen=True, kw_only=True):
    """A verdict, a frame that cannot be judged, or a failure."""

    light: str | None = None
    blind: str | None = None
    scores: tuple[float, float, float] | None = None

    def scored(self) -> Scores | None:
        """The scores as the core knows them, or None."""
        return None if self.scores is None else Scores(*self.scores)


class SlowRow(Row, frozen=True, kw_only=True):
    """A review's answer or its failure."""

    verdict: Literal["danger", "safe"] | None = None

    @property
    def broken_off(self) -> bool:
        """It was cancelled before it was answered: the answer is not known."""
        return self.error == CANCELLED


class _BrainPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    videos: dict[str, list[Any]]
    latency: float = 0.0
    fingerprint: str = ""
    interruptible: bool = False


class _FilePart(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    format: Literal["hdguard-trace/1"]
    fast: dict[str, Any] = {}
    slow: dict[str, Any] = {}


RowT = TypeVar("RowT", bound=Row)
PartT = TypeVar("PartT")


@dataclass(frozen=True, slots=True)
class BrainTrace(Generic[RowT]):
    """One brain's part of a file: rows in order of time, per video.

    `fingerprint` says of which model the scores are; empty if that is not known. `interruptible`: a
    review that is cancelled is broken off.
    """

    latency: float
    videos: Mapping[str, Sequence[RowT]]
    fingerprint: str = ""
    interruptible: bool = False
    by_stem: dict[str, list[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for video in self.videos:
            self.by_stem.setdefault(_stem(video), []).append(video)

    def row(self, source_id: str, media_time: float) -> RowT | None:
        """The row that holds for this source at this time; None before the first and for none.

        Raises:
            BrainError: the source fits several of the videos.
        """
        rows = self.videos.get(self._video(source_id), ())
        found = bisect_right(rows, media_time + _EARLY, key=lambda row: row.t)
        return rows[found - 1] if found else None

    def latency_of(self, row: RowT | None) -> float:
        """Seconds: the row's, else the brain's."""
        return self.latency if row is None or row.latency is None else row.latency

    def _video(self, source_id: str) -> str:
        stem = _stem(source_id)
        if source_id in self.videos:
            return source_id
        if stem in self.videos:
            return stem
        alike = self.by_stem.get(stem, []) if stem == source_id else []
        if len(alike) > 1:
            raise BrainError(f"source {source_id!r} could be any of the trace's videos {alike}")
        return alike[0] if alike else REST


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole file, per kind and name of brain."""

    fast: Mapping[str, BrainTrace[FastRow]]
    slow: Mapping[str, BrainTrace[SlowRow]]


def _stem(video: str) -> str:
    path = PurePath(video)
    return video[: -len(path.suffix)] if path.suffix.lower() in _ENDINGS else video


def _convert(data: object, kind: type[PartT], where: str) -> PartT:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise BrainError(f"{where}: {error}") from error


def parse_trace(data: object, where: str) -> Trace:
    """Check a whole file, so that a defect shows at the start and not in the middle of a run.

    Raises:
        BrainError: names `where`, the brain, the video, the entry and the field.
    """
    part = _convert(data, _FilePart, where)
    return Trace(
        {b: _brain(raw, FastRow, f"{where}: fast brain {b!r}") for b, raw in part.fast.items()},
        {b: _brain(raw, SlowRow, f"{where}: slow brain {b!r}") for b, raw in part.slow.items()},
    )


def _brain(raw: object, kind: type[RowT], where: str) -> BrainTrace[RowT]:
    part = _convert(raw, _BrainPart, where)
    if not 0.0 <= part.latency < math.inf:
        raise BrainError(f"{where}: latency must be 0 or more seconds, not {part.latency}")
    videos = {}
    for video, entries in part.videos.items():
        rows: list[RowT] = []
        for index, entry in enumerate(entries):
            place = f"{where}, video {video!r}, entry {index}"
            row = _convert(entry, kind, place)
            if defect := _defect(row, rows[-1].t if rows else -math.inf):
                raise BrainError(f"{place}: {defect}")
            rows.append(row)
        videos[video] = rows
    return BrainTrace(part.latency, videos, part.fingerprint, part.interruptible)


def _defect(row: Row, before: float) -> str | None:
    names = ("light", "blind", "error") if isinstance(row, FastRow) else ("verdict", "error")
    given = [name for name in names if getattr(row, name) is not None]
    if not math.isfinite(row.t):
        return f"t must be finite, not {row.t}"
    if row.t <= before:
        return f"t must ascend, but {row.t} follows {before}"
    if len(given) != 1:
        return f"exactly one of {', '.join(names)} must be given, not {given or 'none'}"
    if row.latency is not None and not 0.0 <= row.latency < math.inf:
        return f"latency must be 0 or more seconds, not {row.latency}"
    if row.hazard is not None and given[0] in {"blind", "error"}:
        return f"hazard does not go with {given[0]}"
    return _fast_defect(row) if isinstance(row, FastRow) else None


def _fast_defect(row: FastRow) -> str | None:
    if row.light is not None and row.light.upper() not in Light.__members__:
        return f"light must be green, yellow or red, not {row.light!r}"
    if row.scores is not None and row.blind is not None:
        return "scores do not go with blind"
    if row.scores is not None and not all(map(math.isfinite, row.scores)):
        return f"scores must be finite, not {row.scores}"
    return None


def _no_twins(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:  # JSON readers would keep one of the two without a word
            raise ValueError(f"the key {key!r} stands twice in one object")
        table[key] = value
    return table


def read_trace(path: str) -> Trace:
    """Read and check a trace file.

    Raises:
        BrainError: it cannot be read, or names the place of its defect.
    """
    try:
        data = json.loads(Path(path).read_bytes(), object_pairs_hook=_no_twins)
    except OSError as error:
        raise BrainError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BrainError(f"{path}: is not a trace in JSON: {error}") from error
    return parse_trace(data, path)
