"""Everything of a run that a report shows, from wherever it is; what is missing is said.

A report of a finished run must not fail because the videos were moved or a journal was deleted: the
scores are in results.json alone, the rest makes them easier to believe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from hdguard.ingest.base import SourceError
from hdguard.ingest.redact import redacted
from hdguard.replay.dataset import Entry, load_dataset
from hdguard.replay.html_report.lights import Lights, read_lights
from hdguard.replay.html_report.settings import ReportSettings
from hdguard.replay.html_report.stills import ROUNDED, Still, View, stills
from hdguard.replay.problems import DatasetError
from hdguard.replay.results import Results, ResultsError, VideoResult, read_results
from hdguard.runtime.journal import JournalError


@dataclass(frozen=True, slots=True)
class Material:
    """What there is of one video beside its result; `missing` says what there is not, and why."""

    lights: Lights | None
    stills: dict[str, Still]
    missing: list[str]


def read_run(path: Path) -> Results:
    """Read a run's results.

    Raises:
        ResultsError: it is no run, has not finished, or another version of hdguard wrote it.
    """
    folder = path if path.is_dir() else path.parent
    if path.is_dir() and not (path / "results.json").exists():
        if (path / "run.json").exists():
            msg = f"{path}: the run has no results.json yet; finish it with hdguard replay --resume"
        else:
            msg = f"{path}: not a run's folder (no results.json); hdguard replay --out makes one"
        raise ResultsError(msg)
    try:
        return read_results(path)
    except ResultsError as error:
        if not isinstance(error.__cause__, msgspec.DecodeError):
            raise
        written = _version(folder / "run.json")
        msg = f"{error}; {written} wrote it: make the report with that one, or replay again"
        raise ResultsError(msg) from error


def _version(header: Path) -> str:
    """Who wrote the run, as far as it says."""
    try:
        run = msgspec.json.decode(header.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return "perhaps another version of hdguard"
    return f"hdguard {run.get('hdguard', 'of an unknown version')}"


class Gatherer:
    """Finds a run's journals and videos.

    Attributes:
        missing: what concerns all videos.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any], settings: ReportSettings) -> None:
        self.missing: list[str] = []
        self._journals = folder / "journals"
        self._settings = settings
        self._view = _view(run)
        self._entries = self._find(run) if settings.stills else {}
        if not self._journals.is_dir():
            self.missing.append("No journals beside the results, so no lights over time.")

    def _find(self, run: Mapping[str, Any]) -> dict[str, Entry]:
        """The run's videos by their names."""
        settings = self._settings
        root = settings.dataset or (Path(str(run["dataset"])) if run.get("dataset") else None)
        if root is None:
            self.missing.append("No stills: the run does not name its data set; give --dataset.")
            return {}
        try:
            found = load_dataset(
                root, truth=settings.truth, safe=settings.safe, unlisted="safe"
            ).entries
        except DatasetError as error:
            self.missing.append(f"No stills: {redacted(str(error))}; give --dataset.")
            return {}
        return {entry.video: entry for entry in found}

    def material(self, video: VideoResult) -> Material:
        """What there is of this video; never fails."""
        missing: list[str] = []
        lights = self._lights(video, missing) if self._journals.is_dir() else None
        wanted = self._entries and video.warning is not None
        return Material(lights, self._stills(video, missing) if wanted else {}, missing)

    def _lights(self, video: VideoResult, missing: list[str]) -> Lights | None:
        name = Entry(video=video.video, keyframes=None, path=Path()).slug
        try:
            return read_lights(self._journals / f"{name}.jsonl")
        except JournalError as error:
            missing.append(f"No lights: {error}")
            return None

    def _stills(self, video: VideoResult, missing: list[str]) -> dict[str, Still]:
        warning, entry = video.warning, self._entries.get(video.video)
        assert warning is not None
        if entry is None:
            missing.append(
                "No stills: the video is not found in the data set; give --dataset or --safe."
            )
            return {}
        try:
            found = stills(str(entry.path), (warning.trigger, warning.issued), self._view)
        except SourceError as error:
            missing.append(f"No stills: {error}")
            return {}
        if not found or abs(found[0].at - warning.trigger) > ROUNDED:
            missing.append(
                f"No stills: {redacted(str(entry.path))} has no frame at {warning.trigger:.3f} s, "
                "so it is not the video that was judged, or not as it was."
            )
            return {}
        return dict(zip(("trigger", "issued"), found, strict=True))


def _view(run: Mapping[str, Any]) -> View:
    """How the run saw its videos, if it says so: what it hid stays hidden.

    Raises:
        ResultsError: it says something that this version does not understand.
    """
    try:
        return msgspec.convert((run.get("settings") or {}).get("source") or {}, View, strict=False)
    except (msgspec.ValidationError, AttributeError) as error:
        raise ResultsError(f"results.json: run.settings.source: {error}") from error
