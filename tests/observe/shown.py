"""A guard that is shown on a page, on the loop's own clock; camera and brains are played."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np

from hdguard.core import events
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, Policy, SourcePlan
from hdguard.core.types import FrameRef, Hazard, ImageSpec, Light
from hdguard.ingest.base import Frame, Rgb
from hdguard.observe.http import HttpParts
from hdguard.observe.metrics import Metrics
from hdguard.observe.pictures import NewestPictures
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpSettings
from hdguard.observe.status import Status
from hdguard.runtime.observer import Judged, Observer
from tests.observe.support import TOKEN

EVERY = 0.1  # s between two frames
POLICY = replace(
    SIDECAR,
    sources=(SourcePlan("kitchen"), SourcePlan("hall", required=False)),
    brains=(BrainPlan("reflex", adaptive=False),),
    slow="thinker",
    review_deadline=30.0,
)


class Painted:
    """A picture of one colour with a bar that moves."""

    def __init__(self, number: int) -> None:
        self._number = number

    def rgb(self, spec: ImageSpec) -> Rgb:
        height = spec.width * 9 // 16
        picture = np.full((height, spec.width, 3), (96, 125, 139), np.uint8)
        left = self._number * 8 % spec.width
        picture[height // 3 : height * 2 // 3, left : left + 40] = (255, 193, 7)
        return picture


class Shown:
    """The guard, its server, and what its cameras see."""

    def __init__(self, settings: HttpSettings, policy: Policy = POLICY, *, boot: int = 7) -> None:
        self.loop = asyncio.get_running_loop()
        now = self.loop.time
        self.guard = Guard(policy, now(), boot=boot)
        self.status = Status(self.guard, now)
        self.metrics = Metrics(self.guard, now, lambda: True)
        self.pictures = NewestPictures(now)
        self.light = Light.GREEN
        self.hazard = Hazard()
        self.cameras = {s.source_id for s in policy.sources}  # those that deliver
        self.judges = True
        self.captured: dict[str, float] = {}
        self.rejected: list[tuple[str, str]] = []
        self._seq = 0
        self._looked = asyncio.Event()
        self.parts = HttpParts(
            self.status,
            self.metrics,
            lambda operator: self.step(events.HaltRequested(operator)),
            {},
            lambda what, why: self.rejected.append((what, why)),
            lambda halt_id, operator: self.step(events.ResetRequested(halt_id, operator)),
            self.pictures,
        )
        self.server = HttpServer(settings, lambda: self.parts)

    def step(self, event: Event) -> None:
        now = self.loop.time()
        decided = self.guard.step(event, now)
        observers: tuple[Observer, ...] = (self.status, self.metrics)
        for observer in observers:
            observer.stepped(now, event, decided)

    def see(self) -> None:
        """A frame of every camera that delivers, judged at once."""
        now = self.loop.time()
        for camera in sorted(self.cameras):
            self._seq += 1
            ref = FrameRef(camera, self._seq, now, now)
            self.captured[camera] = now
            self.step(events.FrameSeen(ref))
            self.pictures.saw(Frame(ref, Painted(self._seq)), kept=False)
            if not self.judges:
                continue
            stamps = Judged("reflex", ref, now, now, now + 0.004)
            self.status.judged(stamps)
            self.step(events.FastVerdict(ref, "reflex", self.light, self.hazard))

    async def looks(self, times: int) -> None:
        """Wait until it has looked so often again, at the light that is set now."""
        for _ in range(times):
            self._looked.clear()
            await self._looked.wait()

    async def live(self) -> None:
        """Frames, permits and a robot that answers, until cancelled."""
        for source in self.guard.roster.sources:
            self.step(events.SourceUp(source))
        self.step(events.SelfTestPassed())
        seq = 0
        while True:
            seq += 1
            self.see()
            self._looked.set()
            self.step(events.RobotSeen(1, seq, moving=True))
            self.step(events.DeadlineReached())
            if self.guard.halt is not None:
                self.step(events.HaltDelivered(self.guard.halt.halt_id))
                self.step(events.HaltConfirmed(self.guard.halt.halt_id))
            await asyncio.sleep(EVERY)


@asynccontextmanager
async def shown(
    settings: HttpSettings | None = None, policy: Policy = POLICY
) -> AsyncIterator[Shown]:
    """A guard at work whose page is served on a free loopback port."""
    stage = Shown(settings or HttpSettings(port=0, token=TOKEN), policy)
    await stage.server.start()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(stage.server.serve()), group.create_task(stage.live())]
            yield stage
            for task in tasks:
                task.cancel()
    finally:
        stage.server.close()
