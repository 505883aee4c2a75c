"""Processes die in mid-run, by SIGKILL. Nothing is lost, and nothing is counted twice."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from hdguard import app
from hdguard.brains.trace import TraceRecorder
from hdguard.config import Config, FastConfig, PolicyConfig, SlowConfig
from hdguard.core import events
from hdguard.replay.dataset import Entry, load_dataset
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import Outcome, read_results
from hdguard.replay.runner import run_video
from hdguard.runtime.journal import read_journal

FAST = [
    {"t": 0.0, "light": "green"},
    {"t": 2.9, "light": "yellow"},
    {"t": 3.1, "light": "green"},
    {"t": 5.9, "light": "red"},
]


class KillingRecorder(TraceRecorder):
    """Kills a process when the first YELLOW verdict comes by."""

    def __init__(self, victim: Callable[[], int | None]) -> None:
        super().__init__()
        self._victim = victim
        self.killed: int | None = None

    def fast(self, brain: str, ref: Any, answer: Any, latency: float) -> None:
        super().fast(brain, ref, answer, latency)
        yellow = isinstance(answer, events.FastVerdict) and answer.light.name == "YELLOW"
        pid = self._victim()
        if yellow and self.killed is None and pid is not None:
            self.killed = pid
            os.kill(pid, signal.SIGKILL)


class KillingStage(app.ReplayStage):
    def __init__(self, plan: app.ReplayPlan, victim: Callable[[], int | None]) -> None:
        super().__init__(plan)
        self.made: list[KillingRecorder] = []
        self._victim = victim

    def recorder(self) -> TraceRecorder:
        self.made.append(KillingRecorder(self._victim))
        return self.made[-1]


def run_killing(
    plan: app.ReplayPlan, who: str, folder: RunFolder, entries: list[Entry]
) -> tuple[list[Outcome], list[int | None]]:
    """Run the entries in realtime with one crew; who dies at each first YELLOW."""

    async def main() -> tuple[list[Outcome], list[int | None]]:
        async with plan.seating.crew() as ready:
            seat: Any = ready.slow if who == "slow" else next(iter(ready.fast.values()))
            stage = KillingStage(plan, lambda: seat.pid)
            settings = plan.video_settings(folder)
            outcomes = [(await run_video(e, ready, stage, settings))[0] for e in entries]
            return outcomes, [recorder.killed for recorder in stage.made]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def trace_file(folder: Path) -> Path:
    path = folder / "t.json"
    data = {
        "format": "hdguard-trace/1",
        "fast": {"*": {"latency": 0.05, "videos": {"*": FAST}}},
        "slow": {"*": {"latency": 0.5, "videos": {"*": [{"t": 0.0, "verdict": "safe"}]}}},
    }
    path.write_text(json.dumps(data))
    return path


def plan_of(path: Path, overdue: str = "halt") -> app.ReplayPlan:
    settings = {"path": str(path)}
    return app.ReplayPlan(
        Config(
            policy=PolicyConfig(review_overdue=overdue),  # type: ignore[arg-type]
            fast=(FastConfig("trace", settings, seat="process"),),
            slow=SlowConfig("trace", settings),
        )
    )


@pytest.fixture
def entries(homesafe: Path) -> list[Entry]:
    return [e for e in load_dataset(homesafe).entries if e.video.startswith(("152", "230"))]


def judged_once(folder: RunFolder, entry: Entry) -> None:
    steps = read_journal(folder.journals / f"{entry.slug}.jsonl").steps
    verdicts = Counter(s.event.ref for s in steps if isinstance(s.event, events.FastVerdict))
    assert verdicts
    assert set(verdicts.values()) == {1}


def prepared(plan: app.ReplayPlan, out: Path) -> RunFolder:
    folder = RunFolder(out)
    folder.prepare(plan.header, resume=False)
    return folder


def test_slow_brain_killed_in_mid_review_is_replaced_and_the_red_still_counts(
    entries: list[Entry], tmp_path: Path
) -> None:
    plan = plan_of(trace_file(tmp_path), overdue="caution")
    folder = prepared(plan, tmp_path / "out")
    outcomes, killed = run_killing(plan, "slow", folder, entries)
    assert len(set(killed)) == 2, "the second video met the replaced worker"
    for entry, outcome in zip(entries, outcomes, strict=True):
        assert outcome.failed is None
        assert outcome.warning is not None
        assert outcome.warning.cause == "fast_red"
        # At 1 FPS the first frame after 5.9 s may come a second later.
        assert 5.9 <= outcome.warning.trigger <= 6.95
        judged_once(folder, entry)
        steps = read_journal(folder.journals / f"{entry.slug}.jsonl").steps
        kinds = [type(s.event) for s in steps]
        assert events.BrainDown in kinds
        assert events.BrainUp in kinds
        down = next(s.now for s in steps if isinstance(s.event, events.BrainDown))
        asked = next(
            s.now
            for s in steps
            if isinstance(s.event, events.FastVerdict) and s.event.light.name == "YELLOW"
        )
        assert down - asked < 0.2, "a death is noticed within 200 ms"


def test_a_review_whose_worker_dies_is_overdue_at_once_under_halt(
    entries: list[Entry], tmp_path: Path
) -> None:
    plan = plan_of(trace_file(tmp_path))
    folder = prepared(plan, tmp_path / "out")
    outcomes, _ = run_killing(plan, "slow", folder, entries[:1])
    warning = outcomes[0].warning
    assert warning is not None
    assert (warning.cause, warning.brain) == ("review_overdue", "trace-slow")
    assert warning.issued - warning.trigger < 0.5


def test_fast_brain_killed_is_replaced_and_the_red_still_counts(
    entries: list[Entry], tmp_path: Path
) -> None:
    plan = plan_of(trace_file(tmp_path))
    folder = prepared(plan, tmp_path / "out")
    outcomes, killed = run_killing(plan, "fast", folder, entries)
    assert len(set(killed)) == 2
    for entry, outcome in zip(entries, outcomes, strict=True):
        assert outcome.failed is None
        assert outcome.warning is not None
        assert outcome.warning.cause == "fast_red"
        judged_once(folder, entry)


def test_worker_processes_killed_in_mid_run_lose_nothing_and_count_nothing_twice(
    homesafe: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    truth = json.loads((homesafe / "anno_truth.json").read_text())["annotations"]
    annotations = []
    for n in range(12):
        entry = truth[n % 3]
        name = f"{n:02d}_{entry['video_name'].split('_', 1)[1]}"
        shutil.copyfile(homesafe / "videos" / entry["video_name"], data / name)
        annotations.append({**entry, "video_name": name})
    (data / "anno_truth.json").write_text(json.dumps({"annotations": annotations}))
    trace = trace_file(tmp_path)
    command = [
        *(sys.executable, "-m", "hdguard", "replay", str(data), "--pace", "virtual"),
        *("--fast", f"trace:{trace}", "--slow", f"trace:{trace}"),
    ]
    out = tmp_path / "killed"
    strikes, said = [2, 6], []
    with subprocess.Popen(
        [*command, "--workers", "2", "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stderr is not None
        for line in run.stderr:
            said.append(line)
            finished, slash, _ = line.partition("/")
            if strikes and slash and finished.isdecimal() and int(finished) >= strikes[0]:
                strikes.pop(0)
                os.kill(_pool_process(run.pid), signal.SIGKILL)
    assert run.returncode == 0, said
    assert not strikes, said
    subprocess.run(
        [*command, "--out", str(tmp_path / "whole")], check=True, capture_output=True, timeout=120
    )
    one, other = read_results(out), read_results(tmp_path / "whole")
    assert [v.video for v in one.videos] == [a["video_name"] for a in annotations]
    assert one.videos == other.videos
    assert one.summary == other.summary


def _pool_process(parent: int) -> int:
    """One of the processes of the pool: the child whose own command is a spawned worker's."""
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return int(pid)
    pytest.fail("the pool has no process")
