"""A person reads why the robot stands, how long each stage took, and what became of it."""

from dataclasses import replace

import pytest

from hdguard.core.types import FrameRef, HaltCause, HaltClass, Hazard
from hdguard.runtime.halt_story import HaltStory, Stamps
from hdguard.runtime.halt_words import because, block, ending, milliseconds, stages

FRAME = FrameRef("kitchen", 92, 100.0, 18.4)
RED = HaltStory(
    "7-3",
    HaltClass.DANGER,
    HaltCause.FAST_RED,
    7,
    "kitchen",
    "reflex",
    FRAME,
    hazard=Hazard("C2", "L2", "contact in 0.4 s."),
    stamps=Stamps(
        100.0,
        100.001,
        100.0015,
        100.012,
        decided=100.0125,
        delivered=100.021,
        acknowledged=100.029,
        confirmed=100.729,
        released=112.3125,
    ),
    at="2026-01-02T12:30:44.123456+00:00",
    called_by="reflex",
    released_by="ada",
)
REVIEWED = replace(
    RED,
    cause=HaltCause.SLOW_DANGER,
    brain="reflex-slow",
    called="yellow",
    review_id=3,
    hazard=Hazard(),
    stamps=replace(
        RED.stamps,
        asked=100.0125,
        answered=100.1775,
        decided=100.178,
        delivered=100.186,
        acknowledged=100.19,
        confirmed=100.89,
    ),
)
OVERDUE = replace(
    REVIEWED,
    cause=HaltCause.REVIEW_OVERDUE,
    stamps=Stamps(captured=100.0, asked=100.0, decided=101.0),
)
AGED = replace(RED, ref=None, hazard=Hazard(), since=100.0, stamps=Stamps(decided=101.03))


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (RED, "reflex called frame 92 of kitchen RED: contact in 0.4 s"),
        (
            replace(RED, hazard=Hazard("C2")),
            "reflex called frame 92 of kitchen RED, no reason given",
        ),
        (
            REVIEWED,
            "reflex called frame 92 of kitchen YELLOW, review 3 by reflex-slow said danger after "
            "165 ms",
        ),
        (
            replace(REVIEWED, called="blind", hazard=Hazard(text="a pan on fire")),
            "reflex could not see on frame 92 of kitchen, review 3 by reflex-slow said danger "
            "after 165 ms: a pan on fire",
        ),
        (
            OVERDUE,
            "reflex called frame 92 of kitchen YELLOW, review 3 by reflex-slow was not answered in "
            "1000 ms",
        ),
        (
            replace(OVERDUE, why="killed"),
            "reflex called frame 92 of kitchen YELLOW, review 3 by reflex-slow failed after "
            "1000 ms: killed",
        ),
        (
            replace(OVERDUE, called="failed", review_id=None, stamps=Stamps(100.0, decided=100.1)),
            "reflex gave no answer to frame 92 of kitchen, and reflex-slow was not there to review "
            "it",
        ),
        (
            replace(REVIEWED, called="", called_by="", review_id=None),  # by an incident's record
            "a FastBrain had frame 92 of kitchen reviewed, the review by reflex-slow said danger "
            "after 165 ms",
        ),
        (replace(AGED, cause=HaltCause.STALE_FRAME), "no clean frame of kitchen for 1.0 s"),
        (
            replace(AGED, cause=HaltCause.FROZEN_FRAME),
            "the picture of kitchen did not change for 1.0 s, and the robot moved",
        ),
        (
            replace(AGED, cause=HaltCause.STALE_VERDICT),
            "no verdict of reflex on kitchen for 1.0 s",
        ),
        (
            replace(AGED, cause=HaltCause.BLIND, since=None),
            "reflex could see nothing on kitchen",
        ),
        (
            replace(AGED, cause=HaltCause.BRAIN_FAILED, since=None, hazard=Hazard(text="late")),
            "reflex failed on kitchen again and again: late",
        ),
        (
            replace(AGED, cause=HaltCause.OPERATOR, since=None, hazard=Hazard(text="asked by ada")),
            "an operator halted the robot: asked by ada",
        ),
        (
            replace(AGED, cause=HaltCause.STALE_FRAME, boot=9, since=None),
            "in force since an earlier life (stale_frame), about kitchen",
        ),
        (
            replace(AGED, cause=HaltCause.OPERATOR, boot=9, source_id="", hazard=Hazard(text="x")),
            "in force since an earlier life (operator: x)",
        ),
    ],
)
def test_the_cause_is_one_sentence(story: HaltStory, words: str) -> None:
    assert because(story) == words


@pytest.mark.parametrize("cause", HaltCause)
@pytest.mark.parametrize("ref", [None, FRAME])
def test_every_cause_has_words_even_where_little_is_known(
    cause: HaltCause, ref: FrameRef | None
) -> None:
    words = because(HaltStory("7-1", HaltClass.FAULT, cause, 7, ref=ref))
    assert words
    assert not {"{", "}", "None", "  "} & {
        words[n : n + size] for n in range(99) for size in (1, 2, 4)
    }


def test_the_stages_are_told_from_the_capture_and_from_the_step_before() -> None:
    told = [(s.name, round(s.after, 6), s.took and round(s.took, 6)) for s in stages(RED)]
    assert told == [
        ("captured", 0.0, None),
        ("sampled", 0.001, 0.001),
        ("given", 0.0015, 0.0005),
        ("assessed", 0.012, 0.0105),
        ("decided", 0.0125, 0.0005),
        ("delivered", 0.021, 0.0085),
        ("acknowledged", 0.029, 0.008),
        ("confirmed", 0.729, 0.7),
    ]


def test_without_a_frame_time_counts_from_what_is_missing_else_from_the_decision() -> None:
    stamps = Stamps(decided=101.0, delivered=101.25)
    aged = replace(AGED, stamps=stamps)
    assert [(s.after, s.took) for s in stages(aged)] == [(1.0, 1.0), (1.25, 0.25)]
    plain = replace(AGED, since=None, stamps=stamps)
    assert [(s.after, s.took) for s in stages(plain)] == [(0.0, None), (0.25, 0.25)]


def test_a_robot_that_is_quicker_than_the_brokers_receipt_takes_no_negative_time() -> None:
    quick = replace(RED, stamps=replace(RED.stamps, delivered=100.031))
    names = [s.name for s in stages(quick)]
    assert names[-3:] == ["acknowledged", "delivered", "confirmed"]
    assert all(s.took is None or s.took >= 0 for s in stages(quick))


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["released after 12.3 s: reset by ada"]),
        ({"released_by": ""}, ["released after 12.3 s: it ended by itself"]),
        (
            {"stamps": replace(RED.stamps, released=None), "superseded_by": "7-4"},
            ["superseded by halt 7-4"],
        ),
        (
            {"stamps": Stamps(decided=1.0, delivered=1.1, escalated=1.5)},
            [
                "escalated after 500 ms: the robot had not acknowledged it",
                "the robot never acknowledged it, and never said that it stands still",
                "still in force when last heard of",
            ],
        ),
        (
            {"stamps": Stamps(decided=1.0, delivered=1.1, acknowledged=1.2)},
            [
                "the robot has it, but never said that it stands still",
                "still in force when last heard of",
            ],
        ),
        (
            {"stamps": Stamps(decided=1.0, acknowledged=1.2)},  # whose receipt was lost
            [
                "the robot has it, but never said that it stands still",
                "still in force when last heard of",
            ],
        ),
        (
            {"stamps": Stamps(decided=1.0), "boot": 9},
            [
                "the broker never had it from this start of the guard",
                "still in force when last heard of",
            ],
        ),
        (
            {"stamps": Stamps(decided=1.0, confirmed=1.2)},
            ["still in force when last heard of"],
        ),
        (
            {"stamps": Stamps(decided=1.0), "cause": HaltCause.STOPPING},
            ["the broker never had it", "the next start of hdguard ends it"],
        ),
    ],
)
def test_its_end_is_told_and_what_the_robot_did_not_do(
    changes: dict[str, object], lines: list[str]
) -> None:
    assert list(ending(replace(RED, **changes))) == lines  # type: ignore[arg-type]


def test_a_block_has_heading_cause_stages_and_end() -> None:
    said = list(block(RED))
    assert said[0] == "halt 7-3: danger, fast_red, decided 2026-01-02 12:30:44 UTC"
    assert said[1] == "  reflex called frame 92 of kitchen RED: contact in 0.4 s"
    assert said[2].split() == ["since", "the", "capture", "since", "the", "step", "before"]
    assert said[6].split()[:5] == ["assessed", "0.0120", "s", "0.0105", "s"]
    assert said[-1] == "  released after 12.3 s: reset by ada"


def test_a_halt_that_a_later_life_took_over_is_not_said_to_be_decided_then() -> None:
    told = replace(RED, boot=9, ref=None, stamps=Stamps(decided=1.0, confirmed=2.0))
    said = list(block(told))
    heading = (
        "halt 7-3: danger, fast_red, taken over 2026-01-02 12:30:44 UTC by start 9 of the guard"
    )
    assert said[0] == heading
    assert said[2].split()[:3] == ["since", "the", "takeover"]
    assert said[3].endswith("the guard took it over")
    assert next(block(replace(told, at=""))).endswith(
        "fast_red, taken over by start 9 of the guard"
    )


def test_durations_are_short() -> None:
    assert [milliseconds(s) for s in (0.0, 0.00123, 0.0099, 0.0123, 1.2)] == [
        "0.0 ms",
        "1.2 ms",
        "9.9 ms",
        "12 ms",
        "1200 ms",
    ]
