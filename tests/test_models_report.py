"""What people and programs read of models and profiles."""

import io
from pathlib import Path

import pytest

from hdguard.brains.catalogue import MANIFEST, MODELS
from hdguard.machine import Gpu, Machine
from hdguard.models_report import model_rows, print_report, profile_rows
from hdguard.profiles import PROFILES, Robot
from hdguard.replay.report import make_console
from tests.test_machine import MODERN

CARD = Machine((Gpu("GPU-1", "card", 16.0),), 24.0, MODERN)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "hdguard" / "models"


def printed(machine: Machine, robot: Robot, **more: object) -> str:
    report = {"models": model_rows(machine), "profiles": profile_rows(robot), **more}
    out = io.StringIO()
    print_report(make_console(out), report, machine, robot)  # type: ignore[arg-type]
    return out.getvalue()


def test_every_model_and_profile_has_a_row() -> None:
    assert [row["name"] for row in model_rows(CARD)] == [*MODELS]
    assert [row["name"] for row in profile_rows(Robot())] == [*PROFILES]


def test_a_row_says_what_a_model_needs_and_whether_it_fits_here() -> None:
    rows = {row["name"]: row for row in model_rows(CARD)}
    assert rows["qwen3-vl-4b"]["gpu_gib"] == 10.3
    assert rows["qwen3-vl-4b"]["runs_on"] == "gpu"
    assert rows["qwen3-vl-8b"]["runs_on"] == "cpu"
    assert rows["qwen3-vl-30b-a3b-thinking"]["runs_on"] == "none"


def test_fetched_unfinished_and_damaged_are_told_apart(root: Path) -> None:
    for name in ("qwen3-vl-2b", "qwen3-vl-4b", "qwen3-vl-8b"):
        (root / name).mkdir(parents=True)
    (root / "qwen3-vl-2b" / MANIFEST).write_text(
        '{"name": "qwen3-vl-2b", "repo": "r", "revision": "'
        + "c" * 40
        + '", "family": "qwen3_vl", '
        '"licence": "other", "remote_code": false, "files": {}}'
    )
    (root / "qwen3-vl-8b" / MANIFEST).write_text("{")
    rows = {row["name"]: row for row in model_rows(CARD)}
    assert rows["qwen3-vl-2b"]["fetched"] == "c" * 40
    assert rows["qwen3-vl-2b"]["licence"] == "other"
    assert rows["qwen3-vl-4b"]["fetched"] == "unfinished"
    assert rows["qwen3-vl-8b"]["fetched"] == "damaged"
    assert rows["internvl3.5-1b"]["fetched"] == ""


def test_a_speed_is_never_rounded_up() -> None:
    for row in profile_rows(Robot()):
        assert 100 * row["speed_red"] == pytest.approx(round(100 * row["speed_red"]))
    laptop = {row["name"]: row for row in profile_rows(Robot())}["laptop"]
    assert (laptop["speed_red"], laptop["speed_review"]) == (0.26, 0.07)  # of 0.2678, 0.0733


def test_the_tables_show_speed_deadlines_and_ages_together_and_cut_no_name() -> None:
    text = printed(CARD, Robot())
    for name in (*MODELS, *PROFILES):
        assert f"{name} " in text
    line = next(line for line in text.splitlines() if line.strip().startswith("hd-guard "))
    for words in ("qwen3-vl-30b-a3b-thinking", "0.4/10", "0.5/1.0", "1.5/2.5", "0.33", "0.04"):
        assert words in line
    assert "…" not in text


def test_what_nobody_has_checked_is_said_beside_the_table() -> None:
    text = " ".join(printed(CARD, Robot()).split())
    assert "internvl3.5-2b: unverified: the number of parameters (not counted" in text
    rows = {row["name"]: row for row in model_rows(CARD)}
    assert rows["smolvlm2-500m"]["unverified"] == ""


def test_the_robot_changes_the_speeds_and_is_named() -> None:
    text = printed(CARD, Robot(distance=4.0, braking=2.0, actuation=0.2))
    assert "4 m of free distance, 2 m/s^2 and 0.2 s to the brakes" in " ".join(text.split())


def test_what_was_measured_is_set_against_every_profile() -> None:
    measured = [
        {
            "model": "qwen3-vl-2b",
            "device": "cuda:0",
            "p99": 0.61,
            "profiles": {"laptop": "", "server": "brain x: takes 0.61 s\nmore"},
        }
    ]
    text = printed(CARD, Robot(), measured=measured)
    assert "qwen3-vl-2b on cuda:0: 99th percentile of the warm-up 0.610 s" in text
    assert "  laptop: fits\n  server: brain x: takes 0.61 s\n" in text
