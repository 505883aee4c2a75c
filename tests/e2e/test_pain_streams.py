"""What hurt users of other systems with their cameras and detectors, each named by its thread.

With a real stream server, decoder and worker. Other symptoms of the same table are tested beside
the parts that prevent them: `grep -rE "def test_(frigate|pyav|aiortc|opencv|nav2)" tests`.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from hdguard.actuators.recording import RecordingActuator
from hdguard.core import events
from hdguard.core.actions import Action, Permit
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.core.types import HaltCause, Speed
from hdguard.ingest.rtsp import RtspSettings, RtspSource
from hdguard.observe.http import HttpParts
from hdguard.observe.metrics import Metrics
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpSettings
from hdguard.observe.status import Status
from hdguard.runtime.lag import watch_lag
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.workers.seats import WorkerFastBrain
from tests.actuators.support import PATIENCE, run
from tests.e2e.stage import measured
from tests.ingest.ts_server import Sender, numbered, ts_chunks, ts_server
from tests.observe.support import request, send
from tests.workers.support import fast

FPS = 20
BUSY = 0.25  # s that a busy machine may add to what a clock decides
CALM = "tests.e2e.simple_brains:CalmFastBrain"
CHUNKS = ts_chunks([numbered(n % 40) for n in range(600)], FPS)


class Feed:
    """A camera's server: plays until told to fall silent, or to hang up."""

    def __init__(self) -> None:
        self.silent, self.gone = asyncio.Event(), asyncio.Event()
        self.last = 0.0  # when the last frame that came through went out

    async def play(self, sender: Sender) -> None:
        start = asyncio.get_running_loop().time()
        for index, chunk in enumerate(CHUNKS):
            if self.gone.is_set():
                return
            if self.silent.is_set():
                await self.gone.wait()
                return
            await asyncio.sleep(max(0.0, start + index / FPS - asyncio.get_running_loop().time()))
            await sender.burst([chunk])
            self.last = sender.sent[-1]


class Diary:
    """What was decided, and when."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, Event, tuple[Action, ...]]] = []
        self.judged_at: dict[str, list[float]] = {}
        self._news = asyncio.Event()

    def judged(self, stamps: Judged | Reviewed) -> None:
        if isinstance(stamps, Judged):
            self.judged_at.setdefault(stamps.ref.source_id, []).append(stamps.assessed)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        self.steps.append((now, event, actions))
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()


@dataclass(frozen=True)
class House:
    """A guard at work over real streams."""

    pipeline: Pipeline
    diary: Diary
    status: Status
    worker: WorkerFastBrain
    http: HttpServer

    @property
    def speed(self) -> Speed:
        """Of the newest permit."""
        permits = [a for _, _, actions in self.diary.steps for a in actions if type(a) is Permit]
        return permits[-1].speed if permits else Speed.NONE

    async def moving(self) -> None:
        await self.diary.until(lambda: self.speed is Speed.FULL)

    async def halted(self) -> float:
        """When it was."""
        await self.diary.until(lambda: self.pipeline.guard.halt is not None)
        return self.diary.steps[-1][0]

    def shown(self, name: str) -> dict[str, Any]:
        """What the status says of a camera."""
        (source,) = (s for s in self.status.report()["sources"] if s["name"] == name)
        return dict(source)

    async def asked(self, path: str) -> int:
        return (await send(self.http.port, request("GET", path))).status


@asynccontextmanager
async def house(feeds: Mapping[str, Feed], *, optional: str = "") -> AsyncIterator[House]:
    """A guard with a camera for each feed, and its pipeline at work."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        urls = {n: await stack.enter_async_context(ts_server(f.play)) for n, f in feeds.items()}
        sources = [RtspSource(RtspSettings(url, name), Random(1)) for name, url in urls.items()]
        policy = replace(
            SIDECAR,
            sources=tuple(SourcePlan(n, n != optional, when_frozen="ignore") for n in feeds),
            brains=(BrainPlan("command", adaptive=False),),
        )
        worker = fast(target=CALM)
        await worker.start()
        stack.push_async_callback(worker.close)
        guard, diary = Guard(policy, loop.time()), Diary()
        status, metrics = Status(guard, loop.time), Metrics(guard, loop.time, lambda: True)
        parts = HttpParts(status, metrics, lambda _: None, {}, lambda *_: None)
        http = HttpServer(HttpSettings(port=0), lambda: parts)
        await http.start()
        observers = (status, diary)
        pipeline = Pipeline(
            guard, Parts(tuple(sources), {"command": worker}, None, RecordingActuator(), observers)
        )
        over = asyncio.Event()
        group = await stack.enter_async_context(asyncio.TaskGroup())
        serving = group.create_task(http.serve(), name="http")

        async def until() -> None:
            await over.wait()

        group.create_task(pipeline.run(until), name="pipeline")
        pipeline.dispatch(events.SelfTestPassed())
        yield House(pipeline, diary, status, worker, http)
        for feed in feeds.values():
            feed.gone.set()
        over.set()
        serving.cancel()


def test_frigate_401_a_camera_that_fell_silent_shows_its_age_and_is_never_served_as_new() -> None:
    async def main() -> None:
        feed = Feed()
        async with house({"kitchen": feed}) as at:
            await at.moving()
            feed.silent.set()
            halted = await at.halted()
            measured("halted after the last frame went out", halted - feed.last)
            assert halted - feed.last < 1.1 + BUSY
            assert at.pipeline.guard.halt is not None
            assert at.pipeline.guard.halt.cause is HaltCause.STALE_FRAME
            await at.diary.until(lambda: not at.shown("kitchen")["fresh"])
            assert at.shown("kitchen")["frame_age"] > 0.5
            assert await at.asked("/livez") == 200
            assert await at.asked("/readyz") == 503

    run(main())


def test_frigate_1932_an_unplugged_camera_gives_no_permit_and_comes_back_by_itself() -> None:
    async def main() -> None:
        feed = Feed()
        async with house({"kitchen": feed}) as at:
            await at.moving()
            feed.gone.set()
            await at.diary.until(lambda: at.speed is not Speed.FULL)
            await at.halted()
            feed.gone.clear()
            await at.moving()  # the fault clears after three seconds of fresh GREEN
            assert at.shown("kitchen")["fresh"]

    run(main())


def test_frigate_1729_one_dead_camera_does_not_touch_another() -> None:
    async def main() -> None:
        kitchen, hall = Feed(), Feed()
        async with house({"kitchen": kitchen, "hall": hall}, optional="hall") as at:
            await at.moving()
            hall.gone.set()
            hall.silent.set()
            await at.diary.until(lambda: at.speed is Speed.REDUCED)
            seen = len(at.diary.judged_at["kitchen"])
            await at.diary.until(lambda: len(at.diary.judged_at["kitchen"]) >= seen + 10)
            gaps = np.diff(at.diary.judged_at["kitchen"][max(0, seen - 3) :])
            assert gaps.max() < 0.2 + BUSY
            assert at.pipeline.guard.halt is None
            lost = [e for _, e, _ in at.diary.steps if isinstance(e, events.SourceLost)]
            assert {event.source_id for event in lost} == {"hall"}
            assert at.shown("kitchen")["fresh"]
            assert not at.shown("hall")["up"]

    run(main())


def test_frigate_949_the_web_lives_while_detection_is_dead_and_says_so() -> None:
    async def main() -> None:
        async with house({"kitchen": Feed()}) as at:
            await at.moving()
            assert await at.asked("/readyz") == 200
            pid = at.worker.pid
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
            await at.halted()
            assert await at.asked("/livez") == 200
            assert await at.asked("/readyz") == 503
            assert at.shown("kitchen")["fresh"]  # the camera is not to blame
            await at.diary.until(lambda: at.worker.pid not in {None, pid})
            await at.moving()
            assert await at.asked("/readyz") == 200

    run(main())


def test_pyav_1112_four_streams_with_time_limits_do_not_hold_the_loop_up() -> None:
    lags: list[float] = []

    async def main() -> None:
        feeds = {f"camera {n}": Feed() for n in range(4)}
        async with house(feeds) as at, asyncio.TaskGroup() as group:
            await at.moving()
            lag = group.create_task(watch_lag(lags.append, every=0.005))
            seen = len(at.diary.judged_at["camera 0"])
            await at.diary.until(lambda: len(at.diary.judged_at["camera 0"]) >= seen + 8)
            lag.cancel()

    run(main())
    p99 = float(np.percentile(lags, 99))
    measured("loop lag p99 with four streams", p99)
    assert p99 < 0.05
