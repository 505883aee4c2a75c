"""A whole virtual replay at 5 FPS with a free brain, against bare PyAV decoding of the same files.

What is above 1 is our price: sampling, conversion to 448 x 448, the guard, its permits, the journal
and the results' files. Both run in this process, in turn, on one decoder thread; CPU seconds.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import av

from benchmarks.clips import clips
from benchmarks.ratio import Ratio
from hdguard import app
from hdguard.config import Config, FastConfig
from hdguard.replay.dataset import load_dataset
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import VideoResult

ROUNDS = 5
GOAL = 1.5


def run() -> Iterator[Ratio]:
    """Measure, alternating; each round's ratio counts, the median is the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = clips(folder)
        trace = folder / "trace.json"
        rows = [{"t": 0.0, "light": "green"}]
        fast = {"*": {"videos": {"*": rows}}}
        trace.write_text(json.dumps({"format": "hdguard-trace/1", "fast": fast, "slow": {}}))
        plan = app.ReplayPlan(
            Config(fast=(FastConfig("trace", {"path": str(trace)}, adaptive=False),)),
            pace="virtual",
            cost="none",
        )
        truth = folder / "anno_truth.json"
        named = [{"video_name": f.name, "keyframes": None} for f in files]
        truth.write_text(json.dumps({"annotations": named}))
        ours, bare = [], []
        for n in range(ROUNDS + 1):
            bare.append(_cpu_seconds(partial(_decode, files)))
            out = folder / f"run{n}"
            ours.append(_cpu_seconds(partial(_replay, plan, files[0].parent, truth, out)))
        rounds = sorted(zip(ours[1:], bare[1:], strict=True), key=lambda pair: pair[0] / pair[1])
        yield Ratio("virtual replay at 5 FPS vs bare decoding, CPU s", *rounds[ROUNDS // 2], GOAL)


def _cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _decode(files: list[Path]) -> None:
    for file in files:
        with av.open(str(file)) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            for _ in container.decode(stream):
                pass


def _replay(plan: app.ReplayPlan, videos: Path, truth: Path, out: Path) -> None:
    folder = RunFolder(out)
    folder.prepare(plan.header, resume=False)
    entries = load_dataset(videos, truth=truth).entries
    done: list[VideoResult] = []
    app.replay(plan, entries, folder, done.append)
    folder.finish(entries, plan.header, ())
    assert all(video.failed is None for video in done)
