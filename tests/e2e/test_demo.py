"""`hdguard demo` and `hdguard replay` with no options: a stranger sees a robot stopped in time."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hdguard import app
from hdguard.config import Config, SourceConfig
from hdguard.faults.processes import Program, hdguard
from hdguard.replay.dataset import load_dataset
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import Results, read_results
from hdguard.seating import with_brains
from tests.actuators.support import run
from tests.browser import CHROMIUM, Page, browsing


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, str]:
    out = tmp_path_factory.mktemp("demo") / "out"
    done = subprocess.run(
        [sys.executable, "-m", "hdguard", "demo", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return read_results(out), done.stdout


@pytest.mark.timeout(400)
def test_every_collision_is_stopped_before_its_point_of_no_return(
    demo: tuple[Results, str],
) -> None:
    results, _ = demo
    collisions = [v for v in results.videos if not v.safe]
    assert len(collisions) >= 4
    for video in collisions:
        keyframes = video.annotated.keyframes
        assert keyframes is not None
        assert video.warning is not None, video.video
        assert keyframes.intent_onset <= video.warning.trigger
        assert video.warning.issued < keyframes.pnr, video.video


def test_no_safe_clip_gets_a_danger_halt(demo: tuple[Results, str]) -> None:
    results, _ = demo
    safe = [v for v in results.videos if v.safe]
    assert len(safe) >= 4
    assert [v.video for v in safe if v.warning is not None] == []
    assert results.summary.false_stops_per_hour.count == 0


def test_every_halt_is_delivered_and_confirmed_by_the_robot(demo: tuple[Results, str]) -> None:
    results, _ = demo
    for video in results.videos:
        if video.warning is not None:
            stages = video.stages
            assert stages is not None
            assert stages.decided_to_delivered is not None
            assert stages.decided_to_delivered < 0.1
            assert stages.delivered_to_confirmed is not None
            assert video.warning.stopped - video.warning.issued < 1.5


def test_the_timeline_tells_the_story_and_fault_halts_stand_apart(
    demo: tuple[Results, str],
) -> None:
    _, text = demo
    for words in (
        r"reflex says YELLOW after \d+ ms: contact in",
        r"review \d+ says danger after \d+ ms",
        r"HALT \(DANGER, \w+\), \d+ ms after its frame was captured",
        r"halt 1-1 delivered to the broker [\d.]+ ms after",
        r"halt 1-1 acknowledged by the robot",
        r"halt 1-1 confirmed: the robot stands still [\d.]+ s after",
        r"best t: ",
        r"fault halts, on all videos: \d+ in",
    ):
        assert re.search(words, text), words


def test_the_address_of_the_page_comes_first_and_where_the_incidents_are_last(
    demo: tuple[Results, str],
) -> None:
    results, text = demo
    first, *_ = text.splitlines()
    assert re.fullmatch(r"watch it in a browser: http://127\.0\.0\.1:\d+/", first)
    halts = sum(video.warning is not None for video in results.videos)
    *commands, listing, explaining = [line.strip() for line in text.splitlines() if line]
    assert re.match(r"incidents, each with clip\.mp4: ", commands[-1])
    for command, words in ((listing, "danger"), (explaining, "the guard decided to halt")):
        _, *arguments = shlex.split(command)
        said = subprocess.run(
            [sys.executable, "-m", "hdguard", *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        assert words in said.stdout
        if arguments[0] == "incidents":
            assert sum("slow_danger" in line for line in said.stdout.splitlines()) == halts


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (package chromium)")
def test_the_page_shows_each_clip_its_halt_and_what_became_of_it(tmp_path: Path) -> None:
    title = "document.querySelector('#demo-title').textContent"
    halts = "document.querySelector('#halts').innerText"
    visible = "document.querySelector('{}').offsetParent !== null"
    command = ("demo", "--port", "0", "--no-incidents", "--out", str(tmp_path / "out"))

    async def look(page: Page) -> None:
        await page.until(f"/^Clip 1 of 10: The robot/.test({title})")
        await page.until("document.querySelector('.shot img')?.naturalWidth > 0")
        await page.until("document.body.dataset.mood === 'watching'")
        await page.until("document.body.dataset.mood === 'halted'")
        assert "Beside a real robot: See that" in await page.evaluate("document.body.innerText")
        assert not await page.evaluate(visible.format("#operator"))
        await page.until(f"/has ended: halted [0-9.]+ s before it was too late/.test({title})")
        assert await page.evaluate("document.querySelector('.stale') === null")
        await page.until(f"/^Clip 2 of 10: The robot/.test({title})")
        assert "Clip 1 of 10, halted" in await page.evaluate(halts)
        await page.until("document.querySelectorAll('.camera').length === 1")
        assert page.complaints == []

    async def story() -> None:
        program = Program("the demo", *hdguard(*command))
        async with browsing(tmp_path / "profile") as page:
            program.start()
            try:
                _, line = await program.said(lambda line: "http://" in line)
                await page.go(line.rpartition(" ")[2])
                await look(page)
            finally:
                program.end()
            await page.until("document.body.innerText.includes('The demo has ended')")

    run(story(), "asyncio", patience=90.0)


def test_the_embedded_brains_on_the_real_videos(homesafe: Path, tmp_path: Path) -> None:
    """Honest: they are blind to what these show. Whatever they warn of is no collision."""
    config = Config(source=SourceConfig(ignore_regions=((0.0, 0.10, 0.17, 0.27),)))
    plan = app.ReplayPlan(with_brains(config), "virtual")
    folder = RunFolder(tmp_path / "out")
    folder.prepare(plan.header, resume=False)
    entries = load_dataset(homesafe).entries
    app.replay(plan, entries, folder, lambda _: None)
    results = folder.finish(entries, plan.header, ())
    assert results.summary.trigger.n == 3
    assert [v.failed for v in results.videos] == [None] * 3
    causes = {v.warning.cause for v in results.videos if v.warning is not None}
    assert "fast_red" not in causes


def test_the_paces_agree_on_the_examples(demo: tuple[Results, str], tmp_path: Path) -> None:
    plan = app.ReplayPlan(with_brains(Config()), "virtual")
    folder = RunFolder(tmp_path / "out")
    folder.prepare(plan.header, resume=False)
    entries = load_dataset(app.EXAMPLES).entries
    app.replay(plan, entries, folder, lambda _: None)
    virtual = folder.finish(entries, plan.header, ())
    for one, other in zip(demo[0].videos, virtual.videos, strict=True):
        assert (one.warning is None) == (other.warning is None), one.video
        if one.warning is not None and other.warning is not None:
            assert (one.warning.cause, one.warning.brain) == (
                other.warning.cause,
                other.warning.brain,
            )
            assert abs(one.warning.trigger - other.warning.trigger) <= 0.2 + 1 / 25 + 1e-3
