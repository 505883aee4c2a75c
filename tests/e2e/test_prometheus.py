"""Every query that is shipped is asked of a real Prometheus that watches a real guard or replay."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from fractions import Fraction
from pathlib import Path

import pytest

from hdguard.core.types import Speed
from tests.actuators.support import run
from tests.e2e.sidecar import Setup, running
from tests.e2e.stage import REPOSITORY, demo_robot, stage
from tests.ingest.media import Clip, write_video
from tests.mosquitto import free_port
from tests.observe.dashboards.shipped import Asked, asked
from tests.prometheus import Prometheus, prometheus

CAMPAIGN = "campaign.json"
LONG, SOON = 120.0, 10.0  # s: for a story, and for some twenty scrapes and rounds of the rules

SCORES = [-0.05, -3.5, -4.5]  # log p of green, yellow, red: what a model would give

GUARDED = [
    {"t": 0.0, "light": "green", "scores": SCORES},
    {"t": 8.0, "light": "yellow", "scores": [-3.5, -0.05, -4.5]},
    {"t": 9.0, "light": "green", "scores": SCORES},
    {"t": 11.0, "light": "red", "scores": [-4.5, -3.5, -0.05]},
    {"t": 13.0, "light": "green", "scores": SCORES},
]
"""What the FastBrain says: long enough GREEN for Prometheus to see every number at its first."""


HALTED = {
    "watching.json: State, A": 3,
    "watching.json: Light, A": 0,
    "watching.json: Permitted speed, A": 0,
    "watching.json: Halt in force, A": 3,
    "watching.json: Halt not confirmed, A": 0,
    "watching.json: Broker connected, A": 1,
    "watching.json: Halts with their cause, in the time shown, A": 1,
    "watching.json: Escalated, in the time shown, A": 0,
    "latency.json: FastBrain's halts counted, A": 1,
}
"""What the panels show at the end of the story below; the light is GREEN again."""

BUSY = {"HdguardPermitGap", "HdguardHaltsSlow"}
"""What may be true of a guard on a machine that does too much at once."""


async def shown(server: Prometheus, expected: Mapping[str, float], exprs: dict[str, str]) -> None:
    """Wait until the panels show that: a scrape that came too late leaves a gap."""
    differs: dict[str, list[float]] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(SOON):
            while True:
                found = {where: await server.asked(exprs[where]) for where in expected}
                differs = {w: n for w, n in found.items() if n != [expected[w]]}
                if not differs:
                    return
                await asyncio.sleep(0.2)  # until the next scrape
    raise AssertionError(differs)


async def unanswered(server: Prometheus, queries: list[Asked]) -> list[str]:
    """The queries that give nothing, however long one waits."""
    missing = queries
    with suppress(TimeoutError):
        async with asyncio.timeout(SOON):
            while missing:
                missing = [q for q in missing if not await server.asked(q.expr)]
                await asyncio.sleep(0.2)  # until the next scrape
    return [query.where for query in missing]


def trace(folder: Path, fast: object, verdict: str) -> dict[str, str]:
    """Settings of brains that say that: in processes of their own, with a label's mass."""
    path = folder / "trace.json"
    slow = [{"t": 0.0, "verdict": verdict, "latency": 0.3}]
    data = {
        "format": "hdguard-trace/1",
        "fast": {"*": {"latency": 0.02, "videos": fast}},
        "slow": {"*": {"latency": 0.3, "videos": {"*": slow}}},
    }
    path.write_text(json.dumps(data))
    return {"path": str(path)}


def brains(folder: Path) -> str:
    settings = f'{{ path = "{trace(folder, {"*": GUARDED}, "safe")["path"]}", play = true }}'
    return (
        f'[[fast]]\nbrain = "trace"\nseat = "process"\nsettings = {settings}\n'
        f'[slow]\nbrain = "trace"\nsettings = {settings}\n'
        "[incidents]\nkeep_days = 1.0\n"
    )


@pytest.mark.timeout(240)
def test_every_query_about_a_guard_gives_data(tmp_path: Path) -> None:
    """After a review that found none, a halt that the robot acknowledged, and nothing else."""

    async def story() -> None:
        queries = [query for query in asked() if not query.where.startswith(CAMPAIGN)]
        camera = f"file:{write_video(tmp_path / 'kitchen.mp4', Clip(range(600)))}"
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, camera, brains(tmp_path))
            with prometheus(tmp_path / "prometheus", "hdguard", setup.http) as server:
                async with demo_robot(at.robot_settings()) as driven, running(setup):
                    await driven.at_speed(Speed.FULL)
                    assert await server.gives('up{job="hdguard"} == 1')
                    assert await server.gives('hdguard_halts_total{cause="fast_red"} == 1')
                    await driven.at_speed(Speed.NONE)
                    assert await unanswered(server, queries) == []
                    await shown(server, HALTED, {query.where: query.expr for query in queries})
                    check_rules(server)

    run(story(), patience=LONG)


def check_rules(server: Prometheus) -> None:
    """Prometheus could work out every rule, and none but the halted guard may raise an alert."""
    rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == 21
    assert {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")} == {}
    assert {rule["health"] for rule in rules} == {"ok"}
    raised = {rule["name"] for rule in rules if rule.get("state", "inactive") != "inactive"}
    assert raised - BUSY <= {"HdguardNotMonitoring"}


def dataset(folder: Path) -> Path:
    """Three seconds of danger, three of safe material, and then something long."""
    data = folder / "data"
    data.mkdir()
    annotations = []
    for name, seconds, dangerous in (
        ("1_C1_L1_D1.mp4", 3, True),
        ("2_safe.mp4", 3, False),
        ("3_C1_L1_D1.mp4", 3, True),
        ("4_C1_L1_D1.mp4", 120, True),
    ):
        write_video(data / name, Clip(range(10 * seconds), Fraction(1, 10)))
        frames = {"intent_onset": 0.5, "pnr": 2.5, "impact_outcome": 2.8} if dangerous else None
        annotations.append({"video_name": name, "keyframes": frames})
    (data / "anno_truth.json").write_text(json.dumps({"annotations": annotations}))
    return data


REPLAYED = {
    "1_C1_L1_D1.mp4": [{"t": 0.0, "light": "green"}, {"t": 1.4, "light": "red"}],
    "*": [{"t": 0.0, "light": "green"}],
}


@asynccontextmanager
async def replaying(folder: Path, port: int) -> AsyncIterator[None]:
    """A replay of the dataset whose last video is still running when the block ends."""
    path = trace(folder, REPLAYED, "safe")["path"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hdguard", "replay", str(dataset(folder))),
        *("--fast", f"trace:{path}", "--slow", f"trace:{path}", "--out", str(folder / "out")),
        *("--metrics-port", str(port)),
        cwd=REPOSITORY,
        env={**os.environ},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.timeout(240)
def test_every_query_about_a_replay_gives_data(tmp_path: Path) -> None:
    async def story() -> None:
        queries = [query for query in asked() if query.where.startswith(CAMPAIGN)]
        port = free_port()
        with prometheus(tmp_path / "prometheus", "hdguard-replay", port) as server:
            async with replaying(tmp_path, port):
                assert await server.gives('hdguard_replay_videos{state="done"} == 3')
                assert await server.gives('hdguard_replay_results_total{phase="optimal"} == 1')
                assert await unanswered(server, queries) == []

    run(story(), patience=LONG)
