"""Many videos in several processes, some of which die."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from hdguard.replay import campaign
from hdguard.replay.campaign import run_here, run_in_pool
from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import Outcome, VideoResult, video_result

NAMES = tuple(f"{n}.mp4" for n in range(6))
ENTRIES = tuple(Entry(video=name, keyframes=None, path=Path(name)) for name in NAMES)


@pytest.fixture(autouse=True, scope="module")
def _tracker() -> None:
    """Python's own helper of `spawn` outlives every pool; it is not a child left behind."""
    resource_tracker.ensure_running()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.prepare({"policy": "sidecar"}, resume=False)
    return made


# Work for the processes. Every start is noted as a file, since memory dies with its process.


def note(folder: RunFolder, entry: Entry) -> int:
    """Note that this video was started; returns how often before."""
    before = len(list(folder.path.glob(f"{entry.video}.start.*")))
    (folder.path / f"{entry.video}.start.{before}").touch()
    return before


def starts(folder: RunFolder) -> dict[str, int]:
    return dict(Counter(p.name.split(".start.")[0] for p in folder.path.glob("*.start.*")))


def finish(folder: RunFolder, entry: Entry) -> VideoResult:
    finished = video_result(entry, Outcome(watched=1.0))
    folder.save(entry, finished, {})
    return finished


def sound(folder: RunFolder, entry: Entry) -> VideoResult:
    note(folder, entry)
    return finish(folder, entry)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_once(folder: RunFolder, entry: Entry) -> VideoResult:
    """Its process is killed in the middle of the second video, the first time."""
    if note(folder, entry) == 0 and entry.video == "1.mp4":
        die()
    return finish(folder, entry)


def dies_always(folder: RunFolder, entry: Entry) -> VideoResult:
    """The second video crashes its decoder, whoever tries."""
    note(folder, entry)
    if entry.video == "1.mp4":
        die()
    return finish(folder, entry)


def dies_after_saving(folder: RunFolder, entry: Entry) -> VideoResult:
    """The process is killed between saving and reporting, every time."""
    note(folder, entry)
    finished = finish(folder, entry)
    if entry.video == "1.mp4":
        die()
    return finished


def dies_then_dies_after_saving(folder: RunFolder, entry: Entry) -> VideoResult:
    """First it dies at once; then, tried alone, only after it has saved."""
    before = note(folder, entry)
    if entry.video == "1.mp4" and before == 0:
        die()
    return dies_after_saving(folder, entry)


def raises(folder: RunFolder, entry: Entry) -> VideoResult:
    if entry.video == "1.mp4":
        raise ZeroDivisionError("a defect of ours")
    return finish(folder, entry)


Work = Callable[[RunFolder, Entry], VideoResult]


def pooled(folder: RunFolder, work: Work, workers: int = 2) -> Counter[str]:
    """Run all in processes; returns how often each video was reported."""
    reported: list[VideoResult] = []
    run_in_pool(ENTRIES, partial(work, folder), reported.append, workers=workers, folder=folder)
    for video in reported:
        (entry,) = [e for e in ENTRIES if e.video == video.video]
        assert folder.load(entry) == video
    return Counter(video.video for video in reported)


ONCE = Counter(NAMES)


def test_every_video_is_run_and_reported_once(folder: RunFolder) -> None:
    assert pooled(folder, sound, workers=3) == ONCE
    assert starts(folder) == dict.fromkeys(NAMES, 1)


def test_here_they_are_run_in_order(folder: RunFolder) -> None:
    reported: list[str] = []
    run_here(ENTRIES, partial(sound, folder), lambda video: reported.append(video.video))
    assert tuple(reported) == NAMES


def test_a_process_killed_in_mid_run_costs_no_video(folder: RunFolder) -> None:
    assert pooled(folder, dies_once) == ONCE
    assert failed(folder) == []
    again = starts(folder)
    assert again["1.mp4"] == 2
    # The other process's video in hand may have died with the pool; no more than that.
    assert max(again.values()) <= 2
    assert sum(again.values()) <= len(ENTRIES) + 2


def failed(folder: RunFolder) -> list[tuple[str, str]]:
    loaded = [folder.load(entry) for entry in ENTRIES]
    return [(v.video, v.failed) for v in loaded if v is not None and v.failed is not None]


def test_a_video_that_kills_every_process_has_failed_and_takes_no_neighbour_with_it(
    folder: RunFolder,
) -> None:
    assert pooled(folder, dies_always) == ONCE
    assert failed(folder) == [("1.mp4", "its worker process died 3 times")]
    assert starts(folder)["1.mp4"] == 1 + campaign.TRIES


def test_a_result_on_disk_counts_although_its_process_died_before_it_could_say_so(
    folder: RunFolder,
) -> None:
    assert pooled(folder, dies_after_saving, workers=1) == ONCE
    assert failed(folder) == []
    assert starts(folder)["1.mp4"] == 1


def test_that_holds_for_a_video_that_is_tried_alone_too(folder: RunFolder) -> None:
    assert pooled(folder, dies_then_dies_after_saving, workers=1) == ONCE
    assert failed(folder) == []
    assert starts(folder)["1.mp4"] == 3


def test_a_defect_is_not_a_videos_failure_and_ends_the_run(folder: RunFolder) -> None:
    with pytest.raises(ZeroDivisionError, match="a defect of ours"):
        pooled(folder, raises, workers=1)
    assert folder.load(ENTRIES[0]) is not None


@pytest.mark.parametrize("workers", [0, 2])
def test_an_interrupted_run_keeps_what_is_finished(folder: RunFolder, workers: int) -> None:
    reported: list[str] = []

    def done(video: VideoResult) -> None:
        reported.append(video.video)
        if len(reported) == 2:
            raise KeyboardInterrupt

    work = partial(sound, folder)
    pooled_run = partial(run_in_pool, workers=workers, folder=folder)
    run = pooled_run if workers else run_here
    with pytest.raises(KeyboardInterrupt):
        run(ENTRIES, work, done)
    finished = [e.video for e in ENTRIES if folder.load(e) is not None]
    assert set(reported) <= set(finished)
    assert len(finished) < len(ENTRIES)
    left = [e for e in ENTRIES if folder.load(e) is None]
    run_here(left, work, done)
    assert starts(folder) == dict.fromkeys(NAMES, 1)
