"""When the SlowBrain is asked, and what its answer or its silence means (rule 7).

What is said here is carried out by the guard, in this order: a `Halt` is a draft, which the guard
gives its id and weighs against the halt in force.
"""

from typing import assert_never

from hdguard.core import actions, events
from hdguard.core.actions import Halt
from hdguard.core.halts import danger
from hdguard.core.policy import Policy
from hdguard.core.reviews import OpenReview
from hdguard.core.roster import Roster, Watched
from hdguard.core.types import FrameRef, HaltCause

Said = tuple[Halt | actions.RequestReview | actions.CancelReview, ...]


class ReviewRules:
    """At most one review is open per source; a newer trigger waits in one place or is dropped."""

    def __init__(self, policy: Policy, roster: Roster) -> None:
        self._policy = policy
        self._roster = roster
        self._count = 0

    def trigger(self, watched: Watched, ref: FrameRef, now: float) -> Said:
        """A frame gives cause for a review. Not to be called while halted."""
        if not self._policy.slow:
            return ()
        if watched.desk.open is not None:
            watched.desk.wait(ref)
            return ()
        return self._open(watched, ref, watched.desk.window.around(ref), now)

    def answered(
        self, watched: Watched, review: OpenReview, event: events.ReviewEvent, now: float
    ) -> Said:
        """The open review has ended."""
        match event:
            case events.ReviewFailed():
                return self.overdue(watched, review, now, ended=True)
            case events.SlowVerdict(danger=True):
                watched.desk.close()
                slow = self._policy.slow
                return (danger(HaltCause.SLOW_DANGER, slow, review.trigger, event.hazard),)
            case events.SlowVerdict():
                watched.desk.caution = False
                return self._close(watched, now)
            case _:
                assert_never(event)

    def overdue(
        self, watched: Watched, review: OpenReview, now: float, *, ended: bool = False
    ) -> Said:
        """Nobody answered the open review in time; `ended`: nobody will answer any more."""
        match self._policy.review_overdue:
            case "halt":
                return (danger(HaltCause.REVIEW_OVERDUE, self._policy.slow, review.trigger),)
            case "caution":
                watched.be_cautious()
                cancelled = actions.CancelReview(review.review_id)
                return (cancelled, *self._close(watched, now))
            case "ignore" if ended:
                return self._close(watched, now)
            case "ignore":
                watched.desk.overdue = True
                return ()
            case _:
                assert_never(self._policy.review_overdue)

    def _open(
        self, watched: Watched, trigger: FrameRef, refs: tuple[FrameRef, ...], now: float
    ) -> Said:
        due = now + self._policy.review_deadline
        self._count += 1
        review = watched.desk.open = OpenReview(self._count, trigger, refs, due)
        if self._policy.slow in self._roster.down:
            return self.overdue(watched, review, now, ended=True)
        source_id = watched.plan.source_id
        return (actions.RequestReview(review.review_id, source_id, trigger, refs),)

    def _close(self, watched: Watched, now: float) -> Said:
        watched.desk.close()
        if (waiting := watched.desk.take_waiting()) is not None:
            return self._open(watched, *waiting, now)
        return ()
