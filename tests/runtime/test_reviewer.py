"""The SlowBrain's desk: which pictures are kept, and in which order questions are asked."""

import asyncio

from hdguard.brains.base import BrainError, Shot
from hdguard.core import actions, events
from hdguard.core.events import SlowVerdict
from hdguard.core.guard import Guard
from hdguard.core.policy import BrainPlan
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest.base import Frame
from hdguard.runtime.reviewer import Reviewer
from hdguard.runtime.virtual_time import run_virtual
from hdguard.workers.base import SlowSeat
from hdguard.workers.inline import InlineSlowSeat
from tests.core.story import watching
from tests.fakes import (
    GREEN,
    YELLOW,
    FakeImage,
    ListSource,
    Says,
    ScriptedFastSeat,
    ScriptedSlowSeat,
    Witness,
    every,
)
from tests.runtime.rig import play


def ref(t: float) -> FrameRef:
    return FrameRef("cam", round(t * 10), t, t)


def frame(t: float, *, broken: bool = False) -> Frame:
    return Frame(ref(t), FakeImage(broken=broken))


class Desk:
    """A reviewer with what it dispatched."""

    def __init__(self, slow: SlowSeat | None) -> None:
        self.guard = Guard(watching(), 0.0)
        self.said: list[tuple[float, events.ReviewEvent]] = []
        self.witness = Witness()
        self.reviewer = Reviewer(self.guard, slow, self._note, (self.witness,))

    def _note(self, event: events.ReviewEvent) -> None:
        self.said.append((round(asyncio.get_running_loop().time(), 6), event))

    def see(self, t: float, *, broken: bool = False) -> None:
        """A frame is kept and given to a brain, as the pipeline does it."""
        seen = frame(t, broken=broken)
        self.reviewer.keep(seen)
        self.reviewer.in_hand("fast", seen)
        self.guard.step(events.FrameSeen(ref(t), kept=True), t)

    def ask(self, review_id: int, *times: float) -> None:
        refs = tuple(ref(t) for t in times)
        self.reviewer.take(actions.RequestReview(review_id, "cam", refs[-1], refs))

    def work(self, until: float, *later: tuple[float, actions.CancelReview]) -> None:
        """Work in virtual time until then, taking some actions on the way."""

        async def story() -> None:
            loop = asyncio.get_running_loop()
            for at, action in later:
                loop.call_at(at, self.reviewer.take, action)
            async with asyncio.TaskGroup() as group:
                working = group.create_task(self.reviewer.work(group))
                await asyncio.sleep(until)
                working.cancel()

        run_virtual(story())


def test_a_thousand_frames_leave_only_the_pictures_that_a_review_may_show() -> None:
    desk = Desk(ScriptedSlowSeat())
    most = 0
    for t in every(0.2, 200.0):
        desk.see(t)
        most = max(most, len(desk.reviewer._pictures))
    held = desk.guard.held("cam")
    assert held <= set(desk.reviewer._pictures)
    assert most <= len(held) + 1 == 9


def test_without_a_slow_brain_no_picture_is_kept() -> None:
    desk = Desk(None)
    for t in every(0.2, 2.0):
        desk.see(t)
    assert desk.reviewer._pictures == {}


def test_questions_are_answered_one_after_the_other_in_the_order_asked() -> None:
    slow = ScriptedSlowSeat({0.0: False, 0.4: True}, latency=0.5)
    desk = Desk(slow)
    for t in (0.0, 0.2, 0.4):
        desk.see(t)
    desk.ask(1, 0.0, 0.2)
    desk.ask(2, 0.2, 0.4)
    desk.work(2.0)
    assert [(a.at, a.review_id, a.trigger, a.shown) for a in slow.asked] == [
        (0.0, 1, 0.2, (0.0, 0.2)),
        (0.5, 2, 0.4, (0.2, 0.4)),
    ]
    answers = [(t, e.review_id, e.danger) for t, e in verdicts(desk)]
    assert answers == [(0.5, 1, False), (1.0, 2, True)]
    assert slow.most_busy == 1


def verdicts(desk: Desk) -> list[tuple[float, events.SlowVerdict]]:
    return [(t, e) for t, e in desk.said if isinstance(e, events.SlowVerdict)]


def test_a_question_that_nobody_waits_for_is_not_asked() -> None:
    slow = ScriptedSlowSeat(latency=0.5)
    desk = Desk(slow)
    desk.see(0.0)
    for review_id in (1, 2, 3):
        desk.ask(review_id, 0.0)
    desk.work(3.0, (0.2, actions.CancelReview(2)))
    assert [a.review_id for a in slow.asked] == [1, 3]


def test_a_cancelled_question_in_hand_keeps_the_brain_busy_until_it_has_answered() -> None:
    slow = ScriptedSlowSeat(latency=0.5)
    desk = Desk(slow)
    desk.see(0.0)
    desk.ask(1, 0.0)
    desk.ask(2, 0.0)
    desk.work(3.0, (0.2, actions.CancelReview(1)))
    assert [(a.at, a.review_id) for a in slow.asked] == [(0.0, 1), (0.5, 2)]
    assert slow.killed == []


class Interruptible:
    """A SlowBrain that takes 0.5 s for a review and bears to be interrupted."""

    name = "slow"
    spec = ImageSpec(4, 3)
    interruptible = True

    def __init__(self) -> None:
        self.asked: list[int] = []

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        self.asked.append(review_id)
        return SlowVerdict(review_id, danger=False)

    def cost(self, trigger: FrameRef) -> float:
        return 0.5


def test_a_brain_that_bears_it_is_called_back_and_asked_the_next_question_at_once() -> None:
    brain = Interruptible()
    desk = Desk(InlineSlowSeat(lambda: brain, "fixed"))
    desk.see(0.0)
    desk.ask(1, 0.0)
    desk.ask(2, 0.0)
    desk.work(3.0, (0.2, actions.CancelReview(1)))
    assert brain.asked == [1, 2]
    assert desk.said == [
        (0.2, events.ReviewFailed(1, "cancelled")),
        (0.7, SlowVerdict(2, danger=False)),
    ]


def test_a_desk_that_rests_calls_back_a_brain_that_bears_it() -> None:
    desk = Desk(InlineSlowSeat(Interruptible, "fixed"))
    desk.see(0.0)
    desk.ask(1, 0.0)

    async def story() -> float:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(desk.reviewer.work(group))
            await asyncio.sleep(0.2)
            await desk.reviewer.rest()
            rested = asyncio.get_running_loop().time()
            desk.ask(2, 0.0)  # a trigger that waited for the first review to end
            await desk.reviewer.rest()
            await asyncio.sleep(5.0)
            working.cancel()
        return rested

    assert run_virtual(story()) == 0.2
    # Nothing: to the guard a review without an answer is a danger.
    assert desk.said == []
    assert len(desk.witness.stamps) == 1


def test_a_question_that_is_cancelled_while_its_pictures_are_made_is_not_asked() -> None:
    slow = ScriptedSlowSeat()
    desk = Desk(slow)
    for t in (0.0, 0.2):
        desk.see(t)
    desk.ask(1, 0.0, 0.2)

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(desk.reviewer.work(group))
            for _ in range(3):  # the first picture is made
                await asyncio.sleep(0)
            desk.reviewer.take(actions.CancelReview(1))
            await asyncio.sleep(1.0)
            working.cancel()

    run_virtual(story())
    assert slow.asked == []
    assert slow.cancelled == [1]
    assert desk.said == [(0.0, events.ReviewFailed(1, "cancelled"))]


def test_a_cancel_that_comes_after_the_answer_reaches_nobody() -> None:
    slow = ScriptedSlowSeat(latency=0.3)
    desk = Desk(slow)
    desk.see(0.0)
    desk.ask(1, 0.0)
    desk.work(2.0, (0.5, actions.CancelReview(1)))
    assert slow.cancelled == []
    assert len(desk.said) == 1


def test_a_desk_that_rests_finishes_the_question_in_hand_and_asks_no_other() -> None:
    slow = ScriptedSlowSeat(latency=0.5)
    desk = Desk(slow)
    desk.see(0.0)
    desk.ask(1, 0.0)
    desk.ask(2, 0.0)

    async def story() -> float:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(desk.reviewer.work(group))
            await asyncio.sleep(0.2)
            await desk.reviewer.rest()
            rested = asyncio.get_running_loop().time()
            await asyncio.sleep(5.0)
            working.cancel()
        return rested

    assert run_virtual(story()) == 0.5
    assert [a.review_id for a in slow.asked] == [1]
    assert [e.review_id for _, e in verdicts(desk)] == [1]


def test_a_review_without_an_answer_is_killed_and_reported_and_the_next_one_asked() -> None:
    slow = ScriptedSlowSeat({0.0: Says(False, hangs=True), 0.2: False}, latency=0.1)
    desk = Desk(slow)
    desk.see(0.0)
    desk.see(0.2)
    desk.ask(1, 0.0)
    desk.ask(2, 0.2)
    desk.work(5.0)
    assert slow.killed == [(3.0, "no answer in 3 s")]  # three review deadlines of 1 s
    assert desk.said[0] == (3.0, events.ReviewFailed(1, "killed"))
    assert [(t, e.review_id) for t, e in verdicts(desk)] == [(3.1, 2)]


def test_a_review_that_the_brain_gives_up_is_a_failed_one() -> None:
    slow = ScriptedSlowSeat({0.0: BrainError("timeout at the server")}, latency=0.4)
    desk = Desk(slow)
    desk.see(0.0)
    desk.ask(7, 0.0)
    desk.work(2.0)
    assert desk.said == [(0.4, events.ReviewFailed(7, "timeout at the server"))]


def test_a_picture_that_cannot_be_converted_fails_the_review_not_the_run() -> None:
    slow = ScriptedSlowSeat()
    desk = Desk(slow)
    desk.see(0.0, broken=True)
    desk.ask(7, 0.0)
    desk.work(2.0)
    assert desk.said == [(0.0, events.ReviewFailed(7, "the picture is broken"))]
    assert slow.asked == []


def test_the_stamps_of_a_review_come_before_its_answer() -> None:
    desk = Desk(ScriptedSlowSeat(latency=0.4))
    desk.see(0.0)
    desk.ask(7, 0.0)
    desk.work(2.0)
    (stamps,) = desk.witness.stamps
    assert (stamps.review_id, stamps.trigger) == (7, ref(0.0))  # type: ignore[attr-defined]
    assert (stamps.given, stamps.assessed) == (0.0, 0.4)  # type: ignore[attr-defined]


# In the pipeline: a brain at 10 FPS judges frames that are not on the memory's grid of 5 FPS.

QUICK = BrainPlan("fast", adaptive=False, fps=10.0)


def test_the_trigger_is_shown_even_if_it_is_not_on_the_memorys_grid() -> None:
    slow = ScriptedSlowSeat()
    fast = ScriptedFastSeat({0.0: GREEN, 0.5: YELLOW, 0.6: GREEN})
    play(1.0, ListSource(every(0.1, 2.0)), fast=[fast], brains=[QUICK], slow=slow)
    assert [(a.trigger, a.shown) for a in slow.asked] == [(0.5, (0.0, 0.2, 0.4, 0.5))]


def test_a_trigger_that_had_to_wait_is_still_shown_when_its_review_opens() -> None:
    slow = ScriptedSlowSeat(latency=0.7)
    fast = ScriptedFastSeat({0.0: GREEN, 0.5: YELLOW, 0.6: GREEN, 0.7: YELLOW, 0.8: GREEN})
    play(1.5, ListSource(every(0.1, 2.0)), fast=[fast], brains=[QUICK], slow=slow)
    first, second = slow.asked
    assert (first.trigger, first.at) == (0.5, 0.51)
    assert (second.trigger, second.at) == (0.7, 1.21)
    assert second.shown[-1] == 0.7


def test_a_trigger_of_a_slow_brain_is_shown_although_newer_frames_came_meanwhile() -> None:
    slow = ScriptedSlowSeat()
    fast = ScriptedFastSeat({0.0: GREEN, 0.3: YELLOW, 0.4: GREEN}, latency=0.35)
    play(2.0, ListSource(every(0.1, 2.0)), fast=[fast], brains=[QUICK], slow=slow)
    assert [(a.at, a.trigger, a.shown) for a in slow.asked] == [(0.7, 0.3, (0.0, 0.2, 0.3))]


def test_with_the_released_window_the_last_four_judged_frames_are_shown() -> None:
    slow = ScriptedSlowSeat()
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: GREEN})
    source = ListSource(every(0.1, 2.0))
    play(2.0, source, fast=[fast], slow=slow, window="released")
    assert [a.shown for a in slow.asked] == [(0.4, 0.6, 0.8, 1.0)]
    assert all(f.image.asked == 0 for f in source.handed if f.ref.seq % 2)  # type: ignore[attr-defined]
