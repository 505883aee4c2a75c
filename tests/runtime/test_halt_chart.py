"""The picture of a halt: to scale, readable by people and screen readers, and safe to open."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from hdguard.core.types import HaltCause, HaltClass, Hazard
from hdguard.runtime.halt_chart import HEIGHT, LEFT, LINE, RIGHT, WIDTH, chart
from hdguard.runtime.halt_story import HaltStory, Stamps
from tests.runtime.test_halt_words import AGED, RED, REVIEWED

SVG = "{http://www.w3.org/2000/svg}"
STALE = replace(
    AGED,
    halt_class=HaltClass.FAULT,
    cause=HaltCause.STALE_FRAME,
    stamps=Stamps(decided=101.0, delivered=101.01, acknowledged=101.02, confirmed=101.3),
)
NEVER = replace(
    RED,
    released_by="",
    stamps=replace(
        RED.stamps, acknowledged=None, confirmed=None, released=None, escalated=100.5125
    ),
)
UNKNOWN = HaltStory("7-9", HaltClass.FAULT, HaltCause.BRAIN_LATCHED, 8)
ALL = [RED, REVIEWED, STALE, NEVER, UNKNOWN]


def drawn(story: HaltStory) -> ET.Element:
    return ET.fromstring(chart(story))


def words(svg: ET.Element) -> list[str]:
    return [each.text or "" for each in svg.iter(f"{SVG}text")]


def bar(svg: ET.Element, y: int) -> list[tuple[float, float]]:
    """Begin and width of each part of the bar at that height, in pixels."""
    rects = [r for r in svg.iter(f"{SVG}rect") if r.get("y") == str(y)]
    return [(float(r.get("x", "")), float(r.get("width", ""))) for r in rects]


@pytest.mark.parametrize("story", ALL)
def test_it_is_one_small_self_contained_picture_and_always_the_same(story: HaltStory) -> None:
    text = chart(story)
    assert text == chart(story)
    svg = ET.fromstring(text)
    assert (svg.get("width"), svg.get("role")) == (str(WIDTH), "img")
    assert int(svg.get("height", "")) in {HEIGHT, HEIGHT + LINE}
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"<script|<image|@import|href|\bon\w+=", text)
    assert "prefers-color-scheme:dark" in text
    assert len(text) < 8000


@pytest.mark.parametrize("story", ALL)
def test_nothing_is_drawn_outside(story: HaltStory) -> None:
    for rect in drawn(story).iter(f"{SVG}rect"):
        if rect.get("height") == "24":
            x, width = float(rect.get("x", "")), float(rect.get("width", ""))
            assert x >= LEFT - 0.1
            assert x + width <= RIGHT + 0.6


def test_both_bars_are_to_scale() -> None:
    svg = drawn(RED)
    whole = RIGHT - LEFT
    guards = [0.001, 0.0005, 0.0105, 0.0005, 0.0085]
    widths = [width for _, width in bar(svg, 74)]
    assert widths == pytest.approx([whole * each / 0.021 for each in guards], abs=0.11)
    below = [width for _, width in bar(svg, 126)]
    assert below[-1] == pytest.approx(whole * 0.7 / 0.729, abs=0.11)
    assert min(below) >= 0.5  # a stage too short for its scale is still there
    assert {"21 ms", "729 ms"} < set(words(svg))


def test_every_stage_is_named_with_its_time_for_those_who_see_and_those_who_do_not() -> None:
    svg = drawn(REVIEWED)
    parts = ["judge 11 ms", "ask 0.5 ms", "review 165 ms", "decide 0.5 ms", "stop 700 ms"]
    described = svg.findtext(f"{SVG}desc") or ""
    for part in parts:
        assert part in words(svg)
        assert part in described
    assert svg.findtext(f"{SVG}title") == "Halt 7-3: danger, slow_danger"
    assert "review 3 by reflex-slow said danger after 165 ms" in described
    assert "reset by ada" in described


def test_silence_is_a_part_of_its_own() -> None:
    svg = drawn(STALE)
    assert "no frame 1000 ms" in words(svg)
    assert bar(svg, 74)[0] == pytest.approx((LEFT, (RIGHT - LEFT) * 1.0 / 1.01), abs=0.11)


def test_a_robot_that_never_confirmed_leaves_the_bar_open_and_the_escalation_marked() -> None:
    svg = drawn(NEVER)
    assert "not confirmed" in words(svg)
    assert "escalated 500 ms" in words(svg)
    (mark,) = svg.iter(f"{SVG}line")
    begin, width = bar(svg, 126)[-1]
    assert begin + width == pytest.approx(RIGHT, abs=0.2)
    assert begin < float(mark.get("x1", "")) < RIGHT
    assert "never acknowledged" in (svg.findtext(f"{SVG}desc") or "")
    assert "not confirmed" not in words(drawn(RED))


def test_a_halt_that_the_broker_never_had_says_so() -> None:
    assert "the broker never had it" in words(drawn(UNKNOWN))


def test_what_a_model_said_can_break_neither_picture_nor_page() -> None:
    evil = '</text><script>alert(1)</script> & "quoted" \x00\x07\x1b \ud800 ' + "long " * 60
    svg = drawn(replace(RED, hazard=Hazard(text=evil)))
    assert not list(svg.iter(f"{SVG}script"))
    said = [each for each in words(svg) if each.startswith(("reflex called", "long"))]
    assert all(len(line) < 99 for line in said)
    assert any(line.endswith("…") for line in said)
    chart(replace(RED, hazard=Hazard(text=evil))).encode()


def test_a_robot_that_answered_had_it_from_the_broker() -> None:
    asked = replace(UNKNOWN, boot=7, cause=HaltCause.OPERATOR, stamps=Stamps(decided=1.0))
    assert "the broker never had it" in words(drawn(asked))
    answered = replace(asked, stamps=Stamps(decided=1.0, confirmed=1.2))
    assert "the broker never had it" not in words(drawn(answered))
