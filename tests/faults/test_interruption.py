"""What ends the injector before its time."""

import signal
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest
import typer

from hdguard.cli_faults import faults as faults_command
from hdguard.faults.broker import Broker
from hdguard.faults.processes import hdguard
from hdguard.faults.rows import FaultError


def children(process: "subprocess.Popen[str]", count: int) -> list[int]:
    """Those of a process, once there are so many: broker, guard and robot."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if len(pids := path.read_text(encoding="ascii").split()) >= count:
            return [int(pid) for pid in pids]
    raise AssertionError(f"it ended with {process.returncode}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_leaves_no_process_and_no_older_table(
    number: signal.Signals, tmp_path: Path
) -> None:
    file = tmp_path / "faults.json"
    file.write_text('[{"fault": "camera-silent", "ok": true}]')
    command = hdguard("faults", "--only", "camera-silent", "--json", str(file))
    inherited = signal.signal(number, signal.SIG_DFL)  # ignored, where nohup runs the tests
    faults = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    signal.signal(number, inherited)
    with faults:
        pids = children(faults, 3)
        faults.send_signal(number)
        said, _ = faults.communicate(timeout=30)
    assert faults.returncode == 130
    assert said.endswith("interrupted; nothing is left running\n")
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert file.read_text() == "[]\n"


def test_without_a_test_broker_it_says_why_and_is_not_ok(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def up(_: Broker) -> NoReturn:
        raise FaultError("the broker does not run")

    monkeypatch.setattr(Broker, "up", up)
    with pytest.raises(typer.Exit) as told:
        faults_command(only=["camera-silent"], repeat=1, json=None)
    assert told.value.exit_code == 1
    assert capsys.readouterr().err == "hdguard: the broker does not run\n"
