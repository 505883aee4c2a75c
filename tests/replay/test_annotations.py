"""Truth files: the released one, copies that agree or not, and everything people get wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from hdguard.replay.annotations import Truth, load_truth, video_key
from hdguard.replay.problems import DatasetError
from hdguard.replay.scoring import KeyFrames

TIMES = {"intent_onset": 3.3, "intervention_deadline": 4.2, "pnr": 4.4, "impact_outcome": 5.1}


def entry(name: str = "230_C4_L1_D1.mp4", **fields: Any) -> dict[str, Any]:
    return {"video_name": name, "is_valid": True, "keyframes": dict(TIMES), **fields}


def times(**changes: Any) -> dict[str, Any]:
    return {"keyframes": {k: v for k, v in {**TIMES, **changes}.items() if v != "absent"}}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def load(tmp_path: Path, *entries: dict[str, Any], strict: bool = False) -> Truth:
    return load_truth(write(tmp_path / "t.json", {"annotations": list(entries)}), strict=strict)


def test_the_released_shape(homesafe: Path) -> None:
    truth = load_truth(homesafe / "anno_truth.json")
    assert truth.problems == ()
    assert [a.video for a in truth.annotations] == [
        "152_C4_L4_D3.mp4", "230_C4_L1_D1.mp4", "421_C4_L1_D3.mp4",
    ]  # fmt: skip
    first = truth.annotations[0]
    assert first.keyframes == KeyFrames(3.5, 4.5, 4.7, 8.0)
    assert (first.category, first.severity, first.difficulty, first.room) == ("C4", "L4", "D3", "")
    assert not first.safe


@pytest.mark.parametrize(
    "content",
    [
        {"annotations": [entry()]},
        [entry()],
        {"230_C4_L1_D1.mp4": {"keyframes": TIMES}},
        {"230_C4_L1_D1": {"video_name": "230_C4_L1_D1.mp4", "keyframes": TIMES}},
        {"version": 2, "annotations": [entry()]},
    ],
)
def test_every_shape_gives_the_same_annotation(tmp_path: Path, content: Any) -> None:
    truth = load_truth(write(tmp_path / "t.json", content))
    assert [(a.video, a.keyframes) for a in truth.annotations] == [
        ("230_C4_L1_D1.mp4", KeyFrames(3.3, 4.2, 4.4, 5.1))
    ]


def test_unknown_fields_are_kept(tmp_path: Path) -> None:
    (a,) = load(
        tmp_path, entry(annotator="x", room="study", **times(action_end=6.0, blink=1.0))
    ).annotations
    assert a.room == "study"
    assert a.extra == {"annotator": "x", "keyframes": {"blink": 1.0}}
    assert a.keyframes is not None
    assert a.keyframes.action_end == 6.0


@pytest.mark.parametrize("deadline", ["absent", None])
def test_a_deadline_that_is_not_annotated_is_derived_and_marked(
    tmp_path: Path, deadline: str | None
) -> None:
    (a,) = load(tmp_path, entry(**times(intervention_deadline=deadline))).annotations
    assert a.keyframes == KeyFrames(3.3, 4.2, 4.4, 5.1, deadline_derived=True)


def test_is_valid_false_is_out_and_absent_is_true(tmp_path: Path) -> None:
    wrong_but_invalid = entry("b.mp4", is_valid=False, keyframes="none yet")
    absent = entry("a.mp4")
    del absent["is_valid"]
    truth = load(tmp_path, absent, wrong_but_invalid)
    assert [a.video for a in truth.annotations] == ["a.mp4"]
    assert truth.invalid == ("b.mp4",)
    assert truth.problems == ()


def test_null_key_frames_declare_safe_material(tmp_path: Path) -> None:
    (a,) = load(tmp_path, entry(keyframes=None)).annotations
    assert a.safe


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        (times(pnr="absent"), "keyframes.pnr", "missing"),
        (times(intent_onset=None), "keyframes.intent_onset", "missing"),
        (times(pnr="4.4"), "keyframes.pnr", "'4.4' is not a number of seconds"),
        (times(pnr=True), "keyframes.pnr", "True is not a number of seconds"),
        (times(pnr=float("nan")), "keyframes.pnr", "nan is not a number of seconds"),
        (times(impact_outcome=float("inf")), "keyframes.impact_outcome", "inf is not a number"),
        (times(impact_outcome=10**400), "keyframes.impact_outcome", "is not a number of seconds"),
        (times(intent_onset=-1), "keyframes.intent_onset", "-1 s is negative"),
        (times(intervention_deadline=3.2), "keyframes.intervention_deadline",
         "out of order: 3.2 s is before intent_onset, 3.3 s"),
        (times(pnr=4.1), "keyframes.pnr", "before intervention_deadline, 4.2 s"),
        (times(impact_outcome=4.3), "keyframes.impact_outcome", "before pnr"),
        (times(action_end=5.0), "keyframes.action_end", "before impact_outcome"),
        (times(pnr=3.0, intervention_deadline="absent"), "keyframes.pnr", "before intent_onset"),
        ({"keyframes": [1, 2]}, "keyframes", "is not a mapping of times"),
        ({"is_valid": "yes"}, "is_valid", "'yes' is neither true nor false"),
    ],
)  # fmt: skip
def test_a_bad_entry_is_named_and_the_rest_goes_on(
    tmp_path: Path, fields: dict[str, Any], field: str, message: str
) -> None:
    truth = load(tmp_path, entry("bad.mp4", **fields), entry("good.mp4"))
    (problem,) = truth.problems
    assert (problem.file, problem.entry) == (str(tmp_path / "t.json"), "bad.mp4")
    assert problem.field == field
    assert message in problem.message
    assert problem.left_out
    assert [a.video for a in truth.annotations] == ["good.mp4"]


def test_strict_refuses_a_bad_entry(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"t\.json: bad\.mp4: keyframes\.pnr: missing"):
        load(tmp_path, entry("bad.mp4", **times(pnr="absent")), strict=True)


def test_every_wrong_time_of_an_entry_is_named(tmp_path: Path) -> None:
    truth = load(tmp_path, entry(**times(pnr=None, impact_outcome="x")))
    assert [p.field for p in truth.problems] == ["keyframes.pnr", "keyframes.impact_outcome"]


def test_an_entry_without_key_frames_is_told_how_to_be_safe(tmp_path: Path) -> None:
    truth = load(tmp_path, {"video_name": "a.mp4"})
    assert "a.mp4: keyframes: missing; write null" in str(truth.problems[0])


@pytest.mark.parametrize(
    ("content", "place", "field"),
    [
        ([{"keyframes": TIMES}], "annotations[0]", "video_name"),
        ([entry(name="")], "annotations[0]", "video_name"),
        ([{"video_name": 230, "keyframes": TIMES}], "annotations[0]", "video_name"),
        (["230.mp4"], "annotations[0]", "entry"),
        ({"a.mp4": None}, "a.mp4", "entry"),
        ({"a.mp4": {"video_name": "b.mp4", "keyframes": TIMES}}, "a.mp4", "video_name"),
    ],
)
def test_an_entry_without_a_name_is_named_by_its_place(
    tmp_path: Path, content: Any, place: str, field: str
) -> None:
    truth = load_truth(write(tmp_path / "t.json", content))
    assert [(p.entry, p.field) for p in truth.problems] == [(place, field)]


@pytest.mark.parametrize("content", [7, {"annotations": 7}, "text", None])
def test_a_file_without_entries_is_refused(tmp_path: Path, content: Any) -> None:
    with pytest.raises(DatasetError, match=r"t\.json: annotations: neither a list"):
        load_truth(write(tmp_path / "t.json", content))


def test_a_label_against_the_name_is_a_problem_but_the_entry_stays(tmp_path: Path) -> None:
    truth = load(tmp_path, entry("230_C4_L1_D1.mp4", severity="L2"))
    (problem,) = truth.problems
    assert (problem.entry, problem.field) == ("230_C4_L1_D1.mp4", "severity")
    assert not problem.left_out
    assert truth.annotations[0].severity == "L2"


def test_three_copies_that_agree_are_one_truth(tmp_path: Path) -> None:
    copies = [tmp_path / d / "anno_truth.json" for d in (".", "detector_dual_brain", "test")]
    for path in copies:
        write(path, {"annotations": [entry("a.mp4"), entry("b.mp4")]})
    truth = load_truth(*copies)
    assert [a.video for a in truth.annotations] == ["a.mp4", "b.mp4"]
    assert truth.annotations[0].truth_file == str(copies[0])
    assert truth.problems == ()


def test_copies_fill_in_what_the_others_leave_out(tmp_path: Path) -> None:
    a = write(tmp_path / "a.json", [entry("x.mp4", **times(intervention_deadline="absent"))])
    b = write(tmp_path / "b.json", {"x": {"keyframes": TIMES, "room": "study"}, "y": entry("y")})
    truth = load_truth(a, b)
    first, second = truth.annotations
    assert (first.video, first.room) == ("x.mp4", "study")
    assert first.keyframes == KeyFrames(3.3, 4.2, 4.4, 5.1)
    assert second.video == "y"


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (entry("x.mp4", **times(pnr=4.5)), "keyframes.pnr"),
        (entry("x.mp4", keyframes=None), "keyframes"),
        (entry("x.mp4", is_valid=False), "is_valid"),
        (entry("x.mp4", room="study"), "room"),
    ],
)
def test_copies_that_disagree_are_refused_and_named(
    tmp_path: Path, other: dict[str, Any], field: str
) -> None:
    mine = entry("x.mp4", room="balcony")
    a, b = write(tmp_path / "a.json", [mine]), write(tmp_path / "b.json", [other])
    with pytest.raises(DatasetError, match="--truth FILE") as caught:
        load_truth(a, b)
    (problem,) = caught.value.problems
    assert (problem.file, problem.entry, problem.field) == (str(a), "x.mp4", field)
    assert str(b) in problem.message


def test_valid_by_silence_in_one_copy_and_invalid_in_another_is_a_disagreement(
    tmp_path: Path,
) -> None:
    silent = write(tmp_path / "a.json", {"x.mp4": {"keyframes": TIMES}})
    invalid = write(tmp_path / "b.json", [entry("x.mp4", is_valid=False)])
    for order in ((silent, invalid), (invalid, silent)):
        with pytest.raises(DatasetError, match="is_valid"):
            load_truth(*order)


def test_listed_twice_alike_is_once_and_listed_twice_otherwise_is_a_problem(tmp_path: Path) -> None:
    truth = load(
        tmp_path, entry("a.mp4"), entry("a.mp4"), entry("b.mp4"), entry("b", **times(pnr=5.0))
    )
    assert [a.video for a in truth.annotations] == ["a.mp4"]
    (problem,) = truth.problems
    assert (problem.entry, problem.field) == ("b.mp4", "keyframes.pnr")
    assert "listed twice, with 4.4 and with 5.0" in problem.message


def test_names_with_and_without_ending_are_one_video() -> None:
    assert video_key("a/b.MP4") == video_key("a\\b") == "a/b"
    assert video_key("1.2_clip") == "1.2_clip"
