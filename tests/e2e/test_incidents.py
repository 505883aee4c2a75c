"""The incident recorder with real parts: a demo's halt, a guard that is killed, a full disk."""

import asyncio
import http.client
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

from hdguard import app
from hdguard.config import Config
from hdguard.core import events
from hdguard.core.actions import Halt
from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, Rgb
from hdguard.observe.incidents.record import Incident, read_incident
from hdguard.observe.incidents.recorder import Recorder
from hdguard.observe.incidents.settings import IncidentSettings
from hdguard.observe.incidents.shelf import Shelf
from hdguard.observe.incidents.story import in_order
from hdguard.replay.dataset import load_dataset
from hdguard.replay.folder import RunFolder
from hdguard.runtime.halt_stories import HaltStories
from hdguard.runtime.journal import Step, Written, read_journal
from hdguard.seating import with_brains
from tests.actuators.support import run
from tests.browser import CHROMIUM, browsing
from tests.e2e.sidecar import TOKEN, Setup, in_state, json_of, running, still
from tests.e2e.stage import following, measured, stage
from tests.observe.incidents.support import (
    ABOUT,
    PATIENCE,
    POLICY,
    halt,
    red,
    ref,
    settings,
    until,
)

# A demo's halt.


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Written]:
    """The incident of a bundled clip's halt, and the journal of the same run."""
    folder = RunFolder(tmp_path_factory.mktemp("demo") / "out")
    config = Config(incidents=IncidentSettings(mcap=True))
    plan = app.ReplayPlan(with_brains(config), incidents=True)
    folder.prepare(plan.header, resume=False)
    entry = load_dataset(app.EXAMPLES).entries[0]
    app.replay(plan, [entry], folder, lambda _: None)
    (path,) = folder.incidents.iterdir()
    return path, read_journal(folder.journals / f"{entry.slug}.jsonl")


def plain(value: object) -> object:
    """As JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def happened(written: Written) -> dict[tuple[float, str], list[object]]:
    """What the journal tells, by time and name, as plain data."""
    found: dict[tuple[float, str], list[object]] = {}
    for step in written.steps:
        for value in (step.event, *step.actions):
            of = plain(value)
            found.setdefault((step.now, type(value).__name__), []).append(of)
    for stamp in written.stamps:
        found.setdefault((stamp.assessed, type(stamp).__name__), []).append(plain(stamp))
    return found


def test_its_times_are_the_journals_to_the_digit(demo: tuple[Path, Written]) -> None:
    path, written = demo
    incident = read_incident(path)
    journal = happened(written)
    assert len(incident.happened) > 40
    for each in incident.happened:
        assert each.of in journal[each.at, each.what]
    (made,) = [a for s in written.steps for a in s.actions if isinstance(a, Halt) and not a.repeat]
    decision = incident.decision
    assert (decision.halt_id, decision.trigger) == (made.halt_id, made.ref)
    assert decision.decided == made.decided_at
    stamps = {name: moment.at for name, moment in incident.stamps.items()}
    receipts: dict[str, type[object]] = {
        "delivered": events.HaltDelivered,
        "acknowledged": events.HaltAcknowledged,
        "confirmed": events.HaltConfirmed,
    }
    for name, kind in receipts.items():
        assert stamps[name] == next(s.now for s in written.steps if isinstance(s.event, kind))
    assert {"captured", "sampled", "given", "assessed", "asked", "answered"} < stamps.keys()
    frames = {s.event.ref for s in written.steps if isinstance(s.event, events.FrameSeen)}
    known = {(ref.seq, ref.captured_at, ref.media_time) for ref in frames}
    (clip,) = incident.clips
    assert {(f.seq, f.captured_at, f.media_time) for f in clip.frames} <= known
    assert made.ref is not None
    assert made.ref.seq in {f.seq for f in clip.frames}
    stories = HaltStories(written.boot, lambda _: incident.wall.decided)
    for came in in_order(written):
        if isinstance(came, Step):
            stories.stepped(came.now, came.event, came.actions)
        else:
            stories.judged(came)
    assert incident.story == stories.get(made.halt_id)


def test_its_mcap_reads_back_with_the_same_times(demo: tuple[Path, Written]) -> None:
    pytest.importorskip("mcap")
    from mcap.reader import make_reader  # noqa: PLC0415 - an extra

    path, written = demo
    incident = read_incident(path)
    offset = incident.wall.offset_ns
    with (path / "clip.mcap").open("rb") as file:
        reader = make_reader(file)
        read = [(channel.topic, message) for _, channel, message in reader.iter_messages()]
        (attached,) = reader.iter_attachments()
    assert msgspec.json.decode(attached.data, type=Incident) == incident
    steps = {round(at * 1e9) for at, _ in happened(written)}
    said = [m.log_time - offset for topic, m in read if topic == "/guard"]
    assert len(said) == len(incident.happened)
    assert set(said) <= steps
    (clip,) = incident.clips
    pictures = [m.log_time - offset for topic, m in read if topic == f"/camera/{clip.camera}"]
    assert pictures == [round(f.captured_at * 1e9) for f in clip.frames]


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (package chromium)")
def test_its_clip_plays_in_a_browser_to_its_end(demo: tuple[Path, Written], tmp_path: Path) -> None:
    path, _ = demo
    (clip,) = read_incident(path).clips
    page = tmp_path / "page.html"
    page.write_text(
        f'<!doctype html><video muted preload="auto" src="{(path / clip.file).as_uri()}"></video>'
    )

    async def story() -> None:
        async with browsing(tmp_path / "profile") as tab:
            await tab.go(page.as_uri())
            await tab.until("document.querySelector('video').readyState === 4")  # canplaythrough
            said = await tab.evaluate(
                "(async () => { const v = document.querySelector('video');"
                " const ended = new Promise((done) => { v.onended = done; v.onerror = done; });"
                " v.playbackRate = 4; await v.play(); await ended;"
                " return {error: v.error && v.error.message, width: v.videoWidth,"
                " height: v.videoHeight, duration: v.duration, at: v.currentTime}; })()"
            )
        assert said["error"] is None
        assert (said["width"], said["height"]) == (clip.width, clip.height)
        assert said["duration"] == pytest.approx(clip.seconds, abs=0.002)
        assert said["at"] == pytest.approx(clip.seconds, abs=0.05)

    run(story(), patience=120.0)


# A guard.

STARTED_WITHIN = 40.0
"""Seconds for a guard to watch, on a machine that is busy: it loads all its packages first."""

ON = "[incidents]\nkeep_days = 1.0\nbefore = 3.0\nafter = {after}\nwidth = 320\n"


def ask_for_a_halt(setup: Setup) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", setup.http, timeout=10.0)
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connection.request("POST", "/api/v1/halt?operator=ada", headers=headers)
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def by_operator(payload: bytes) -> bool:
    """A busy machine may bring about a halt of its own before."""
    return bool(payload) and json_of(payload)["class"] == "operator"


def metrics(setup: Setup) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", setup.http, timeout=10.0)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


async def counted(setup: Setup, line: str) -> None:
    """Wait until the guard's metrics say so."""
    async with asyncio.timeout(PATIENCE):
        while line not in await asyncio.to_thread(metrics, setup):  # noqa: ASYNC110 - a page
            await asyncio.sleep(0.05)


def grown(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 20_000


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_guard_killed_in_the_middle_of_an_incident_finishes_it_when_it_starts_again(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with (
            stage("mosquitto", tmp_path) as at,
            following(at, "state") as states,
            following(at, "halt") as halts,
        ):
            setup = Setup(tmp_path, at.port, still(tmp_path), ON.format(after=30.0))
            place = setup.state / "rosie.incidents"
            async with running(setup) as guard:
                await states.wait_for(in_state("monitoring"), STARTED_WITHIN)
                await asyncio.to_thread(ask_for_a_halt, setup)
                _, payload, _ = await halts.wait_for(by_operator)
                halt_id = json_of(payload)["halt_id"]
                await until(lambda: grown(place / f"{halt_id}.part" / "frames.spool"))
                guard.send(signal.SIGKILL)
                await guard.ended()
            begun = {name.removesuffix(".part") for name in names(place)}
            async with running(setup):
                await until((place / halt_id).is_dir, STARTED_WITHIN)
                kept = f'hdguard_incidents_total{{outcome="kept"}} {len(begun)}.0'
                await counted(setup, kept)
        # The halt of an earlier life, which is in force again, was recorded then.
        assert {name for name in names(place) if not name.startswith("2-")} == begun
        incident = read_incident(place / halt_id)
        assert (incident.complete, incident.interrupted) == (True, True)
        assert (incident.decision.halt_class, incident.decision.cause) == ("operator", "operator")
        assert incident.stamps["delivered"].after < 0.5
        assert len(incident.clips[0].frames) > 2
        for path in (place, *place.rglob("*")):
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)

    run(story(), patience=120.0)


def test_a_guard_whose_incidents_are_on_a_disk_that_hangs_halts_and_ends_in_time(
    tmp_path: Path,
) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with (
            stage("mosquitto", tmp_path) as at,
            following(at, "state") as states,
            following(at, "halt") as halts,
        ):
            setup = Setup(tmp_path, at.port, still(tmp_path), ON.format(after=1.0))
            begun = setup.state / "rosie.incidents" / "0-1.part"
            begun.mkdir(parents=True)
            os.mkfifo(begun / "incident.json")  # to open it blocks for ever
            async with running(setup) as guard:
                await states.wait_for(in_state("monitoring"), STARTED_WITHIN)
                await guard.says("pictures are lost")
                await asyncio.to_thread(ask_for_a_halt, setup)
                await halts.wait_for(by_operator)
                asked = loop.time()
                guard.send(signal.SIGTERM)
                assert await guard.ended() == 0
                return loop.time() - asked

    took = run(story(), patience=90.0)
    measured("end after SIGTERM with incidents on a disk that hangs", took)
    assert took < 3.0


# A full disk.


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """A disk of its own, of that size."""
    path.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "hdguard-test", str(path)]
    if subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_costs_the_clip_and_not_the_halt(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            stage("mosquitto", tmp_path) as at,
            following(at, "state") as states,
            following(at, "halt") as halts,
        ):
            setup = Setup(tmp_path, at.port, still(tmp_path), ON.format(after=0.5))
            async with running(setup) as guard:
                await states.wait_for(in_state("monitoring"), STARTED_WITHIN)
                await asyncio.to_thread(ask_for_a_halt, setup)
                await halts.wait_for(by_operator)
                await guard.says("incidents may be lost")
                said = await asyncio.to_thread(metrics, setup)
                assert 'hdguard_incidents_total{outcome="dropped"} 0.0' not in said
                assert 'hdguard_halts_total{cause="operator",class="operator"} 1.0' in said

    with small_disk(tmp_path / "state" / "rosie.incidents", "64k"):
        run(story(), patience=120.0)
        assert names(tmp_path / "state" / "rosie.incidents") == set()


class Noise:
    """A picture that neither JPEG nor H.264 makes small."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def rgb(self, spec: ImageSpec) -> Rgb:
        random = np.random.default_rng(self._seed)
        return random.integers(0, 256, (spec.width * 9 // 16, spec.width, 3), np.uint8)


@pytest.mark.parametrize("size", ["700k", "1400k"], ids=["pictures", "clip"])
def test_a_disk_that_fills_up_is_freed_again(tmp_path: Path, size: str) -> None:
    """While pictures are spooled, and while the clip is made of them."""
    place = tmp_path / "incidents"

    async def story() -> None:
        shelf = Shelf(place, 1 << 30, 1.0, floor=0)
        made = Recorder(shelf, settings(width=640, after=0.2), ABOUT, POLICY, boot=7)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(made.work())
            now = asyncio.get_running_loop().time()
            made._desk.begin(ABOUT, "", now - 10.0)
            for n in range(6):
                made.saw(Frame(ref(now - 1.2 + n * 0.2), Noise(n)), kept=True)
            await until(lambda: not made._desk._frames)
            made.stepped(now, red(), (halt(at=now, ref=ref(now - 0.2)),))
            await until(lambda: made.outcomes["dropped"] == 1)
            work.cancel()
        await made.close()
        assert made.outcomes == {"kept": 0, "dropped": 1, "failed": 0}

    with small_disk(place, size):
        run(story(), patience=120.0)
        assert names(place) == set()
