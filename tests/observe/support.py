"""What the tests of the HTTP edge share: a guard to be seen, a server, a client of raw bytes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import uvloop
from prometheus_client.parser import text_string_to_metric_families

from hdguard.core.actions import Halt
from hdguard.core.events import (
    Event,
    FastVerdict,
    FrameSeen,
    HaltRequested,
    ResetRequested,
    SelfTestPassed,
)
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, Policy, SourcePlan
from hdguard.core.types import FrameRef, Light
from hdguard.ingest.base import SourceError
from hdguard.ingest.webrtc import Answer, OfferRefused
from hdguard.observe.http import HttpParts
from hdguard.observe.keeping import Keeping
from hdguard.observe.metrics import Metrics
from hdguard.observe.pictures import Picture
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpSettings
from hdguard.observe.status import Status
from hdguard.runtime.observer import Observer

T = TypeVar("T")
TOKEN = "an operator's token".replace(" ", "-")
CAMERA_TOKEN = "the-kitchen's-own-token"
OPEN = HttpSettings(port=0, token=TOKEN, publish_tokens={"kitchen": CAMERA_TOKEN})

POLICY = replace(
    SIDECAR,
    sources=(SourcePlan("kitchen"), SourcePlan("hall", required=False)),
    brains=(BrainPlan("reflex", adaptive=False), BrainPlan("second", required=False)),
    slow="thinker",
)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run on the daemon's kind of loop, leaving no task."""

    async def patiently() -> T:
        async with asyncio.timeout(50):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"
        return result

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(patiently())


class Watched:
    """A guard with its onlookers, stepped by hand at literal times."""

    def __init__(
        self,
        policy: Policy = POLICY,
        *,
        boot: int = 7,
        restored: Halt | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        self.now = 100.0
        self.guard = Guard(policy, self.now, boot=boot, restored=restored)
        self.status = Status(self.guard, lambda: self.now, keeping)
        self.connected = True
        self.metrics = Metrics(self.guard, lambda: self.now, lambda: self.connected, keeping)
        self._seq = 0

    def step(self, *happened: Event, after: float = 0.0) -> None:
        self.now += after
        for event in happened:
            decided = self.guard.step(event, self.now)
            observers: tuple[Observer, ...] = (self.status, self.metrics)
            for observer in observers:
                observer.stepped(self.now, event, decided)

    def sees(self, light: Light = Light.GREEN, *, source: str = "kitchen") -> FrameRef:
        """A frame arrives that both brains judge so, 50 ms after it was taken."""
        self._seq += 1
        ref = FrameRef(source, self._seq, self.now - 0.05, self.now - 100.0)
        brains = ("reflex", "second")
        self.step(FrameSeen(ref), *(FastVerdict(ref, brain, light) for brain in brains))
        return ref

    def starts(self) -> None:
        """Three GREEN in a row: the robot may move."""
        self.step(SelfTestPassed())
        for _ in range(3):
            self.now += 0.2
            self.sees(source="hall")
            self.sees()


def scraped(watched: Watched) -> dict[str, float]:
    """Every sample of a scrape, named as Prometheus shows it."""
    found = {}
    for family in text_string_to_metric_families(watched.metrics.text().decode()):
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


@dataclass
class Camera:
    """A camera that is published to; remembers what it was offered."""

    offers: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    refuses: OfferRefused | None = None
    waits: asyncio.Event | None = None
    session: str = "session-1"
    came: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def offer(self, sdp: str) -> Answer:
        self.offers.append(sdp)
        self.came.put_nowait(sdp)
        if self.waits is not None:
            await self.waits.wait()
        if self.refuses is not None:
            raise self.refuses
        return Answer("v=0 the answer", self.session)

    async def end(self, resource_id: str) -> bool:
        self.ended.append(resource_id)
        return resource_id == self.session


class Stage:
    """A server that is up, and what came through it."""

    def __init__(self, settings: HttpSettings) -> None:
        self.watched = Watched()
        self.camera = Camera()
        self.halted: list[str] = []
        self.resets: list[tuple[str, str]] = []
        self.picture_error: SourceError | None = None
        self.rejected: list[tuple[str, str]] = []
        self.refusals: asyncio.Queue[str] = asyncio.Queue()
        self.fails: Exception | None = None
        cameras = {"kitchen": self.camera}
        parts = HttpParts(
            self.watched.status,
            self.watched.metrics,
            self._halt,
            cameras,
            self._reject,
            self._reset,
            self,
        )
        self.server = HttpServer(settings, lambda: parts)

    def _halt(self, operator: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.halted.append(operator)
        self.watched.step(HaltRequested(operator))

    def _reset(self, halt_id: str, operator: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.resets.append((halt_id, operator))
        self.watched.step(ResetRequested(halt_id, operator))

    async def jpeg(self, source: str) -> Picture | None:
        """The pictures; the clock of ages is the loop's."""
        if self.picture_error is not None:
            raise self.picture_error
        now = asyncio.get_running_loop().time()
        return Picture(now - 0.25, b"a picture") if source == "kitchen" else None

    def _reject(self, what: str, why: str) -> None:
        self.rejected.append((what, why))
        self.refusals.put_nowait(why)

    @property
    def accepted(self) -> int:
        """Commands that were taken."""
        return (
            len(self.halted) + len(self.resets) + len(self.camera.offers) + len(self.camera.ended)
        )


@asynccontextmanager
async def serving(settings: HttpSettings = OPEN) -> AsyncIterator[Stage]:
    """A server on a free loopback port."""
    stage = Stage(settings)
    await stage.server.start()
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.server.serve())
            yield stage
            task.cancel()
    finally:
        stage.server.close()  # a task that is cancelled before it begins has no end of its own


@dataclass(frozen=True)
class Reply:
    """What a server said; status 0: nothing, the connection was closed."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """Everything up to the end of the connection."""
    try:
        raw = await reader.read()
    except ConnectionError:
        raw = b""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in lines)
    headers = {name.lower(): value for name, value in pairs}
    return Reply(int(first.split()[1]) if first else 0, headers, body)


async def send(port: int, *parts: bytes, tls: Any = None) -> Reply:
    """Send these bytes, part by part, and read what comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        return await read_reply(reader)
    except ConnectionError:
        return Reply(0, {}, b"")
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def request(
    method: str, path: str, body: bytes = b"", *, token: str | None = None, **headers: str
) -> bytes:
    """A whole request; `_` in a header's name stands for `-`."""
    lines = [f"{method} {path} HTTP/1.1", "Host: guard"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        headers.setdefault("Content_Length", str(len(body)))
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def ask(stage: Stage, method: str, path: str, body: bytes = b"", **more: Any) -> Reply:
    """Send one request, read its reply."""
    return await send(stage.server.port, request(method, path, body, **more))


async def get(stage: Stage, path: str) -> Reply:
    return await ask(stage, "GET", path)


class LagProbe:
    """How much too late the loop comes to a timer of 2 ms, again and again."""

    EVERY = 0.002

    def __init__(self) -> None:
        self.lags: list[float] = []

    async def measure(self) -> None:
        while True:
            slept = time.perf_counter()  # uvloop's own time comes in whole milliseconds
            await asyncio.sleep(self.EVERY)
            self.lags.append(time.perf_counter() - slept - self.EVERY)

    def p99(self) -> float:
        """Seconds."""
        return sorted(self.lags)[int(len(self.lags) * 0.99)]


@asynccontextmanager
async def lag_probe() -> AsyncIterator[LagProbe]:
    """Measures while it is open."""
    probe = LagProbe()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(probe.measure())
        yield probe
        task.cancel()
