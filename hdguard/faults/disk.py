"""A small disk of the guard's own, which can be filled up and emptied from outside.

It is a tmpfs in a mount namespace in which only the guard lives: no root is needed where users may
have namespaces, and nothing has to be unmounted, for it goes with the guard.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hdguard.faults.rows import FaultError

SIZE = 288 << 20
"""Bytes: the recorder wants 256 MiB to stay free, and the rest is for its clips."""

NEEDS = "needs the right to mount a tmpfs: root with CAP_SYS_ADMIN, or user namespaces, and unshare"
_MOUNT = 'mount -t tmpfs -o size="$0",mode=700 hdguard-faults "$1" && shift && exec "$@"'


def on_small_disk(folder: Path, *command: str) -> tuple[str, ...]:
    """The command line that runs that command with this folder, which must exist, on such a disk.

    The process that is started becomes the command itself.
    """
    shell = ("sh", "-c", _MOUNT, str(SIZE), str(folder))
    return ("unshare", "--map-root-user", "--mount", *shell, *command)


def missing() -> str:
    """Why there can be no such disk here; empty if there can."""
    if shutil.which("unshare") is None:
        return NEEDS
    with tempfile.TemporaryDirectory(prefix="hdguard-faults-") as folder:
        command = on_small_disk(Path(folder), "true")
        tried = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    return NEEDS if tried.returncode else ""


class Ballast:
    """What fills the disk of a process up.

    Args:
        pid: of the process, whose namespace it is.
        folder: where the disk is mounted there.
    """

    def __init__(self, pid: int, folder: Path) -> None:
        self._file = Path(f"/proc/{pid}/root{folder}/ballast")

    async def fill(self) -> None:
        """Leave no byte free.

        Raises:
            FaultError: there is room left all the same.
        """
        await asyncio.to_thread(self._fill)

    def _fill(self) -> None:
        disk = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while free := _free(disk):
                os.posix_fallocate(disk, os.fstat(disk).st_size, free)
        except OSError as error:  # somebody else took what was left
            if _free(disk):
                raise FaultError(f"the disk cannot be filled up: {error.strerror}") from error
        finally:
            os.close(disk)

    async def empty(self) -> None:
        """Give the room back."""
        await asyncio.to_thread(self._file.unlink, missing_ok=True)


def _free(disk: int) -> int:
    found = os.fstatvfs(disk)
    return found.f_bavail * found.f_frsize
