"""Models as brains in the whole: named, loaded by workers, replayed, killed. Weights are random."""

import asyncio
import json
import os
import signal
from collections.abc import Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvloop
from typer.testing import CliRunner

from benchmarks import random_models
from hdguard import cli
from hdguard.brains.base import BrainError, Shot
from hdguard.brains.calibration import Calibration, write_calibration
from hdguard.brains.transformers_fast import SPEC
from hdguard.brains.transformers_slow import TransformersSlowSettings
from hdguard.brains.warmup import canaries
from hdguard.core.events import BrainDown, BrainUp
from hdguard.core.types import FrameRef
from hdguard.replay.results import Results, read_results
from hdguard.seating import SLOW_BRAINS
from hdguard.workers.seats import WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from tests.ingest.media import Clip, write_video
from tests.replay.made import KEYFRAMES, make_dataset
from tests.stub_server import Fault, Stub


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_models.build("qwen3_vl", "tiny", tmp_path_factory.mktemp("models") / "qwen")


@pytest.fixture(scope="module")
def uneasy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibration that takes a random model at its word, and every word for YELLOW."""
    path = tmp_path_factory.mktemp("calibrations") / "uneasy.json"
    write_calibration(path, Calibration(least_mass=0.0, yellow=0.0, red=1.0))
    return path


def config_of(folder: Path, model: Path, calibration: Path) -> Path:
    """Both brains on the CPU; the SlowBrain takes any word for danger."""
    path = folder / "hdguard.toml"
    shared = f'path = "{model}", device = "cpu", dtype = "float32"'
    path.write_text(
        f"""
policy = {{ review_deadline = 3.0, fast_deadline = 2.0 }}
[[fast]]
brain = "transformers"
cost = 0.1
settings = {{ {shared}, calibration = "{calibration}" }}
[slow]
brain = "transformers"
cost = 0.5
settings = {{ {shared}, least_mass = 0.0, threshold = 0.0, thinking = 8, pictures = 4 }}
"""
    )
    return path


def replayed(data: Path, out: Path, *options: str, code: int = 0) -> Results:
    done = CliRunner().invoke(cli.cli, ["replay", str(data), "--out", str(out), *options])
    assert done.exit_code == code, done.output
    return read_results(out)


@pytest.mark.parametrize("pace", ["virtual", "realtime"])
def test_a_dataset_is_replayed_with_models_as_both_brains(
    model: Path, uneasy: Path, tmp_path: Path, pace: str
) -> None:
    data = make_dataset(tmp_path / "data", ["stove.mp4"])
    config = config_of(tmp_path, model, uneasy)
    results = replayed(data, tmp_path / "out", "--config", str(config), "--pace", pace)
    (video,) = results.videos
    assert video.warning is not None
    assert (video.warning.cause, video.warning.brain) == ("slow_danger", "transformers-slow")
    trace = json.loads((tmp_path / "out" / "trace.json").read_text())
    rows = trace["fast"]["transformers"]["videos"]["stove.mp4"]
    assert all(row["light"] == "yellow" and len(row["scores"]) == 3 for row in rows)
    assert len(trace["fast"]["transformers"]["fingerprint"]) == 16
    made_of = results.run["files"]
    assert {"fast.0.settings.path", "fast.0.settings.prompt", "slow.settings.prompt"} <= set(
        made_of
    )
    assert "absent" not in made_of.values()


def test_a_random_model_that_says_none_of_its_labels_is_never_green(
    model: Path, tmp_path: Path
) -> None:
    """Uncalibrated, the label mass is far below one half, so the run fails and says why."""
    data = make_dataset(tmp_path / "data", ["calm.mp4"])
    options = ["--fast", f"transformers:{model}", "--device", "cpu", "--pace", "virtual"]
    results = replayed(data, tmp_path / "out", *options, code=1)
    assert "said none of its labels" in str(results.videos[0].failed)
    trace = json.loads((tmp_path / "out" / "trace.json").read_text())
    rows = trace["fast"]["transformers"]["videos"]["calm.mp4"]
    assert rows
    assert all("said none of its labels" in row["error"] and "light" not in row for row in rows)


def test_a_worker_killed_in_mid_forward_is_replaced_and_goes_on(model: Path) -> None:
    """A forward over 24 pictures takes long enough to be killed in."""
    settings = TransformersSlowSettings(
        path=str(model), device="cpu", dtype="float32", least_mass=0.0, thinking=0, warm=False
    )
    target = SLOW_BRAINS["transformers"]
    picture = canaries(SPEC)["noise"]
    shots = tuple(Shot(FrameRef("cam", n, n / 5, n / 5), picture) for n in range(24))

    async def story() -> tuple[bool, list[Any]]:
        heard: list[Any] = []
        back = asyncio.Event()

        def listen(event: Any) -> None:
            heard.append(event)
            if isinstance(event, BrainUp):
                back.set()

        seat = WorkerSlowBrain(target, asdict(settings), settings.name, SPEC, WorkerSettings())
        await seat.start()
        seat.listen(listen)
        try:
            async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
                forward = tasks.create_task(fate(seat.review(1, shots[-1].ref, shots)))
                for _ in range(2 * len(shots)):  # each picture lets others run once
                    await asyncio.sleep(0)
                assert seat.pid is not None
                os.kill(seat.pid, signal.SIGKILL)
                assert "died: killed by SIGKILL" in await forward
                await back.wait()
            again = await seat.review(2, shots[0].ref, shots[:1])
        finally:
            await seat.close()
        return again.review_id == 2, heard

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answered, heard = runner.run(story())
    assert answered
    assert heard == [BrainDown("transformers-slow"), BrainUp("transformers-slow")]


async def fate(call: Coroutine[Any, Any, object]) -> str:
    try:
        return f"answered {await call}"
    except BrainError as error:
        return str(error)


# Servers.

OCHRE = (140, 120, 0)  # between the stub's red and green: YELLOW, and danger on a second look


@pytest.fixture
def ochre(tmp_path: Path) -> Path:
    """A data set of one clip that the stub server finds uneasy from its first frame on."""
    folder = tmp_path / "data"
    folder.mkdir()
    y, x = np.mgrid[:48, :64] // 4 % 2  # something to see
    still = (np.array(OCHRE) + np.where(x == y, 20, -20)[..., None]).clip(0, 255).astype(np.uint8)
    write_video(folder / "ochre.mp4", Clip(stamps=range(31), still=still))
    truth = {"annotations": [{"video_name": "ochre.mp4", "keyframes": KEYFRAMES}]}
    (folder / "anno_truth.json").write_text(json.dumps(truth))
    return folder


@pytest.mark.parametrize(
    ("fault", "cause"), [(None, "slow_danger"), ("hang", "slow_danger"), (500, "review_overdue")]
)
def test_a_dataset_is_replayed_with_servers_as_both_brains(
    ochre: Path, tmp_path: Path, fault: Fault | int | None, cause: str
) -> None:
    """Thoughts that never come are cut off and the verdict is asked for; a dead server halts."""
    with Stub() as stub:
        if fault is not None:
            stub.faults["think"] = fault
        brains = ["--fast", f"openai:{stub.url}", "--slow", f"openai:{stub.url}"]
        (video,) = replayed(ochre, tmp_path / "out", *brains).videos
    assert video.warning is not None
    assert (video.warning.cause, video.warning.brain) == (cause, "openai-slow")
    assert video.warning.issued - video.warning.trigger < 1.2


def test_a_server_that_does_not_answer_is_named_before_anything_runs(
    ochre: Path, tmp_path: Path
) -> None:
    with Stub() as stub:
        stub.faults["*"] = 500
        brain = f"openai:{stub.url}"
        words = ["replay", str(ochre), "--out", str(tmp_path / "out"), "--fast", brain]
        done = CliRunner().invoke(cli.cli, words)
    assert done.exit_code == 65
    assert f"server {stub.url}" in done.stderr
    assert "answers 500" in done.stderr
