"""Runs side by side."""

import json
from pathlib import Path

from hdguard import seating
from tests.replay.made import make_dataset
from tests.test_cli import call, replay, says


def test_runs_are_compared_where_both_warned(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data")
    says(replay(data, tmp_path / "one"), 0)
    late = tmp_path / "late.json"
    trace = json.loads((data / "trace.json").read_text())
    trace["fast"]["trace"]["videos"]["stove.mp4"] = [{"t": 0.0, "light": "green"}]
    late.write_text(json.dumps(trace))
    seating._brain.cache_clear()
    says(replay(data, tmp_path / "two", trace=late), 0)
    result = call("compare", tmp_path / "one", tmp_path / "two" / "results.json")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines() if "common ones" in line]
    assert len(rows) == 2
    assert rows[0] == rows[1]  # where both warned, both were as quick
    own = [line.split()[-5] for line in result.stdout.splitlines() if "its warnings" in line]
    assert int(own[0]) == int(own[1]) + 1
    says(call("compare", tmp_path / "gone"), 65, "gone")
