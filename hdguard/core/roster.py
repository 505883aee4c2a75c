"""Who watches what, and how well it can be seen right now."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from hdguard.core.events import FrameSeen, Remarked, SourceEnded, SourceLost, SourceUp
from hdguard.core.freshness import (
    FROZEN_DEGRADED,
    FROZEN_HALT,
    FrameAge,
    Stillness,
    VerdictAge,
)
from hdguard.core.policy import HIGH_FPS, LOW_FPS, BrainPlan, Policy, SourcePlan
from hdguard.core.reviews import OpenReview, ReviewDesk
from hdguard.core.types import FrameRef, Light


class Lane:
    """One brain on one source."""

    def __init__(self, source_id: str, brain: BrainPlan, deadline: float | None) -> None:
        self.source_id = source_id
        self.brain = brain
        self.verdict = VerdictAge(deadline, LOW_FPS if brain.adaptive else brain.fps)


class Watched:
    """One source, the brains on it, and the reviews about it."""

    def __init__(self, plan: SourcePlan, policy: Policy) -> None:
        self.plan = plan
        self.frame = FrameAge(plan.interval)
        self.picture = Stillness()
        self.damaged = False
        self.trouble = ""
        self.desk = ReviewDesk(policy.window, policy.pending)
        self.lanes = {b.name: Lane(plan.source_id, b, policy.deadline_of(b)) for b in policy.brains}

    @property
    def light(self) -> Light | None:
        """The most severe light that a brain last gave; None before the first verdict."""
        lights = [x.verdict.light for x in self.lanes.values() if x.verdict.light is not None]
        return max(lights, default=None)

    @property
    def wanted_fps(self) -> float:
        """The rate at which adaptive brains sample."""
        severe = self.light is not None and self.light > Light.GREEN
        return HIGH_FPS if severe or self.desk.caution else LOW_FPS

    def seen(self, event: FrameSeen | Remarked) -> None:
        """A clean frame was decoded, or something is named in one that was judged."""
        match event:
            case FrameSeen():
                self.frame.seen(event.ref.captured_at)
                self.picture.seen(event.ref.captured_at, frozen=event.frozen)
                self.damaged = event.damaged
                if event.kept:
                    self.desk.window.keep(event.ref, scene_change=event.scene_change)
            case Remarked():
                self.desk.window.named(event.ref, event.sights)
            case _:
                assert_never(event)

    def changed(self, event: SourceUp | SourceLost | SourceEnded) -> None:
        """The source came, broke or ended."""
        match event:
            case SourceUp():
                self.frame.up = True
                self.frame.interval = max(self.plan.interval, event.interval)
            case SourceLost():
                self.frame.up = False
                self.trouble = event.reason or "no reason given"
            case SourceEnded():
                self.frame.ended = True
            case _:
                assert_never(event)

    def doubtful(self) -> bool:
        """True if the picture has not changed for so long that it may be a frozen one."""
        watches = self.plan.when_frozen != "ignore"
        return watches and self.picture.lasts() >= FROZEN_DEGRADED

    def frozen(self, moving_since: float) -> bool:
        """True if the picture did not change although the robot that carries the camera moved.

        `moving_since` is the time since which it has; infinity if it does not.
        """
        carried = self.plan.required and self.plan.when_frozen == "halt"
        return carried and self.picture.lasts(moving_since) >= FROZEN_HALT

    def requires(self, lane: Lane) -> bool:
        """True if this brain's failure on this source halts the robot."""
        return self.plan.required and lane.brain.required

    def adapt(self, now: float) -> list[Lane]:
        """Sample for adaptive brains at the wanted rate; returns those whose rate changes."""
        fps = self.wanted_fps
        changed = [x for x in self.lanes.values() if x.brain.adaptive and x.verdict.fps != fps]
        for lane in changed:
            lane.verdict.set_rate(fps, self.frame.interval, now)
        return changed

    def be_cautious(self) -> None:
        """A review was overdue: stay slow and watchful until somebody says that all is well."""
        self.desk.caution = True
        for lane in self.lanes.values():
            lane.verdict.greens.end()

    def calmed(self, greens: int) -> bool:
        """True if every required brain has said GREEN so often in a row."""
        required = [x for x in self.lanes.values() if x.brain.required]
        return all(x.verdict.greens.count >= greens for x in required)

    @property
    def calm(self) -> bool:
        """True if nothing about the source itself asks for caution."""
        return self.light is Light.GREEN and self.desk.open is None and not self.desk.caution


class Roster:
    """Every source and every brain."""

    def __init__(self, policy: Policy) -> None:
        for kind, plans in (("source", policy.sources), ("brain", policy.brains)):
            if not any(p.required for p in plans):
                msg = f"the guard needs at least one required {kind}"
                raise ValueError(msg)
        self.slow = policy.slow
        self.sources = {p.source_id: Watched(p, policy) for p in policy.sources}
        self.down: set[str] = set()

    def lane(self, source_id: str, brain: str) -> Lane | None:
        """That brain on that source, or None if the guard knows no such pair."""
        watched = self.sources.get(source_id)
        return watched.lanes.get(brain) if watched else None

    def admits(self, ref: FrameRef, brain: str, now: float) -> bool:
        """True while this frame is young enough to be given to that brain."""
        lane = self.lane(ref.source_id, brain)
        if lane is None:
            return False
        limits = lane.verdict.limits(self.sources[ref.source_id].frame.interval)
        return now - ref.captured_at <= limits.halt

    def lanes(self) -> Iterator[tuple[Watched, Lane]]:
        """Every brain on every source that has not ended."""
        for watched in self.sources.values():
            if not watched.frame.ended:
                for lane in watched.lanes.values():
                    yield watched, lane

    def adapt(self, now: float) -> Iterator[Lane]:
        """Every lane whose sampling rate changes, with its new rate."""
        for watched in self.sources.values():
            yield from watched.adapt(now)

    def required_lanes(self) -> Iterator[tuple[Watched, Lane]]:
        """Every required brain on every required source that has not ended."""
        for watched, lane in self.lanes():
            if watched.requires(lane):
                yield watched, lane

    def review(self, review_id: int) -> tuple[Watched, OpenReview] | None:
        """The open review of that id with its source, or None."""
        for watched in self.sources.values():
            if watched.desk.open is not None and watched.desk.open.review_id == review_id:
                return watched, watched.desk.open
        return None

    def fresh_green(self, now: float, greens: int = 1) -> bool:
        """True if every required brain said GREEN `greens` times in a row and it is all fresh."""
        if any(not w.frame.fresh(now) for w in self.sources.values() if w.plan.required):
            return False
        return all(
            lane.verdict.light is Light.GREEN
            and lane.verdict.fresh(now)
            and lane.verdict.greens.count >= greens
            and lane.brain.name not in self.down
            for _, lane in self.required_lanes()
        )

    def changed_since(self, source_id: str, since: float) -> bool:
        """True if that source's picture has changed since then, so that it is not frozen."""
        watched = self.sources.get(source_id)
        return watched is None or watched.picture.changed_at > since

    def impairments(self, now: float) -> tuple[str, ...]:
        """What cannot be seen or asked as well as it should, in words; empty if all is well."""
        found = [f"{name} is down" for name in sorted(self.down)]
        for watched in self.sources.values():
            name, frame = watched.plan.source_id, watched.frame
            if frame.ended:
                continue
            if not frame.up:
                found.append(f"{name} is lost: {watched.trouble}")
            elif not frame.fresh(now):
                found.append(f"{name} has no fresh frame")
            if watched.doubtful():
                found.append(f"the picture of {name} does not change")
            if watched.damaged:
                found.append(f"many pictures of {name} are damaged")
            found.extend(
                f"{lane.brain.name} has no fresh verdict on {name}"
                for lane in watched.lanes.values()
                if not lane.verdict.fresh(now)
            )
        return tuple(found)

    def calm(self, now: float) -> bool:
        """True if the robot may move at full speed as far as the eyes are concerned."""
        return not self.impairments(now) and all(w.calm for w in self.sources.values())

    @property
    def light(self) -> Light:
        """The most severe light of all sources; YELLOW where one is unknown."""
        lights = [w.light for w in self.sources.values()]
        return max(Light.YELLOW if light is None else light for light in lights)

    def held(self, source_id: str) -> frozenset[FrameRef]:
        """Every frame of the source that a later review may still show."""
        watched = self.sources.get(source_id)
        return watched.desk.held if watched else frozenset()

    def ages(self, now: float) -> tuple[float | None, float | None]:
        """Age in seconds of the oldest required frame and verdict; None before the first."""
        seen = [w.frame.newest for w in self.sources.values() if w.plan.required]
        refs = [lane.verdict.newest for _, lane in self.required_lanes()]
        judged = [None if ref is None else ref.captured_at for ref in refs]
        return _oldest(seen, now), _oldest(judged, now)

    def deadlines(self) -> Iterator[float]:
        """Every time at which something changes by itself, past ones included."""
        for watched in self.sources.values():
            yield watched.desk.due
            if not watched.frame.ended:
                yield watched.frame.degraded_at
                yield watched.frame.halt_at
        for _, lane in self.lanes():
            verdict = lane.verdict
            yield from (verdict.degraded_at, verdict.halt_at)
            yield from (verdict.yellow_at(), verdict.blind.due)


def _oldest(times: Sequence[float | None], now: float) -> float | None:
    known = [now - t for t in times if t is not None]
    return max(known) if known and len(known) == len(times) else None
