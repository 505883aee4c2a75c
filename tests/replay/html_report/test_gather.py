"""A finished run can be shown whatever has happened to its videos and journals since."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hdguard.replay.html_report.gather import Gatherer, read_run
from hdguard.replay.html_report.settings import ReportSettings
from hdguard.replay.results import Results, ResultsError, VideoResult
from tests.ingest.media import Clip, write_video


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    """The run, to be damaged; its data set stays where it is."""
    return Path(shutil.copytree(run, tmp_path / "run"))


def video(results: Results, name: str) -> VideoResult:
    return next(v for v in results.videos if v.video == name)


def gatherer(folder: Path, results: Results, settings: ReportSettings | None = None) -> Gatherer:
    return Gatherer(folder, results.run, settings or ReportSettings())


def test_a_sound_run_gives_lights_and_both_stills(run: Path) -> None:
    results = read_run(run)
    gather = gatherer(run, results)
    found = gather.material(video(results, "red.mp4"))
    assert found.lights is not None
    assert {when: round(s.at, 3) for when, s in found.stills.items()} == {
        "trigger": 1.0,
        "issued": 1.1,
    }
    assert gather.missing == found.missing == []
    assert gather.material(video(results, "calm.mp4")).stills == {}


def test_results_alone_are_enough_to_read(run: Path) -> None:
    assert read_run(run / "results.json").run == read_run(run).run


def test_videos_that_were_moved_are_missed_with_words_and_found_again(
    run: Path, tmp_path: Path
) -> None:
    results = read_run(run)
    results.run["dataset"] = str(tmp_path / "gone")
    lost = gatherer(run, results)
    assert lost.material(video(results, "red.mp4")).stills == {}
    assert "no such folder" in lost.missing[0]
    assert "--dataset" in lost.missing[0]
    again = gatherer(run, results, ReportSettings(dataset=run.parent / "data"))
    assert len(again.material(video(results, "red.mp4")).stills) == 2


def test_one_video_gone_or_damaged_costs_its_own_stills_only(run: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(run.parent / "data", tmp_path / "data"))
    (data / "red.mp4").unlink()
    (data / "stove.mp4").write_bytes(b"not a video")
    results = read_run(run)
    gather = gatherer(run, results, ReportSettings(dataset=data))
    assert "not found in the data set" in gather.material(video(results, "red.mp4")).missing[0]
    assert "cannot be opened" in gather.material(video(results, "stove.mp4")).missing[0]
    assert gather.material(video(results, "quiet.mp4")).missing == []


def test_another_video_of_the_same_name_is_not_shown_as_the_one_that_was_judged(
    run: Path, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(run.parent / "data", tmp_path / "data"))
    write_video(data / "red.mp4", Clip(stamps=(0, 4, 15, 30)))  # nothing at 1.0 s
    gather = gatherer(run, read_run(run), ReportSettings(dataset=data))
    found = gather.material(video(read_run(run), "red.mp4"))
    assert found.stills == {}
    assert "has no frame at 1.000 s" in found.missing[0]


def test_stills_can_be_left_out_without_a_word(run: Path) -> None:
    results = read_run(run)
    gather = gatherer(run, results, ReportSettings(stills=False))
    found = gather.material(video(results, "red.mp4"))
    assert (found.stills, found.missing, gather.missing) == ({}, [], [])


def test_a_run_that_does_not_name_its_data_set_says_what_to_do(run: Path) -> None:
    gather = Gatherer(run, {}, ReportSettings())
    assert "give --dataset" in gather.missing[0]


def test_journals_that_are_gone_or_damaged_cost_the_lights(copied: Path) -> None:
    results = read_run(copied)
    (copied / "journals" / "red.mp4.jsonl").write_text("{}\n")
    gather = gatherer(copied, results)
    found = gather.material(video(results, "red.mp4"))
    assert found.lights is None
    assert "not a journal" in found.missing[0]
    shutil.rmtree(copied / "journals")
    assert "No journals" in gatherer(copied, results).missing[0]


def unfinished(folder: Path) -> None:
    (folder / "results.json").unlink()


def no_run(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def older(folder: Path) -> None:
    file = folder / "results.json"
    content = json.loads(file.read_text())
    del content["summary"]["latency"]
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (unfinished, "finish it with hdguard replay --resume"),
        (no_run, "not a run's folder"),
        (older, "hdguard 0.1.0 wrote it"),
    ],
)
def test_what_is_no_run_of_this_version_is_refused_in_clear_words(
    damage: Callable[[Path], None], words: str, copied: Path
) -> None:
    damage(copied)
    with pytest.raises(ResultsError, match=words):
        read_run(copied)


def test_regions_that_cannot_be_understood_are_no_reason_to_show_everything(run: Path) -> None:
    odd = {"settings": {"source": {"ignore_regions": "the door"}}}
    with pytest.raises(ResultsError, match="ignore_regions"):
        Gatherer(run, odd, ReportSettings())
