"""Long scripts at random, of a prompt and of a stalling shell."""

import itertools
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from hdguard.core import actions, events
from hdguard.core.guard import Guard
from hdguard.core.policy import PAPER, BrainPlan, Policy
from hdguard.core.types import HaltClass, Speed, State
from tests.core.invariants import Witness, broken
from tests.core.story import Story, frame, watching
from tests.core.test_guard_exhaustive import KNOWN, POLICY, Happens

LETTERS: dict[str, Happens] = {
    **KNOWN,
    "kept frame, new scene": lambda now, _: events.FrameSeen(frame(now), True, True),
    "remark": lambda now, _: events.Remarked(frame(now), "fast", sights=("child",)),
}
SCRIPTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.4, 0.9, 1.3]), st.sampled_from(list(LETTERS))
    ),
    max_size=60,
)


@settings(max_examples=120, deadline=None)
@given(script=SCRIPTS)
def test_every_rule_holds_in_long_scripts(script: list[tuple[float, str]]) -> None:
    guard, witness, now = Guard(POLICY, 0.0, boot=7), Witness(POLICY), 0.0
    guard.step(events.SourceUp("cam"), 0.0)
    guard.step(events.SelfTestPassed(), 0.0)
    for gap, name in script:
        now += gap
        event = LETTERS[name](now, guard)
        assert not broken(witness, pickle.dumps(guard), guard, event, now)


@settings(max_examples=80, deadline=None)
@given(script=SCRIPTS)
def test_a_prompt_shell_sends_five_permits_a_second_whatever_happens(
    script: list[tuple[float, str]],
) -> None:
    story = Story(POLICY).monitoring(brains=("fast", "other"))
    for gap, name in script:
        now = story.now + gap
        story.until(now)
        story.at(now, LETTERS[name](now, story.guard))
    times = [t for t, _ in story.permits()]
    assert all(b - a <= 0.2 + 1e-9 for a, b in itertools.pairwise(times))


@settings(max_examples=80, deadline=None)
@given(script=SCRIPTS, caution=st.booleans())
def test_the_robot_never_moves_on_what_is_old_or_unknown(
    script: list[tuple[float, str]], caution: bool
) -> None:
    policy: Policy = watching(
        brains=(BrainPlan("fast"), BrainPlan("other")),
        review_overdue="caution" if caution else "halt",
    )
    story = Story(policy).monitoring(brains=("fast", "other"))
    for gap, name in script:
        now = story.now + gap
        story.until(now)
        story.at(now, LETTERS[name](now, story.guard))
        if story.guard.halt is not None:
            assert story.permits()[-1][1].speed is Speed.NONE
    for _, permit in story.permits():
        if permit.speed is not Speed.NONE:
            assert permit.frame_age is not None
            assert permit.frame_age < 1.0
            assert permit.verdict_age is not None
            assert permit.verdict_age < 2.5
            assert permit.state not in {State.STARTING, State.HALTED}


@settings(max_examples=80, deadline=None)
@given(script=SCRIPTS)
def test_paper_has_no_fault_halt_but_stopping(script: list[tuple[float, str]]) -> None:
    story = Story(watching(PAPER, brains=(BrainPlan("fast"), BrainPlan("other"))))
    for gap, name in script:
        now = story.now + gap
        story.until(now)
        story.at(now, LETTERS[name](now, story.guard))
    faults = [h.cause for h in story.halts() if h.halt_class is HaltClass.FAULT]
    assert set(faults) <= {"stopping"}
    reviews = [a.review_id for _, a in story.said if isinstance(a, actions.RequestReview)]
    assert reviews == sorted(set(reviews))
