"""Looks on while a video runs and notes what its score is made of."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.types import FrameRef, HaltClass
from hdguard.replay.results import FaultHalt, Stages, Warned
from hdguard.runtime.observer import Judged, Reviewed


@dataclass
class _Fault:
    """A fault halt, in seconds on the loop's clock."""

    halt: Halt
    released_at: float | None = None


@dataclass
class Collector:
    """Notes of one video; times are on the loop's clock until they are asked for."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    danger: asyncio.Event = field(default_factory=asyncio.Event)
    reviewed: asyncio.Event = field(default_factory=asyncio.Event)
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    verdicts: Counter[str] = field(default_factory=Counter)
    first_failure: str = ""
    newest: FrameRef | None = None
    warning: Halt | None = None
    closed: bool = False
    """The video is over: what comes now counts for nothing."""
    _stamps: dict[tuple[str, FrameRef], Judged] = field(default_factory=dict)
    _delivered_at: float | None = None
    _confirmed_at: float | None = None
    _faults: list[_Fault] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Keep a frame's stamps: its verdict may become the warning."""
        if isinstance(stamps, Judged):
            self._stamps[stamps.brain, stamps.ref] = stamps

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note what happened and what was decided."""
        if self.closed:
            return
        self._note_event(now, event)
        for action in actions:
            self._note_action(now, action)
        if not self._open:
            self.reviewed.set()

    def _note_event(self, now: float, event: Event) -> None:
        match event:
            case events.FrameSeen():
                self.newest = event.ref
            case events.FastVerdict():
                self.verdicts[event.light.name.lower()] += 1
            case events.CannotSee():
                self.verdicts["blind"] += 1
            case events.BrainFailed():
                self.verdicts["failed"] += 1
                self.first_failure = self.first_failure or f"{event.brain}: {event.reason}"
            case events.SlowVerdict() | events.ReviewFailed():
                self._open.discard(event.review_id)
            case events.SourceEnded():
                self.ended.set()
            case events.HaltDelivered() if self._is_warning(event.halt_id):
                self._delivered_at = now if self._delivered_at is None else self._delivered_at
            case events.HaltConfirmed() if self._is_warning(event.halt_id):
                self._confirmed_at = now if self._confirmed_at is None else self._confirmed_at
                self.confirmed.set()
            case _:
                pass

    def _note_action(self, now: float, action: Action) -> None:
        match action:
            case Halt(repeat=0, halt_class=HaltClass.DANGER) if self.warning is None:
                self.warning = action
                self.danger.set()
            case Halt(repeat=0, halt_class=HaltClass.FAULT):
                self._faults.append(_Fault(action))
            case actions.Release():
                for fault in self._faults:
                    if fault.halt.halt_id == action.halt_id:
                        fault.released_at = now
            case actions.RequestReview():
                self._open.add(action.review_id)
                self.reviewed.clear()
            case actions.CancelReview():
                self._open.discard(action.review_id)
            case _:
                pass

    def _is_warning(self, halt_id: str) -> bool:
        return self.warning is not None and self.warning.halt_id == halt_id

    @property
    def unjudged(self) -> str:
        """Why nobody has judged a single frame; empty if somebody has."""
        if self.newest is None or any(n for kind, n in self.verdicts.items() if kind != "failed"):
            return ""
        return f"no brain gave a verdict: {self.first_failure or 'none came'}"

    @property
    def origin(self) -> float:
        """The loop's time of media time 0; 0 before the first frame."""
        return 0.0 if self.newest is None else self.newest.captured_at - self.newest.media_time

    def warned(self, stop_time: float) -> Warned | None:
        """The warning with its three times; the robot's word is used if it gave one."""
        halt = self.warning
        if halt is None or halt.ref is None:
            return None
        trigger = halt.ref.media_time
        issued = trigger + (halt.decided_at - halt.ref.captured_at)
        stopped = issued + stop_time
        if self._confirmed_at is not None:
            stopped = trigger + (self._confirmed_at - halt.ref.captured_at)
        return Warned(
            trigger=trigger,
            issued=issued,
            stopped=stopped,
            cause=str(halt.cause),
            brain=halt.brain,
            hazard=halt.hazard,
        )

    def stages(self) -> Stages | None:
        """The warning's latency by stage, from the stamps of the frame that caused it."""
        halt = self.warning
        if halt is None or halt.ref is None:
            return None
        judged = [s for (_, ref), s in self._stamps.items() if ref == halt.ref]
        mine = next((s for s in judged if s.brain == halt.brain), judged[0] if judged else None)
        return Stages.between(
            captured=halt.ref.captured_at,
            sampled=mine.sampled if mine else None,
            assessed=mine.assessed if mine else None,
            decided=halt.decided_at,
            delivered=self._delivered_at,
            confirmed=self._confirmed_at,
        )

    def fault_halts(self) -> tuple[FaultHalt, ...]:
        """Every fault halt in media time."""
        return tuple(
            FaultHalt(
                at=f.halt.decided_at - self.origin,
                cause=str(f.halt.cause),
                released_at=None if f.released_at is None else f.released_at - self.origin,
            )
            for f in self._faults
        )

    def watched(self) -> float:
        """Seconds of media time from the start to the danger halt or the newest frame.

        A halt that a review decides after the end adds nothing: there was no more to watch.
        """
        if self.newest is None:
            return 0.0
        if self.warning is not None:
            return min(self.newest.media_time, max(0.0, self.warning.decided_at - self.origin))
        return self.newest.media_time
