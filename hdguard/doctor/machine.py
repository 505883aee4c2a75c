"""What the machine itself must have: a place for the state, a loop that keeps time, GPUs."""

import asyncio
import os
import pwd
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

from hdguard.doctor.findings import Finding, fail, ok, warn
from hdguard.machine import Gpu
from hdguard.runtime.state_file import StateFileError, read_state

MIB = 1 << 20
LEAST_FREE, LITTLE_FREE = 10 * MIB, 100 * MIB
"""Bytes: a choice. The state is a few kilobytes; what fills the disk is what else grows on it."""

NAPS, NAP = 50, 0.005
"""Naps of so many seconds, by which the loop's punctuality is measured."""
LATE_WARN, LATE_FAIL = 0.02, 0.1
"""Seconds. An expired limit must be noticed within 0.1 s (DESIGN 3); a tenth of a permit's period
leaves room for the work itself."""


def check_state(folder: Path, boot_file: Path) -> list[Finding]:
    """Whether the state can be kept on disk, by the user who runs this.

    Args:
        folder: the state's.
        boot_file: in it; counts the guard's starts.

    Raises:
        OSError: the folder or what is in it cannot be used.
    """
    who = _user(os.geteuid())
    if not folder.is_dir():
        above = next(parent for parent in folder.parents if parent.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return [ok("state", f"{folder} will be made at the first start, by {who}")]
        how = f"make it: install -d -o USER -m 0700 {folder}, or set live.state_dir"
        return [fail("state", f"{folder} is not there and {who} may not make it", how)]
    took = _write_and_sync(folder / ".doctor")
    found = [ok("state", f"{folder}: {who} writes and syncs there in {took * 1e3:.1f} ms")]
    if (owner := folder.stat().st_uid) != os.geteuid():
        how = f"run the doctor as the service does: sudo -u {_user(owner)} ..."
        found.append(warn("state", f"{folder} belongs to {_user(owner)}, not to {who}", how))
    if not _boot_readable(boot_file):
        how = "write a number greater than ever into it, or the robot takes all it hears for old"
        found.append(fail("state", f"{boot_file} holds no boot number", how))
    return [*found, _free(folder)]


def _user(uid: int) -> str:
    """The user's name; in a container the number may be all there is."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _write_and_sync(path: Path) -> float:
    start = perf_counter()  # measures work
    try:
        with path.open("wb") as file:
            file.write(b"hdguard doctor\n")
            file.flush()
            os.fsync(file.fileno())
        return perf_counter() - start
    finally:
        path.unlink(missing_ok=True)


def _boot_readable(path: Path) -> bool:
    if not path.exists():
        return True
    if not os.access(path, os.R_OK):
        return False
    text = path.read_text(encoding="ascii", errors="replace").strip()
    return text.isdecimal() and len(text) <= 15  # what `raise_boot` takes


def check_kept(state_file: Path, robot: str) -> list[Finding]:
    """Whether what an earlier life kept can be read, and whether it left a halt in force."""
    try:
        kept = read_state(state_file, robot)
    except StateFileError as error:
        how = "see what it says; without it hdguard does not start"
        return [fail("state", str(error), how)]
    if kept is None or kept.halt is None:
        return []
    halt = kept.halt
    how = f"see to what is wrong, and end it while hdguard runs: hdguard reset {halt.halt_id}"
    return [warn("state", f"halt {halt.halt_id} ({halt.cause}) is in force", how)]


def _free(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    said = f"{free / MIB:.0f} MiB free where {folder} lies"
    if free >= LITTLE_FREE:
        return ok("disk", said)
    how = "make room: on a full disk a halt in force is not remembered across a restart"
    return (fail if free < LEAST_FREE else warn)("disk", said, how)


async def check_clock() -> list[Finding]:
    """Whether the loop wakes when it is to; the wall clock does not matter."""
    loop = asyncio.get_running_loop()
    late = []
    for _ in range(NAPS):
        due = loop.time() + NAP
        await asyncio.sleep(NAP)
        late.append(loop.time() - due)
    worst = max(late)
    said = (
        f"the loop wakes up to {worst * 1e3:.1f} ms late; decisions use its clock alone, "
        "so neither the time of day nor NTP matters"
    )
    if worst < LATE_WARN:
        return [ok("clock", said)]
    how = "this machine has too much else to do: move work away, or give hdguard cores of its own"
    return [(fail if worst >= LATE_FAIL else warn)("clock", said, how)]


def check_gpus(wanted: Mapping[str, str], gpus: Sequence[Gpu]) -> list[Finding]:
    """Whether the GPUs that the brains name are there.

    Args:
        wanted: brain -> device, of the brains that have one: cuda:N, a GPU's UUID, or cpu.
        gpus: as `nvidia-smi` lists them.
    """
    seen = ", ".join(f"cuda:{n} {gpu.name} {gpu.gib:.0f} GiB" for n, gpu in enumerate(gpus))
    missing = {brain: device for brain, device in wanted.items() if not _there(device, gpus)}
    if missing:
        who = ", ".join(f"{brain} wants {device}" for brain, device in missing.items())
        how = (
            "run nvidia-smi as the service's user: install the driver, allow /dev/nvidia* in the "
            "unit (DeviceAllow), or set the brain's device"
        )
        return [fail("gpu", f"{who}; seen: {seen or 'none'}", how)]
    if all(device == "cpu" for device in wanted.values()):
        return [ok("gpu", f"none is needed; seen: {seen or 'none'}")]
    return [ok("gpu", seen)]


def _there(device: str, gpus: Sequence[Gpu]) -> bool:
    if device.startswith("cuda:"):
        return int(device.removeprefix("cuda:")) < len(gpus)
    if device.startswith("MIG-"):  # a part of one, which is not listed: its model must load
        return bool(gpus)
    return device == "cpu" or any(gpu.uuid == device for gpu in gpus)
