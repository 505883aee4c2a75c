"""A model hub on loopback: what `huggingface_hub` asks of one, and the ways in which one fails."""

import hashlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import pytest

COMMIT = "a" * 40
LATER = "b" * 40
WEIGHTS = bytes(range(256)) * 40
FILES = {
    "config.json": b'{"model_type": "smolvlm"}',
    "model.safetensors": WEIGHTS,
    "merges.txt": b"a b\n",
    "code/modeling.py": b"print('hello')\n",
    "pytorch_model.bin": b"pickled",
    "picture.png": b"png",
    "LICENSE": b"Apache License\n",
}
"""Of the newest commit; weights are a large file, the others are git blobs."""


@dataclass
class HubState:
    """What the hub has, how it fails, and what it was asked.

    Attributes:
        files: by commit, content by path.
        licence: on the model card.
        cut: bytes after which the next answers about a path break off: a number each.
        hold: bytes after which it stops sending a path until the peer leaves.
        down_after_cut: once it has broken off it answers 503.
        status: answer everything with this.
        said: sizes or digests that differ from the truth, by path.
        asked: (method, path, first byte asked for).
        holding: set when it has stopped sending.
    """

    files: dict[str, dict[str, bytes]]
    licence: str = "apache-2.0"
    cut: dict[str, list[int]] = field(default_factory=dict)
    hold: dict[str, int] = field(default_factory=dict)
    down_after_cut: bool = False
    status: int = 200
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    holding: threading.Event = field(default_factory=threading.Event)
    endpoint: str = ""

    def bytes_asked(self, path: str) -> list[int]:
        """First bytes that were asked for of a path."""
        return [first for method, asked, first in self.asked if (method, asked) == ("GET", path)]


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        state, path = self.server.state, unquote(self.path).split("?")[0]
        if state.status != 200:
            self.send_response(state.status)
            self.end_headers()
            return
        if path.startswith("/api/models/"):
            self._info(path)
            return
        _, _, rest = path.partition("/resolve/")
        commit, _, name = rest.partition("/")
        content = state.files.get(commit, {}).get(name)
        if content is None:
            self._missing("EntryNotFound")
            return
        start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").split("-")[0])
        state.asked.append((self.command, name, start))
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{_blob(content)}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if body:
            self._send(name, content[start:])

    def _send(self, name: str, content: bytes) -> None:
        state = self.server.state
        cuts = state.cut.get(name, [])
        if name in state.hold:
            self.wfile.write(content[: state.hold.pop(name)])
            state.holding.set()
            self.connection.recv(1)  # returns when the peer has gone
        elif cuts:
            self.wfile.write(content[: cuts.pop(0)])
            if state.down_after_cut:
                state.status = 503
        else:
            self.wfile.write(content)

    def _info(self, path: str) -> None:
        state = self.server.state
        repo, _, asked = path.removeprefix("/api/models/").partition("/revision/")
        commit = {"": COMMIT, "main": COMMIT}.get(asked, asked)
        if repo.endswith("gone"):
            self._missing("RepoNotFound")
            return
        if commit not in state.files:
            self._missing("RevisionNotFound")
            return
        body = json.dumps(
            {
                "id": repo,
                "sha": commit,
                "tags": [f"license:{state.licence}"],
                "cardData": {"license": state.licence},
                "siblings": [
                    {**_sibling(name, content), **state.said.get(name, {})}
                    for name, content in state.files[commit].items()
                ],
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _missing(self, code: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _sibling(name: str, content: bytes) -> dict[str, Any]:
    sibling: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": _blob(content)}
    if name.endswith(".safetensors"):
        digest = hashlib.sha256(content).hexdigest()
        sibling["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
    return sibling


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    state: HubState


@contextmanager
def hub_server() -> Iterator[HubState]:
    """Serve until the block ends; every thread has ended then."""
    with _Server(("127.0.0.1", 0), _Handler) as server, ThreadPoolExecutor(1) as pool:
        server.state = HubState({COMMIT: dict(FILES), LATER: {**FILES, "merges.txt": b"b c\n"}})
        server.state.endpoint = f"http://127.0.0.1:{server.server_port}"
        serving = pool.submit(server.serve_forever, 0.02)
        try:
            yield server.state
        finally:
            server.shutdown()
            serving.result()


@contextmanager
def real_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubState]:
    """Serve the real `huggingface_hub`, made quick: small chunks, no waits, no monitor thread."""
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    monkeypatch.setattr("tqdm.tqdm.monitor_interval", 0)
    hub.close_session()
    with hub_server() as running:
        try:
            yield running
        finally:
            hub.close_session()
