"""`hdguard dataset check`: counts beside the published ones, and everything wrong."""

import io
import json
from pathlib import Path

from hdguard.replay.check import CheckReport, check_dataset, render_check
from hdguard.replay.dataset import load_dataset
from hdguard.replay.report import make_console

TIMES = {"intent_onset": 3.3, "intervention_deadline": 4.2, "pnr": 4.4, "impact_outcome": 5.1}


def text(report: CheckReport) -> str:
    out = io.StringIO()
    make_console(out).print(render_check(report))
    return out.getvalue()


def counts(report: CheckReport) -> dict[str, tuple[int, int, int | None]]:
    return {c.label: (c.annotated, c.present, c.published) for c in report.counts}


def test_the_real_videos_are_a_small_part_of_the_published_set(homesafe: Path) -> None:
    report = check_dataset(load_dataset(homesafe))
    assert report.ok
    assert (report.annotated, report.present) == (3, 3)
    found = counts(report)
    assert found["C4"] == (3, 3, 283)
    assert found["L1"] == (2, 2, 150)
    assert found["D2"] == (0, 0, 214)
    assert found["balcony"] == (0, 0, None)
    assert found[""] == (3, 3, None)
    assert "438" in text(report)


def test_everything_wrong_is_printed(tmp_path: Path) -> None:
    entries = [
        {"video_name": "1_C1_L1_D1.mp4", "keyframes": TIMES, "room": "attic", "severity": "L4"},
        {"video_name": "2_C1_L1_D1.mp4", "keyframes": TIMES, "room": "study"},
        {"video_name": "3.mp4", "keyframes": {**TIMES, "pnr": "soon"}},
        {"video_name": "4.mp4", "is_valid": False},
        {"video_name": "5.mp4", "keyframes": None},
    ]
    (tmp_path / "anno_truth.json").write_text(json.dumps(entries))
    for name in ("1_C1_L1_D1.mp4", "3.mp4", "4.mp4", "5.mp4", "stray.mp4"):
        (tmp_path / name).write_text(name)
    report = check_dataset(load_dataset(tmp_path))
    assert not report.ok
    assert (report.annotated, report.present) == (2, 1)
    found = counts(report)
    assert found["C1"] == (2, 1, 42)
    assert found["L4"] == (1, 1, 62)
    assert found["attic"] == (1, 1, None)
    assert found["study"] == (1, 0, None)
    printed = "".join(text(report).split())
    for part in (
        "safevideos:1", "is_validfalse:1", "unlistedvideos,leftout:1", "stray.mp4",
        "annotatedvideosabsent:1", "problems:3", "keyframes.pnr:'soon'isnotanumber",
        "saysL4,thevideo'snamesaysL1(kept)", "2_C1_L1_D1.mp4:video_name:videoabsent",
    ):  # fmt: skip
        assert part in printed, part


def test_an_unlisted_video_alone_is_not_wrong(tmp_path: Path) -> None:
    (tmp_path / "anno_truth.json").write_text("[]")
    (tmp_path / "stray.mp4").write_text("x")
    report = check_dataset(load_dataset(tmp_path))
    assert report.ok
    assert "stray.mp4" in text(report)
