"""The reflex's whole answer against the bare dense flow that it uses, on the same grey frames.

Resizing is left out: the frames come at the reflex's size. CPU seconds a frame, in turn.
"""

import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np

from benchmarks.clips import clips
from benchmarks.ratio import Ratio
from hdguard.brains.base import Rgb, Shot
from hdguard.brains.reflex import ReflexFastBrain, ReflexSettings
from hdguard.core.sampling import FrameSampler
from hdguard.core.types import FrameRef
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.runtime.virtual_time import run_virtual

ROUNDS = 5
GOAL = 2.0


def run() -> Iterator[Ratio]:
    """Measure; the median frame of each counts."""
    spec = ReflexSettings().spec
    with tempfile.TemporaryDirectory() as name:
        shots = [run_virtual(_sampled(file, spec.width)) for file in clips(Path(name))]
    cv2.setNumThreads(1)
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(ROUNDS):
        for video in shots:
            bare += _flow([shot.rgb for shot in video])
            ours += _reflex(video)
    frames = f"{shots[0][0].rgb.shape[1]} x {shots[0][0].rgb.shape[0]}"
    yield Ratio(
        f"reflex vs bare DIS medium flow, CPU s a frame ({frames}, n {len(ours)})",
        float(np.median(ours)),
        float(np.median(bare)),
        GOAL,
    )


async def _sampled(file: Path, width: int) -> list[Shot]:
    source = FileSource(FileSettings(str(file), decode="inline"))
    sampler = FrameSampler(5.0)
    spec = ReflexSettings(width=width).spec
    return [Shot(f.ref, f.image.rgb(spec)) async for f in source.frames() if sampler.offer(f.ref)]


def _flow(pictures: list[Rgb]) -> list[float]:
    flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    greys = [cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY) for rgb in pictures]
    took = []
    for before, after in pairwise(greys):
        start = time.process_time()
        flow.calc(after, before, np.zeros((*after.shape, 2), np.float32))
        took.append(time.process_time() - start)
    return took


def _reflex(video: list[Shot]) -> list[float]:
    brain = ReflexFastBrain(ReflexSettings())
    took = []
    for shot in video:
        start = time.process_time()
        brain.assess(Shot(FrameRef("bench", *_rest(shot.ref)), shot.rgb))
        took.append(time.process_time() - start)
    return took[1:]


def _rest(ref: FrameRef) -> tuple[int, float, float]:
    return ref.seq, ref.captured_at, ref.media_time
