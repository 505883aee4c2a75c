"""A trace file with a defect is refused, by the place of the defect."""

import json
from pathlib import Path
from typing import Any

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.trace_format import parse_trace, read_trace


def fast(*entries: object, **brain: object) -> dict[str, Any]:
    part = {"videos": {"a.mp4": list(entries)}, **brain}
    return {"format": "hdguard-trace/1", "fast": {"b": part}}


def slow(*entries: object) -> dict[str, Any]:
    return {"format": "hdguard-trace/1", "slow": {"b": {"videos": {"a.mp4": list(entries)}}}}


def row(**fields: object) -> dict[str, object]:
    return {"t": 1.0, "light": "red", **fields}


FIRST = {"t": 0, "light": "green"}
AT_1 = "x.json: fast brain 'b', video 'a.mp4', entry 1: "
DEFECTS: list[tuple[object, str]] = [
    ([], "x.json: Expected `object`, got `array`"),
    ({"fast": {}}, "x.json: Object missing required field `format`"),
    ({"format": "hdguard-trace/2"}, "x.json: Invalid enum value 'hdguard-trace/2'"),
    ({"format": "hdguard-trace/1", "fats": {}}, "unknown field `fats`"),
    (fast(FIRST, cost=1), "x.json: fast brain 'b': Object contains unknown field `cost`"),
    (fast(FIRST, latency=-1), "x.json: fast brain 'b': latency must be 0 or more seconds"),
    (fast(FIRST, latency=float("inf")), "x.json: fast brain 'b': latency must be"),
    (fast(FIRST, latency="1"), "x.json: fast brain 'b': Expected `float`, got `str` - at `$.lat"),
    (fast(FIRST, 7), AT_1 + "Expected `object`, got `int`"),
    (fast(FIRST, {"light": "red"}), AT_1 + "Object missing required field `t`"),
    (fast(FIRST, row(t="1")), AT_1 + "Expected `float`, got `str` - at `$.t`"),
    (fast(FIRST, row(t=float("nan"))), AT_1 + "t must be finite, not nan"),
    (fast(FIRST, row(t=0)), AT_1 + "t must ascend, but 0.0 follows 0.0"),
    (fast(FIRST, row(t=-1)), AT_1 + "t must ascend, but -1.0 follows 0.0"),
    (fast(FIRST, row(light="blue")), AT_1 + "light must be green, yellow or red, not 'blue'"),
    (fast(FIRST, row(light="")), AT_1 + "light must be green, yellow or red, not ''"),
    (fast(FIRST, row(light=2)), AT_1 + "Expected `str | null`, got `int` - at `$.light`"),
    (fast(FIRST, row(blind="dark")), AT_1 + "exactly one of light, blind, error must be given"),
    (fast(FIRST, {"t": 1}), AT_1 + "exactly one of light, blind, error must be given, not none"),
    (fast(FIRST, row(latency=-0.1)), AT_1 + "latency must be 0 or more seconds, not -0.1"),
    (fast(FIRST, row(latency=float("nan"))), AT_1 + "latency must be 0 or more seconds, not nan"),
    (fast(FIRST, row(verdict="safe")), AT_1 + "Object contains unknown field `verdict`"),
    (fast(FIRST, row(hazard={"kind": "C4"})), AT_1 + "Object contains unknown field `kind`"),
    (fast(FIRST, row(scores=[-1, -2])), AT_1 + "Expected `array` of length 3, got 2 - at `$.score"),
    (fast(FIRST, row(scores=[-1, -2, float("nan")])), AT_1 + "scores must be finite, not (-1.0, "),
    (fast(FIRST, {"t": 1, "blind": "dark", "scores": [-1, -2, -3]}), "scores do not go with blind"),
    (slow({"t": 0, "verdict": "safe", "scores": [-1, -2, -3]}), "unknown field `scores`"),
    (
        fast(FIRST, {"t": 1, "blind": "dark", "hazard": {"category": "C4"}}),
        AT_1 + "hazard does not go with blind",
    ),
    (
        slow({"t": 0, "verdict": "maybe"}),
        "x.json: slow brain 'b', video 'a.mp4', entry 0: Invalid enum value 'maybe' - at `$.verd",
    ),
    (slow({"t": 0, "light": "red"}), "entry 0: Object contains unknown field `light`"),
    (slow({"t": 0}), "entry 0: exactly one of verdict, error must be given, not none"),
]


@pytest.mark.parametrize(("data", "says"), DEFECTS, ids=lambda value: str(value)[-60:])
def test_a_defect_is_refused_by_its_place(data: object, says: str) -> None:
    with pytest.raises(BrainError) as caught:
        parse_trace(data, "x.json")
    assert says in str(caught.value)


def test_a_file_that_cannot_be_read_or_is_no_json_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(BrainError, match=r"x\.json: cannot be read: No such file"):
        read_trace(str(path))
    for text in (b"", b"{", b"\xff\xfe\x00", b'{"format": "hdguard-trace/1",}'):
        path.write_bytes(text)
        with pytest.raises(BrainError, match=r"x\.json: is not a trace in JSON"):
            read_trace(str(path))


def test_a_video_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    entry = json.dumps([FIRST])
    path.write_text(
        '{"format": "hdguard-trace/1", "fast": {"b": {"videos": '
        f'{{"a.mp4": {entry}, "a.mp4": {entry}}}}}}}}}'
    )
    with pytest.raises(BrainError, match=r"the key 'a\.mp4' stands twice"):
        read_trace(str(path))


def test_an_empty_trace_is_a_trace() -> None:
    trace = parse_trace({"format": "hdguard-trace/1"}, "x.json")
    assert (trace.fast, trace.slow) == ({}, {})


def test_a_slow_brain_tells_whether_it_can_be_interrupted_and_which_review_was() -> None:
    data = slow({"t": 0, "verdict": "safe"}, {"t": 1, "error": "cancelled", "latency": 0.4})
    data["slow"]["b"]["interruptible"] = True
    brain = parse_trace(data, "x.json").slow["b"]
    assert brain.interruptible
    rows = [brain.row("a.mp4", t) for t in (0.5, 1.5)]
    assert [row is not None and row.broken_off for row in rows] == [False, True]
    assert [brain.latency_of(row) for row in (*rows, None)] == [0.0, 0.4, 0.0]
    assert not parse_trace(slow({"t": 0, "verdict": "safe"}), "x.json").slow["b"].interruptible


def test_the_newest_entry_holds_until_the_next_one() -> None:
    trace = parse_trace(fast(FIRST, row(t=3.6), {"t": 5, "error": "unparsed"}), "x.json")
    found = {t: trace.fast["b"].row("a.mp4", t) for t in (-0.1, 0, 3.5, 3.599999, 3.6, 4.9, 99)}
    times = {t: None if entry is None else entry.t for t, entry in found.items()}
    # A microsecond early is the entry's own frame, whose time was rounded.
    assert times == {-0.1: None, 0: 0, 3.5: 0, 3.599999: 3.6, 3.6: 3.6, 4.9: 3.6, 99: 5}


@pytest.mark.parametrize(
    ("videos", "source_id", "found"),
    [
        (["a.mp4", "*"], "a.mp4", "a.mp4"),
        (["a.mp4", "*"], "a", "a.mp4"),
        (["a", "*"], "a.mp4", "a"),
        (["a", "a.mp4"], "a.mp4", "a.mp4"),
        (["a", "a.mp4"], "a", "a"),
        (["a.MP4"], "a", "a.MP4"),
        (["a.mkv", "*"], "a.mp4", "*"),
        (["a.mkv"], "a.mp4", None),
        (["cam", "*"], "cam.left", "*"),  # no file's ending: another camera
        (["b", "*"], "a", "*"),
        (["b"], "a", None),
        (["*"], "a", "*"),
    ],
)
def test_a_video_is_found_with_or_without_its_files_ending(
    videos: list[str], source_id: str, found: str | None
) -> None:
    entries = {video: [{"t": 0, "error": video}] for video in videos}
    data = {"format": "hdguard-trace/1", "fast": {"b": {"videos": entries}}}
    entry = parse_trace(data, "x.json").fast["b"].row(source_id, 1.0)
    assert (None if entry is None else entry.error) == found


def test_a_source_that_could_be_two_videos_is_neither() -> None:
    entries = {video: [FIRST] for video in ("a.mp4", "a.mkv", "*")}
    data = {"format": "hdguard-trace/1", "fast": {"b": {"videos": entries}}}
    with pytest.raises(BrainError, match=r"source 'a' could be any of .*a\.mp4.*a\.mkv"):
        parse_trace(data, "x.json").fast["b"].row("a", 1.0)
