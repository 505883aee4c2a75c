"""A model's folder: one exact commit, every file checked, gone on with where a fetch stopped.

A file is put in its place only when its content has the digest that the hub stated, and the
manifest is written last. From then on nothing needs the network.
"""

import hashlib
import importlib.util
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import (
    MANIFEST,
    PART,
    FileRecord,
    Manifest,
    ModelEntry,
    read_manifest,
)
from hdguard.config import ConfigError
from hdguard.hub import CODE, COMMIT, FetchError, FetchPlan, Hub, HubFile

UNFINISHED = MANIFEST + PART
"""Stands in the folder while a fetch is under way, and lists what fetches have put there: SHA-256
by path; empty where a file is not known to be whole."""
SPARE = 2**30
"""Bytes of the disk that a download leaves free."""


def check_request(entry: ModelEntry, revision: str | None, *, allow_remote_code: bool) -> None:
    """Code from a model's repository runs here only if it was asked for, at one exact commit.

    Raises:
        ConfigError: it says which option is missing, or that huggingface_hub is not installed.
    """
    if entry.remote_code and not allow_remote_code:
        msg = (
            f"{entry.name}: its repository brings the code that runs it; read that code, and say "
            "--allow-remote-code --revision COMMIT to fetch it"
        )
        raise ConfigError(msg)
    if entry.remote_code and not COMMIT.fullmatch(revision or ""):
        msg = (
            f"{entry.name}: code is fetched only at one exact commit: --revision with the 40 hex "
            f"digits of the commit that you have read, not {revision or 'the newest'}"
        )
        raise ConfigError(msg)
    if importlib.util.find_spec("huggingface_hub") is None:
        msg = "huggingface_hub is not installed: pip install 'hdguard[models]'"
        raise ConfigError(msg)


def finished(plan: FetchPlan, folder: Path, *, force: bool) -> Manifest | None:
    """The manifest, if the folder has this very commit already; None: there is work to do.

    Raises:
        ConfigError: it has another model or commit, and `force` does not say to replace it, or
            something that no fetch has put there.
    """
    damaged = ""
    try:
        there = read_manifest(folder)
    except BrainError as error:
        there, damaged = None, f"{error} with --force"
    if there is not None and (there.repo, there.revision) != (plan.entry.repo, plan.revision):
        damaged = f"{folder}: has {there.repo} at {there.revision}: --force replaces it"
    if damaged and not force:
        raise ConfigError(damaged)
    if there is not None:
        return None if force else there
    if not damaged and not (folder / UNFINISHED).exists() and folder.is_dir() and _full(folder):
        msg = f"{folder}: has files that no fetch has put there: choose another --dir"
        raise ConfigError(msg)
    return None


def _full(folder: Path) -> bool:
    return next(folder.iterdir(), None) is not None


def check_space(plan: FetchPlan, folder: Path) -> None:
    """Raise FetchError if the disk has too little room for what is still to come."""
    known = _known(folder)
    have = 0
    for file in plan.files:
        part = folder / file.part
        have += part.stat().st_size if part.is_file() else 0
        have += file.size if _recorded(folder / file.path, file, known) else 0
    place = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free
    need = max(0, plan.size - have) + SPARE
    if free < need:
        msg = f"{place}: {free / 1e9:.1f} GB are free, {need / 1e9:.1f} GB are needed: --dir DIR"
        raise FetchError(msg)


def _recorded(place: Path, file: HubFile, known: Mapping[str, str]) -> bool:
    """Whether this file need not come again, without reading weights to know it."""
    if not file.sha256:  # a small file
        return _digest(place, file) is not None
    whole = place.is_file() and place.stat().st_size == file.size
    return whole and known.get(file.path) == file.sha256


def fetch(hub: Hub, plan: FetchPlan, folder: Path, told: Callable[[str], None]) -> Manifest:
    """Fetch what is not there yet; the manifest is written last, when every file is right.

    Args:
        hub: where from.
        plan: what.
        folder: where to, after `finished`; files that it has already are kept if they are right.
        told: hears of each file.

    Raises:
        FetchError: a file could not be fetched, or is not what the hub stated.
    """
    known = _begin(plan, folder)
    ours = set(known)
    records: dict[str, FileRecord] = {}
    for n, file in enumerate(plan.files, 1):
        digest = _digest(folder / file.path, file)
        told(f"{n}/{len(plan.files)} {file.path}{': is there' if digest else ''}")
        records[file.path] = FileRecord(file.size, digest or _bring(hub, plan, file, folder))
        known[file.path] = records[file.path].sha256
        _write_known(folder, known)
    _remove_others(folder, ours - set(records), set(records))
    manifest = Manifest(
        name=plan.entry.name,
        repo=plan.entry.repo,
        revision=plan.revision,
        family=plan.entry.family,
        licence=plan.licence,
        remote_code=plan.entry.remote_code,
        files=records,
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    (folder / UNFINISHED).write_bytes(text)
    (folder / UNFINISHED).replace(folder / MANIFEST)
    return manifest


def _begin(plan: FetchPlan, folder: Path) -> dict[str, str]:
    """Make the folder known as unfinished; returns every file that this or a fetch before puts."""
    folder.mkdir(parents=True, exist_ok=True)
    known = dict.fromkeys((file.path for file in plan.files), "") | _known(folder)
    _write_known(folder, known)
    (folder / MANIFEST).unlink(missing_ok=True)
    return known


def _known(folder: Path) -> dict[str, str]:
    """What fetches have put there; see `UNFINISHED`."""
    known: dict[str, str] = {}
    # What a damaged list named and no plan does stays.
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        known = msgspec.json.decode((folder / UNFINISHED).read_bytes(), type=dict[str, str])
    try:
        before = read_manifest(folder)
    except BrainError:
        return known
    return known | {name: it.sha256 for name, it in (before.files if before else {}).items()}


def _write_known(folder: Path, known: Mapping[str, str]) -> None:
    (folder / UNFINISHED).write_bytes(msgspec.json.encode(known, order="sorted"))


def _bring(hub: Hub, plan: FetchPlan, file: HubFile, folder: Path) -> str:
    """Fetch one file into its place; returns its SHA-256."""
    part = folder / file.part
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.is_file() and part.stat().st_size > file.size:
        part.unlink()
    hub.download(plan, file, part)
    digest = _digest(part, file)
    if digest is None:
        part.unlink()
        msg = f"{file.path}: arrived damaged and was thrown away: the same command again"
        raise FetchError(msg)
    part.replace(folder / file.path)
    return digest


def _digest(place: Path, file: HubFile) -> str | None:
    """SHA-256 of this file; None if it is not there or not what the hub stated."""
    if not place.is_file() or place.stat().st_size != file.size:
        return None
    sha256 = hashlib.sha256()
    blob = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)  # as git names a file
    with place.open("rb") as content:
        while chunk := content.read(2**20):
            sha256.update(chunk)
            if not file.sha256:
                blob.update(chunk)
    right = sha256.hexdigest() == file.sha256 if file.sha256 else blob.hexdigest() == file.blob
    return sha256.hexdigest() if right else None


def _remove_others(folder: Path, old: set[str], known: set[str]) -> None:
    """Remove what another commit or an abandoned attempt has left, and code that nobody fetched.

    An old file of weights beside the new ones could be loaded instead of them. Anything else, as
    somebody's calibration, stays.
    """
    for name in old:
        (folder / name).unlink(missing_ok=True)
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        left = path.suffix in {PART, CODE} and name not in {*known, UNFINISHED}
        if left and path.is_file():
            path.unlink()
