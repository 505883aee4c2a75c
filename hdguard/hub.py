"""Asking the model hub: what a model is at one commit, and the bytes of one file.

The hub's own `snapshot_download` throws away a file that it could not finish (huggingface_hub 2.4
gives each attempt a new temporary file), which for a model of many gigabytes is most of the work.
So files are fetched with the hub's `http_get`, which goes on in the middle of a file. That is
plain HTTP, one file after the other: slower than the hub's own parallel protocol, never in vain.
"""

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlparse

from hdguard.brains.catalogue import MANIFEST, PART, ModelEntry

COMMIT = re.compile(r"[0-9a-f]{40}")
DATA = {".safetensors", ".json", ".txt", ".model", ".jinja"}
"""Pickled weights (.bin, .pt) are code in disguise and are never fetched."""
CODE = ".py"
LEGAL = ("LICENSE", "LICENCE", "NOTICE")
ANSWER_WITHIN = 30.0
"""Seconds for one answer of the hub about a model or a file."""


class FetchError(Exception):
    """The model cannot be had, or not now: says why, and what to do."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file as the hub states it; one of the digests may be empty.

    Attributes:
        path: in the repository.
        size: bytes.
        sha256: of the content, for large files.
        blob: git's SHA-1 of it, for small ones.
    """

    path: str
    size: int
    sha256: str = ""
    blob: str = ""

    @property
    def part(self) -> str:
        """Its name while it is not whole; of another content, another name."""
        return f"{self.path}.{(self.sha256 or self.blob)[:12]}{PART}"


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """What is to be fetched: this commit, these files."""

    entry: ModelEntry
    revision: str
    licence: str
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class Hub:
    """The model hub; its library is an extra, so it is imported when it is needed.

    Args:
        endpoint: its address; None: `HF_ENDPOINT`, or the public one.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint

    def look_up(self, entry: ModelEntry, revision: str | None) -> FetchPlan:
        """Ask what the model is at this revision; None: at its newest. Nothing is downloaded.

        Raises:
            FetchError: no answer, no such revision, or nothing there that may be loaded.
        """
        with _blame(entry):
            info = (
                _library()
                .HfApi(endpoint=self._endpoint)
                .model_info(
                    entry.repo, revision=revision, files_metadata=True, timeout=ANSWER_WITHIN
                )
            )
        commit = info.sha or ""
        exact = COMMIT.fullmatch(revision or "") is not None
        if not COMMIT.fullmatch(commit) or (exact and commit != revision):
            raise FetchError(f"{entry.repo}: asked for {revision}, the hub answers {commit!r}")
        wanted = (f for f in info.siblings or () if _wanted(f.rfilename, code=entry.remote_code))
        files = tuple(sorted((_hub_file(entry, f) for f in wanted), key=lambda f: f.path))
        names = [f.path for f in files]
        if "config.json" not in names or not any(n.endswith(".safetensors") for n in names):
            raise FetchError(f"{entry.repo}: has no config.json with safetensors weights")
        return FetchPlan(entry, commit, _licence(info), files)

    def download(self, plan: FetchPlan, file: HubFile, part: Path) -> None:
        """Fetch one file, going on behind what `part` already has.

        Raises:
            FetchError: it could not be fetched to its end; `part` keeps what came.
        """
        hub = _library()
        with _blame(plan.entry), part.open("ab") as out:
            url = hub.hf_hub_url(
                plan.entry.repo, file.path, revision=plan.revision, endpoint=self._endpoint
            )
            found = hub.get_hf_file_metadata(url, timeout=ANSWER_WITHIN)
            headers = _library("utils").build_hf_headers()
            if urlparse(found.location).netloc != urlparse(url).netloc:
                headers.pop("authorization", None)  # the token is for the hub, not for its stores
            _library("file_download").http_get(
                found.location,
                out,
                resume_size=out.tell(),
                headers=headers,
                expected_size=file.size,
                displayed_filename=file.path,
            )


def _library(part: str = "") -> Any:
    return importlib.import_module(f"huggingface_hub.{part}" if part else "huggingface_hub")


def _wanted(path: str, *, code: bool) -> bool:
    file = PurePosixPath(path)
    known = file.suffix in DATA or (code and file.suffix == CODE) or file.name.startswith(LEGAL)
    return known and file.name != MANIFEST


def _hub_file(entry: ModelEntry, sibling: Any) -> HubFile:
    path = PurePosixPath(sibling.rfilename)
    if path.is_absolute() or ".." in path.parts or "\\" in sibling.rfilename:
        raise FetchError(f"{entry.repo}: refuses the path {sibling.rfilename!r}")
    large = sibling.lfs
    file = HubFile(
        path.as_posix(), sibling.size or 0, large.sha256 if large else "", sibling.blob_id or ""
    )
    if sibling.size is None or not (file.sha256 or file.blob):
        raise FetchError(f"{entry.repo}: the hub states no size or digest of {path}")
    return file


def _licence(info: Any) -> str:
    """As the model card states it, or the hub's tag."""
    stated = getattr(info.card_data, "license", None) if info.card_data else None
    tags = [t.removeprefix("license:") for t in info.tags or () if t.startswith("license:")]
    return str(stated or (tags[0] if tags else "not stated"))


@contextmanager
def _blame(entry: ModelEntry) -> Iterator[None]:
    """Put what the hub and the network can do wrong into words."""
    errors = _library("errors")
    try:
        yield
    except errors.GatedRepoError as error:
        msg = f"{entry.repo}: accept its terms at the hub, and set HF_TOKEN to a token of yours"
        raise FetchError(msg) from error
    except errors.RepositoryNotFoundError as error:
        raise FetchError(f"{entry.repo}: the hub has no such model, or not for you") from error
    except errors.RevisionNotFoundError as error:
        raise FetchError(f"{entry.repo}: has no such revision") from error
    except errors.OfflineModeIsEnabled as error:
        msg = f"{entry.repo}: HF_HUB_OFFLINE forbids the network: fetch without that variable"
        raise FetchError(msg) from error
    except (OSError, errors.HTTPError, ValueError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        msg = f"{entry.repo}: {said}; the same command again goes on where this one stopped"
        raise FetchError(msg) from error
