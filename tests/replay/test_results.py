"""The files of a run: their keys, reading them back, and never half of one."""

import csv
import json
from pathlib import Path

import pytest

from hdguard.core.types import Hazard
from hdguard.replay.annotations import Annotation
from hdguard.replay.results import (
    FaultHalt,
    Outcome,
    ResultsError,
    Source,
    Stages,
    VideoResult,
    Warned,
    decode_video,
    encode_video,
    read_results,
    video_result,
    write_atomic,
    write_results,
)
from hdguard.replay.scoring import KeyFrames

RUN = {"policy": "paper", "pace": "virtual", "cost": "none", "versions": {"hdguard": "0"}}


@pytest.fixture
def videos() -> list[VideoResult]:
    spill = Annotation(
        video="230_C4_L1_D1.mp4", keyframes=KeyFrames(3.3, 4.2, 4.4, 5.1), category="C4"
    )
    warned = Outcome(
        warning=Warned(
            trigger=4.0, issued=4.3, stopped=4.8, cause="fast_red", brain="reflex",
            hazard=Hazard("C4", "L1", 'a "cup", tipping'),
        ),
        fault_halts=(FaultHalt(at=1.0, cause="blind", released_at=2.5),),
        watched=4.3,
        stages=Stages.between(captured=4.0, decided=4.25),
        verdicts={"green": 9, "red": 1},
        dropped=2,
        source=Source(frames=192, corrupt=1, problems=("one packet",)),
    )  # fmt: skip
    quiet = Annotation(video="quiet.mp4", keyframes=None)
    broken = Annotation(video="broken.mp4", keyframes=KeyFrames(1.0, 2.0, 3.0, 4.0, action_end=5.0))
    return [
        video_result(spill, warned),
        video_result(quiet, Outcome(watched=60.0)),
        video_result(broken, Outcome(failed="no video stream")),
    ]


def test_results_json_has_the_promised_keys(tmp_path: Path, videos: list[VideoResult]) -> None:
    write_results(tmp_path / "new" / "out", RUN, videos, left_out=["gone.mp4: video absent"])
    content = json.loads((tmp_path / "new" / "out" / "results.json").read_text())
    assert content["run"] == RUN
    assert content["left_out"] == ["gone.mp4: video absent"]
    first, safe, failed = content["videos"]
    assert first["video"] == "230_C4_L1_D1.mp4"
    assert first["annotated"]["keyframes"]["pnr"] == 4.4
    assert {k: first["warning"][k] for k in ("trigger", "issued", "stopped", "cause", "brain")} == {
        "trigger": 4.0, "issued": 4.3, "stopped": 4.8, "cause": "fast_red", "brain": "reflex",
    }  # fmt: skip
    assert first["phase"] == {
        "trigger": "optimal", "issued": "suboptimal", "stopped": "irreversible",
    }  # fmt: skip
    assert first["score"] == {"trigger": 100, "issued": 50, "stopped": 25}
    assert first["fault_halts"] == [{"at": 1.0, "cause": "blind", "released_at": 2.5}]
    assert (safe["warning"], safe["phase"], safe["annotated"]["keyframes"]) == (None, None, None)
    assert failed["score"] == {"trigger": 0, "issued": 0, "stopped": 0}
    summary = content["summary"]
    for when, wss in (("trigger", 50), ("issued", 25), ("stopped", 12.5)):
        figures = summary[when]
        assert (figures["n"], figures["hdr"], figures["ewp"], figures["wss"]) == (2, 50, 100, wss)
        assert sum(figures["phases"].values()) == 100
    assert summary["false_stops_per_hour"]["count"] == 0
    assert summary["false_stops_per_hour"]["hours"] == pytest.approx(1 / 60)
    assert summary["fault_halts_per_hour"]["count"] == 1
    assert summary["latency"]["n"] == 1
    assert summary["latency"]["p99"] == 0.25
    assert [b["at"] for b in summary["baselines"]] == [2, 4, 6, 8, 3.3, None]
    assert summary["breakdowns"]["category"]["C4"]["issued"]["wss"] == 50
    assert summary["failed"] == {"broken.mp4": "no video stream"}


def test_results_are_read_back_as_they_were(tmp_path: Path, videos: list[VideoResult]) -> None:
    written = write_results(tmp_path, RUN, videos)
    assert read_results(tmp_path) == written
    assert read_results(tmp_path / "results.json") == written
    assert written.videos == videos


def test_the_same_run_gives_the_same_bytes(tmp_path: Path, videos: list[VideoResult]) -> None:
    for name in ("a", "b"):
        write_results(tmp_path / name, RUN, [decode_video(encode_video(v)) for v in videos])
    for name in ("results.json", "results.csv", "predictions.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_csv_has_one_flat_row_per_video(tmp_path: Path, videos: list[VideoResult]) -> None:
    write_results(tmp_path, RUN, videos)
    with (tmp_path / "results.csv").open(newline="") as file:
        first, safe, failed = list(csv.DictReader(file))
    assert first["hazard_text"] == 'a "cup", tipping'
    assert first["trigger"] == "4.0"
    assert (first["phase_issued"], first["score_stopped"]) == ("suboptimal", "25.0")
    assert (first["latency_warning"], first["fault_halts"]) == ("0.25", "1")
    assert (first["red"], first["yellow"], first["corrupt"]) == ("1", "0", "1")
    assert (safe["safe"], safe["trigger"], safe["phase_trigger"], safe["pnr"]) == (
        "True",
        "",
        "",
        "",
    )
    assert (failed["failed"], failed["action_end"]) == ("no video stream", "5.0")


def test_a_run_without_videos_still_has_a_header(tmp_path: Path) -> None:
    write_results(tmp_path, RUN, [])
    assert (tmp_path / "results.csv").read_text().startswith("video,safe,category,")
    assert read_results(tmp_path).summary.trigger.n == 0


def test_other_baseline_times(tmp_path: Path, videos: list[VideoResult]) -> None:
    results = write_results(tmp_path, RUN, videos, times=(4.25,))
    assert [b.at for b in results.summary.baselines] == [4.25, 3.3, None]


def test_a_video_counted_twice_writes_nothing(tmp_path: Path, videos: list[VideoResult]) -> None:
    with pytest.raises(ValueError, match="counted twice"):
        write_results(tmp_path / "out", RUN, [*videos, videos[0]])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"run": {}}', b"\xff"])
def test_a_file_that_is_no_result_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(ResultsError, match=r"results\.json: not a results file"):
        read_results(tmp_path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"results\.json: cannot be read"):
        read_results(tmp_path)


def test_half_a_video_from_a_killed_run_is_not_taken(videos: list[VideoResult]) -> None:
    data = encode_video(videos[0])
    assert decode_video(data) == videos[0]
    with pytest.raises(ResultsError, match="not a video's result"):
        decode_video(data[: len(data) // 2])


def test_a_failed_write_leaves_what_was_there_and_no_remains(tmp_path: Path) -> None:
    taken = tmp_path / "results.json"
    (taken / "kept").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_atomic(taken, b"new")
    assert list(tmp_path.iterdir()) == [taken]
    assert (taken / "kept").is_dir()


def test_a_write_replaces_the_old_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"old")
    write_atomic(tmp_path / "a", b"new")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"new"]
