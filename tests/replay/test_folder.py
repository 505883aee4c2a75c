"""What a run leaves on disk, and whether another may go on with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from hdguard.replay.dataset import Entry
from hdguard.replay.folder import FolderError, RunFolder, default_folder
from hdguard.replay.results import Outcome, VideoResult, Warned, read_results, video_result
from hdguard.replay.scoring import KeyFrames

RUN: dict[str, Any] = {
    "hdguard": "0.1.0",
    "policy": "sidecar",
    "pace": "virtual",
    "cost": "trace",
    "drain": 1.0,
    "settings": {"fast": [{"brain": "trace", "fps": 5.0}]},
}


def entry(name: str) -> Entry:
    return Entry(video=name, keyframes=KeyFrames(1.0, 2.0, 3.0, 4.0), path=Path(name))


def result(of: Entry, trigger: float = 2.0) -> VideoResult:
    warning = Warned(trigger=trigger, issued=2.1, stopped=2.8, cause="fast_red", brain="fast")
    return video_result(of, Outcome(warning=warning, watched=2.1))


def made(path: Path, run: dict[str, Any] | None = None, *, resume: bool = False) -> RunFolder:
    folder = RunFolder(path)
    folder.prepare(run or RUN, resume=resume)
    return folder


def begun(path: Path) -> RunFolder:
    """A run with a finished video in it."""
    folder = made(path)
    folder.save(entry("0.mp4"), result(entry("0.mp4")), {})
    return folder


def test_a_finished_video_is_there_for_another_process(tmp_path: Path) -> None:
    one = entry("1.mp4")
    made(tmp_path / "run").save(one, result(one), {"format": "t"})
    other = RunFolder(tmp_path / "run")
    assert other.load(one) == result(one)
    assert other.load(entry("2.mp4")) is None
    assert other.traces([one, entry("2.mp4")]) == [{"format": "t"}]


def test_videos_in_folders_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    names = ["cam1/0001.mp4", "cam2/0001.mp4", "cam1%2F0001.mp4"]
    for n, name in enumerate(names):
        folder.save(entry(name), result(entry(name), trigger=1.0 + n), {"n": n})
    loaded = [folder.load(entry(name)) for name in names]
    assert [v.warning.trigger for v in loaded if v and v.warning] == [1.0, 2.0, 3.0]
    assert [t["n"] for t in folder.traces(map(entry, names))] == [0, 1, 2]


def test_an_existing_run_is_refused_unless_it_is_resumed(tmp_path: Path) -> None:
    begun(tmp_path / "run")
    with pytest.raises(FolderError, match=r"run: holds a run already; give --resume, or another"):
        made(tmp_path / "run")
    made(tmp_path / "run", resume=True)


def test_a_run_that_died_before_its_first_video_does_not_claim_the_folder(tmp_path: Path) -> None:
    made(tmp_path / "run")
    made(tmp_path / "run", {**RUN, "policy": "paper"})
    assert json.loads((tmp_path / "run" / "run.json").read_text())["policy"] == "paper"


def test_a_saved_video_is_scored_by_what_the_truth_says_now(tmp_path: Path) -> None:
    one = entry("1.mp4")
    folder = made(tmp_path / "run")
    folder.save(one, result(one), {})
    corrected = Entry(video="1.mp4", keyframes=KeyFrames(2.5, 3.0, 3.5, 4.0), path=Path("1.mp4"))
    before, after = folder.load(one), folder.load(corrected)
    assert before is not None
    assert after is not None
    assert (before.phase and before.phase.trigger) == "optimal"
    assert (after.phase and after.phase.trigger) == "premature"


def test_a_damaged_trace_is_named(tmp_path: Path) -> None:
    one, folder = entry("1.mp4"), made(tmp_path / "run")
    folder.save(one, result(one), {"format": "t"})
    (tmp_path / "run" / "traces" / "1.mp4.json").write_text("{bad")
    with pytest.raises(FolderError, match=r"1\.mp4\.json: damaged"):
        folder.traces([one])


def test_a_run_can_be_resumed_that_never_began(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", resume=True)
    assert json.loads((tmp_path / "run" / "run.json").read_text()) == RUN
    assert folder.journals.is_dir()


def test_a_folder_that_is_there_for_other_things_is_used(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    made(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hdguard", "0.2.0"),
        ("policy", "paper"),
        ("pace", "realtime"),
        ("cost", "none"),
        ("drain", 0.0),
        ("new", "key"),
    ],
)
def test_a_run_made_otherwise_is_not_resumed_and_the_difference_is_named(
    tmp_path: Path, key: str, value: object
) -> None:
    begun(tmp_path / "run")
    with pytest.raises(FolderError) as caught:
        made(tmp_path / "run", {**RUN, key: value}, resume=True)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'run'}: --resume, but ")
    assert f"another {key}: " in said
    assert repr(value) in said
    assert repr(RUN.get(key)) in said


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fast": [{"brain": "trace", "fps": 10.0}]}, "settings.fast.0.fps: 5.0, now 10.0"),
        ({"fast": [{"brain": "trace"}]}, "settings.fast.0.fps: 5.0, now None"),
        ({"fast": []}, "settings.fast: [{'brain': 'trace', 'fps': 5.0}], now []"),
    ],
)
def test_a_setting_that_differs_is_named_by_its_path(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    begun(tmp_path / "run")
    with pytest.raises(FolderError) as caught:
        made(tmp_path / "run", {**RUN, "settings": settings}, resume=True)
    assert str(caught.value).endswith(f"was made with another {words}")


def test_tuples_and_lists_of_a_setting_are_the_same(tmp_path: Path) -> None:
    made(tmp_path / "run", {**RUN, "settings": {"fast": ({"brain": "trace"},)}})
    made(tmp_path / "run", {**RUN, "settings": {"fast": [{"brain": "trace"}]}}, resume=True)


def test_a_half_written_run_header_is_named(tmp_path: Path) -> None:
    begun(tmp_path / "run")
    header = tmp_path / "run" / "run.json"
    header.write_bytes(header.read_bytes()[:20])
    with pytest.raises(FolderError, match=r"run\.json: "):
        made(tmp_path / "run", resume=True)
    header.write_text("[]")
    with pytest.raises(FolderError, match=r"run\.json: "):
        made(tmp_path / "run", resume=True)


def test_a_half_written_result_is_run_again(tmp_path: Path) -> None:
    one, folder = entry("1.mp4"), made(tmp_path / "run")
    folder.save(one, result(one), {})
    file = tmp_path / "run" / "videos" / "1.mp4.json"
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"[]", b'{"video": "1.mp4"}'):
        file.write_bytes(damaged)
        assert folder.load(one) is None
    folder.save(one, result(one), {})
    assert folder.load(one) == result(one)


def test_the_result_is_written_after_the_trace(tmp_path: Path) -> None:
    """A result that is there says that all is there."""
    one, folder = entry("1.mp4"), made(tmp_path / "run")
    (tmp_path / "run" / "traces").rmdir()
    with pytest.raises(OSError, match="traces"):
        folder.save(one, result(one), {"format": "t"})
    assert folder.load(one) is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FolderError, match=r"file.*: (Not a directory|File exists)"):
        made(tmp_path / "file")
    with pytest.raises(FolderError, match=r"file.*: Not a directory"):
        made(tmp_path / "file" / "run")


def test_the_results_keep_the_order_of_the_entries_and_say_what_is_left(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    entries = [entry(f"{n}.mp4") for n in (3, 1, 2)]
    for finished in (entries[1], entries[0]):
        folder.save(finished, result(finished), {})
    results = folder.finish(entries, RUN, ["9.mp4: absent"])
    assert [v.video for v in results.videos] == ["3.mp4", "1.mp4"]
    assert results.left_out == ["9.mp4: absent", "1 videos not run yet: go on with --resume"]
    assert read_results(tmp_path / "run") == results
    folder.save(entries[2], result(entries[2]), {})
    assert folder.finish(entries, RUN, []).left_out == []


def test_the_default_folder_is_a_free_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for _ in range(3):
        path = default_folder("20260102-030405")
        made(path)
        names.append(str(path))
    assert names == [f"runs/20260102-030405{suffix}" for suffix in ("", "-2", "-3")]
