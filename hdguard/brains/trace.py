"""Brains that repeat a trace file, and the recorder that makes one while other brains run.

They stand in for models wherever a run must repeat: a `Trace...Brain` gives the verdicts and the
latencies that the file gives (`trace_format` describes it), for pixels that it never looks at.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal

import msgspec

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.calibration import read_calibration
from hdguard.brains.rejudging import rejudge
from hdguard.brains.trace_format import (
    FORMAT,
    REST,
    BrainTrace,
    FastRow,
    HazardRow,
    RowT,
    SlowRow,
    parse_trace,
    read_trace,
)
from hdguard.core.events import BrainFailed, CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, ImageSpec, Light, Scores

CALLED_BACK = 0.2
"""Seconds that a review which was broken off lasts longer here than there: a repetition may cancel
it a little later than the run that it repeats, by as much as two paces may differ (DESIGN,
"Clocks")."""


def _pick(brains: Mapping[str, BrainTrace[RowT]], name: str, where: str) -> BrainTrace[RowT]:
    brain = brains.get(name) or brains.get(REST)
    if brain is None:
        raise BrainError(f"{where}: has no brain {name!r} and no {REST!r}; it has {sorted(brains)}")
    return brain


@dataclass(frozen=True, slots=True)
class _TraceSettings:
    """What both brains are told.

    Attributes:
        path: the trace file.
        name: the brain's name, here and in the file.
        play: take the latency in real time; else answer at once and only declare it.
        width: pixels of the picture to ask for.
        height: likewise, None to keep the aspect ratio.
    """

    path: str
    name: str = "trace"
    play: bool = False
    width: int = 448
    height: int | None = 448

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain will ask for, known before it is built."""
        return ImageSpec(self.width, self.height)


@dataclass(frozen=True, slots=True)
class TraceFastSettings(_TraceSettings):
    """Settings of a `TraceFastBrain`.

    Attributes:
        calibration: a calibration file by which the recorded scores are judged anew; empty: the
            recorded lights are repeated.
    """

    calibration: str = ""


@dataclass(frozen=True, slots=True)
class TraceSlowSettings(_TraceSettings):
    """Settings of a `TraceSlowBrain`."""

    name: str = "trace-slow"


class _TraceBrain(Generic[RowT]):
    """What both brains share: name, spec, and the row that holds for a frame."""

    def __init__(self, settings: _TraceSettings, brain: BrainTrace[RowT]) -> None:
        self._settings = settings
        self._brain = brain

    @property
    def name(self) -> str:
        """The name that verdicts carry."""
        return self._settings.name

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return self._settings.spec

    def cost(self, ref: FrameRef) -> float:
        """Seconds that the answer about this frame takes, by the file."""
        return self._latency(self._brain.row(ref.source_id, ref.media_time))

    def _latency(self, row: RowT | None) -> float:
        return self._brain.latency_of(row)

    def _answer(self, ref: FrameRef) -> RowT:
        row = self._brain.row(ref.source_id, ref.media_time)
        if self._settings.play:
            time.sleep(self._latency(row))  # noqa: TID251 - stands for the model's work
        if row is None:
            at = f"source {ref.source_id!r} at {ref.media_time:.3f} s"
            raise BrainError(f"{self._settings.path}: no entry for brain {self.name!r}, {at}")
        if (failure := self._failure(row, ref)) is not None:
            raise BrainError(failure, scores=row.scored())
        return row

    def _failure(self, row: RowT, ref: FrameRef) -> str | None:
        del ref
        return row.error


class TraceFastBrain(_TraceBrain[FastRow]):
    """A FastBrain that repeats what its file says.

    Args:
        settings: where it stands.
        recorded: what to repeat, if it has been read already; the files are then not looked at.

    Raises:
        BrainError: the file cannot be read, has a defect, or does not know the brain; the
            calibration cannot be read or is another model's, or there are no scores to judge.
    """

    Settings: ClassVar[type] = TraceFastSettings
    adaptive: ClassVar[bool] = True

    def __init__(
        self, settings: TraceFastSettings, recorded: BrainTrace[FastRow] | None = None
    ) -> None:
        if recorded is None:
            brains = read_trace(settings.path).fast
            recorded = _pick(brains, settings.name, f"{settings.path}: fast")
            if settings.calibration:
                calibration = read_calibration(settings.calibration, recorded.fingerprint)
                recorded = rejudge(recorded, calibration, settings.path)
        super().__init__(settings, recorded)

    @property
    def fingerprint(self) -> str:
        """Of the model whose scores it repeats; empty if the file does not say."""
        return self._brain.fingerprint

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Repeat the verdict; the pixels are not looked at.

        Raises:
            BrainError: the file says so, or says nothing of this frame.
        """
        row = self._answer(shot.ref)
        if row.light is not None:
            light, scores = Light[row.light.upper()], row.scored()
            return FastVerdict(shot.ref, self.name, light, row.found(), scores=scores)
        return CannotSee(shot.ref, self.name, row.blind or "")


class TraceSlowBrain(_TraceBrain[SlowRow]):
    """A SlowBrain that repeats what its file says of the trigger.

    It can be interrupted if the brain can whose answers it repeats. Of a review that was broken off
    there is no answer to repeat.

    Args:
        settings: where it stands.
        recorded: what to repeat, if it has been read already; the file is then not looked at.

    Raises:
        BrainError: the file cannot be read, has a defect, or does not know the brain.
    """

    Settings: ClassVar[type] = TraceSlowSettings

    def __init__(
        self, settings: TraceSlowSettings, recorded: BrainTrace[SlowRow] | None = None
    ) -> None:
        if recorded is None:
            brains = read_trace(settings.path).slow
            recorded = _pick(brains, settings.name, f"{settings.path}: slow")
        super().__init__(settings, recorded)
        self.interruptible = self._brain.interruptible

    def review(
        self,
        review_id: int,
        trigger: FrameRef,
        shots: tuple[Shot, ...],
    ) -> SlowVerdict:
        """Repeat the verdict on this trigger; the pixels are not looked at.

        Raises:
            BrainError: the file says so, or says nothing of this trigger.
        """
        row = self._answer(trigger)
        return SlowVerdict(review_id, row.verdict == "danger", row.found())

    def _latency(self, row: SlowRow | None) -> float:
        broken_off = row is not None and row.broken_off
        return super()._latency(row) + (CALLED_BACK if broken_off else 0.0)

    def _failure(self, row: SlowRow, ref: FrameRef) -> str | None:
        if row.broken_off:
            what = f"no review for {ref.media_time:.3f} s (it was broken off when recorded)"
            return f"{self._settings.path}: the trace has {what}"
        return super()._failure(row, ref)


class TraceRecorder:
    """Notes what other brains answer, to be written as a trace.

    Times and latencies are kept exactly. A frame that the same brain judged twice keeps its last
    answer.
    """

    def __init__(self) -> None:
        self._fast: dict[tuple[str, str], dict[float, FastRow]] = {}
        self._slow: dict[tuple[str, str], dict[float, SlowRow]] = {}
        self._made_of: dict[str, str] = {}
        self._interruptible: set[str] = set()

    def fast(
        self,
        brain: str,
        ref: FrameRef,
        answer: FastVerdict | CannotSee | BrainFailed | str,
        latency: float,
    ) -> None:
        """Note a FastBrain's answer, or the reason why it had none, and its latency in seconds."""
        t = ref.media_time
        match answer:
            case FastVerdict():
                light, hazard = answer.light.name.lower(), _hazard_row(answer.hazard)
                scores = _score_row(answer.scores)
                row = FastRow(t=t, light=light, hazard=hazard, latency=latency, scores=scores)
            case CannotSee():
                row = FastRow(t=t, blind=answer.reason, latency=latency)
            case BrainFailed():
                scores = _score_row(answer.scores)
                row = FastRow(t=t, error=answer.reason, latency=latency, scores=scores)
            case _:
                row = FastRow(t=t, error=answer, latency=latency)
        self._fast.setdefault((brain, ref.source_id), {})[t] = row

    def slow(
        self, brain: str, trigger: FrameRef, answer: SlowVerdict | BrainError | str, latency: float
    ) -> None:
        """Note a SlowBrain's answer, or the reason why it had none, and its latency in seconds."""
        t = trigger.media_time
        if isinstance(answer, SlowVerdict):
            hazard = _hazard_row(answer.hazard)
            verdict: Literal["danger", "safe"] = "danger" if answer.danger else "safe"
            row = SlowRow(t=t, verdict=verdict, hazard=hazard, latency=latency)
        else:
            row = SlowRow(t=t, error=str(answer), latency=latency)
        self._slow.setdefault((brain, trigger.source_id), {})[t] = row

    def merge(self, data: Mapping[str, Any]) -> None:
        """Add another recorder's data; at equal brain, video and time the added entry wins.

        Raises:
            BrainError: the data have a defect, or hold another model's scores under the same name.
        """
        other = parse_trace(data, "merged trace")
        for name, brain in other.fast.items():
            self._check_model(name, brain)
        _merge(self._fast, other.fast)
        _merge(self._slow, other.slow)
        self._made_of |= {name: b.fingerprint for name, b in other.fast.items() if b.fingerprint}
        self._interruptible |= {name for name, b in other.slow.items() if b.interruptible}

    def _check_model(self, name: str, added: BrainTrace[FastRow]) -> None:
        known, new = self._made_of.get(name, ""), added.fingerprint
        mine = [rows.values() for (brain, _), rows in self._fast.items() if brain == name]
        mixed = _have_scores(mine) and _have_scores(added.videos.values())
        if known != new and (mixed or (known and new)):
            models = " and ".join(mark or "unknown" for mark in (known, new))
            raise BrainError(
                f"merged trace: fast brain {name!r}: its answers are of two models, fingerprints "
                f"{models}; keep them in separate traces"
            )

    def data(self) -> dict[str, Any]:
        """Everything noted so far, in the format of a trace file, sorted."""
        fast, slow = _plain(self._fast), _plain(self._slow)
        for name in self._made_of.keys() & fast.keys():
            fast[name]["fingerprint"] = self._made_of[name]
        for name in self._interruptible & slow.keys():
            slow[name]["interruptible"] = True
        return {"format": FORMAT, "fast": fast, "slow": slow}


def _have_scores(videos: Iterable[Iterable[FastRow]]) -> bool:
    return any(row.scores is not None for rows in videos for row in rows)


def _hazard_row(hazard: Hazard) -> HazardRow | None:
    if hazard == NO_HAZARD:
        return None
    return HazardRow(hazard.category, hazard.severity, hazard.text)


def _score_row(scores: Scores | None) -> tuple[float, float, float] | None:
    return None if scores is None else (scores.green, scores.yellow, scores.red)


def _merge(
    into: dict[tuple[str, str], dict[float, RowT]], other: Mapping[str, BrainTrace[RowT]]
) -> None:
    for name, brain in other.items():
        for video, rows in brain.videos.items():
            kept = into.setdefault((name, video), {})
            for row in rows:
                kept[row.t] = msgspec.structs.replace(row, latency=brain.latency_of(row))


def _plain(noted: Mapping[tuple[str, str], Mapping[float, FastRow | SlowRow]]) -> dict[str, Any]:
    brains: dict[str, Any] = {}
    for (brain, video), rows in sorted(noted.items()):
        entries = [msgspec.to_builtins(rows[t]) for t in sorted(rows)]
        brains.setdefault(brain, {"videos": {}})["videos"][video] = entries
    return brains


def write_trace(path: str | Path, data: Mapping[str, Any]) -> None:
    """Write a trace file; a reader sees the old file or the whole new one, never a part.

    Raises:
        BrainError: the data have a defect, or the file cannot be written.
    """
    path = Path(path)
    parse_trace(data, str(path))
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with new.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise BrainError(f"{path}: cannot be written: {error.strerror}") from error
