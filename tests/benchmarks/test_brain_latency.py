"""The benchmark of a verdict's cost runs on any machine, in the size that it has room for."""

import json
from pathlib import Path

import pytest

from benchmarks import brain_latency
from benchmarks.brain_subject import TOKENS, Subject
from benchmarks.random_models import MODULES

STAGES = {"generate", "forward", "prefix", "prepare", "probabilities", "frame"}


def test_every_family_has_a_row_with_its_ratio_and_its_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "latency.json"
    options = ["--size", "tiny", "--rounds", "2", "--seconds", "5", "--json", str(file)]
    assert brain_latency.main(options) == 0
    rows = json.loads(file.read_text())["rows"]
    assert [row["family"] for row in rows] == list(MODULES)
    for row in rows:
        assert row["generate_over_prefix"] == row["generate_ms"] / row["prefix_ms"]
        assert row["generate_ms"] > row["forward_ms"]
        assert 100 < row["prefix_tokens"] < 500  # about what the prompt has in a real vocabulary
        assert set(row["stages"]) == STAGES
    said = capsys.readouterr().out
    assert said.count(f"generate {TOKENS} tokens") == len(rows)


def test_a_frame_is_measured_alone_and_beside_a_busy_process(tmp_path: Path) -> None:
    file = tmp_path / "latency.json"
    family = ["--family", "internvl", "--size", "tiny", "--rounds", "1", "--seconds", "2"]
    assert brain_latency.main([*family, "--beside", "--json", str(file)]) == 0
    found = json.loads(file.read_text())["beside"]
    assert set(found) == {"alone", "beside a busy process"}
    assert all(0.0 < each["median_ms"] <= each["p99_ms"] for each in found.values())


def test_all_ways_come_to_the_same_first_token() -> None:
    """What is timed is the same question: with the prefix kept, and without."""
    subject = Subject("qwen3_vl", "tiny", "cpu", "float32")
    whole = subject.family.read(subject.inputs)
    kept = subject.family.read(subject.inputs, subject.prefix)
    assert int(whole.logits.argmax()) == int(kept.logits.argmax())
