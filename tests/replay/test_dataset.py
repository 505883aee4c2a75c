"""Finding videos: as archives unpack, with copies, stills, links and safe material about."""

import json
from pathlib import Path
from typing import Any

import pytest

from hdguard.replay.dataset import Dataset, DatasetError, load_dataset, load_truth

TIMES = {"intent_onset": 3.3, "intervention_deadline": 4.2, "pnr": 4.4, "impact_outcome": 5.1}


def annotate(folder: Path, *names: str, **fields: Any) -> Path:
    entries = [{"video_name": n, "keyframes": TIMES, **fields} for n in names]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "anno_truth.json"
    path.write_text(json.dumps({"annotations": entries}))
    return path


def put(path: Path, content: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content or path.name)
    return path


def found(dataset: Dataset) -> dict[str, Path]:
    return {e.video: e.path for e in dataset.entries}


def test_the_real_videos_and_their_stills(homesafe: Path) -> None:
    dataset = load_dataset(homesafe, strict=True)
    assert found(dataset) == {
        name: homesafe / "videos" / name
        for name in ("152_C4_L4_D3.mp4", "230_C4_L1_D1.mp4", "421_C4_L1_D3.mp4")
    }
    assert (dataset.problems, dataset.absent, dataset.unlisted) == ((), (), ())
    assert len(dataset.annotated) == 3


def test_the_released_layout_with_three_truth_files(tmp_path: Path) -> None:
    for folder in (".", "detector_dual_brain", "test"):
        annotate(tmp_path / folder, "1.mp4", "2.mp4")
    put(tmp_path / "DATASETS" / "a" / "1.mp4")
    put(tmp_path / "DATASETS" / "b" / "2.mp4")
    put(tmp_path / "assets" / "teaser.png")
    dataset = load_dataset(tmp_path, strict=True)
    assert list(found(dataset)) == ["1.mp4", "2.mp4"]
    assert len(dataset.truth.files) == 3


def test_disagreeing_truth_files_need_a_choice(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    other = annotate(tmp_path / "test", "1.mp4", room="study")
    other.write_text(other.read_text().replace("4.4", "4.3"))
    put(tmp_path / "1.mp4")
    with pytest.raises(DatasetError, match=r"1\.mp4: keyframes\.pnr: 4\.4 here, 4\.3 in"):
        load_dataset(tmp_path)
    (entry,) = load_dataset(tmp_path, truth=other).entries
    assert entry.keyframes is not None
    assert (entry.keyframes.pnr, entry.room, entry.truth_file) == (4.3, "study", str(other))


def test_an_absent_video_is_named_and_not_in_n(tmp_path: Path) -> None:
    truth = annotate(tmp_path, "gone.mp4", "here.mp4")
    put(tmp_path / "here.mp4")
    dataset = load_dataset(tmp_path)
    assert list(found(dataset)) == ["here.mp4"]
    assert dataset.absent == ("gone.mp4",)
    assert len(dataset.truth.annotations) == 2
    (problem,) = dataset.problems
    assert (problem.file, problem.entry, problem.field) == (str(truth), "gone.mp4", "video_name")
    assert "video absent" in problem.message
    with pytest.raises(DatasetError, match=r"gone\.mp4: video_name: video absent"):
        load_dataset(tmp_path, strict=True)


@pytest.mark.parametrize("name", ["1.mkv", "1.MP4", "1.webm", "1.ts", "1.m4v", "1.avi", "1.mov"])
def test_a_video_in_another_container_is_found(tmp_path: Path, name: str) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / name)
    assert found(load_dataset(tmp_path)) == {"1.mp4": tmp_path / name}


def test_the_exact_name_beats_another_ending(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / "1.avi")
    path = put(tmp_path / "deep" / "1.mp4")
    assert found(load_dataset(tmp_path, strict=True)) == {"1.mp4": path}


def test_a_name_with_a_folder_picks_that_folder(tmp_path: Path) -> None:
    annotate(tmp_path, "study/1.mp4", "balcony/1")
    a, b = put(tmp_path / "v/study/1.mp4", "a"), put(tmp_path / "v/balcony/1.mp4", "b")
    dataset = load_dataset(tmp_path, strict=True)
    assert found(dataset) == {"study/1.mp4": a, "balcony/1": b}
    assert {e.slug for e in dataset.entries} == {"study%2F1.mp4", "balcony%2F1"}


def test_two_different_videos_of_one_name_are_a_problem(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / "plain" / "1.mp4", "without a clock")
    put(tmp_path / "stamped" / "1.mp4", "with a clock")
    dataset = load_dataset(tmp_path)
    assert dataset.entries == ()
    assert "1.mp4: video_name: two different videos have this name" in str(dataset.problems[0])
    assert "plain/1.mp4 and" in str(dataset.problems[0])
    assert dataset.absent == ()


def test_copies_and_links_of_one_video_are_one(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / "a" / "1.mp4", "same")
    put(tmp_path / "b" / "1.mp4", "same")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "1.mp4").symlink_to(tmp_path / "a" / "1.mp4")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert found(load_dataset(tmp_path, strict=True)) == {"1.mp4": tmp_path / "a" / "1.mp4"}


def test_a_linked_folder_of_videos_is_searched(tmp_path: Path) -> None:
    root = tmp_path / "set"
    annotate(root, "1.mp4")
    put(tmp_path / "disk" / "1.mp4")
    (root / "videos").symlink_to(tmp_path / "disk")
    assert found(load_dataset(root)) == {"1.mp4": root / "videos" / "1.mp4"}


def test_a_folder_of_images_is_a_video(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / "frames" / "1" / "0001.png")
    assert found(load_dataset(tmp_path)) == {"1.mp4": tmp_path / "frames" / "1"}


def test_stills_at_the_key_frames_are_not_a_video(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / "keyframes" / "1" / "pnr_4.4s.jpg")
    put(tmp_path / "keyframes" / "1" / "intent_onset_3.3s.jpg")
    assert load_dataset(tmp_path).absent == ("1.mp4",)


def test_hidden_files_are_nobodys(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / "1.mp4")
    put(tmp_path / "._1.mp4")
    put(tmp_path / ".cache" / "1.mp4", "something else")
    dataset = load_dataset(tmp_path, strict=True)
    assert found(dataset) == {"1.mp4": tmp_path / "1.mp4"}
    assert dataset.unlisted == ()


def test_unlisted_videos_are_named_and_left_out_unless_declared_safe(tmp_path: Path) -> None:
    truth = annotate(tmp_path, "1.mp4", "bad.mp4", "invalid.mp4")
    entries = json.loads(truth.read_text())["annotations"]
    del entries[1]["keyframes"]
    entries[2]["is_valid"] = False
    truth.write_text(json.dumps(entries))
    for name in ("1.mp4", "bad.mp4", "invalid.mp4", "stray.mp4"):
        put(tmp_path / name)
    left = load_dataset(tmp_path)
    assert left.unlisted == (tmp_path / "stray.mp4",)
    assert list(found(left)) == ["1.mp4"]
    assert left.left_out == (
        f"{truth}: bad.mp4: keyframes: missing; write null if the video is safe material",
        "invalid.mp4: is_valid is false",
        f"{tmp_path / 'stray.mp4'}: in no truth file",
    )
    taken = load_dataset(tmp_path, unlisted="safe")
    assert taken.unlisted == ()
    assert [e.video for e in taken.safe] == ["stray.mp4"]
    assert [e.video for e in taken.annotated] == ["1.mp4"]


def test_safe_folders_are_safe_inside_and_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "set", tmp_path / "elsewhere"
    annotate(root, "1.mp4")
    put(root / "1.mp4")
    put(root / "quiet" / "2.mp4")
    put(outside / "day" / "3.mkv")
    put(outside / "frames" / "0001.png")
    put(outside / "day" / "thumbnail.jpg")
    dataset = load_dataset(root, safe=[root / "quiet", outside], strict=True)
    assert [e.video for e in dataset.annotated] == ["1.mp4"]
    assert sorted(e.video for e in dataset.safe) == ["2.mp4", "3.mkv", "frames"]
    assert dataset.unlisted == ()


def test_safe_videos_of_one_name_are_told_apart_by_folder(tmp_path: Path) -> None:
    root = tmp_path / "set"
    annotate(root, "0001.mp4")
    put(root / "0001.mp4", "danger")
    for camera in ("cam1", "cam2"):
        put(tmp_path / "safe" / camera / "0001.mp4", camera)
    put(tmp_path / "safe" / "own.mp4")
    dataset = load_dataset(root, safe=[tmp_path / "safe"], strict=True)
    assert [e.video for e in dataset.annotated] == ["0001.mp4"]
    assert [e.video for e in dataset.safe] == ["cam1/0001.mp4", "cam2/0001.mp4", "own.mp4"]
    assert len({e.slug for e in dataset.entries}) == 4


def test_safe_folders_of_one_name_still_give_different_names(tmp_path: Path) -> None:
    for home in ("a", "b"):
        put(tmp_path / home / "cam" / "1.mp4", home)
    dataset = load_dataset(
        tmp_path / "a", safe=[tmp_path / "a" / "cam", tmp_path / "b" / "cam", tmp_path / "b"]
    )
    assert [e.video for e in dataset.safe] == ["a/cam/1.mp4", "b/cam/1.mp4"]


def test_an_annotated_hazard_cannot_be_declared_safe(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    put(tmp_path / "quiet" / "1.mp4")
    dataset = load_dataset(tmp_path, safe=[tmp_path / "quiet"])
    assert dataset.entries == ()
    assert "1.mp4: video_name: annotated with key frames, but" in str(dataset.problems[0])


def test_null_key_frames_are_safe_and_run_once(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4", keyframes=None)
    put(tmp_path / "quiet" / "1.mp4")
    dataset = load_dataset(tmp_path, safe=[tmp_path / "quiet"], strict=True)
    assert [e.video for e in dataset.safe] == ["1.mp4"]


def test_a_folder_without_a_truth_says_what_to_pass(tmp_path: Path) -> None:
    put(tmp_path / "1.mp4")
    with pytest.raises(DatasetError, match="--truth FILE or --safe DIR"):
        load_dataset(tmp_path)
    assert [e.video for e in load_dataset(tmp_path, unlisted="safe").safe] == ["1.mp4"]
    assert [e.video for e in load_dataset(tmp_path, safe=[tmp_path]).safe] == ["1.mp4"]


def test_an_absent_folder_is_named(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4")
    with pytest.raises(DatasetError, match="gone: no such folder"):
        load_dataset(tmp_path / "gone")
    with pytest.raises(DatasetError, match="quiet: no such folder"):
        load_dataset(tmp_path, safe=[tmp_path / "quiet"])


def test_the_truths_own_problems_come_first_and_strict_names_all(tmp_path: Path) -> None:
    annotate(tmp_path, "230_C4_L1_D1.mp4", "gone.mp4", severity="L2")
    put(tmp_path / "230_C4_L1_D1.mp4")
    dataset = load_dataset(tmp_path)
    assert [(p.entry, p.field) for p in dataset.problems] == [
        ("230_C4_L1_D1.mp4", "severity"), ("gone.mp4", "video_name"),
    ]  # fmt: skip
    assert [e.severity for e in dataset.entries] == ["L2"]
    with pytest.raises(DatasetError) as caught:
        load_dataset(tmp_path, strict=True)
    assert caught.value.problems == dataset.problems


def test_a_truth_is_read_without_any_video(tmp_path: Path) -> None:
    assert len(load_truth(annotate(tmp_path, "1.mp4")).annotations) == 1


def test_one_file_under_two_names_is_counted_once_and_said(tmp_path: Path) -> None:
    annotate(tmp_path, "1.mp4", "videos/1.mp4", room="study")
    other = json.loads((tmp_path / "anno_truth.json").read_text())
    other["annotations"][1]["keyframes"] = {**TIMES, "impact_outcome": 6.0}
    (tmp_path / "anno_truth.json").write_text(json.dumps(other))
    put(tmp_path / "videos" / "1.mp4")
    dataset = load_dataset(tmp_path)
    assert list(found(dataset)) == ["1.mp4"]
    (problem,) = dataset.problems
    assert "the same file as 1.mp4" in str(problem)


def test_unlisted_is_told_by_path_and_folders_of_images_count(tmp_path: Path) -> None:
    annotate(tmp_path, "cam1/0001.mp4")
    put(tmp_path / "cam1" / "0001.mp4", "one")
    put(tmp_path / "cam2" / "0001.mp4", "two")
    put(tmp_path / "burst" / "a.jpg")
    put(tmp_path / "burst" / "b.jpg")
    left = load_dataset(tmp_path).unlisted
    assert set(left) == {tmp_path / "cam2" / "0001.mp4", tmp_path / "burst"}
    safe = load_dataset(tmp_path, unlisted="safe")
    assert {e.path for e in safe.safe} == set(left)
