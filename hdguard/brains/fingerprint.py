"""A model folder's fingerprint: what a calibration was fitted for, told from files alone.

Scores change with the weights, the tokenizer, the precision, the prompt and the labels, and a
calibration for other ones is worth nothing. Weights are many gigabytes, too many to read at every
start, so a weight file counts by its name, its size, the table of contents at its head and samples
all over it. That tells two trainings of a model apart; it is no proof against somebody who
changes a file in between on purpose.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import MANIFEST

MOST_OF_A_HEADER = 100_000_000
"""Bytes; what the safetensors library itself allows."""
PIECE = 64 * 1024
PIECES = 1024
"""Of a weight file this many pieces of this many bytes are read: the whole, up to 64 MiB, and of
16 GB one piece in every 16 MB. A choice: 0.05 s of hashing a file, and what the disk takes."""

READ_BY_A_LOADER = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "*processor*.json",
    "chat_template*",
    "*.index.json",
    "*.jinja",
    "**/*.py",
    MANIFEST,
)
"""Which files beside the weights count. A calibration that lies in the folder must not: it would
end its own validity."""


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of a model's folder.

    Raises:
        BrainError: it is not there, or is no JSON object.
    """
    path = folder / name
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BrainError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BrainError(f"{path}: is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise BrainError(f"{path}: is no JSON object")
    return found


def fingerprint(folder: Path, **choices: str) -> str:
    """Of a model's files and of the choices that change its scores.

    The files that a loader reads count whole, weights by samples; see `READ_BY_A_LOADER`.

    Args:
        folder: in the shape of the model hub.
        choices: dtype, quantisation, prompt, labels and the like, as text.

    Returns:
        16 hexadecimal digits of a SHA-256.

    Raises:
        BrainError: the folder holds no model, or a file cannot be read.
    """
    read_json(folder, "config.json")  # is it a model at all?
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise BrainError(f"{folder}: holds no *.safetensors: no model, or not wholly fetched")
    # A set: one name may fit two patterns.
    texts = {p for names in READ_BY_A_LOADER for p in folder.glob(names) if p.is_file()}
    found = hashlib.sha256()
    try:
        for path in sorted(texts):
            name = path.relative_to(folder).as_posix()
            _add(found, name, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in weights:
            _add(found, path.name, *_samples(path))
    except OSError as error:
        raise BrainError(f"{error.filename}: cannot be read: {error.strerror}") from error
    for key, value in sorted(choices.items()):
        _add(found, key, value)
    return found.hexdigest()[:16]


def _add(found: "hashlib._Hash", *words: str) -> None:
    """Unambiguously: two words are not one longer one."""
    found.update(json.dumps(words).encode())


def _samples(path: Path) -> tuple[str, str]:
    """A weight file's size, and a hash of its head and of pieces at fixed distances.

    The head is 8 bytes of length, then names, types, shapes and offsets.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= MOST_OF_A_HEADER or length + 8 > size:
            raise BrainError(f"{path}: is no safetensors file, or cut off: fetch the model again")
        found = hashlib.sha256(file.read(length))
        step = max(PIECE, size // PIECES)
        for at in (*range(0, size, step), max(0, size - PIECE)):
            file.seek(at)
            found.update(file.read(PIECE))
    return str(size), found.hexdigest()
