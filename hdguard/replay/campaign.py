"""Runs many videos, here or in several processes, and survives the death of any of them.

A worker process writes a video's result before it reports it, so a result is on disk exactly once
whoever dies when; a video is tried again only if its result is not there.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import Outcome, VideoResult, video_result

TRIES = 3
"""A video during which, alone in its process, the process died so often has failed."""

Work = Callable[[Entry], VideoResult]
Done = Callable[[VideoResult], None]


def run_here(entries: Sequence[Entry], work: Work, done: Done) -> None:
    """Run them one after the other in this process."""
    for entry in entries:
        done(work(entry))


def run_in_pool(
    entries: Sequence[Entry], work: Work, done: Done, *, workers: int, folder: RunFolder
) -> None:
    """Run them in `workers` processes.

    `work` must be picklable and must save its result in the folder before it returns.
    """
    left = {entry.video: entry for entry in entries}
    while left:
        for video in _one_pool(left, work, done, workers):
            if (finished := folder.load(left[video])) is not None:
                del left[video]
                done(finished)
            else:
                _run_alone(left.pop(video), work, done, folder)


def _run_alone(entry: Entry, work: Work, done: Done, folder: RunFolder) -> None:
    """Run a video that was in hand when a process died, where only it can be to blame."""
    for _ in range(TRIES):
        if not _one_pool({entry.video: entry}, work, done, 1):
            return
        if (finished := folder.load(entry)) is not None:  # it died between saving and reporting
            done(finished)
            return
    finished = video_result(entry, Outcome(failed=f"its worker process died {TRIES} times"))
    folder.save(entry, finished, {})
    done(finished)


def _one_pool(left: dict[str, Entry], work: Work, done: Done, workers: int) -> list[str]:
    """Run until all is done or a process dies; returns the videos that may have been in hand."""
    context = multiprocessing.get_context("spawn")
    running: dict[Future[VideoResult], str] = {}
    waiting = list(left.values())
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            while waiting or running:
                # No more than one video per process is in hand, so that few are tried again.
                while waiting and len(running) < workers:
                    running[pool.submit(work, waiting[0])] = waiting[0].video
                    del waiting[0]
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    result = future.result()
                    del running[future]
                    del left[result.video]
                    done(result)
        except BrokenProcessPool:
            return list(running.values()) or [waiting[0].video]
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)  # waits for the videos in hand: they will count
            raise
    return []
