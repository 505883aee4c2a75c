"""One guard at work: its cameras, its pipeline, and everything that looks on.

What outlives the guard (the state on disk, the audit log, the fall-back hook, systemd) stands apart
as `Aides`: a broker that comes back late may tell of a halt that nobody else knows of, and then a
guard that has not let the robot move yet makes room for one that has it restored.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.mqtt import MqttActuator
from hdguard.core import events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.ingest.base import FrameSource
from hdguard.ingest.webrtc import WhipSource
from hdguard.live import LivePlan
from hdguard.observe.collected import IncidentNumbers
from hdguard.observe.http import HttpParts
from hdguard.observe.incidents.recorder import Recorder
from hdguard.observe.keeping import Keeping
from hdguard.observe.metrics import Metrics
from hdguard.observe.pictures import NewestPictures
from hdguard.observe.server import HttpServer
from hdguard.observe.status import Status
from hdguard.past import Life, Past
from hdguard.replay.runner import Crew
from hdguard.runtime.audit import AuditLog
from hdguard.runtime.decisions import DecisionLog
from hdguard.runtime.garbage import collect_garbage
from hdguard.runtime.halt_log import HaltLog
from hdguard.runtime.halt_stories import HaltStories
from hdguard.runtime.hooks import FallBackHook
from hdguard.runtime.lag import watch_lag
from hdguard.runtime.observer import Judged, Observer, Reviewed, Viewer
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.runtime.state_file import Kept, StateKeeper
from hdguard.runtime.watchdog import Systemd, Watchdog

log = logging.getLogger(__name__)

SAID_WITHIN = 0.5
"""Seconds for the last halt to reach the broker and the disk: field.md, F33."""

UNREAD = (
    "the halt that the broker keeps cannot be read (%s): the robot may not move. If its key was "
    "changed, set mqtt.robot_key to the old one and reset the halt; else see that nothing is wrong "
    "beside the robot, publish an empty retained message on %s, and start again"
)
"""What to do about a retained halt that may be anything."""


class Aides:
    """What notes, tells and calls for whichever guard is at work.

    Args:
        plan: of the sidecar.
        life: of this start.
        systemd: whoever started us.
        recorder: of incidents; None: none are recorded.
    """

    def __init__(
        self, plan: LivePlan, life: Life, systemd: Systemd, recorder: Recorder | None = None
    ) -> None:
        robot = plan.config.mqtt.robot
        self._has_hook = plan.config.live.hook.is_set
        self.audit = AuditLog(plan.state_file("audit.jsonl"))
        self.keeper = StateKeeper(plan.state_file("state.json"), life.kept or Kept(robot=robot))
        self.hook = FallBackHook(plan.config.live.hook)
        self.watchdog = Watchdog(systemd)
        self.decisions = itertools.count(1)
        self.stories = HaltStories(life.boot)
        self.halts = HaltLog(plan.state_file("halts.jsonl"))
        self.stories.on_change(self.halts.note)
        self.recorder = recorder
        self.audit.note("start", boot=life.boot)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The watchdog comes last: it is fed only if all else went well."""
        recorder = () if self.recorder is None else (self.recorder,)
        return (self.keeper, self.hook, self.audit, self.stories, *recorder, self.watchdog)

    @property
    def viewers(self) -> tuple[Viewer, ...]:
        """Who looks at the pictures."""
        return () if self.recorder is None else (self.recorder,)

    @property
    def incidents(self) -> Callable[[], IncidentNumbers] | None:
        """What became of them; None: none are recorded."""
        if (recorder := self.recorder) is None:
            return None
        return lambda: IncidentNumbers(**recorder.outcomes, size=recorder.bytes)

    @property
    def keeping(self) -> Keeping:
        """What is shown of them."""
        hook = self.hook if self._has_hook else None
        return Keeping(self.keeper, self.audit, self.halts, hook)

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Their tasks, to be cancelled at the end."""
        jobs = {"state file": self.keeper.work(), "audit log": self.audit.work()}
        if self._has_hook:
            jobs["hook"] = self.hook.work()
        jobs["halt log"] = self.halts.work()
        jobs["garbage"] = collect_garbage()
        if self.recorder is not None:
            jobs["incidents"] = self.recorder.work()
        return [group.create_task(job, name=name) for name, job in jobs.items()]

    async def settled(self) -> None:
        """Wait until the state is on disk."""
        await self.keeper.written()


class _LastWord:
    """An observer that knows whether the broker has the halt in force."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._delivered = ""
        self._news = asyncio.Event()

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nothing that concerns us."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what was delivered."""
        if isinstance(event, events.HaltDelivered):
            self._delivered = event.halt_id
            self._news.set()

    async def said(self) -> None:
        """Wait until the broker has it."""
        while self._guard.halt is not None and self._guard.halt.halt_id != self._delivered:
            self._news.clear()
            await self._news.wait()


class Watch:
    """One guard, from its first step to its last.

    Args:
        plan: of the sidecar.
        crew: the brains, ready.
        actuator: the way to the robot, entered.
        aides: what outlives this guard.
        life: of this start.
        past: what earlier lives left in force.
    """

    def __init__(
        self,
        plan: LivePlan,
        crew: Crew,
        actuator: MqttActuator,
        aides: Aides,
        life: Life,
        past: Past,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._plan = plan
        self._actuator = actuator
        self._aides = aides
        self._past = past
        self._past_is_clear = False  # no halt of an earlier life can be lost any more
        self._restored = past.halt(loop.time())
        self._guard = Guard(plan.policy, loop.time(), boot=life.boot, restored=self._restored)
        self._last_word = _LastWord(self._guard)
        keeping = aides.keeping
        status = Status(self._guard, loop.time, keeping)
        self._metrics = Metrics(
            self._guard, loop.time, lambda: actuator.connected, keeping, aides.incidents
        )
        own: tuple[Observer, ...] = (self._last_word, status, self._metrics)
        sources, pictures = plan.sources(), NewestPictures(loop.time)
        said = DecisionLog(self._guard, aides.decisions)
        observers = (*own, said, *aides.observers)
        parts = Parts(
            sources, crew.fast, crew.slow, actuator, observers, (pictures, *aides.viewers)
        )
        self._pipeline = Pipeline(self._guard, parts)
        self._metrics.watch(self._pipeline)
        self._shown = self._http_parts(status, pictures, sources)

    async def run(self, stop: asyncio.Event) -> None:
        """Guard until asked to stop, or until a halt turns up that this guard should have had.

        Raises:
            HttpError: the HTTP port cannot be opened.
            ExceptionGroup: a part failed in a way that it is not allowed to.
        """
        server = HttpServer(self._plan.config.http, lambda: self._shown)
        await server.start()
        self._metrics.serve(lambda: server.clients)
        log.info("http: listening on %s:%d", self._plan.config.http.host, server.port)
        async with asyncio.TaskGroup() as group:
            http = group.create_task(server.serve(), name="http")
            lag = group.create_task(watch_lag(self._metrics.lagged), name="lag")

            async def until() -> None:
                await self._until(stop)
                # While the cameras are closed, which may take seconds, nothing is sent any more: a
                # halt that is asked for now would be taken, and lost.
                http.cancel()

            await self._pipeline.run(until)
            lag.cancel()

    def _http_parts(
        self, status: Status, pictures: NewestPictures, sources: tuple[FrameSource, ...]
    ) -> HttpParts:
        def halt(operator: str) -> None:
            self._pipeline.dispatch(events.HaltRequested(operator))

        def reset(halt_id: str, operator: str) -> None:
            self._pipeline.dispatch(events.ResetRequested(halt_id, operator))

        return HttpParts(
            status,
            self._metrics,
            halt,
            {s.source_id: s for s in sources if isinstance(s, WhipSource)},
            self._aides.audit.rejected,
            reset,
            pictures,
        )

    async def _until(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(stop.wait(), name="stop")
            tested = group.create_task(self._self_test(), name="self-test")
            await asyncio.wait({asked, tested}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done() and tested.result():
                await asyncio.wait({asked})
            asked.cancel()
            tested.cancel()
        if stop.is_set():
            await self._take_leave()

    async def _self_test(self) -> bool:
        """False if another guard must take over; True if not, though it may not be passed.

        The brains have answered their canaries when they were loaded.
        """
        await self._past.asked()
        if why := self._actuator.unread_halt:
            log.error(UNREAD, why, self._plan.config.mqtt.topics["halt"])
            return True
        halt = self._past.halt(asyncio.get_running_loop().time())
        if halt is not None and self._has_missed(halt):
            log.warning("the broker keeps halt %s of an earlier life: restored", halt.halt_id)
            return False
        self._past_is_clear = True
        if self._guard.halt is None:
            await self._end_old_halt()
        await self._actuator.echoed()
        self._pipeline.dispatch(events.SelfTestPassed())
        return True

    def _has_missed(self, halt: Halt) -> bool:
        """Not if we started with it, nor if a newer one of our own is in force."""
        restored = "" if self._restored is None else self._restored.halt_id
        in_force = "" if self._guard.halt is None else self._guard.halt.halt_id
        return halt.halt_id != restored and in_force in {"", restored}

    async def _end_old_halt(self) -> None:
        """One that was released while the broker did not hear it: the robot still heeds it."""
        try:
            await self._actuator.forget_halt()
        except ActuatorError as error:  # it is published on the next connect
            log.warning("%s", error)

    async def _take_leave(self) -> None:
        # Before the past is clear no permit was given, and a halt of our own, being newer, would
        # take the place of one that only the broker knows.
        if self._past_is_clear:
            self._pipeline.dispatch(events.StopRequested())
        try:
            async with asyncio.timeout(SAID_WITHIN):
                await self._last_word.said()
                await self._aides.settled()
        except TimeoutError:
            log.warning("not all that was to be said or kept at the end could be")
