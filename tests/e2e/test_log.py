"""What a real guard says on standard error: both formats, and no secret in either."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.actuators.support import RESET_KEY, run
from tests.e2e.sidecar import TOKEN, Setup, running
from tests.e2e.stage import REPOSITORY
from tests.mosquitto import PASSWORD, free_port

SECRETS = (PASSWORD, RESET_KEY, TOKEN, "hunter2hunter2")


@pytest.mark.parametrize("style", ["json", "console", "auto"])
def test_a_guard_without_a_broker_and_a_camera_says_so_in_every_format(
    tmp_path: Path, style: str
) -> None:
    async def story() -> list[str]:
        camera = f"rtsp://ada:hunter2hunter2@127.0.0.1:{free_port()}/live?token=hunter2hunter2"
        more = f'[live.hook]\ngpio = "{tmp_path / "relay"}"\n[log]\nformat = "{style}"'
        async with running(Setup(tmp_path, free_port(), camera, more)) as guard:
            await guard.says("http: listening on 127.0.0.1")
            await guard.says("source lost")
            await guard.says("fall-back hook: on: the broker does not return our permits")
            guard.send(signal.SIGTERM)
            assert await guard.ended() == 0
        return guard.lines

    lines = run(story())
    text = "".join(lines)
    for secret in SECRETS:
        assert secret not in text
    assert "\x1b" not in text
    if style == "console":
        assert any(" [warning  ] source lost " in line for line in lines)
        return
    found = [json.loads(line) for line in lines]
    decisions = [line["decision"] for line in found if "decision" in line]
    assert decisions == [f"1.{n}" for n in range(1, len(decisions) + 1)]
    (lost,) = (line for line in found if line["event"] == "source lost")
    assert (lost["source"], lost["level"]) == ("kitchen", "warning")
    assert lost["reason"]


DEFECT = """
import sys
import hdguard.sidecar
from hdguard.cli import main

def broken(plan):
    raise ValueError(f"a defect: {plan.config.mqtt.password}")

hdguard.sidecar.run_sidecar = broken
sys.argv = ["hdguard", "run", "--config", sys.argv[1]]
main()
"""


def test_a_defect_of_the_command_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    config = Setup(tmp_path, 1, "rtsp://127.0.0.1/live").write()
    done = subprocess.run(
        [sys.executable, "-c", DEFECT, str(config)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    found = json.loads(line)
    assert (found["level"], found["event"]) == (
        "critical",
        "hdguard ends by a defect: a defect: ***",
    )
    assert found["exc"].endswith("ValueError: a defect: ***")
