"""Keeps what every brain said and how long it took, so that a run can be repeated without it."""

from typing import Any, Protocol

from hdguard.brains.base import CANCELLED
from hdguard.core import events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.policy import kill_after
from hdguard.core.types import FrameRef
from hdguard.runtime.observer import Judged, Reviewed


class Recorder(Protocol):
    """Where answers are noted, with their latency in seconds."""

    def fast(
        self,
        brain: str,
        ref: FrameRef,
        answer: events.FastVerdict | events.CannotSee | events.BrainFailed | str,
        latency: float,
    ) -> None:
        """Note a FastBrain's answer, or why there was none."""
        ...

    def slow(
        self, brain: str, trigger: FrameRef, answer: events.SlowVerdict | str, latency: float
    ) -> None:
        """Note a SlowBrain's answer, or why there was none."""
        ...

    def data(self) -> dict[str, Any]:
        """Everything noted, in the form of a trace file."""
        ...


class TraceKeeper:
    """Looks on, and puts each answer together with its stamps.

    A late call is a failure before it has a latency. That comes with its stamps, even if nobody
    wants the answer any more; without them it was killed, and must be killed in a repetition too.
    A review counts as broken off until its answer follows: of one that nobody heard, nothing but
    how long it was thought about is known.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._judged: Judged | None = None
        self._reviewed: Reviewed | None = None
        self._late: dict[str, FrameRef] = {}

    def judged(self, stamps: Judged | Reviewed) -> None:
        """The event with the answer follows at once, unless it is late and not RED."""
        if isinstance(stamps, Reviewed):
            self._reviewed = stamps
            self._note_review(CANCELLED)
            return
        self._judged = stamps
        if self._late.pop(stamps.brain, None) == stamps.ref:
            self.recorder.fast(stamps.brain, stamps.ref, "late", stamps.assessed - stamps.given)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note the answer that this event brings, if it brings one."""
        match event:
            case events.FastVerdict() | events.CannotSee():
                self._note(event.brain, event.ref, event, now)
            case events.BrainFailed() if event.ref is not None:
                self._note(event.brain, event.ref, event, now)
            case events.SlowVerdict() if self._answers(event.review_id):
                self._note_review(event)
            case events.ReviewFailed() if self._answers(event.review_id):
                self._note_review(event.reason)
            case _:
                pass

    def _note(
        self,
        brain: str,
        ref: FrameRef,
        answer: events.FastVerdict | events.CannotSee | events.BrainFailed,
        now: float,
    ) -> None:
        stamps = self._judged
        if stamps is not None and (stamps.brain, stamps.ref) == (brain, ref):
            latency = stamps.assessed - stamps.given
        else:
            self._late[brain] = ref
            latency = kill_after(now - ref.captured_at) + 1.0
        self.recorder.fast(brain, ref, answer, latency)

    def _answers(self, review_id: int) -> bool:
        return self._reviewed is not None and self._reviewed.review_id == review_id

    def _note_review(self, answer: events.SlowVerdict | str) -> None:
        stamps = self._reviewed
        assert stamps is not None  # the callers have looked
        latency = stamps.assessed - stamps.given
        self.recorder.slow(stamps.brain, stamps.trigger, answer, latency)
