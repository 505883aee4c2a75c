"""A run's folder: every finished video is on disk at once, so that nothing is lost or run twice."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hdguard.replay.dataset import Entry
from hdguard.replay.results import (
    Outcome,
    Results,
    ResultsError,
    VideoResult,
    decode_video,
    encode_video,
    video_result,
    write_atomic,
    write_results,
)


class FolderError(Exception):
    """The run's folder cannot be used as asked: says why and what to do."""


class RunFolder:
    """Where a run writes.

    `run.json` says how the run is made, `videos/` has one result per finished video, `traces/` one
    trace, `journals/` one journal, `incidents/` a folder per halt if they are recorded; the rest is
    written when the run ends or is interrupted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journals = path / "journals"
        self.incidents = path / "incidents"
        self._videos = path / "videos"
        self._traces = path / "traces"

    def prepare(self, run: Mapping[str, Any], *, resume: bool) -> None:
        """Make the folder, or take up an earlier run that was made in the same way.

        Raises:
            FolderError: there is another run in it, or nothing can be written there.
        """
        header = self.path / "run.json"
        try:
            for folder in (self._videos, self._traces, self.journals):
                folder.mkdir(parents=True, exist_ok=True)
            finished = header.exists() and any(self._videos.iterdir())
            if finished and not resume:
                msg = f"{self.path}: holds a run already; give --resume, or another --out"
                raise FolderError(msg)
            if finished:
                earlier = msgspec.json.decode(header.read_bytes(), type=dict[str, Any])
                self._compare(run, earlier)
                return
            write_atomic(header, msgspec.json.format(msgspec.json.encode(run), indent=2))
        except OSError as error:
            msg = f"{error.filename or self.path}: {error.strerror}"
            raise FolderError(msg) from error
        except msgspec.DecodeError as error:
            msg = f"{header}: not a run's header: {error}; give another --out"
            raise FolderError(msg) from error

    def _compare(self, run: Mapping[str, Any], earlier: Mapping[str, Any]) -> None:
        wanted = msgspec.json.decode(msgspec.json.encode(run))
        for key, was, now in _differences("", earlier, wanted):
            msg = (
                f"{self.path}: --resume, but the run there was made with another {key}: "
                f"{was!r}, now {now!r}"
            )
            raise FolderError(msg)

    def save(self, entry: Entry, video: VideoResult, trace: Mapping[str, Any]) -> None:
        """Write a finished video; the result comes last, since it says that all is there."""
        if trace:
            write_atomic(self._traces / f"{entry.slug}.json", msgspec.json.encode(trace))
        write_atomic(self._videos / f"{entry.slug}.json", encode_video(video))

    def load(self, entry: Entry) -> VideoResult | None:
        """The finished result of a video, or None if it has to be run.

        It is scored by what the entry says now: the truth may have been corrected meanwhile.
        """
        try:
            saved = decode_video((self._videos / f"{entry.slug}.json").read_bytes())
        except (FileNotFoundError, ResultsError):
            return None
        seen = {name: getattr(saved, name) for name in Outcome.__struct_fields__}
        return video_result(entry, Outcome(**seen))

    def traces(self, entries: Iterable[Entry]) -> list[dict[str, Any]]:
        """The traces of the finished videos.

        Raises:
            FolderError: one is damaged.
        """
        files = [self._traces / f"{entry.slug}.json" for entry in entries]
        try:
            return [msgspec.json.decode((last := f).read_bytes()) for f in files if f.exists()]
        except msgspec.DecodeError as error:
            msg = f"{last}: damaged: {error}; delete it and its video's result, then --resume"
            raise FolderError(msg) from error

    def finish(
        self, entries: Sequence[Entry], run: Mapping[str, Any], left_out: Sequence[str]
    ) -> Results:
        """Write the results of every finished video, in the order of the entries."""
        done = [video for entry in entries if (video := self.load(entry)) is not None]
        unfinished = len(entries) - len(done)
        if unfinished:
            left_out = [*left_out, f"{unfinished} videos not run yet: go on with --resume"]
        return write_results(self.path, run, done, left_out=left_out)


def _differences(path: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ: dotted path, both values; in the new one's order."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in {**now, **was}:
            yield from _differences(f"{path}.{key}" if path else key, was.get(key), now.get(key))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for n, pair in enumerate(zip(was, now, strict=True)):
            yield from _differences(f"{path}.{n}", *pair)
    elif was != now:
        yield path, was, now


def default_folder(now: str) -> Path:
    """`runs/<time>`, or the first `runs/<time>-<n>` that is free."""
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        path = Path("runs") / f"{now}{suffix}"
        if not os.path.lexists(path):
            return path
    msg = f"runs/{now}: a thousand runs in one second; give --out"
    raise FolderError(msg)
