"""Trace brains say what their file says; a recorder writes what brains said."""

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.trace import (
    CALLED_BACK,
    TraceFastBrain,
    TraceFastSettings,
    TraceRecorder,
    TraceSlowBrain,
    TraceSlowSettings,
    write_trace,
)
from hdguard.core.events import BrainFailed, CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, ImageSpec, Light, Scores

HAZARD = Hazard("C4", "L1", "a cup at the table's edge")
TRACE = {
    "format": "hdguard-trace/1",
    "fast": {
        "*": {"videos": {"*": [{"t": 0, "light": "Yellow"}]}},
        "trace": {
            "latency": 0.05,
            "videos": {
                "a.mp4": [
                    {"t": 0.5, "light": "green"},
                    {
                        "t": 3.6,
                        "light": "RED",
                        "latency": 0.4,
                        "hazard": {"category": "C4", "severity": "L1", "text": HAZARD.text},
                    },
                    {"t": 5, "blind": "dark"},
                    {"t": 6, "error": "unparsed", "latency": 0},
                ]
            },
        },
    },
    "slow": {
        "trace-slow": {
            "latency": 3.1,
            "videos": {
                "a.mp4": [
                    {"t": 0, "verdict": "danger", "latency": 2, "hazard": {"severity": "L4"}},
                    {"t": 4, "verdict": "safe"},
                    {"t": 5, "error": "timeout"},
                ]
            },
        }
    },
}


SLOW_PART = TRACE["slow"]["trace-slow"]  # type: ignore[index]


def ref(t: float, source_id: str = "a.mp4") -> FrameRef:
    return FrameRef(source_id, round(t * 30), 50.0 + t, t)


def shot(at: FrameRef) -> Shot:
    return Shot(at, np.zeros((4, 4, 3), np.uint8))


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(TRACE))
    return str(file)


def test_a_fast_brain_says_what_the_file_says(path: str) -> None:
    brain = TraceFastBrain(TraceFastSettings(path))
    answers = [brain.assess(shot(ref(t))) for t in (0.5, 3.5, 3.6, 4.9, 5.0)]
    assert answers == [
        FastVerdict(ref(0.5), "trace", Light.GREEN),
        FastVerdict(ref(3.5), "trace", Light.GREEN),
        FastVerdict(ref(3.6), "trace", Light.RED, HAZARD),
        FastVerdict(ref(4.9), "trace", Light.RED, HAZARD),
        CannotSee(ref(5.0), "trace", "dark"),
    ]
    with pytest.raises(BrainError, match=r"^unparsed$"):
        brain.assess(shot(ref(6.0)))


def test_what_the_file_does_not_say_is_an_error_and_never_green(path: str) -> None:
    brain = TraceFastBrain(TraceFastSettings(path))
    for unknown in (ref(0.4), ref(1.0, "b.mp4")):
        with pytest.raises(BrainError, match=r"trace\.json: no entry for brain 'trace', source"):
            brain.assess(shot(unknown))


def test_a_slow_brain_says_what_the_file_says_of_the_trigger(path: str) -> None:
    brain = TraceSlowBrain(TraceSlowSettings(path))
    danger = SlowVerdict(7, danger=True, hazard=Hazard(severity="L4"))
    assert brain.review(7, ref(1.0), ()) == danger
    assert brain.review(8, ref(4.0), (shot(ref(0.0)),)) == SlowVerdict(8, danger=False)
    with pytest.raises(BrainError, match=r"^timeout$"):
        brain.review(9, ref(5.0), ())
    with pytest.raises(BrainError, match=r"no entry for brain 'trace-slow', source 'b\.mp4'"):
        brain.review(9, ref(5.0, "b.mp4"), ())


def test_the_cost_is_the_entrys_latency_else_the_brains_else_none(path: str) -> None:
    fast = TraceFastBrain(TraceFastSettings(path))
    assert [fast.cost(ref(t)) for t in (0.0, 0.5, 3.6, 5.0, 6.0)] == [0.05, 0.05, 0.4, 0.05, 0.0]
    slow = TraceSlowBrain(TraceSlowSettings(path))
    assert [slow.cost(ref(t)) for t in (0.0, 4.0)] == [2.0, 3.1]
    other = TraceFastBrain(TraceFastSettings(path, name="other"))
    assert other.cost(ref(0.0)) == 0.0


def test_a_slow_brain_can_be_interrupted_if_the_one_can_that_it_repeats(path: str) -> None:
    assert not TraceSlowBrain(TraceSlowSettings(path)).interruptible
    recorder = TraceRecorder()
    recorder.merge({**TRACE, "slow": {"trace-slow": {**SLOW_PART, "interruptible": True}}})
    write_trace(path, recorder.data())
    assert TraceSlowBrain(TraceSlowSettings(path)).interruptible


def test_a_review_that_was_broken_off_is_not_answered_and_least_of_all_by_an_older_one(
    path: str,
) -> None:
    recorder = TraceRecorder()
    recorder.merge(TRACE)
    recorder.slow("trace-slow", ref(2.0), "cancelled", 1.2)
    write_trace(path, recorder.data())
    brain = TraceSlowBrain(TraceSlowSettings(path))
    assert brain.review(1, ref(1.9), ()).danger
    no_review = r"trace has no review for 2\.000 s \(it was broken off when recorded\)"
    with pytest.raises(BrainError, match=no_review):
        brain.review(2, ref(2.0), ())
    # Long enough to be broken off again.
    assert brain.cost(ref(2.0)) == pytest.approx(1.2 + CALLED_BACK)


def test_a_brain_that_is_not_named_is_the_one_that_stands_for_all(path: str) -> None:
    brain = TraceFastBrain(TraceFastSettings(path, name="other"))
    at = ref(1.0, "never-heard-of.mp4")
    assert brain.assess(shot(at)) == FastVerdict(at, "other", Light.YELLOW)


def test_a_brain_that_the_file_does_not_know_is_refused_at_once(path: str) -> None:
    with pytest.raises(BrainError, match=r"slow: has no brain 'x' and no '\*'; it has \['trace-sl"):
        TraceSlowBrain(TraceSlowSettings(path, name="x"))


def test_only_a_playing_brain_takes_its_latency(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    TraceFastBrain(TraceFastSettings(path)).assess(shot(ref(3.6)))
    assert slept == []
    playing = TraceFastBrain(TraceFastSettings(path, play=True))
    playing.assess(shot(ref(3.6)))
    TraceSlowBrain(TraceSlowSettings(path, play=True)).review(1, ref(4.0), ())
    with pytest.raises(BrainError, match="no entry"):
        playing.assess(shot(ref(0.0)))
    assert slept == [0.4, 3.1, 0.05]


def test_settings_come_from_plain_data_and_name_the_picture(path: str) -> None:
    plain = {"path": path, "width": 64, "height": None}
    fast = TraceFastBrain(msgspec.convert(plain, TraceFastBrain.Settings))
    slow = TraceSlowBrain(msgspec.convert(plain, TraceSlowBrain.Settings))
    assert (fast.name, slow.name) == ("trace", "trace-slow")
    assert fast.spec == slow.spec == ImageSpec(64, None)
    assert TraceFastSettings(path).spec == ImageSpec(448, 448)


SCORES = Scores(-1 / 3, -2.5, -4.0)
FAST_ANSWERS: dict[float, FastVerdict | CannotSee | BrainFailed] = {
    0.0: FastVerdict(ref(0.0), "vlm", Light.GREEN),
    1 / 3: FastVerdict(ref(1 / 3), "vlm", Light.YELLOW, Hazard("C1")),
    0.7: FastVerdict(ref(0.7), "vlm", Light.RED, HAZARD),
    0.9: CannotSee(ref(0.9), "vlm", "blurred"),
    1.1: BrainFailed("a.mp4", "vlm", "worker died: exit status 1"),
    1.3: FastVerdict(ref(1.3), "vlm", Light.GREEN, scores=SCORES),
    1.5: BrainFailed("a.mp4", "vlm", "label mass 0.02 is under 0.5", scores=SCORES),
}
SLOW_ANSWERS: dict[float, SlowVerdict | BrainError] = {
    1 / 3: SlowVerdict(1, danger=False),
    0.7: SlowVerdict(1, danger=True, hazard=HAZARD),
    0.9: BrainError("unparsed"),
}


def latency(t: float) -> float:
    return 0.1 + t / 7


def recorded() -> TraceRecorder:
    recorder = TraceRecorder()
    for t, fast_answer in reversed(FAST_ANSWERS.items()):  # late answers come out of order
        recorder.fast("vlm", ref(t), fast_answer, latency(t))
    for t, slow_answer in SLOW_ANSWERS.items():
        recorder.slow("judge", ref(t), slow_answer, latency(t))
    return recorder


def outcome(brain: TraceFastBrain | TraceSlowBrain, at: FrameRef) -> object:
    try:
        if isinstance(brain, TraceFastBrain):
            return brain.assess(shot(at))
        return brain.review(1, at, ())
    except BrainError as error:
        return str(error), error.scores


def plain(answer: object) -> object:
    """What a brain that repeats the answer does."""
    match answer:
        case BrainFailed():
            return answer.reason, answer.scores
        case BrainError():
            return str(answer), None
        case _:
            return answer


def check_replay(file: Path) -> None:
    fast = TraceFastBrain(TraceFastSettings(str(file), name="vlm"))
    slow = TraceSlowBrain(TraceSlowSettings(str(file), name="judge"))
    assert {t: outcome(fast, ref(t)) for t in FAST_ANSWERS} == {
        t: plain(answer) for t, answer in FAST_ANSWERS.items()
    }
    assert {t: outcome(slow, ref(t)) for t in SLOW_ANSWERS} == {
        t: plain(answer) for t, answer in SLOW_ANSWERS.items()
    }
    assert {t: fast.cost(ref(t)) for t in FAST_ANSWERS} == {t: latency(t) for t in FAST_ANSWERS}
    assert {t: slow.cost(ref(t)) for t in SLOW_ANSWERS} == {t: latency(t) for t in SLOW_ANSWERS}


def test_a_recorded_run_replays_to_the_same_verdicts_and_latencies(tmp_path: Path) -> None:
    file = tmp_path / "recorded.json"
    write_trace(file, recorded().data())
    check_replay(file)


def test_records_of_several_runs_are_merged_into_one_file(tmp_path: Path) -> None:
    whole, other = TraceRecorder(), TraceRecorder()
    other.fast("vlm", ref(0.0, "b.mp4"), "late", 0.5)
    whole.merge(other.data())
    whole.merge(recorded().data())
    whole.merge(TRACE)
    file = tmp_path / "merged.json"
    write_trace(file, whole.data())
    check_replay(file)
    brain = TraceFastBrain(TraceFastSettings(str(file), name="vlm"))
    assert outcome(brain, ref(0.0, "b.mp4")) == ("late", None)
    # The brain's latency went to its entries.
    assert TraceFastBrain(TraceFastSettings(str(file))).cost(ref(0.5)) == 0.05


def test_a_merge_of_defective_data_is_refused_and_changes_nothing() -> None:
    recorder = recorded()
    before = recorder.data()
    with pytest.raises(BrainError, match="merged trace: "):
        recorder.merge({"format": "hdguard-trace/1", "fast": {"b": {"videos": {"a": [{}]}}}})
    assert recorder.data() == before


def of_model(mark: str, video: str, *, scored: bool = True) -> dict[str, Any]:
    row: dict[str, Any] = {"t": 0.0, "light": "green"}
    if scored:
        row["scores"] = [-0.1, -3.0, -4.0]
    brain = {"videos": {video: [row]}, **({"fingerprint": mark} if mark else {})}
    return {"format": "hdguard-trace/1", "fast": {"vlm": brain}}


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (of_model("aaa", "a.mp4"), of_model("bbb", "b.mp4"), "fingerprints aaa and bbb"),
        (of_model("aaa", "a.mp4"), of_model("", "b.mp4"), "fingerprints aaa and unknown"),
        (of_model("", "a.mp4"), of_model("bbb", "b.mp4"), "fingerprints unknown and bbb"),
    ],
    ids=["two marks", "first only", "second only"],
)
def test_the_scores_of_two_models_do_not_go_under_one_name(
    first: dict[str, Any], second: dict[str, Any], says: str
) -> None:
    recorder = TraceRecorder()
    recorder.merge(first)
    before = recorder.data()
    with pytest.raises(BrainError, match=f"fast brain 'vlm': .* two models, {says}"):
        recorder.merge(second)
    assert recorder.data() == before


def test_a_run_without_scores_does_not_hinder_a_merge_and_the_fingerprint_stays() -> None:
    recorder = TraceRecorder()
    for part in (of_model("", "a.mp4", scored=False), of_model("aaa", "b.mp4")):
        recorder.merge(part)
    recorder.merge(of_model("aaa", "c.mp4"))
    assert recorder.data()["fast"]["vlm"]["fingerprint"] == "aaa"


def test_the_same_records_make_the_same_file_in_whatever_order_they_came(tmp_path: Path) -> None:
    one, other = recorded(), TraceRecorder()
    for t, slow_answer in reversed(SLOW_ANSWERS.items()):
        other.slow("judge", ref(t), slow_answer, latency(t))
    for t, fast_answer in FAST_ANSWERS.items():
        other.fast("vlm", ref(t), fast_answer, latency(t))
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    for file, recorder in zip(files, (one, other), strict=True):
        write_trace(file, recorder.data())
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_frame_that_was_judged_twice_keeps_its_last_answer() -> None:
    recorder = TraceRecorder()
    recorder.fast("vlm", ref(1.0), "late", 0.4)
    recorder.fast("vlm", ref(1.0), FastVerdict(ref(1.0), "vlm", Light.RED), 0.9)
    entries: Any = recorder.data()["fast"]["vlm"]["videos"]["a.mp4"]
    assert entries == [{"t": 1.0, "light": "red", "latency": 0.9}]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trace.json"
    write_trace(file, recorded().data())
    before = file.read_bytes()
    with pytest.raises(BrainError, match=r"trace\.json: "):
        write_trace(file, {"format": "hdguard-trace/9"})

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BrainError, match="cannot be written: No space left on device"):
        write_trace(file, TRACE)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_no_hazard_stays_no_hazard(path: str) -> None:
    answer = TraceFastBrain(TraceFastSettings(path)).assess(shot(ref(0.5)))
    assert isinstance(answer, FastVerdict)
    assert answer.hazard is NO_HAZARD
