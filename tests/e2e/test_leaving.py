"""SIGTERM ends the daemon in time whatever holds it up, also after the loop's last word."""

import asyncio
import os
import signal
from pathlib import Path

from tests.actuators.support import run
from tests.e2e.sidecar import Setup, in_state, running, still
from tests.e2e.stage import following, measured, stage


def test_sigterm_ends_it_in_time_while_the_audit_logs_disk_hangs(tmp_path: Path) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            setup.state.mkdir()
            os.mkfifo(setup.state / "rosie.audit.jsonl")  # to open it blocks for ever
            async with following(at, "state") as states, running(setup) as guard:
                await states.wait_for(in_state("monitoring"))
                asked = loop.time()
                guard.send(signal.SIGTERM)
                assert await guard.ended() == 0
                return loop.time() - asked

    took = run(story())
    measured("end after SIGTERM with an audit log that hangs", took)
    assert took < 3.0
