"""Brains that repeat a trace file, and the recorder that makes one while other brains run.

They stand in for models wherever a run must repeat: a `Trace...Brain` gives the verdicts and the
latencies that the file gives (`trace_format` describes it), for pixels that it never looks at.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal

import msgspec

from hdguard.brains.base import BrainError, Shot
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
from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, ImageSpec, Light


def _pick(brains: Mapping[str, BrainTrace[RowT]], name: str, where: str) -> BrainTrace[RowT]:
    brain = brains.get(name) or brains.get(REST)
    if brain is None:
        raise BrainError(f"{where}: has no brain {name!r} and no {REST!r}; it has {sorted(brains)}")
    return brain


@dataclass(frozen=True, slots=True)
class TraceFastSettings:
    """Settings of a `TraceFastBrain`.

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
class TraceSlowSettings(TraceFastSettings):
    """Settings of a `TraceSlowBrain`; the fields are those of `TraceFastSettings`."""

    name: str = "trace-slow"


class _TraceBrain(Generic[RowT]):
    """What both brains share: name, spec, and the row that holds for a frame."""

    def __init__(self, settings: TraceFastSettings, brain: BrainTrace[RowT]) -> None:
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
        return self._brain.latency if row is None or row.latency is None else row.latency

    def _answer(self, ref: FrameRef) -> RowT:
        row = self._brain.row(ref.source_id, ref.media_time)
        if self._settings.play:
            time.sleep(self._latency(row))  # noqa: TID251 - stands for the model's work
        if row is None:
            at = f"source {ref.source_id!r} at {ref.media_time:.3f} s"
            raise BrainError(f"{self._settings.path}: no entry for brain {self.name!r}, {at}")
        if row.error is not None:
            raise BrainError(row.error)
        return row


class TraceFastBrain(_TraceBrain[FastRow]):
    """A FastBrain that repeats what its file says.

    Raises:
        BrainError: the file cannot be read, has a defect, or does not know the brain.
    """

    Settings: ClassVar[type] = TraceFastSettings
    adaptive: ClassVar[bool] = True

    def __init__(self, settings: TraceFastSettings) -> None:
        brains = read_trace(settings.path).fast
        super().__init__(settings, _pick(brains, settings.name, f"{settings.path}: fast"))

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Repeat the verdict; the pixels are not looked at.

        Raises:
            BrainError: the file says so, or says nothing of this frame.
        """
        row = self._answer(shot.ref)
        if row.light is not None:
            return FastVerdict(shot.ref, self.name, Light[row.light.upper()], row.found())
        return CannotSee(shot.ref, self.name, row.blind or "")


class TraceSlowBrain(_TraceBrain[SlowRow]):
    """A SlowBrain that repeats what its file says of the trigger.

    Raises:
        BrainError: the file cannot be read, has a defect, or does not know the brain.
    """

    Settings: ClassVar[type] = TraceSlowSettings

    def __init__(self, settings: TraceSlowSettings) -> None:
        brains = read_trace(settings.path).slow
        super().__init__(settings, _pick(brains, settings.name, f"{settings.path}: slow"))

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


class TraceRecorder:
    """Notes what other brains answer, to be written as a trace.

    Times and latencies are kept exactly. A frame that the same brain judged twice keeps its last
    answer.
    """

    def __init__(self) -> None:
        self._fast: dict[tuple[str, str], dict[float, FastRow]] = {}
        self._slow: dict[tuple[str, str], dict[float, SlowRow]] = {}

    def fast(
        self,
        brain: str,
        ref: FrameRef,
        answer: FastVerdict | CannotSee | BrainError | str,
        latency: float,
    ) -> None:
        """Note a FastBrain's answer, or the reason why it had none, and its latency in seconds."""
        t = ref.media_time
        match answer:
            case FastVerdict():
                light, hazard = answer.light.name.lower(), _hazard_row(answer.hazard)
                row = FastRow(t=t, light=light, hazard=hazard, latency=latency)
            case CannotSee():
                row = FastRow(t=t, blind=answer.reason, latency=latency)
            case _:
                row = FastRow(t=t, error=str(answer), latency=latency)
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
            BrainError: the data have a defect.
        """
        other = parse_trace(data, "merged trace")
        _merge(self._fast, other.fast)
        _merge(self._slow, other.slow)

    def data(self) -> dict[str, Any]:
        """Everything noted so far, in the format of a trace file, sorted."""
        return {"format": FORMAT, "fast": _plain(self._fast), "slow": _plain(self._slow)}


def _hazard_row(hazard: Hazard) -> HazardRow | None:
    if hazard == NO_HAZARD:
        return None
    return HazardRow(hazard.category, hazard.severity, hazard.text)


def _merge(
    into: dict[tuple[str, str], dict[float, RowT]], other: Mapping[str, BrainTrace[RowT]]
) -> None:
    for name, brain in other.items():
        for video, rows in brain.videos.items():
            kept = into.setdefault((name, video), {})
            for row in rows:
                latency = brain.latency if row.latency is None else row.latency
                kept[row.t] = msgspec.structs.replace(row, latency=latency)


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
