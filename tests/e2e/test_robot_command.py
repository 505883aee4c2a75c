"""`hdguard robot` against a real broker, with a real guard beside it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.stage import REPOSITORY, Stage, guard_process
from tests.mosquitto import PASSWORD, mosquitto


def test_the_demo_robot_moves_while_a_guard_lets_it_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    password = tmp_path / "robot.password"
    password.write_text(f"{PASSWORD}\n")
    with mosquitto(tmp_path) as broker:
        words = ["--port", str(broker.port), "--robot", "rosie", "--username", "robot"]
        files = ["--password-file", str(password), "--boot-file", str(tmp_path / "boot")]
        with subprocess.Popen(
            [sys.executable, "-m", "hdguard", "robot", *words, *files],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        ) as robot:
            assert robot.stdout is not None
            said = [robot.stdout.readline()]
            with guard_process(Stage(broker.port, passwords=True, process=broker), boot=1):
                said.append(robot.stdout.readline())
            said.append(robot.stdout.readline())  # the guard is gone: the lease ends
            robot.send_signal(signal.SIGINT)
            said.append(robot.stdout.read())
    assert robot.returncode == 0
    assert said[0].startswith("robot rosie: waits for permits on hdguard/rosie/ at 127.0.0.1:")
    assert said[1:] == ["may move: full\n", "may move: none\n", ""]
    assert (tmp_path / "boot").read_text().strip() == "1"
