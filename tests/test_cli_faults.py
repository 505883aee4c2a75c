"""`hdguard faults` as people run it."""

import json
import os
import signal
import subprocess
from pathlib import Path

from hdguard.faults.processes import hdguard

REPOSITORY = Path(__file__).resolve().parents[1]


def test_one_fault_is_injected_told_and_written(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    done = subprocess.run(
        hdguard("faults", "--only", "daemon-killed", "--repeat", "1", "--json", str(file)),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test broker: " in done.stdout
    assert done.stdout.rstrip().endswith(" 1  ok")
    (row,) = json.loads(file.read_text())
    assert list(row) == ["fault", "limit_s", "median_s", "worst_s", "n", "ok"]
    assert (row["fault"], row["limit_s"], row["n"], row["ok"]) == ("daemon-killed", 0.6, 1, True)
    assert 0.0 < row["median_s"] == row["worst_s"] <= 0.6


def test_an_unknown_fault_is_refused_with_the_names_that_there_are() -> None:
    done = subprocess.run(
        hdguard("faults", "--only", "fire"),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "no fault is called 'fire'; there are" in done.stderr
    assert "camera-silent" in done.stderr


def test_ctrl_c_leaves_nothing_running() -> None:
    with subprocess.Popen(
        hdguard("faults", "--only", "camera-silent"),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as faults:
        children = _children_when(faults, 3)
        faults.send_signal(signal.SIGINT)
        assert faults.stdout is not None
        said = faults.stdout.read()
        assert faults.wait(timeout=30) == 130
    assert "interrupted; nothing is left running" in said
    assert [pid for pid in children if _exists(pid)] == []


def _children_when(process: "subprocess.Popen[str]", count: int) -> list[int]:
    """Its children, once there are so many: broker, robot and guard."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if len(pids := path.read_text().split()) >= count:
            return [int(pid) for pid in pids]
    raise AssertionError(f"it ended with {process.returncode}")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
