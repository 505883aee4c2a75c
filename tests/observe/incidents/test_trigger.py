"""What begins an incident, and under which name."""

from hdguard.core import actions, events
from hdguard.core.types import HaltCause, HaltClass, Hazard
from hdguard.observe.incidents.trigger import MOST_REVIEWS, Triggers
from tests.observe.incidents.support import DECISION, halt, red, ref

HAZARD = Hazard("C3", "L2", "the pan burns")


def test_a_new_halt_of_this_guard_begins_one() -> None:
    triggers = Triggers(7, "thinker")
    (decision,) = triggers.stepped(20.05, red(), (halt(),))
    assert decision == DECISION
    assert triggers.name(decision) == "7-1"


def test_a_repeat_and_a_halt_of_an_earlier_life_do_not() -> None:
    triggers = Triggers(7, "thinker")
    deadline = events.DeadlineReached()
    assert triggers.stepped(20.1, deadline, (halt(repeat=1),)) == []
    assert triggers.stepped(20.1, deadline, (halt(halt_id="6-4"),)) == []
    assert triggers.stepped(20.1, deadline, (halt(halt_id="77-1"),)) == []


def test_a_fault_has_no_light_and_no_frame() -> None:
    fault = halt(halt_class=HaltClass.FAULT, cause=HaltCause.STALE_FRAME, ref=None, light=None)
    (decision,) = Triggers(7, "").stepped(20.05, events.DeadlineReached(), (fault,))
    assert (decision.halt_class, decision.light, decision.trigger) == ("fault", None, None)


def asked(review_id: int) -> actions.RequestReview:
    return actions.RequestReview(review_id, "hall", ref(19.0), (ref(19.0),))


def test_a_review_that_found_danger_without_a_new_halt_begins_one() -> None:
    triggers = Triggers(7, "thinker")
    triggers.stepped(19.1, red(19.0), (asked(3),))
    (decision,) = triggers.stepped(22.0, events.SlowVerdict(3, True, HAZARD), ())
    assert (decision.kind, decision.review_id, decision.halt_id) == ("review", 3, "")
    assert (decision.source, decision.brain, decision.trigger) == ("hall", "thinker", ref(19.0))
    assert (decision.hazard, decision.decided) == (HAZARD, 22.0)
    assert triggers.name(decision) == "review-7-3"


def test_a_review_whose_danger_made_the_halt_is_that_halts_incident() -> None:
    triggers = Triggers(7, "thinker")
    triggers.stepped(19.1, red(19.0), (asked(3),))
    made = halt(cause=HaltCause.SLOW_DANGER)
    found = triggers.stepped(20.05, events.SlowVerdict(3, True, HAZARD), (made,))
    assert [decision.kind for decision in found] == ["halt"]


def test_a_safe_review_begins_none_and_one_that_nobody_remembers_still_counts() -> None:
    triggers = Triggers(7, "thinker")
    assert triggers.stepped(20.0, events.SlowVerdict(1, False), ()) == []
    for n in range(MOST_REVIEWS + 1):
        triggers.stepped(float(n), events.DeadlineReached(), (asked(n),))
    assert len(triggers._reviews) == MOST_REVIEWS
    (decision,) = triggers.stepped(99.0, events.SlowVerdict(0, True), ())
    assert (decision.source, decision.trigger) == ("", None)
