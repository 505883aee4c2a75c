"""The one path of a frame, live and replayed: source, sampler, brain, guard, outbox, robot.

`dispatch` is not async: nothing comes between a decision and its outbox, so neither a slow journal,
review nor broker can delay a halt. What differs between live and replay, and between the paces, is
which source, seat, actuator and event loop are handed in; nothing here asks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import TypeVar, assert_never

from hdguard.actuators.base import Actuator, ActuatorError
from hdguard.brains.base import BrainError, Shot
from hdguard.core import actions, events
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import LOW_FPS, BrainPlan, kill_after
from hdguard.core.review_window import PLANS
from hdguard.core.sampling import FrameSampler
from hdguard.core.types import Light
from hdguard.ingest.base import Frame, FrameSource, SourceError
from hdguard.runtime.damage import DamageWatch
from hdguard.runtime.frozen import FrozenWatch
from hdguard.runtime.mailbox import Mailbox, Outbox, Sampled
from hdguard.runtime.observer import Judged, Observer, Viewer
from hdguard.runtime.reviewer import Reviewer
from hdguard.runtime.scenes import SceneWatch
from hdguard.runtime.timer import Timer
from hdguard.workers.base import FastSeat, Notice, SlowSeat

T = TypeVar("T")

PERMIT_AFTER, NOTE_AFTER = 0.002, 0.005
"""Seconds that a permit, and a state for people, let a halt that was decided with them go first: to
write and read all three at once would cost the halt's receipt as much time as it takes itself."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a pipeline is made of; seats are started and closed by whoever made them."""

    sources: tuple[FrameSource, ...]
    fast: Mapping[str, FastSeat]
    slow: SlowSeat | None
    actuator: Actuator
    observers: tuple[Observer, ...] = ()
    viewers: tuple[Viewer, ...] = ()


@dataclass(frozen=True, slots=True)
class _Watches:
    """What looks at the frames of one source before any brain does; None: nobody asks."""

    album: FrameSampler | None
    scenes: SceneWatch | None
    frozen: FrozenWatch | None
    damage: DamageWatch


class _Finished(Exception):  # noqa: N818 - it is good news
    """Ends the task group."""


class Pipeline:
    """Wires the parts to the guard and keeps the guard's one timer."""

    def __init__(self, guard: Guard, parts: Parts) -> None:
        self.guard = guard
        self.parts = parts
        self.mailboxes = {b.name: Mailbox() for b in guard.policy.brains}
        self.stale = 0
        self.source_errors: dict[str, SourceError] = {}
        self._resting = asyncio.Event()
        self._loading: set[str] = set()
        self._loaded = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._calls = asyncio.TaskGroup()
        self._samplers = {
            (s.source_id, b.name): FrameSampler(LOW_FPS if b.adaptive else b.fps)
            for s in guard.policy.sources
            for b in guard.policy.brains
        }
        self._reviewer = Reviewer(guard, parts.slow, self.dispatch, parts.observers)
        self._halts: Outbox[actions.Halt | actions.Release] = Outbox(_same_halt)
        self._permits: Outbox[actions.Permit] = Outbox(lambda _, __: True)
        self._notes: Outbox[actions.Notify] = Outbox(lambda _, __: True)
        self._alarms: Outbox[actions.Escalate] = Outbox(lambda _, __: False)
        self._timer = Timer(self._loop, self._on_deadline)

    async def run(self, until: Callable[[], Awaitable[None]]) -> None:
        """Work until that is over.

        Raises:
            ExceptionGroup: a part failed in a way that it is not allowed to.
        """
        plans = {b.name: b for b in self.guard.policy.brains}
        seats = [*self.parts.fast.values(), *([self.parts.slow] if self.parts.slow else [])]
        for seat in seats:
            seat.listen(self._on_worker)
        try:
            async with self._calls as group:
                for source in self.parts.sources:
                    group.create_task(self.pump(source), name=f"pump {source.source_id}")
                for name, seat in self.parts.fast.items():
                    group.create_task(self.watch(seat, plans[name]), name=f"watch {name}")
                group.create_task(self._reviewer.work(group), name="review")
                robot = self.parts.actuator
                group.create_task(self.drive(self._halts, self._send_halt), name="halts")
                permits = self.drive(self._permits, robot.permit, PERMIT_AFTER)
                group.create_task(permits, name="permits")
                notes = self.drive(self._notes, robot.notify, NOTE_AFTER)
                group.create_task(notes, name="notes")
                group.create_task(self.drive(self._alarms, robot.notify), name="alarms")
                group.create_task(self.listen(), name="listen")
                group.create_task(self._timer.failed(), name="deadlines")
                self._timer.arm(self.guard.deadline)
                await until()
                raise _Finished
        except* _Finished:
            pass
        finally:
            self._timer.cancel()
            for seat in seats:
                seat.listen(None)

    def dispatch(self, event: Event) -> None:
        """Let the guard decide, and send what it decided on its way."""
        now = self._loop.time()
        decided = self.guard.step(event, now)
        for action in decided:
            self.perform(action)
        for observer in self.parts.observers:
            observer.stepped(now, event, decided)
        self._timer.arm(self.guard.deadline)

    def perform(self, action: actions.Action) -> None:
        """Put the action where it belongs; never waits."""
        match action:
            case actions.Halt() | actions.Release():
                self._halts.put(action)
            case actions.Permit():
                self._permits.put(action)
            case actions.Notify():
                self._notes.put(action)
            case actions.Escalate():
                self._alarms.put(action)
            case actions.RequestReview() | actions.CancelReview():
                self._reviewer.take(action)
            case actions.SetSampleRate():
                sampler = self._samplers[action.source_id, action.brain]
                sampler.set_rate(action.fps, action.ref, self.guard.policy.resample)
            case _:
                assert_never(action)

    async def pump(self, source: FrameSource) -> None:
        """Offer every frame to every brain's sampler; a source that may come back is opened again.

        To the guard it is lost until then. Nothing that happens to it concerns another source.
        """
        watches = self._watches(source)
        while not self._resting.is_set():
            problem = await self._play(source, watches)
            wait = None if self._resting.is_set() else source.retry_after()
            if problem or wait is not None:
                reason = problem or "the stream has ended"
                self.dispatch(events.SourceLost(source.source_id, reason))
            if wait is None:
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._resting.wait()
        self.dispatch(events.SourceEnded(source.source_id))

    async def _play(self, source: FrameSource, watches: _Watches) -> str:
        """Open the source once and use it to its end; returns why it broke, if it did."""
        up = False
        try:
            async with aclosing(source.frames()) as frames:  # type: ignore[type-var]
                async for frame in frames:
                    if self._resting.is_set():
                        break
                    if not up:
                        up = True
                        watches.damage.began()
                        self.source_errors.pop(source.source_id, None)
                        self.dispatch(events.SourceUp(source.source_id, source.interval))
                    self._offer(frame, watches)
        except SourceError as error:
            self.source_errors[source.source_id] = error
            return str(error)
        return ""

    def _watches(self, source: FrameSource) -> _Watches:
        # They outlive the source's breaks: a camera that comes back with its last picture is stuck.
        policy = self.guard.policy
        (plan,) = (s for s in policy.sources if s.source_id == source.source_id)
        window = PLANS[policy.window]
        return _Watches(
            FrameSampler(window.fps) if window.fps else None,
            SceneWatch() if window.scenes and self.parts.slow is not None else None,
            FrozenWatch() if plan.when_frozen != "ignore" else None,
            DamageWatch(source),
        )

    def _offer(self, frame: Frame, watches: _Watches) -> None:
        ref = frame.ref
        takers = [name for name in self.mailboxes if self._samplers[ref.source_id, name].offer(ref)]
        kept = watches.album.offer(ref) if watches.album is not None else bool(takers)
        if kept:
            self._reviewer.keep(frame)
        changed = kept and watches.scenes is not None and watches.scenes.changed(frame.image)
        frozen = watches.frozen is not None and watches.frozen.frozen(frame)
        damaged = watches.damage.damaged(self._loop.time())
        self.dispatch(events.FrameSeen(ref, kept, changed, frozen, damaged))
        for name in takers:
            self.mailboxes[name].put(Sampled(frame, self._loop.time()))
        for viewer in self.parts.viewers:
            viewer.saw(frame, kept)

    async def watch(self, seat: FastSeat, plan: BrainPlan) -> None:
        """Let the brain judge the newest frame, again and again."""
        mailbox = self.mailboxes[seat.name]
        deadline = self.guard.policy.deadline_of(plan)
        while True:
            sampled = await mailbox.get()
            if self._resting.is_set():
                pass  # nobody wants to know any more
            elif self.guard.admits(sampled.frame.ref, seat.name, self._loop.time()):
                self._reviewer.in_hand(seat.name, sampled.frame)
                await self._judge(seat, sampled, deadline)
            else:
                self.stale += 1
            mailbox.done()

    async def _judge(self, seat: FastSeat, sampled: Sampled, deadline: float | None) -> None:
        ref, given = sampled.frame.ref, self._loop.time()
        call = self._calls.create_task(self._ask(seat, sampled.frame), name=f"call {seat.name}")
        await asyncio.wait({call}, timeout=deadline)
        if call.done():
            self._judged(seat, sampled, given)
            self.dispatch(call.result())
            return
        assert deadline is not None  # else the wait had no end
        self.dispatch(events.BrainFailed(ref.source_id, seat.name, "late", ref))
        await asyncio.wait({call}, timeout=kill_after(deadline) - deadline)
        if not call.done():
            call.cancel()
            await seat.kill(f"no answer in {kill_after(deadline):g} s")
            return
        answer = call.result()
        self._judged(seat, sampled, given)
        if isinstance(answer, events.FastVerdict) and answer.light is Light.RED:
            self.dispatch(replace(answer, late=True))

    async def _ask(self, seat: FastSeat, frame: Frame) -> events.BrainEvent:
        ref = frame.ref
        try:
            return await seat.assess(Shot(ref, frame.image.rgb(seat.spec)))
        except (BrainError, SourceError) as error:
            scores = error.scores if isinstance(error, BrainError) else None
            return events.BrainFailed(ref.source_id, seat.name, str(error), ref, scores)

    def _judged(self, seat: FastSeat, sampled: Sampled, given: float) -> None:
        stamps = Judged(seat.name, sampled.frame.ref, sampled.at, given, self._loop.time())
        for observer in self.parts.observers:
            observer.judged(stamps)

    async def drive(
        self, outbox: Outbox[T], send: Callable[[T], Awaitable[None]], after: float = 0.0
    ) -> None:
        """Publish one action after the other, each so many seconds after it was put there.

        A failure is no matter: the guard repeats what matters.
        """
        while True:
            action = await outbox.get()
            if after:
                await asyncio.sleep(after)
            try:
                await send(action)
            except ActuatorError as error:
                if isinstance(action, actions.Halt):
                    self.dispatch(events.HaltFailed(action.halt_id, str(error)))

    async def _send_halt(self, action: actions.Halt | actions.Release) -> None:
        await self.parts.actuator.halt(action)
        if isinstance(action, actions.Halt):
            self.dispatch(events.HaltDelivered(action.halt_id))

    async def listen(self) -> None:
        """What the robot and the operators say goes the same way as all else."""
        async for event in self.parts.actuator.events():
            self.dispatch(event)

    async def settled(self) -> None:
        """Wait until no brain has a frame before it or in hand."""
        for mailbox in self.mailboxes.values():
            await mailbox.settled()

    async def rest(self) -> None:
        """Show the brains nothing more; returns when each has answered or is loaded again.

        If a brain is used again, what it still has in hand would hold up the next run. A review is
        broken off where the SlowBrain bears it. All else must be answered or killed; a FastBrain
        that hangs where the policy has no deadline is left.
        """
        self._resting.set()
        try:
            async with asyncio.timeout(kill_after(self.guard.policy.review_deadline)):
                await self.settled()
        except TimeoutError:
            pass
        await self._reviewer.rest()
        while self._loading:
            self._loaded.clear()
            await self._loaded.wait()

    def _on_worker(self, event: Notice) -> None:
        match event:
            case events.Remarked():
                if event.ref.source_id not in self.guard.roster.sources:
                    return  # the brain has watched something else before
            case events.BrainDown(latched=False):
                self._loading.add(event.brain)
            case events.BrainDown() | events.BrainUp():
                self._loading.discard(event.brain)
                self._loaded.set()
            case _:
                assert_never(event)
        self.dispatch(event)

    def _on_deadline(self) -> None:
        self.dispatch(events.DeadlineReached())


def _same_halt(new: actions.Halt | actions.Release, last: actions.Halt | actions.Release) -> bool:
    return type(new) is type(last) and new.halt_id == last.halt_id
