"""`hdguard run` as a real process, for the end-to-end tests."""

import asyncio
import http.client
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import cv2

from tests.actuators.support import PATIENCE, RESET_KEY
from tests.e2e.stage import REPOSITORY
from tests.mosquitto import PASSWORD, free_port

TOKEN = "only-for-these-tests"
SAFE_CLIP = REPOSITORY / "hdguard" / "examples" / "clips" / "06_safe.mp4"


def still(folder: Path) -> str:
    """The URL of a camera that shows one safe picture for ever, ten times a second."""
    pictures = folder / "still"
    pictures.mkdir()
    with av.open(str(SAFE_CLIP)) as clip:
        picture = next(clip.decode(video=0)).to_ndarray(format="bgr24")
    for number in range(10):
        cv2.imwrite(str(pictures / f"{number}.png"), picture)
    return f"file:{pictures}"


@dataclass
class Setup:
    """A guard's configuration.

    Attributes:
        folder: of the configuration and the state.
        broker: its port.
        camera: the URL of its one camera.
        more: further lines of `[live]` and after it.
        http: the port that it answers on.
    """

    folder: Path
    broker: int
    camera: str
    more: str = ""
    http: int = field(default_factory=free_port)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def write(self) -> Path:
        """The configuration's file."""
        path = self.folder / "hdguard.toml"
        path.write_text(
            f'[[camera]]\nname = "kitchen"\nurl = "{self.camera}"\n'
            f'[mqtt]\nport = {self.broker}\nrobot = "rosie"\nusername = "guard"\n'
            f'password = "{PASSWORD}"\nreset_key = "{RESET_KEY}"\n'
            f'[http]\nport = {self.http}\ntoken = "{TOKEN}"\n'
            f'[live]\nstate_dir = "{self.state}"\n{self.more}\n'
        )
        return path

    def ask(self, path: str) -> tuple[int, Any]:
        """What it answers over HTTP; blocks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    async def asked(self, path: str) -> tuple[int, Any]:
        return await asyncio.to_thread(self.ask, path)


class Running:
    """The process, and what it says."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = asyncio.Condition()

    async def read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._news:
                self.lines.append(line.decode())
                self._news.notify_all()

    async def says(self, words: str) -> None:
        """Wait for a line with these words."""

        def said() -> bool:
            return any(words in line for line in self.lines)

        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(said)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def running(setup: Setup, **env: str) -> AsyncIterator[Running]:
    """A guard's process; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hdguard",
        "run",
        "--config",
        str(setup.write()),
        cwd=REPOSITORY,
        env={**os.environ, **env},
        stderr=asyncio.subprocess.PIPE,
    )
    guard = Running(process)
    async with asyncio.TaskGroup() as group:
        group.create_task(guard.read(), name="stderr")
        try:
            yield guard
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def json_of(payload: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(payload)
    return found


def in_state(state: str) -> Callable[[bytes], bool]:
    """True for a message of the topic `state` that says so."""
    return lambda payload: json_of(payload)["state"] == state
