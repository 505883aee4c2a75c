"""Keeps what every brain said and how long it took, so that a run can be repeated without it."""

from typing import Any, Protocol

from hdguard.core import events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.core.types import FrameRef
from hdguard.runtime.observer import Judged, Reviewed


class Recorder(Protocol):
    """Where answers are noted, with their latency in seconds."""

    def fast(
        self,
        brain: str,
        ref: FrameRef,
        answer: events.FastVerdict | events.CannotSee | str,
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
    """Looks on, and puts each answer together with its stamps."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._judged: Judged | None = None
        self._reviewed: Reviewed | None = None

    def judged(self, stamps: Judged | Reviewed) -> None:
        """The event with the answer follows at once."""
        if isinstance(stamps, Judged):
            self._judged = stamps
        else:
            self._reviewed = stamps

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Note the answer that this event brings, if it brings one."""
        match event:
            case events.FastVerdict() | events.CannotSee():
                self.recorder.fast(event.brain, event.ref, event, self._latency(event.ref))
            case events.BrainFailed() if event.ref is not None:
                latency = self._latency(event.ref)
                self.recorder.fast(event.brain, event.ref, event.reason, latency)
            case events.SlowVerdict() if self._answers(event.review_id):
                self._note_review(event)
            case events.ReviewFailed() if self._answers(event.review_id):
                self._note_review(event.reason)
            case _:
                pass

    def _latency(self, ref: FrameRef) -> float:
        """Seconds from given to assessed; 0 for a call that was reported late without an answer."""
        stamps = self._judged
        return stamps.assessed - stamps.given if stamps is not None and stamps.ref == ref else 0.0

    def _answers(self, review_id: int) -> bool:
        return self._reviewed is not None and self._reviewed.review_id == review_id

    def _note_review(self, answer: events.SlowVerdict | str) -> None:
        stamps = self._reviewed
        assert stamps is not None  # `_answers` has looked
        latency = stamps.assessed - stamps.given
        self.recorder.slow(stamps.brain, stamps.trigger, answer, latency)
