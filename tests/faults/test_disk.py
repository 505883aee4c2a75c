"""A disk that is filled up from outside, and that no one else sees."""

import os
import sys
from pathlib import Path

import pytest

from hdguard.faults.disk import NEEDS, Ballast, missing, on_small_disk
from hdguard.faults.processes import Program
from tests.actuators.support import run


@pytest.mark.skipif(bool(missing()), reason=NEEDS)
def test_a_full_disk_takes_no_byte_until_it_is_emptied(tmp_path: Path) -> None:
    place = tmp_path / "state"
    place.mkdir()

    async def story() -> None:
        code = "import signal; print('up', flush=True); signal.pause()"
        program = Program("it", *on_small_disk(place, sys.executable, "-c", code))
        program.start()
        try:
            await program.said(lambda line: line == "up")
            inside = Path(f"/proc/{program.pid}/root{place}")
            (inside / "before").write_bytes(b"x" * 8192)
            ballast = Ballast(program.pid, place)
            await ballast.fill()
            assert os.statvfs(inside).f_bavail == 0
            with pytest.raises(OSError, match="No space left"):
                (inside / "file").write_bytes(b"x" * 8192)
            await ballast.empty()
            await ballast.empty()  # nothing is left to do
            (inside / "file").write_bytes(b"x" * 8192)
            assert list(place.iterdir()) == []  # out here it is not to be seen
        finally:
            program.end()

    run(story(), "asyncio")


def test_without_the_means_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert missing() == NEEDS
