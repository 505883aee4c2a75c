"""What begins an incident: a new halt of this guard, or a review that found danger without one."""

from collections import OrderedDict

from hdguard.core import events
from hdguard.core.actions import Action, Halt, RequestReview
from hdguard.core.events import Event
from hdguard.core.types import HaltCause
from hdguard.observe.incidents.record import Decision

MOST_REVIEWS = 64
"""Reviews that are remembered until they are answered; a choice, far above what can be open."""


class Triggers:
    """Looks at every step for what begins an incident.

    Args:
        boot: of the guard; halts of earlier lives were recorded then.
        slow: the SlowBrain's name.
    """

    def __init__(self, boot: int, slow: str) -> None:
        self._boot = str(boot)
        self._slow = slow
        self._reviews: OrderedDict[int, RequestReview] = OrderedDict()

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> list[Decision]:
        """What begins in this step; at most one but for a guard that halts twice in a step."""
        found = []
        for action in actions:
            if isinstance(action, RequestReview):
                self._reviews[action.review_id] = action
                if len(self._reviews) > MOST_REVIEWS:
                    self._reviews.popitem(last=False)
            elif isinstance(action, Halt) and action.repeat == 0:
                found.append(action)
        if found:
            own = (h for h in found if h.halt_id.partition("-")[0] == self._boot)
            return [_of_halt(halt) for halt in own]
        if isinstance(event, events.SlowVerdict):
            asked = self._reviews.pop(event.review_id, None)
            if event.danger:
                return [self._of_review(now, event, asked)]
        return []

    def name(self, decision: Decision) -> str:
        """What its folder is called."""
        return decision.halt_id or f"review-{self._boot}-{decision.review_id}"

    def _of_review(
        self, now: float, event: events.SlowVerdict, asked: RequestReview | None
    ) -> Decision:
        return Decision(
            kind="review",
            review_id=event.review_id,
            halt_class="review",
            cause=HaltCause.SLOW_DANGER,
            source="" if asked is None else asked.source_id,
            brain=self._slow,
            hazard=event.hazard,
            trigger=None if asked is None else asked.trigger,
            decided=now,
        )


def _of_halt(halt: Halt) -> Decision:
    return Decision(
        kind="halt",
        halt_id=halt.halt_id,
        halt_class=halt.halt_class,
        cause=halt.cause,
        source=halt.source_id,
        brain=halt.brain,
        light=None if halt.light is None else halt.light.name,
        hazard=halt.hazard,
        latched=halt.latched,
        trigger=halt.ref,
        decided=halt.decided_at,
    )
