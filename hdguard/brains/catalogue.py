"""The models that brains are known to run, as data, and where fetched ones lie.

A brain's `path` is a folder, or the name of a model that `hdguard models fetch` brought here. What
was fetched is written down beside it in `hdguard-model.json`, last of all, so that an interrupted
download is never taken for a model, nor is a file that was changed since; of weights, which are too
large to be read each time, only a change of size is seen.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hdguard.brains.base import BrainError

MANIFEST = "hdguard-model.json"
PART = ".part"
"""Ends the name of a file that is not whole yet."""

WEIGHTS = ".safetensors"
"""Ends the name of a file of weights."""

GIB = 2**30
ROOM_GIB = 2.0
"""GPU memory beside the weights, GiB: a choice, not a measurement. Keys and values of a review of
24 pictures are about 8,000 tokens at 144 KiB (36 layers of Qwen3-8B, the most of any model here but
the mixture of experts), 1.1 GiB; the rest is for activations and CUDA itself."""

Extra = Literal["models", "minicpmo"]
Role = Literal["fast", "slow", "both"]


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model.

    Attributes:
        name: ours, for settings and commands.
        family: its name in `families.FAMILIES`.
        repo: on the model hub.
        licence: as its publisher states it; `fetch` shows what the hub says at that time.
        billions: of parameters, published.
        extra: what has to be installed for it.
        role: what it is meant for: fast, slow or both.
        remote_code: its repository brings the code that runs it.
        stored_bytes: of one parameter in the published files.
        revision: the commit that we have run it at, and that is fetched unless another is asked
            for; None: we have never run the real weights.
        unverified: what of this row nobody has checked at its source; empty: nothing.
        note: for people.
    """

    name: str
    family: str
    repo: str
    licence: str
    billions: float
    extra: Extra = "models"
    role: Role = "both"
    remote_code: bool = False
    stored_bytes: int = 2
    revision: str | None = None
    unverified: str = ""
    note: str = ""

    @property
    def weights_gib(self) -> float:
        """GiB of the weights in bfloat16, computed: 2 bytes for each parameter."""
        return 2.0 * self.billions * 1e9 / GIB

    @property
    def gpu_gib(self) -> float:
        """GiB of GPU memory that it needs in bfloat16, computed: the weights and `ROOM_GIB`."""
        return self.weights_gib + ROOM_GIB

    @property
    def download_gib(self) -> float:
        """GiB to download, computed from the parameters; `fetch` asks the hub for the real size."""
        return self.stored_bytes * self.billions * 1e9 / GIB


LICENCE = "the licence (not seen on the model card)"
BOTH = "the number of parameters (not counted in the files) and " + LICENCE
OWN_ENVIRONMENT = "needs an environment of its own: its code does not run with transformers 5"

# Parameters. SmolVLM2: size of the published float32 files by 4 (2.03 and 8.99 GB, listings of the
# hub at 65732f7 and refs/pr/9). Qwen3-VL 2B, 4B, 8B: counted in the published files (cards of
# OpenExplorer/Qwen3-VL-*-Instruct); 30B-A3B: 31.1, the hub shows 31B. InternVL3.5: 1B counted in
# the same way, the others from the table of its model card; the hub shows 2B, 5B and 9B.
# MiniCPM-o 4.5: 9B, its README, audio included, which we do not load. Licences: model cards, unless
# `unverified` names them.
_ENTRIES = (
    ModelEntry(
        "smolvlm2-500m",
        "smolvlm",
        "HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
        "apache-2.0",
        0.507,
        role="fast",
        stored_bytes=4,
    ),
    ModelEntry(
        "smolvlm2-2.2b",
        "smolvlm",
        "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        "apache-2.0",
        2.247,
        role="fast",
        stored_bytes=4,
    ),
    ModelEntry(
        "qwen3-vl-2b",
        "qwen3_vl",
        "Qwen/Qwen3-VL-2B-Instruct",
        "apache-2.0",
        2.128,
        unverified=LICENCE,
    ),
    ModelEntry(
        "qwen3-vl-4b",
        "qwen3_vl",
        "Qwen/Qwen3-VL-4B-Instruct",
        "apache-2.0",
        4.438,
        unverified=LICENCE,
    ),
    ModelEntry(
        "qwen3-vl-8b",
        "qwen3_vl",
        "Qwen/Qwen3-VL-8B-Instruct",
        "apache-2.0",
        8.767,
        unverified=LICENCE,
    ),
    ModelEntry(
        "qwen3-vl-30b-a3b-thinking",
        "qwen3_vl",
        "Qwen/Qwen3-VL-30B-A3B-Thinking",
        "apache-2.0",
        31.1,
        role="slow",
        unverified=LICENCE,
        note="4-bit saves next to nothing: the experts stay in bfloat16",
    ),
    ModelEntry(
        "internvl3.5-1b",
        "internvl",
        "OpenGVLab/InternVL3_5-1B-HF",
        "apache-2.0",
        1.061,
        unverified=LICENCE,
    ),
    ModelEntry(
        "internvl3.5-2b",
        "internvl",
        "OpenGVLab/InternVL3_5-2B-HF",
        "apache-2.0",
        2.3,
        unverified="the number of parameters (not counted in the files)",
    ),
    ModelEntry(
        "internvl3.5-4b",
        "internvl",
        "OpenGVLab/InternVL3_5-4B-HF",
        "apache-2.0",
        4.7,
        unverified=BOTH,
    ),
    ModelEntry(
        "internvl3.5-8b",
        "internvl",
        "OpenGVLab/InternVL3_5-8B-HF",
        "apache-2.0",
        8.5,
        unverified=BOTH,
    ),
    ModelEntry(
        "minicpm-o-4.5",
        "minicpmo",
        "openbmb/MiniCPM-o-4_5",
        "apache-2.0",
        9.0,
        extra="minicpmo",
        role="fast",
        remote_code=True,
        unverified=LICENCE,
        note=OWN_ENVIRONMENT,
    ),
)
MODELS = {entry.name: entry for entry in _ENTRIES}


class FileRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fetched file: bytes, and SHA-256 of its content."""

    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was fetched: `hdguard-model.json`.

    Attributes:
        format: of the file.
        name: in the catalogue.
        repo: on the model hub.
        revision: its commit, 40 hex digits.
        family: of the model.
        licence: as the hub stated it then.
        remote_code: the repository's code was asked for and fetched too.
        files: by their path in the folder.
    """

    format: Literal["hdguard-model/1"] = "hdguard-model/1"
    name: str
    repo: str
    revision: str
    family: str
    licence: str
    remote_code: bool
    files: dict[str, FileRecord]


def models_root() -> Path:
    """Where fetched models lie: `$XDG_DATA_HOME/hdguard/models`, in ~/.local/share by default."""
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "hdguard" / "models"


def read_manifest(folder: Path) -> Manifest | None:
    """What was fetched into this folder; None: nothing was, or not to its end.

    Raises:
        BrainError: the manifest is damaged.
    """
    file = folder / MANIFEST
    try:
        return msgspec.json.decode(file.read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise BrainError(f"{file}: is damaged: {error}; fetch the model again") from error


def model_folder(path_or_name: str) -> Path:
    """The folder of a model: a fetched one by its name in the catalogue, else a path to any folder.

    What was fetched is checked: the content of every file but weights, whose size is, and that no
    other code lies there. A folder that did not come from `fetch` is its owner's affair.

    Raises:
        BrainError: no such folder or model, not fetched or not to its end, or changed since.
    """
    known = path_or_name in MODELS
    folder = models_root() / path_or_name if known else Path(path_or_name).expanduser()
    if not folder.is_dir():
        if known:
            raise BrainError(
                f"model {path_or_name}: not fetched: hdguard models fetch {path_or_name}"
            )
        raise BrainError(
            f"path: {path_or_name}: no such folder, and no model of that name; there are "
            f"{', '.join(MODELS)}"
        )
    manifest = read_manifest(folder)
    if manifest is not None:
        _check(folder, manifest)
    elif known or any(folder.rglob(f"*{PART}")):
        raise BrainError(
            f"{folder}: its download was not finished: the same `hdguard models fetch` goes on"
        )
    return folder


def _check(folder: Path, manifest: Manifest) -> None:
    again = f"hdguard models fetch {manifest.name} --force"
    for name, record in manifest.files.items():
        file = folder / name
        size = file.stat().st_size if file.is_file() else None
        if size != record.size:
            found = "is gone" if size is None else f"has {size} bytes instead of {record.size}"
            raise BrainError(f"{file}: {found}: {again}")
        if file.suffix == WEIGHTS:
            continue
        if record.sha256 != hashlib.sha256(file.read_bytes()).hexdigest():
            raise BrainError(f"{file}: is not what was fetched at {manifest.revision}: {again}")
    for code in folder.rglob("*.py"):
        if code.relative_to(folder).as_posix() not in manifest.files:
            raise BrainError(f"{code}: this code was not fetched at {manifest.revision}: {again}")
