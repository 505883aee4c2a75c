"""A command whose loop a signal holds up."""

import signal
from pathlib import Path

from hdguard.faults.processes import Program
from hdguard.faults.stalling import HOLD_UP, STALL, stalling
from tests.actuators.support import run


def test_it_is_the_command_that_was_asked_for_and_hears_nothing_while_held_up(
    tmp_path: Path,
) -> None:
    async def story() -> float:
        words = ("robot", "--port", "1", "--boot-file", str(tmp_path / "boot"))
        program = Program("it", *stalling(*words))
        program.start()
        await program.said(lambda line: line.startswith("robot robot: waits for permits"))
        at = program.signal(HOLD_UP)
        program.signal(signal.SIGINT)
        await program.ended.wait()
        return program.ended_at - at

    assert run(story(), "asyncio") > 0.99 * STALL
