"""A small data set with its trace, made by code: five videos of 3 s, each with another story."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hdguard.replay.dataset import Entry, load_dataset
from hdguard.replay.results import Results
from tests.ingest.media import Clip, write_video

FRAMES = 31  # at 10 a second: the last one is of 3.0 s
KEYFRAMES = {"intent_onset": 0.5, "intervention_deadline": 1.5, "pnr": 1.7, "impact_outcome": 2.5}

GREEN = {"t": 0.0, "light": "green"}
STORIES: dict[str, list[dict[str, Any]]] = {
    # RED at 1.0 s, judged in 0.1 s: a warning in time.
    "red.mp4": [GREEN, {"t": 1.0, "light": "red", "latency": 0.1}],
    "calm.mp4": [GREEN],
    # YELLOW at 1.0 s; the SlowBrain says danger 0.6 s later.
    "stove.mp4": [GREEN, {"t": 1.0, "light": "yellow"}, {"t": 1.2, "light": "green"}],
    # YELLOW on the last sample; the review is heard in the drain.
    "end.mp4": [GREEN, {"t": 2.9, "light": "yellow"}],
    # Safe material on which it halts: a false stop.
    "quiet.mp4": [GREEN, {"t": 2.0, "light": "red"}],
}
REVIEWS = {
    "stove.mp4": [{"t": 0.0, "verdict": "danger", "latency": 0.6}],
    "end.mp4": [{"t": 0.0, "verdict": "danger", "latency": 0.3}],
}
TRACE = {
    "format": "hdguard-trace/1",
    "fast": {"trace": {"latency": 0.05, "videos": STORIES}},
    "slow": {"trace-slow": {"videos": {"*": [{"t": 0.0, "verdict": "safe"}], **REVIEWS}}},
}


def make_dataset(folder: Path, names: Sequence[str] = tuple(STORIES)) -> Path:
    """Write the videos, `anno_truth.json` and `trace.json`; returns the folder."""
    folder.mkdir(parents=True)
    first = write_video(folder / names[0], Clip(stamps=range(FRAMES)))
    for name in names[1:]:
        # One pattern serves all: the stories are in the trace. The names must differ, not the bits.
        (folder / name).write_bytes(first.read_bytes())
    entries = [
        {"video_name": name, "keyframes": None if name == "quiet.mp4" else KEYFRAMES}
        for name in names
    ]
    (folder / "anno_truth.json").write_text(json.dumps({"annotations": entries}))
    (folder / "trace.json").write_text(json.dumps(TRACE))
    return folder


def entries(folder: Path) -> tuple[Entry, ...]:
    return load_dataset(folder, strict=True).entries


def triggers(results: Results) -> dict[str, float | None]:
    """When each video was warned of."""
    return {v.video: v.warning.trigger if v.warning else None for v in results.videos}
