"""The incident recorder: notes on the loop, one thread for pictures and disk, a child for clips.

Nothing is converted, encoded or written on the loop. If the thread falls behind, the oldest waiting
frame makes room for the newest and is counted; the decision being made meanwhile hears nothing.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import msgspec

from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.policy import Policy
from hdguard.ingest.base import Frame
from hdguard.observe.incidents.desk import Desk, reach
from hdguard.observe.incidents.finisher import Finisher
from hdguard.observe.incidents.record import About
from hdguard.observe.incidents.reel import Developer, Reels
from hdguard.observe.incidents.settings import IncidentSettings
from hdguard.observe.incidents.shelf import Shelf
from hdguard.observe.incidents.writer import Batch, Writer
from hdguard.runtime.observer import Judged, Reviewed

T = TypeVar("T")

log = logging.getLogger(__name__)

SWEEP_EVERY = 600.0
"""Seconds between two looks at what is too old; a choice."""


class Recorder:
    """An observer and a viewer, and the tasks that do what they note.

    Args:
        shelf: where incidents are kept.
        settings: how they are recorded.
        about: who records.
        policy: of the guard.
        boot: of the guard: halts of earlier ones were recorded then.

    Attributes:
        outcomes: incidents that were `kept`, `dropped` (for want of disk or time) or `failed`
            (could not be made whole, and are set aside).
    """

    def __init__(
        self,
        shelf: Shelf,
        settings: IncidentSettings,
        about: About,
        policy: Policy,
        *,
        boot: int,
    ) -> None:
        self.outcomes: Counter[str] = Counter(kept=0, dropped=0, failed=0)
        self._shelf = shelf
        self._loop = asyncio.get_running_loop()
        self._desk = Desk(settings, about, policy, boot=boot, began=self._loop.time())
        developer, reels = Developer(settings.width), Reels(reach(settings, policy))
        self._writer = Writer(shelf, developer, reels)
        self._executor = ThreadPoolExecutor(1, "incidents")
        self._finisher = Finisher(self._ended, mcap=settings.mcap)
        self._woken = asyncio.Event()
        self._said = False  # that pictures are lost; anew from one sweep to the next
        # The thread's first work: what it begins itself is not left over.
        self._leftovers = self._loop.run_in_executor(self._executor, self._writer.leftovers)

    @property
    def bytes(self) -> int:
        """What all incidents take on disk."""
        return self._shelf.bytes

    @property
    def lost(self) -> int:
        """Frames that the thread did not take in time."""
        return self._desk.lost

    def concerns(self, robot: str, prefix: str) -> None:
        """Another guard begins, of that robot or video; its incidents' ids begin so."""
        about = msgspec.structs.replace(self._desk.about, robot=robot)
        self._desk.begin(about, prefix, self._loop.time())

    def saw(self, frame: Frame, kept: bool) -> None:
        """Have it recorded if it is one that reviews may show."""
        if not kept:
            return
        lost = self._desk.lost
        self._desk.saw(frame)
        self._woken.set()
        if self._desk.lost > lost and not self._said:
            self._said = True
            log.warning("incidents: pictures are lost: disk or processor is too slow for them")

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Note when an answer came."""
        self._desk.judged(stamps)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what was decided."""
        if self._desk.stepped(now, event, actions):
            self.outcomes["dropped"] += self._desk.dropped
            self._desk.dropped = 0
            self._woken.set()

    async def work(self) -> None:
        """Record until cancelled, and make clips of what is recorded and of what was left over."""
        for part in await self._leftovers:
            self._finisher.put(part)
        await self._in_thread(self._writer.sweep, self._loop.time())
        async with asyncio.TaskGroup() as group:
            group.create_task(self._finisher.work(), name="clips")
            group.create_task(self._record(), name="pictures")

    async def _record(self) -> None:
        swept = self._loop.time()
        while True:
            self._woken.clear()
            await self._do(self._desk.batch(self._loop.time()))
            due = min(self._desk.due, swept + SWEEP_EVERY)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._woken.wait()
            if self._loop.time() >= swept + SWEEP_EVERY:
                swept, self._said = self._loop.time(), False
                await self._in_thread(self._writer.sweep, swept)

    async def cut(self) -> None:
        """End what is being recorded: what comes now is another video."""
        await self._do(self._desk.last_batch())

    async def finished(self) -> None:
        """End what is being recorded, and wait until every clip is made."""
        await self.cut()
        await self._finisher.idle()

    async def save(self) -> None:
        """Bring to disk what is being recorded; the next start makes the clips."""
        await self._in_thread(self._writer.work, self._desk.last_batch(), self._loop.time())

    async def close(self) -> None:
        """Nothing more is recorded; waits for what the thread has in hand."""
        await self._in_thread(int)
        self._executor.shutdown()

    async def _do(self, batch: Batch) -> None:
        if batch == _NOTHING:
            return
        done = await self._in_thread(self._writer.work, batch, self._loop.time())
        self.outcomes["dropped"] += done.dropped
        for part in done.ended:
            self._finisher.put(part)

    async def _ended(self, outcome: str) -> None:
        """A clip is made, or cannot be."""
        self.outcomes[outcome] += 1
        await self._in_thread(self._writer.sweep, self._loop.time())

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        # The guard may end while it waits for its turn: what the desk has handed out is done then.
        return await asyncio.shield(self._loop.run_in_executor(self._executor, work, *args))


_NOTHING = Batch()
