"""Keeps the pictures that a review may show, and asks the SlowBrain one question at a time.

A brain that can be interrupted breaks a cancelled review off, and the next question is asked at
once. Any other is busy until it has answered, and its answer is dropped: it can only be killed.
Both paces keep to that, so that they agree.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from hdguard.brains.base import CANCELLED, BrainError, Shot
from hdguard.core import actions, events
from hdguard.core.guard import Guard
from hdguard.core.policy import kill_after
from hdguard.core.types import FrameRef
from hdguard.ingest.base import Frame, SourceError
from hdguard.runtime.observer import Observer, Reviewed
from hdguard.workers.base import SlowSeat

Question = tuple[actions.RequestReview, tuple[Frame, ...]]


class Reviewer:
    """The SlowBrain's desk."""

    def __init__(
        self,
        guard: Guard,
        seat: SlowSeat | None,
        dispatch: Callable[[events.ReviewEvent], None],
        observers: tuple[Observer, ...],
    ) -> None:
        self._guard = guard
        self._seat = seat
        self._dispatch = dispatch
        self._observers = observers
        self._pictures: dict[FrameRef, Frame] = {}
        self._in_hand: dict[str, Frame] = {}
        self._questions: deque[Question] = deque()
        self._asking: int | None = None
        self._resting = False
        self._asked = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def keep(self, frame: Frame) -> None:
        """Keep this picture while the guard may name it."""
        if self._seat is None:
            return
        source_id = frame.ref.source_id
        held = self._guard.held(source_id)
        self._pictures = {
            ref: kept
            for ref, kept in self._pictures.items()
            if ref.source_id != source_id or ref in held
        }
        self._pictures[frame.ref] = frame

    def in_hand(self, brain: str, frame: Frame) -> None:
        """A FastBrain is judging this frame; its verdict may ask for a review of it.

        The frame before it may be a trigger that waits, off the grid on which pictures are kept.
        """
        if self._seat is None:
            return
        before = self._in_hand.get(brain)
        if before is not None and before.ref in self._guard.held(before.ref.source_id):
            self._pictures[before.ref] = before
        self._in_hand[brain] = frame

    def take(self, action: actions.RequestReview | actions.CancelReview) -> None:
        """Note a question with its pictures, or that nobody waits for its answer any more."""
        if isinstance(action, actions.CancelReview):
            self._questions = deque(
                q for q in self._questions if q[0].review_id != action.review_id
            )
            if action.review_id == self._asking:
                self._break_off()
            return
        if self._resting:
            return
        known = {**self._pictures, **{f.ref: f for f in self._in_hand.values()}}
        frames = tuple(known[ref] for ref in action.refs if ref in known)
        self._questions.append((action, frames))
        self._asked.set()

    async def work(self, group: asyncio.TaskGroup) -> None:
        """Ask one question after the other."""
        while True:
            while not self._questions:
                self._asked.clear()
                await self._asked.wait()
            assert self._seat is not None  # the guard asks only where there is a SlowBrain
            self._idle.clear()
            await self._ask(self._seat, group, self._questions.popleft())
            self._idle.set()

    async def rest(self) -> None:
        """Ask nothing more; returns when the question in hand is broken off, answered or killed.

        Nobody waits for its answer then, so that the guard does not hear that there is none: it
        would take it for a danger.
        """
        self._resting = True
        self._questions.clear()
        self._break_off()
        await self._idle.wait()

    def _break_off(self) -> None:
        review_id, self._asking = self._asking, None
        if self._seat is not None and review_id is not None:
            self._seat.cancel(review_id)

    async def _ask(self, seat: SlowSeat, group: asyncio.TaskGroup, question: Question) -> None:
        request, frames = question
        loop = asyncio.get_running_loop()
        given = loop.time()
        limit = kill_after(self._guard.policy.review_deadline)
        self._asking = request.review_id
        answering = self._answer(seat, request, frames)
        call = group.create_task(answering, name=f"review {request.review_id}")
        await asyncio.wait({call}, timeout=limit)
        if call.done():
            answer = call.result()
        else:
            call.cancel()
            await seat.kill(f"no answer in {limit:g} s")
            answer = events.ReviewFailed(request.review_id, "killed")
        stamps = Reviewed(seat.name, request.review_id, request.trigger, given, loop.time())
        for observer in self._observers:
            observer.judged(stamps)
        self._asking = None
        if not (self._resting and isinstance(answer, events.ReviewFailed)):
            self._dispatch(answer)

    async def _answer(
        self, seat: SlowSeat, request: actions.RequestReview, frames: tuple[Frame, ...]
    ) -> events.ReviewEvent:
        try:
            shots = []
            for frame in frames:
                shots.append(Shot(frame.ref, frame.image.rgb(seat.spec)))
                await asyncio.sleep(0)  # a picture takes about 1 ms: let frames and verdicts pass
            if self._asking != request.review_id:
                return events.ReviewFailed(request.review_id, CANCELLED)
            return await seat.review(request.review_id, request.trigger, tuple(shots))
        except (BrainError, SourceError) as error:
            return events.ReviewFailed(request.review_id, str(error))
