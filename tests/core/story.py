"""Tells a guard a story in literal times, the way a prompt shell would: no deadline is missed."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from hdguard.core import actions, events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, Policy, SourcePlan
from hdguard.core.types import FrameRef, Light, State

GREEN, YELLOW, RED = Light.GREEN, Light.YELLOW, Light.RED

A = TypeVar("A")


def frame(at: float, source_id: str = "cam") -> FrameRef:
    """The frame captured then."""
    return FrameRef(source_id, round(at * 1000), at, at)


def watching(
    policy: Policy = SIDECAR,
    brains: Iterable[BrainPlan] = (BrainPlan("fast"),),
    sources: Iterable[SourcePlan] = (SourcePlan("cam"),),
    slow: str = "slow",
    **changes: object,
) -> Policy:
    """The preset with somebody to watch something."""
    changed = replace(policy, **changes)  # type: ignore[arg-type]
    return replace(changed, sources=tuple(sources), brains=tuple(brains), slow=slow)


class Story:
    """A guard and everything it has said, with times."""

    def __init__(self, policy: Policy | None = None, guard: Guard | None = None) -> None:
        self.guard = guard or Guard(policy or watching(), 0.0, boot=7)
        self.said: list[tuple[float, Action]] = []
        self.now = 0.0

    def at(self, time: float, *happened: Event) -> list[Action]:
        """Let time pass, deadlines included, then let these happen; returns what they led to."""
        self.until(time)
        out: list[Action] = []
        for event in happened:
            out.extend(self._step(event, time))
        return out

    def until(self, time: float) -> list[Action]:
        """Let time pass; returns what the deadlines led to."""
        out: list[Action] = []
        while self.guard.deadline <= time:
            out.extend(self._step(events.DeadlineReached(), self.guard.deadline))
        self.now = time
        return out

    def verdict(
        self, time: float, light: Light, captured: float | None = None, brain: str = "fast"
    ) -> list[Action]:
        """A brain judges the frame of that time, or an older one."""
        ref = frame(time if captured is None else captured)
        return self.at(time, events.FrameSeen(frame(time)), events.FastVerdict(ref, brain, light))

    def watch(
        self,
        until: float,
        light: Light = GREEN,
        every: float = 0.2,
        brains: tuple[str, ...] = ("fast",),
    ) -> list[Action]:
        """Frames and verdicts go on at this rate up to and including that time."""
        out: list[Action] = []
        step = 1
        start = self.now
        while start + step * every <= until + 1e-9:
            for brain in brains:
                out += self.verdict(start + step * every, light, brain=brain)
            step += 1
        return out

    def monitoring(self, brains: tuple[str, ...] = ("fast",)) -> "Story":
        """Come to MONITORING at 0.6 s by three GREEN."""
        self.at(0.0, events.SourceUp("cam"), events.SelfTestPassed())
        self.watch(0.6, brains=brains)
        return self

    def _step(self, event: Event, time: float) -> tuple[Action, ...]:
        out = self.guard.step(event, time)
        self.said.extend((time, action) for action in out)
        return out

    def halts(self) -> list[actions.Halt]:
        """Every halt when it was first said."""
        return [a for _, a in self.said if isinstance(a, actions.Halt) and a.repeat == 0]

    def halted(self) -> list[tuple[object, ...]]:
        """Cause and time of every halt."""
        return [(h.cause, h.decided_at) for h in self.halts()]

    def state(self) -> State:
        """What the guard is doing."""
        return self.guard.state

    def permits(self) -> list[tuple[float, actions.Permit]]:
        """Every permit with its time."""
        return [(t, a) for t, a in self.said if isinstance(a, actions.Permit)]


def only(kind: type[A], out: Iterable[Action]) -> A:
    """The one action of that kind."""
    found = [a for a in out if isinstance(a, kind)]
    assert len(found) == 1, found
    return found[0]
