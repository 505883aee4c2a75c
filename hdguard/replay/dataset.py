"""A data set on disk: which video belongs to which annotation, and what is safe material.

People unpack archives as they come, so videos are found by name anywhere below the folder. Nothing
is guessed in favour of a score: a video that nobody annotated is named and left out, an annotation
whose video is absent likewise, and safe material is safe only because somebody declared it so.
"""

import filecmp
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Literal

from hdguard.replay.annotations import (
    VIDEO_SUFFIXES,
    Annotation,
    Truth,
    load_truth,
    video_key,
)
from hdguard.replay.problems import DatasetError, Problem

__all__ = ["Dataset", "DatasetError", "Entry", "Problem", "load_dataset", "load_truth"]

TRUTH_NAME = "anno_truth.json"
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})
# The release keeps a folder of stills per video, named like the video; they are not its frames.
_STILL = re.compile(
    r"(intent_onset|intervention_deadline|pnr|impact_outcome|action_end)_[0-9.]+s\."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Annotation):
    """An annotation whose video is there: what a replay runs.

    Attributes:
        path: a video file, or a folder of images.
    """

    path: Path

    @property
    def slug(self) -> str:
        """The video's name as a file name, unique in the data set: for journals and the like."""
        return self.video.replace("%", "%25").replace("/", "%2F")


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a replay runs, and all that it does not.

    Attributes:
        root: the folder given.
        truth: what the truth files say, entries without a video included.
        entries: what is run: annotated videos in the files' order, then other safe material.
        problems: everything wrong, the truth files' problems first.
        absent: names of annotated videos that are nowhere below the folder; not in n.
        unlisted: videos that no truth file lists and nobody declared safe; not run.
    """

    root: Path
    truth: Truth
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]
    absent: tuple[str, ...]
    unlisted: tuple[Path, ...]

    @property
    def annotated(self) -> tuple[Entry, ...]:
        """The entries that are in n."""
        return tuple(e for e in self.entries if not e.safe)

    @property
    def safe(self) -> tuple[Entry, ...]:
        """The entries in which any danger halt is a false stop."""
        return tuple(e for e in self.entries if e.safe)

    @property
    def left_out(self) -> tuple[str, ...]:
        """One line for everything that is not run, and why."""
        return (
            *(str(p) for p in self.problems if p.left_out),
            *(f"{video}: is_valid is false" for video in self.truth.invalid),
            *(f"{path}: in no truth file" for path in self.unlisted),
        )


@dataclass(frozen=True, slots=True)
class _Material:
    """What lies below a folder, sorted."""

    truths: tuple[Path, ...]
    videos: tuple[Path, ...]
    folders: tuple[Path, ...]  # of images


def load_dataset(
    root: Path,
    *,
    truth: Path | None = None,
    safe: Sequence[Path] = (),
    unlisted: Literal["skip", "safe"] = "skip",
    strict: bool = False,
) -> Dataset:
    """Find truth files and videos below `root` and put them together.

    Args:
        root: the data set's folder.
        truth: the one truth file to believe; else every anno_truth.json below `root`.
        safe: folders in which every video is safe material, inside `root` or elsewhere.
        unlisted: what a video in no truth file is: left out and named, or safe material.
        strict: refuse a data set with any problem instead of leaving the entry out.

    Raises:
        DatasetError: no folder, no readable truth, files that disagree, (`strict`) any problem.
    """
    material, declared = _scan(root), _declared_safe(safe)
    truths = (truth,) if truth else material.truths
    if not truths and not safe and unlisted != "safe":
        raise DatasetError(f"{root}: no {TRUTH_NAME} below it; pass --truth FILE or --safe DIR")
    read = load_truth(*truths)
    problems, absent = list(read.problems), list[str]()
    entries = list(_listed(read, material, declared, problems, absent))
    loose = _unlisted(read, material, declared, entries)
    more = _usable(declared, material, problems)
    if unlisted == "safe":
        more |= {p.resolve(): p for p in loose}
    for entry in entries:
        more.pop(entry.path.resolve(), None)
    names = _short_names(more, {e.video for e in entries})
    entries += [Entry(video=name, keyframes=None, path=more[real]) for real, name in names]
    if strict and problems:
        raise DatasetError(f"{root}: the data set has problems:", problems)
    left = () if unlisted == "safe" else loose
    return Dataset(root, read, tuple(entries), tuple(problems), tuple(absent), left)


def _scan(folder: Path) -> _Material:
    """Everything of interest below a folder; hidden files and folders are nobody's material.

    Raises:
        DatasetError: there is no such folder.
    """
    if not folder.is_dir():
        raise DatasetError(f"{folder}: no such folder")
    truths, videos, folders = list[Path](), list[Path](), list[Path]()
    seen: set[str] = set()
    for place, below, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link back up
            below.clear()
            continue
        seen.add(real)
        below[:] = sorted(d for d in below if not d.startswith("."))
        shown = [Path(place, f) for f in sorted(files) if not f.startswith(".")]
        truths += [p for p in shown if p.name == TRUTH_NAME]
        here = [p for p in shown if p.suffix.lower() in VIDEO_SUFFIXES]
        videos += here
        images = [p for p in shown if p.suffix.lower() in IMAGE_SUFFIXES]
        if not here and not all(_STILL.match(p.name) for p in images):  # not beside its thumbnail
            folders.append(Path(place))
    return _Material(tuple(truths), tuple(sorted(videos)), tuple(sorted(folders)))


def _declared_safe(safe: Iterable[Path]) -> dict[Path, Path]:
    """Everything below the --safe folders: its path by its real path."""
    declared: dict[Path, Path] = {}
    for material in map(_scan, safe):
        for path in (*material.videos, *material.folders):
            declared.setdefault(path.resolve(), path)
    return declared


def _unlisted(
    truth: Truth, material: _Material, declared: Mapping[Path, Path], entries: Iterable[Entry]
) -> tuple[Path, ...]:
    """The videos and folders of images that no truth file means and nobody declared safe."""
    used = {entry.path.resolve() for entry in entries} | set(declared)
    mentioned = [*(a.video for a in truth.annotations), *truth.invalid]
    ends: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for name in (*mentioned, *(p.entry for p in truth.problems)):
        parts = PurePosixPath(video_key(name)).parts
        ends[parts[-1] if parts else ""].append(parts)

    def is_meant(path: Path) -> bool:
        parts = PurePosixPath(video_key(path.as_posix())).parts
        return any(parts[-len(end) :] == end for end in ends.get(parts[-1], ()))

    loose = (p for p in (*material.videos, *material.folders) if p.resolve() not in used)
    return tuple(p for p in loose if not is_meant(p))


def _usable(
    declared: Mapping[Path, Path], material: _Material, problems: Iterable[Problem]
) -> dict[Path, Path]:
    """What was declared safe, less the data set's own videos whose annotation has a problem."""
    inside = {p.resolve() for p in (*material.videos, *material.folders)}
    barred = _keys_of(p.entry for p in problems if p.left_out)
    return {
        real: path
        for real, path in declared.items()
        if real not in inside or video_key(path.name) not in barred
    }


def _keys_of(names: Iterable[str]) -> set[str]:
    """The keys, without folders, of videos by their names."""
    return {PurePosixPath(video_key(name)).name for name in names}


def _listed(
    truth: Truth,
    material: _Material,
    declared: Mapping[Path, Path],
    problems: list[Problem],
    absent: list[str],
) -> Iterator[Entry]:
    """The annotations whose one video is there; the others' problems are written down."""
    ordinary = [p for p in material.videos if p.resolve() not in declared]
    pools = [_by_key(paths) for paths in (ordinary, declared.values(), material.folders)]
    taken: dict[Path, str] = {}
    for annotation in truth.annotations:
        key = PurePosixPath(video_key(annotation.video)).name
        tries = (_candidates(annotation.video, pool.get(key, [])) for pool in pools)
        found = next((paths for paths in tries if paths), [])
        problem = ""
        if not found:
            absent.append(annotation.video)
            problem = "video absent: no file or folder of images of this name"
        elif len(found) > 1:
            problem = f"two different videos have this name: {found[0]} and {found[1]}"
        elif found[0].resolve() in declared and not annotation.safe:
            problem = f"annotated with key frames, but {found[0]} is under a --safe folder"
        elif (other := taken.setdefault(found[0].resolve(), annotation.video)) != annotation.video:
            problem = f"the same file as {other}: {found[0]}"
        if problem:
            problems.append(Problem(annotation.truth_file, annotation.video, "video_name", problem))
        else:
            own = {f.name: getattr(annotation, f.name) for f in fields(Annotation)}
            yield Entry(**own, path=found[0])


def _by_key(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Paths by their names without ending."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        found[video_key(path.name)].append(path)
    return dict(found)


def _candidates(name: str, paths: Sequence[Path]) -> list[Path]:
    """The different videos among paths of the right name without ending; copies count once.

    A path that ends like the whole name, folders and ending included, beats the others.
    """
    wanted = PurePosixPath(name.replace("\\", "/")).parts
    bare = PurePosixPath(video_key(name)).parts
    exact = [p for p in paths if p.parts[-len(wanted) :] == wanted]
    alike = [p for p in paths if PurePosixPath(video_key(p.as_posix())).parts[-len(bare) :] == bare]
    different: list[Path] = []
    for path in exact or alike:
        if not any(_same(path, other) for other in different):
            different.append(path)
    return different


def _same(a: Path, b: Path) -> bool:
    """Two paths to one video: the same file or folder, or a byte-for-byte copy."""
    if a.resolve() == b.resolve():
        return True
    return a.is_file() and b.is_file() and filecmp.cmp(a, b, shallow=False)


def _short_names(paths: Iterable[Path], taken: set[str]) -> list[tuple[Path, str]]:
    """Each real path with the shortest end of it that names no other video, sorted by path.

    Cameras number their files alike, so `cam1/0001.mp4` and `cam2/0001.mp4` are ordinary.
    """
    left, named, depth = sorted(paths), list[tuple[Path, str]](), 1
    while left:
        ends = {path: "/".join(path.parts[-depth:]) for path in left}
        count = Counter([*ends.values(), *taken])
        done = {p for p, end in ends.items() if count[end] == 1 or depth >= len(p.parts)}
        named += [(path, ends[path]) for path in left if path in done]
        left = [path for path in left if path not in done]
        depth += 1
    return sorted(named)
