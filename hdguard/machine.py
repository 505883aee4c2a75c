"""What this machine has, and whether a model can run on it; nothing is loaded for that.

torch takes seconds to import and a GPU's memory to wake, so packages are asked for by their
metadata and GPUs through `nvidia-smi`.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hdguard.brains.catalogue import GIB, Extra, ModelEntry
from hdguard.config import ConfigError

Range = tuple[str, str]
EXTRAS: dict[Extra, dict[str, Range]] = {
    "models": {
        "accelerate": ("1.10", "2"),
        "pillow": ("11", "14"),
        "safetensors": ("0.6", "1"),
        "torch": ("2.9", "3"),
        "transformers": ("5.20", "6"),
    },
    "minicpmo": {
        "accelerate": ("1.10", "2"),
        "librosa": ("0.10", "1"),
        "pillow": ("11", "14"),
        "safetensors": ("0.6", "1"),
        "soundfile": ("0.12", "1"),
        "torch": ("2.3", "3"),
        "transformers": ("4.57", "5"),
    },
}
"""What loading a model needs, from the first version to below the second; as in pyproject.toml."""

ANSWER_WITHIN = 5.0
"""Seconds for `nvidia-smi`, which hangs where a driver does, and for another interpreter."""
_GPUS = ("nvidia-smi", "--query-gpu=uuid,name,memory.total", "--format=csv,noheader,nounits")
_VERSIONS = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({n: d.version for d in m.distributions() if (n := d.metadata['Name'])}))"
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its UUID, which settings take as `device`, its name, and its memory in GiB."""

    uuid: str
    name: str
    gib: float


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is.

    Attributes:
        gpus: as `nvidia-smi` tells; none where it cannot.
        memory_gib: of the machine itself.
        versions: of installed packages, by their names in lower case with hyphens.
    """

    gpus: tuple[Gpu, ...]
    memory_gib: float
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a model can run: on a GPU, on the CPU only, or not at all; and why not better."""

    on: Literal["gpu", "cpu", "none"]
    why: str


def look_at_machine(python: str = "") -> Machine:
    """See what is there.

    Args:
        python: another environment's interpreter, as a brain's `python` names it.

    Raises:
        ConfigError: that interpreter does not answer.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(_gpus(), memory / GIB, _versions(python))


def fit(entry: ModelEntry, machine: Machine) -> Fit:
    """Whether the model can run there, in bfloat16 and one whole on one device."""
    missing = _missing(entry.extra, machine.versions)
    if missing:
        what = "; ".join(missing)
        how = f"pip install 'hdguard[{entry.extra}]', or look at another environment with --python"
        return Fit("none", f"{what}: {how}")
    most = max((gpu.gib for gpu in machine.gpus), default=0.0)
    if most >= entry.gpu_gib:
        return Fit("gpu", "")
    short = f"the largest GPU has {most:.1f} GiB" if machine.gpus else "no NVIDIA GPU is seen"
    if machine.memory_gib >= entry.gpu_gib:
        return Fit("cpu", f'{short}; with device = "cpu" it loads, too slow for most deadlines')
    return Fit("none", f"{short}, the machine {machine.memory_gib:.1f} GiB")


def _missing(extra: Extra, versions: Mapping[str, str]) -> list[str]:
    found = []
    for package, (least, below) in EXTRAS[extra].items():
        version = versions.get(package)
        if version is None:
            found.append(f"{package} is not installed")
        elif not _numbers(least) <= _numbers(version) < _numbers(below):
            found.append(f"{package} {version} is not {least} to below {below}")
    return found


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers: 2.13.0+cpu is (2, 13, 0)."""
    start = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(n) for n in start.group().split(".")) if start else ()


def _gpus() -> tuple[Gpu, ...]:
    if shutil.which(_GPUS[0]) is None:
        return ()
    try:
        done = subprocess.run(
            _GPUS, capture_output=True, text=True, check=True, timeout=ANSWER_WITHIN
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    # "[N/A]" MiB, where a GPU uses the machine's own memory, is not matched.
    rows = (re.fullmatch(r"([^,]+), (.+), (\d+)", line) for line in done.stdout.splitlines())
    return tuple(Gpu(row[1], row[2], int(row[3]) / 1024) for row in rows if row)


def _versions(python: str) -> dict[str, str]:
    if not python:
        # A package that was removed halfway has no name.
        there = [(d.metadata["Name"], d) for d in importlib.metadata.distributions()]
        return {_plain(name): d.version for name, d in there if name}
    try:
        done = subprocess.run(
            (str(Path(python).expanduser()), "-c", _VERSIONS),
            capture_output=True,
            text=True,
            check=True,
            timeout=ANSWER_WITHIN,
        )
        return {_plain(name): version for name, version in json.loads(done.stdout).items()}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        msg = f"--python {python}: does not answer: {error}"
        raise ConfigError(msg) from error


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
