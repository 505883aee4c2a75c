"""Notes of a run, taken from bare events and actions."""

from dataclasses import replace

import pytest

from hdguard.core import actions, events
from hdguard.core.types import FrameRef, HaltCause, HaltClass, Light
from hdguard.replay.collector import Collector
from hdguard.replay.results import FaultHalt
from hdguard.runtime.observer import Judged

ORIGIN = 100.0


def ref(t: float) -> FrameRef:
    return FrameRef("cam", round(t * 10), ORIGIN + t, t)


def seen(collector: Collector, *times: float) -> Collector:
    for t in times:
        collector.stepped(ORIGIN + t, events.FrameSeen(ref(t)), ())
    return collector


def halt(
    halt_id: str = "0-1", at: float = 2.5, cause: HaltCause = HaltCause.FAST_RED
) -> actions.Halt:
    """A danger halt on the frame of 2.0 s, decided then."""
    return actions.Halt(
        halt_id, HaltClass.DANGER, cause, "cam", "fast", ref(2.0), decided_at=ORIGIN + at
    )


def fault(halt_id: str = "0-1", at: float = 1.0) -> actions.Halt:
    return actions.Halt(halt_id, HaltClass.FAULT, HaltCause.BLIND, "cam", decided_at=ORIGIN + at)


def verdict(t: float, light: Light = Light.RED) -> events.FastVerdict:
    return events.FastVerdict(ref(t), "fast", light)


def test_only_the_first_danger_halt_is_the_warning_and_repeats_are_none() -> None:
    collector = seen(Collector(), 0.0, 2.0)
    first = halt()
    assert not collector.danger.is_set()
    collector.stepped(102.5, verdict(2.0), (first,))
    collector.stepped(102.6, events.DeadlineReached(), (replace(first, repeat=1),))
    collector.stepped(103.0, verdict(2.8), (halt("0-2", 3.0),))
    assert collector.warning is first
    assert collector.danger.is_set()
    warned = collector.warned(0.7)
    assert warned is not None
    assert (warned.trigger, warned.issued, warned.stopped) == (2.0, 2.5, 3.2)


def test_fault_and_operator_halts_are_no_warning() -> None:
    collector = seen(Collector(), 0.0)
    operator = actions.Halt("0-2", HaltClass.OPERATOR, HaltCause.OPERATOR)
    collector.stepped(101.0, events.DeadlineReached(), (fault(),))
    collector.stepped(101.0, events.HaltRequested("ada"), (operator,))
    assert collector.warning is None
    assert collector.warned(0.7) is None
    assert not collector.danger.is_set()


def test_a_fault_halt_is_released_by_the_release_of_its_own_id() -> None:
    collector = seen(Collector(), 0.0)
    collector.stepped(101.0, events.DeadlineReached(), (fault("0-1", 1.0),))
    collector.stepped(101.1, events.DeadlineReached(), (replace(fault("0-1", 1.0), repeat=1),))
    collector.stepped(104.0, events.DeadlineReached(), (actions.Release("0-1"),))
    collector.stepped(105.0, events.DeadlineReached(), (fault("0-2", 5.0),))
    collector.stepped(106.0, events.DeadlineReached(), (actions.Release("0-9"),))
    assert collector.fault_halts() == (
        FaultHalt(at=1.0, cause="blind", released_at=4.0),
        FaultHalt(at=5.0, cause="blind", released_at=None),
    )


@pytest.mark.parametrize("origin", [0.0, 100.0])
def test_the_first_receipt_and_confirmation_of_the_warning_count(origin: float) -> None:
    collector = Collector()
    first = FrameRef("cam", 0, origin, 0.0)
    collector.stepped(origin, events.FrameSeen(first), ())
    warning = replace(halt(), ref=first, decided_at=origin)
    collector.stepped(origin, events.FastVerdict(first, "fast", Light.RED), (warning,))
    collector.stepped(origin, events.HaltDelivered("0-9"), ())
    for later in (0.0, 0.1, 0.2):
        collector.stepped(origin + later, events.HaltDelivered("0-1"), ())
    for later in (0.5, 0.6):
        collector.stepped(origin + later, events.HaltConfirmed("0-1"), ())
    stages, warned = collector.stages(), collector.warned(9.0)
    assert stages is not None
    assert stages.decided_to_delivered == 0.0
    assert stages.delivered_to_confirmed == pytest.approx(0.5)
    assert warned is not None
    assert warned.stopped == 0.5


def test_the_confirmation_of_another_halt_is_not_the_warnings() -> None:
    collector = seen(Collector(), 0.0, 2.0)
    collector.stepped(101.0, events.DeadlineReached(), (fault("0-1", 1.0),))
    collector.stepped(102.5, verdict(2.0), (halt("0-2"),))
    collector.stepped(102.6, events.HaltConfirmed("0-1"), ())
    assert not collector.confirmed.is_set()
    collector.stepped(103.5, events.HaltConfirmed("0-2"), ())
    assert collector.confirmed.is_set()


def test_reviewed_is_set_only_while_no_review_is_open() -> None:
    collector = Collector()
    ask = [actions.RequestReview(n, "cam", ref(2.0), (ref(2.0),)) for n in range(4)]
    collector.stepped(102.0, verdict(2.0, Light.YELLOW), (ask[1],))
    assert not collector.reviewed.is_set()
    # The answer closes it, and in the same step the trigger that waited opens the next one.
    collector.stepped(102.5, events.SlowVerdict(1, danger=False), (ask[2],))
    assert not collector.reviewed.is_set()
    collector.stepped(103.0, events.ReviewFailed(2, "killed"), ())
    assert collector.reviewed.is_set()
    collector.stepped(104.0, verdict(4.0, Light.YELLOW), (ask[3],))
    collector.stepped(104.1, verdict(4.1), (halt(), actions.CancelReview(3)))
    assert collector.reviewed.is_set()


def test_every_kind_of_answer_is_counted() -> None:
    collector = Collector()
    for light in (Light.GREEN, Light.GREEN, Light.YELLOW, Light.RED):
        collector.stepped(100.0, verdict(0.0, light), ())
    collector.stepped(100.0, events.CannotSee(ref(0.0), "fast", "dark"), ())
    collector.stepped(100.0, events.BrainFailed("cam", "fast", "late"), ())
    expected = {"green": 2, "yellow": 1, "red": 1, "blind": 1, "failed": 1}
    assert dict(collector.verdicts) == expected


def test_watched_ends_with_the_halt_or_with_the_video_whichever_is_first() -> None:
    collector = Collector()
    assert collector.watched() == 0.0
    seen(collector, 0.0, 2.0, 3.0)
    assert collector.watched() == 3.0
    early, late = seen(Collector(), 0.0, 2.0, 3.0), seen(Collector(), 0.0, 2.0)
    early.stepped(102.5, verdict(2.0), (halt(at=2.5),))
    late.stepped(103.5, events.SlowVerdict(1, danger=True), (halt(at=3.5),))
    assert early.watched() == 2.5
    assert late.watched() == 2.0


def test_the_stages_are_those_of_the_frame_and_brain_that_warned() -> None:
    collector = seen(Collector(), 0.0, 2.0)
    for brain, given, assessed in (("other", 102.1, 102.2), ("fast", 102.3, 102.5)):
        collector.judged(Judged(brain, ref(2.0), 102.05, given, assessed))
    collector.judged(Judged("fast", ref(1.8), 101.8, 101.8, 101.9))
    collector.stepped(102.5, verdict(2.0), (halt(),))
    stages = collector.stages()
    assert stages is not None
    assert stages.captured_to_sampled == pytest.approx(0.05)
    assert stages.sampled_to_assessed == pytest.approx(0.45)
    assert stages.assessed_to_decided == pytest.approx(0.0)
    assert stages.warning == pytest.approx(0.5)


def test_ended_is_set_by_the_end_of_the_source_alone() -> None:
    collector = seen(Collector(), 0.0)
    collector.stepped(101.0, events.SourceLost("cam", "gone"), ())
    assert not collector.ended.is_set()
    collector.stepped(101.0, events.SourceEnded("cam"), ())
    assert collector.ended.is_set()
