"""Watching a 720p30 camera at GREEN against bare decoding, and against the loop that many write.

The same stream over TCP in its own pace, in turn; CPU seconds a frame, all threads of this process.
Ours is the whole guard with a FastBrain that costs nothing: what is above bare decoding is the
thread's handover, the guard's step for each frame, thumbnails, permits, and one picture a second
for the brain. OpenCV's loop also converts each picture, since it cannot do otherwise.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import av
import cv2

from benchmarks.camera_stream import camera_stream
from benchmarks.ratio import Ratio
from benchmarks.watching import green_seat, watch
from hdguard.core.policy import BrainPlan

SECONDS = 8
ROUNDS = 3
GOAL = 1.4  # against bare decoding; the other is reported, and held to the same


def run() -> Iterator[Ratio]:
    """Measure in turn; each round's ratio counts, the median is the result."""
    with tempfile.TemporaryDirectory() as name, camera_stream(Path(name), SECONDS) as url:
        contenders: tuple[Callable[[], float], ...] = (
            partial(_ours, url, Path(name)),
            partial(_bare, url),
            partial(_opencv, url),
        )
        rounds = [[contender() for contender in contenders] for _ in range(ROUNDS + 1)][1:]
    for other, what in enumerate(("bare PyAV", "OpenCV's VideoCapture"), 1):
        pairs = sorted(((r[0], r[other]) for r in rounds), key=lambda pair: pair[0] / pair[1])
        yield Ratio(
            f"a 720p30 camera watched at GREEN vs {what}, CPU s a frame", *pairs[ROUNDS // 2], GOAL
        )


def _ours(url: str, folder: Path) -> float:
    seat = green_seat(folder)
    seen = watch([url], lambda: seat, BrainPlan(seat.name))
    assert seen.verdicts <= SECONDS + 1, "it was not GREEN"
    return _a_frame(seen.cpu, seen.frames)


def _bare(url: str) -> float:
    start, count = time.process_time(), 0
    with av.open(url, format="mpegts") as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for _ in container.decode(stream):
            count += 1
    return _a_frame(time.process_time() - start, count)


def _opencv(url: str) -> float:
    start, count = time.process_time(), 0
    capture = cv2.VideoCapture(url, cv2.CAP_FFMPEG)
    while capture.read()[0]:
        count += 1
    capture.release()
    return _a_frame(time.process_time() - start, count)


def _a_frame(cpu: float, frames: int) -> float:
    assert frames > 0.9 * SECONDS * 30, f"only {frames} frames came"
    return cpu / frames
