"""Decides, and does nothing else: events and the time go in, actions come out.

The rules that this file keeps (DESIGN section 3):

1. Deadlines are checked before the event is handled, in every step: a stalled loop cannot let a
   late GREEN slip in ahead of an expired deadline.
2. Old news may stop the robot; only fresh news may let it run. A RED halts however late its answer
   comes; an out-of-order or expired GREEN is ignored.
3. Age counts from capture, not from arrival.
4. Danger and operator halts leave only by a reset that names the id while every required brain is
   fresh GREEN; fault halts leave likewise or, by policy, after 3 s of fresh GREEN, unless latched
   (after a frozen picture, not before it has changed).
   RED or danger during a fault halt makes a new danger halt with a new id.
5. A halt is repeated every 100 ms until the robot confirms, and escalated once at 500 ms.
6. Unknown, unparsed, late, missing, blind or failed is never GREEN.
7. At most one review is open per source; a newer trigger waits in one place or is dropped.
8. The same events at the same times give the same actions.

| state | leaves when | to |
|---|---|---|
| STARTING | self-test passed, `start_greens` fresh GREEN, every required brain | MONITORING |
| all but HALTED | RED, danger, review overdue under `halt`, operator, stop | HALTED |
| MONITORING, REVIEWING | failures, stale frame or verdict, frozen, blind, latched brain | HALTED |
| MONITORING | YELLOW (or whatever counts as it) | REVIEWING |
| REVIEWING | safe, or the review ended without a halt | MONITORING |
| HALTED | reset or fault clear, rule 4; a guard not started yet goes on starting | MONITORING |
"""

from dataclasses import replace
from typing import assert_never

from hdguard.core import actions, events, expiry, release_rules
from hdguard.core.actions import Action, Halt
from hdguard.core.clearance import Clearance
from hdguard.core.events import Event
from hdguard.core.halts import HaltLedger, danger, fault, operator
from hdguard.core.motion import RobotMotion
from hdguard.core.permits import PermitClock
from hdguard.core.policy import Policy
from hdguard.core.review_rules import ReviewRules, Said
from hdguard.core.roster import Lane, Roster, Watched
from hdguard.core.types import FrameRef, HaltCause, Light, Speed, State

Cause = FrameRef | None
"""The frame whose verdict may have changed the sampling rates, if one did."""


class Guard:
    """The decision. Whoever holds it has four duties.

    - `step` every event with the loop's time, and perform the actions in their order, without
      waiting for anything in between.
    - Keep one timer at `deadline`, and step `DeadlineReached` when it rings.
    - Give a frame to a brain only while `admits` says so.
    - Keep the pictures that `held` names, for reviews to come.
    """

    def __init__(
        self, policy: Policy, now: float, *, boot: int = 0, restored: Halt | None = None
    ) -> None:
        """Start in STARTING, or in HALTED if an active halt of an earlier boot is `restored`.

        Raises:
            ValueError: the policy names no required source or no required brain.
        """
        self.policy = policy
        self.boot = boot
        self.roster = Roster(policy)
        self._halts = HaltLedger(boot)
        self._permits = PermitClock(now)
        self._now = now
        self._out: list[Action] = []
        self._reviews = ReviewRules(policy, self.roster)
        self._clearance = Clearance(policy, self.roster)
        self._robot = RobotMotion()
        self._noted = actions.Notify(State.STARTING, "")
        if restored is not None and restored.cause is HaltCause.STOPPING:
            self._out.append(actions.Release(restored.halt_id))
        elif restored is not None:
            self._halts.raise_(restored, now)
            self._out.append(restored)

    def step(self, event: Event, now: float) -> tuple[Action, ...]:
        """Decide what this event means at this time; halts come first among the actions.

        Args:
            event: what happened.
            now: seconds on the loop's clock; a time before the last step's counts as that.
        """
        self._now = max(now, self._now)
        self._expire()
        self._settle(self._handle(event))
        out, self._out = self._out, []
        return tuple(sorted(out, key=lambda a: not isinstance(a, Halt | actions.Release)))

    @property
    def state(self) -> State:
        """What the guard is doing."""
        if self._halts.active is not None:
            return State.HALTED
        if not self._clearance.started:
            return State.STARTING
        desks = [w.desk for w in self.roster.sources.values()]
        busy = any(d.open is not None or d.caution for d in desks)
        return State.REVIEWING if busy else State.MONITORING

    @property
    def halt(self) -> Halt | None:
        """The halt in force."""
        return self._halts.active

    @property
    def deadline(self) -> float:
        """The time at which `DeadlineReached` is due, if nothing else happens before."""
        times = (self._permits.due, *self._halts.deadlines, *self.roster.deadlines())
        return min(t for t in times if t > self._now)

    def admits(self, ref: FrameRef, brain: str, now: float) -> bool:
        """True while this frame is young enough to be given to that brain."""
        return self.roster.admits(ref, brain, now)

    def held(self, source_id: str) -> frozenset[FrameRef]:
        """Every frame of the source that a later review may still show."""
        return self.roster.held(source_id)

    # What time alone has decided: rule 1.

    def _expire(self) -> None:
        for watched in self.roster.sources.values():
            review = watched.desk.awaited
            if review is not None and self._now >= review.due:
                self._carry_out(self._reviews.overdue(watched, review, self._now))
        for watched, lane in self.roster.lanes():
            if self._now >= lane.verdict.yellow_at():
                self._blinded(watched, lane)
        for draft in expiry.expired(self.roster, self._now):
            self._fault(draft)
        self._out.extend(self._halts.overdue(self._now))

    def _blinded(self, watched: Watched, lane: Lane) -> None:
        if lane.verdict.light in {None, Light.GREEN} and lane.verdict.newest is not None:
            lane.verdict.light = Light.YELLOW
            self._trigger(watched, lane.verdict.newest)

    # What the event means.

    def _handle(self, event: Event) -> Cause:  # noqa: C901, PLR0912 - a line per event
        match event:
            case events.FastVerdict() | events.CannotSee() | events.BrainFailed():
                return self._on_brain(event)
            case events.FrameSeen() | events.Remarked():
                if (watched := self.roster.sources.get(event.ref.source_id)) is not None:
                    self._on_frame(watched, event)
            case events.SourceUp() | events.SourceLost() | events.SourceEnded():
                if (watched := self.roster.sources.get(event.source_id)) is not None:
                    watched.changed(event)
            case events.SlowVerdict() | events.ReviewFailed():
                if (found := self.roster.review(event.review_id)) is not None:
                    self._carry_out(self._reviews.answered(*found, event, self._now))
            case events.BrainDown() | events.BrainUp():
                self._on_worker(event)
            case events.RobotSeen():
                self._robot.seen(event, self._now)
            case events.HaltAcknowledged():
                self._halts.acknowledged(event.halt_id)
            case events.HaltConfirmed():
                self._halts.confirmed(event.halt_id)
            case events.HaltDelivered() | events.HaltFailed() | events.DeadlineReached():
                pass  # a broker's word counts neither way; what was due, `_expire` has done
            case events.ResetRequested():
                self._on_reset(event)
            case events.HaltRequested():
                self._halt(operator(event.operator))
            case events.StopRequested():
                if self._halts.active is None:
                    self._halt(fault(HaltCause.STOPPING))
            case events.LinkLost() | events.LinkUp():
                self._clearance.link = isinstance(event, events.LinkUp)
            case events.SelfTestPassed():
                self._clearance.tested = True
            case _:
                assert_never(event)
        return None

    def _on_frame(self, watched: Watched, event: events.FrameSeen | events.Remarked) -> None:
        watched.seen(event)
        if watched.frozen(self._robot.since(self._now)):
            self._fault(fault(HaltCause.FROZEN_FRAME, watched.plan.source_id))

    def _on_brain(self, event: events.BrainEvent) -> Cause:
        where = event if isinstance(event, events.BrainFailed) else event.ref
        lane = self.roster.lane(where.source_id, event.brain)
        if lane is None:
            return None
        watched = self.roster.sources[lane.source_id]
        match event:
            case events.FastVerdict():
                return self._on_verdict(watched, lane, event)
            case events.CannotSee():
                return self._on_cannot_see(watched, lane, event)
            case events.BrainFailed():
                return self._on_failure(watched, lane, event)
            case _:
                assert_never(event)

    def _on_verdict(self, watched: Watched, lane: Lane, event: events.FastVerdict) -> Cause:
        fresh = (
            not event.late
            and lane.verdict.follows(event.ref)
            and self.admits(event.ref, event.brain, self._now)
        )
        if not fresh and event.light is not Light.RED:
            return None  # rule 2
        if fresh:
            lane.verdict.answered(event.ref, watched.frame.interval)
        lane.verdict.judged(event.light)
        watched.desk.window.judged(event.ref, watched.light or event.light)
        if event.light is Light.RED:
            self._halt(danger(HaltCause.FAST_RED, event.brain, event.ref, event.hazard))
        elif event.light is Light.YELLOW:
            self._trigger(watched, event.ref)
        elif watched.calmed(self.policy.release_greens):
            watched.desk.caution = False
        return event.ref

    def _on_cannot_see(self, watched: Watched, lane: Lane, event: events.CannotSee) -> Cause:
        verdict = lane.verdict
        if not verdict.follows(event.ref):
            return None
        verdict.answered(event.ref, watched.frame.interval)
        verdict.greens.end()
        verdict.blind.update(holds=True, at=event.ref.captured_at)
        if self._now >= verdict.yellow_at():
            verdict.light = max(Light.YELLOW, verdict.light or Light.GREEN)
            self._trigger(watched, event.ref)
        return event.ref

    def _on_failure(self, watched: Watched, lane: Lane, event: events.BrainFailed) -> Cause:
        limit = self.policy.failures_to_halt
        if limit is None:
            if event.ref is None:
                return None
            as_yellow = events.FastVerdict(event.ref, event.brain, Light.YELLOW)
            return self._on_verdict(watched, lane, as_yellow)
        lane.verdict.greens.end()
        lane.verdict.failures.add()
        if lane.verdict.failures.count >= limit and watched.requires(lane):
            self._fault(fault(HaltCause.BRAIN_FAILED, lane.source_id, event.brain, event.reason))
        return None

    def _on_worker(self, event: events.BrainDown | events.BrainUp) -> None:
        if isinstance(event, events.BrainUp):
            self.roster.down.discard(event.brain)
            return
        self.roster.down.add(event.brain)
        if event.brain == self.policy.slow:
            for watched in self.roster.sources.values():
                if (review := watched.desk.awaited) is not None:
                    self._carry_out(self._reviews.overdue(watched, review, self._now))
        for _, lane in self.roster.required_lanes():
            if lane.brain.name == event.brain and event.latched:
                self._fault(fault(HaltCause.BRAIN_LATCHED, lane.source_id, event.brain))

    def _on_reset(self, event: events.ResetRequested) -> None:
        active = self._halts.active
        if active is None or active.halt_id != event.halt_id:
            return
        if release_rules.may_reset(active, self.policy, self.roster, self._now):
            self._release(active)

    # Reviews: rule 7.

    def _trigger(self, watched: Watched, ref: FrameRef) -> None:
        if self._halts.active is None:
            self._carry_out(self._reviews.trigger(watched, ref, self._now))

    def _carry_out(self, said: Said) -> None:
        for each in said:
            if isinstance(each, Halt):
                self._halt(each)
            else:
                self._out.append(each)

    # Halts: rules 4 and 5.

    def _fault(self, draft: Halt) -> None:
        if self._clearance.started and self.policy.fault_halts:
            self._halt(draft)

    def _halt(self, draft: Halt) -> None:
        if not self._halts.supersedes(draft):
            return
        watched = self.roster.sources.get(draft.source_id)
        halt = replace(
            draft,
            halt_id=self._halts.next_id(),
            light=watched.light if watched is not None else None,
            decided_at=self._now,
        )
        self._halts.raise_(halt, self._now)
        self._out.append(halt)
        for each in self.roster.sources.values():
            if each.desk.open is not None:
                self._out.append(actions.CancelReview(each.desk.open.review_id))
            each.desk.clear()

    def _release(self, halt: Halt) -> None:
        self._halts.release()
        self._out.append(actions.Release(halt.halt_id))

    # What follows from where things stand now.

    def _settle(self, cause: Cause) -> None:
        for lane in self.roster.adapt(self._now):
            named = cause if cause is not None and cause.source_id == lane.source_id else None
            rate = lane.verdict.fps
            self._out.append(actions.SetSampleRate(lane.source_id, lane.brain.name, rate, named))
        self._clearance.settle(self._now)
        self._clear_fault()
        note = actions.Notify(self.state, self._why())
        if note != self._noted:
            self._noted = note
            self._out.append(note)
        halted = self._halts.active is not None
        speed = Speed.NONE if halted else self._clearance.speed(self._now)
        if self._permits.strike(speed, self._now):
            ages = self.roster.ages(self._now)
            self._out.append(
                actions.Permit(speed, self.roster.light, self.state, *ages, self._robot.newest)
            )

    def _clear_fault(self) -> None:
        active = self._halts.active
        if active is None or not self._halts.clears_itself(self.policy.fault_clear):
            return
        holds = release_rules.recovered(active, self._halts.raised_at, self.roster, self._now)
        self._halts.clear.update(holds=holds, at=self._now)
        if self._now >= self._halts.clear.due:
            self._release(active)

    def _why(self) -> str:
        active = self._halts.active
        halted = () if active is None else (f"halted: {active.cause}",)
        return "; ".join((*halted, *self._clearance.missing(self._now)))
