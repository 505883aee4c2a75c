"""One guard per robot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hdguard.runtime.lock import LockedError, locked


def test_a_second_process_is_refused_and_told_whom_to_end(tmp_path: Path) -> None:
    path = tmp_path / "rosie.lock"
    words = f"process {os.getpid()} guards"
    with locked(path), pytest.raises(LockedError, match=words) as error, locked(path):
        pass
    assert str(path) in str(error.value)


def test_the_lock_of_a_process_that_died_is_free(tmp_path: Path) -> None:
    path = tmp_path / "rosie.lock"
    code = (
        "import os, pathlib, signal, sys\nfrom hdguard.runtime.lock import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    with locked(path):
        assert path.read_text() == f"{os.getpid()}\n"
    with locked(path):  # and one that ended in order
        assert path.read_text() == f"{os.getpid()}\n"
