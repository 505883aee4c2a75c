"""The demo's status page: one address, though every clip has a guard and a robot of its own.

Nothing can be ordered there: the robot is played, and a halt from the page would only spoil the
scores. So there is no token, and the page says that it is a demo.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hdguard.actuators.mqtt import MqttActuator
from hdguard.core.guard import Guard
from hdguard.core.policy import Policy, SourcePlan
from hdguard.observe.http import Demo, HttpParts
from hdguard.observe.metrics import Metrics
from hdguard.observe.pictures import NewestPictures
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpError, HttpSettings
from hdguard.observe.status import Status
from hdguard.replay.dataset import Entry
from hdguard.replay.results import VideoResult
from hdguard.runtime.observer import Observer

LOADING = "The demo begins in a moment: the brains are being loaded."
OVER = "The demo is over: the scores stand in the terminal."

LINGER = 4.0
"""Seconds for which a halt stays on the page if somebody looks; a choice, time for two sentences.
The clip ends when the robot stands, half a second after its halt."""

REMEMBERED = 20
"""Clips; a choice, two rounds of the bundled ones."""


class DemoPage:
    """What is shown, clip after clip.

    Args:
        policy: of every clip's guard.
        entries: the clips of a round.

    Attributes:
        pictures: of the present clip.
        link: the present guard's, to its broker.
        server: who serves the page.
    """

    def __init__(self, policy: Policy, entries: Sequence[Entry]) -> None:
        self.link: MqttActuator | None = None
        self.server: HttpServer | None = None
        self._now = asyncio.get_running_loop().time
        self._numbers = {entry.video: n for n, entry in enumerate(entries, 1)}
        self._earlier: deque[str] = deque(maxlen=REMEMBERED)
        self.pictures = NewestPictures(self._now)
        source = SourcePlan(entries[0].video)
        self._parts = self._shown(Guard(replace(policy, sources=(source,)), self._now()))
        self._say(LOADING, over=False)

    def parts(self) -> HttpParts:
        """What the server shows now."""
        return self._parts

    def begins(self, entry: Entry, guard: Guard) -> tuple[Observer, ...]:
        """A clip is about to be run by this guard; returns who must look on."""
        self.pictures = NewestPictures(self._now)
        self._parts = parts = self._shown(guard)
        self._say(f"{self._clip(entry.video)}: {_about(entry.extra)}", over=False)
        return (parts.status, parts.metrics)

    async def ended(self, video: VideoResult) -> None:
        """A clip has ended so; returns when whoever looks has had the time to read it."""
        came = outcome(video)
        said = f"{self._clip(video.video)} has ended: {came}."
        self._say(said if video.warning else f"{said} The next one begins.", over=True)
        if video.warning is not None and self._lookers():
            await asyncio.sleep(LINGER)
        told = f"{self._clip(video.video)}, {came}: {_about(video.annotated.extra)}"
        self._earlier.appendleft(told)

    def finish(self) -> None:
        """The last clip has ended."""
        self._say(OVER, over=True)

    def _clip(self, video: str) -> str:
        return f"Clip {self._numbers[video]} of {len(self._numbers)}"

    def _say(self, title: str, *, over: bool) -> None:
        self._parts = replace(self._parts, demo=Demo(title, over, tuple(self._earlier)))
        self._parts.status.on_change()

    def _shown(self, guard: Guard) -> HttpParts:
        status = Status(guard, self._now)
        metrics = Metrics(guard, self._now, self._connected)
        metrics.serve(self._lookers)
        return HttpParts(status, metrics, _no_halt, pictures=self.pictures)

    def _connected(self) -> bool:
        return self.link is not None and self.link.connected

    def _lookers(self) -> int:
        return 0 if self.server is None else self.server.clients


def outcome(video: VideoResult) -> str:
    """What became of a clip, in a few words."""
    warning, keyframes = video.warning, video.annotated.keyframes
    if video.failed is not None:
        return f"could not be run ({video.failed})"
    if keyframes is None:
        return "safe, " + ("not halted" if warning is None else "but halted: a false stop")
    if warning is None:
        return "NOT halted"
    early = keyframes.pnr - warning.issued
    words = "before it was too late" if early >= 0 else "too late"
    return f"halted {abs(early):.1f} s {words}"


def _about(extra: Mapping[str, Any]) -> str:
    return str(extra.get("about", "a clip without a description."))


def _no_halt(_: str) -> None:
    """Nobody is admitted who could ask for it: there is no token."""


@asynccontextmanager
async def demo_page(
    entries: Sequence[Entry], port: int | None, told: Callable[[str], None], policy: Policy
) -> AsyncIterator[DemoPage]:
    """The page, served until the block ends.

    Args:
        entries: the clips of a round.
        port: to be listened on; None: the usual one if it is free, else any.
        told: called with the page's address.
        policy: of every clip's guard.

    Raises:
        HttpError: the port is taken.
    """
    page = DemoPage(policy, entries)
    page.server = server = await _listening(page, port)
    told(f"http://127.0.0.1:{server.port}/")
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve(), name="demo page")
        try:
            yield page
        finally:
            serving.cancel()
            server.close()  # `serve` may not have begun


async def _listening(page: DemoPage, port: int | None) -> HttpServer:
    settings = HttpSettings() if port is None else HttpSettings(port=port)
    server = HttpServer(settings, page.parts)
    try:
        await server.start()
    except HttpError:
        server.close()
        if port is not None:
            raise
        server = HttpServer(HttpSettings(port=0), page.parts)
        await server.start()
    return server
