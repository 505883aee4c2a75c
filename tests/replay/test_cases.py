"""Traces and truth put together, and what is left out by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.trace_format import REST
from hdguard.replay.cases import load_recording
from hdguard.replay.problems import DatasetError
from tests.replay.made import make_dataset
from tests.replay.recorded import cases, trace_of, truth_of, write

SURE = [-0.01, -5.0, -6.0]


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    """A trace and its truth: two videos and a safe one."""
    videos = cases(2, 1)
    return (
        write(tmp_path / "trace.json", trace_of(videos, fingerprint="mark")),
        write(tmp_path / "truth.json", truth_of(videos)),
    )


def change(path: Path, do: Any) -> Path:
    data = json.loads(path.read_text())
    do(data)
    return write(path, data)


def rows(count: int, **more: object) -> list[dict[str, Any]]:
    return [{"t": n / 5, "light": "green", "scores": SURE, **more} for n in range(count)]


def test_a_trace_and_a_truth_file_are_enough(made: tuple[Path, Path]) -> None:
    trace, truth = made
    found = load_recording([trace], truth)
    assert [c.video for c in found.cases] == ["video-0.mp4", "video-1.mp4", "safe-2.mp4"]
    assert [c.keyframes is None for c in found.cases] == [False, False, True]
    assert (found.brain, found.slow, found.fingerprint) == ("vlm", "", "mark")
    assert (found.demuxed, found.sparse, found.left_out) == (0, 0, ())
    assert found == load_recording([trace.parent], truth)  # a run's folder


def test_where_the_video_is_not_there_10_frames_a_second_are_supposed(
    made: tuple[Path, Path],
) -> None:
    trace, truth = made
    times = load_recording([trace], truth).cases[0].times
    assert times == pytest.approx([n / 10 for n in range(47)])
    recorded = json.loads(trace.read_text())["fast"]["vlm"]["videos"]["video-0.mp4"]
    assert {row["t"] for row in recorded} <= set(times)


def test_frame_times_come_from_the_video_where_it_is_there(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4", "quiet.mp4"])
    videos = {name: rows(16) for name in ("red.mp4", "calm", "quiet.mp4")}
    trace = {"format": "hdguard-trace/1", "fast": {"vlm": {"videos": videos}}}
    found = load_recording([write(tmp_path / "t.json", trace)], data)
    assert found.demuxed == len(found.cases) == 3
    assert found.cases[0].times == pytest.approx([n / 10 for n in range(31)])
    assert found.cases[2].keyframes is None


def test_what_is_missing_on_either_side_is_named(made: tuple[Path, Path]) -> None:
    trace, truth = made
    change(trace, lambda d: d["fast"]["vlm"]["videos"].update({"stray.mp4": rows(20)}))
    change(trace, lambda d: d["fast"]["vlm"]["videos"].pop("video-1.mp4"))
    found = load_recording([trace], truth)
    assert [c.video for c in found.cases] == ["video-0.mp4", "safe-2.mp4"]
    assert found.left_out == (
        "video-1.mp4: in no trace",
        f"stray.mp4: in {trace}, but in no truth",
    )


def test_what_is_wrong_with_the_truth_is_named(made: tuple[Path, Path]) -> None:
    trace, truth = made
    change(truth, lambda d: d["annotations"][0]["keyframes"].update(pnr="late"))
    found = load_recording([trace], truth)
    assert len(found.cases) == 2
    assert "video-0.mp4: keyframes.pnr" in found.left_out[0]


def test_a_recording_that_ended_with_a_halt_is_left_out(made: tuple[Path, Path]) -> None:
    trace, truth = made
    change(trace, lambda d: d["fast"]["vlm"]["videos"].update({"video-0.mp4": rows(6)}))
    found = load_recording([trace], truth)
    assert [c.video for c in found.cases] == ["video-1.mp4", "safe-2.mp4"]
    assert "video-0.mp4: recorded until 1.000 s of" in found.left_out[0]


def test_nothing_is_supposed_of_what_comes_long_after_the_last_row(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4"])
    # 3.0 s of video, impact at 2.5 s, recorded until 1.6 s: enough to judge, not to invent.
    videos = {name: rows(9) for name in ("red.mp4", "calm.mp4")}
    trace = {"format": "hdguard-trace/1", "fast": {"vlm": {"videos": videos}}}
    found = load_recording([write(tmp_path / "t.json", trace)], data)
    assert found.cases[0].times[-1] == pytest.approx(2.6)


def test_an_adaptive_recording_is_counted_as_sparse(made: tuple[Path, Path]) -> None:
    trace, truth = made
    slow = [{"t": float(n), "light": "green", "scores": SURE} for n in range(6)]
    change(trace, lambda d: d["fast"]["vlm"]["videos"].update({"safe-2.mp4": slow}))
    assert load_recording([trace], truth).sparse == 1


def test_reviews_come_with_their_video(made: tuple[Path, Path]) -> None:
    trace, truth = made
    reviews = {"video-0.mp4": [{"t": 1.0, "verdict": "danger"}], "*": [{"t": 0.0, "error": "late"}]}
    thinker = {"latency": 0.3, "videos": reviews, "interruptible": True}
    change(trace, lambda d: d.update(slow={"thinker": thinker}))
    found = load_recording([trace], truth)
    assert found.slow == "thinker"
    assert all(c.slow is not None and c.slow.interruptible for c in found.cases)
    slow = [c.slow.videos[REST][0] for c in found.cases if c.slow is not None]
    assert [(row.verdict, row.error) for row in slow] == [
        ("danger", None),
        (None, "late"),
        (None, "late"),
    ]


def test_a_video_without_reviews_has_a_slowbrain_that_knows_nothing(
    made: tuple[Path, Path],
) -> None:
    trace, truth = made
    reviews = {"video-0.mp4": [{"t": 1.0, "verdict": "danger"}]}
    change(trace, lambda d: d.update(slow={"thinker": {"videos": reviews}}))
    slow = load_recording([trace], truth).cases[1].slow
    assert slow is not None
    assert slow.videos == {}


def no_scores(data: dict[str, Any]) -> None:
    for each in data["fast"]["vlm"]["videos"].values():
        for row in each:
            del row["scores"]


def test_a_brain_without_scores_cannot_be_tuned(made: tuple[Path, Path]) -> None:
    trace, truth = made
    change(trace, no_scores)
    with pytest.raises(BrainError, match="recorded by a brain that gives no scores"):
        load_recording([trace], truth)
    with pytest.raises(DatasetError, match=r"video-0\.mp4: not one frame has scores"):
        load_recording([trace], truth, fast="vlm")


def test_a_video_with_a_light_that_has_no_scores_is_left_out(made: tuple[Path, Path]) -> None:
    trace, truth = made
    change(trace, lambda d: d["fast"]["vlm"]["videos"]["video-0.mp4"][3].pop("scores"))
    found = load_recording([trace], truth)
    assert found.left_out == ("video-0.mp4: has no scores at 0.600 s",)


def test_of_several_brains_one_must_be_named(made: tuple[Path, Path]) -> None:
    trace, truth = made
    change(trace, lambda d: d["fast"].update(other=d["fast"]["vlm"]))
    change(trace, lambda d: d.update(slow={"a": {"videos": {}}, "b": {"videos": {}}}))
    with pytest.raises(BrainError, match=r"several brains give scores.*\['other', 'vlm'\]"):
        load_recording([trace], truth)
    with pytest.raises(BrainError, match=r"several SlowBrains.*\['a', 'b'\]"):
        load_recording([trace], truth, fast="other")
    with pytest.raises(BrainError, match="has no FastBrain 'gone'"):
        load_recording([trace], truth, fast="gone", slow="a")
    assert load_recording([trace], truth, fast="other", slow="b").slow == "b"


def test_two_traces_are_of_one_model_and_of_different_videos(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    trace, truth = made
    again = write(tmp_path / "again.json", json.loads(trace.read_text()))
    with pytest.raises(BrainError, match=r"video-0\.mp4: in .*trace\.json and again in .*again"):
        load_recording([trace, again], truth)
    change(trace, lambda d: d["fast"]["vlm"]["videos"].pop("video-1.mp4"))
    change(
        again,
        lambda d: d["fast"]["vlm"].update(
            videos={"video-1.mp4": d["fast"]["vlm"]["videos"]["video-1.mp4"]}, fingerprint="other"
        ),
    )
    with pytest.raises(BrainError, match=r"recorded by different models: .* by mark; .* by other"):
        load_recording([trace, again], truth)
    change(again, lambda d: d["fast"]["vlm"].update(fingerprint="mark"))
    assert len(load_recording([trace, again], truth).cases) == 3


def test_safe_material_needs_the_datasets_folder(made: tuple[Path, Path], tmp_path: Path) -> None:
    trace, truth = made
    with pytest.raises(DatasetError, match="--safe needs --labels to be the dataset's folder"):
        load_recording([trace], truth, safe=[tmp_path])


def test_truth_and_trace_without_a_video_in_common_is_an_error(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    trace, _ = made
    other = [{"video_name": "elsewhere.mp4", "keyframes": None}]
    with pytest.raises(DatasetError, match=r"none of its videos can be used:\n  elsewhere\.mp4"):
        load_recording([trace], write(tmp_path / "other.json", {"annotations": other}))
