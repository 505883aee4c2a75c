"""A headless Chromium, told what to do over its own protocol (CDP), for tests of the pages."""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync --disable-extensions "
    "--disable-background-networking --disable-component-update --disable-dev-shm-usage "
    "--hide-scrollbars --remote-debugging-port=0 about:blank"
)
PATIENCE = 20.0  # s: this machine may be busy with much else


class PageError(Exception):
    """The page or the browser says no: its own words."""


class Page:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._session = ""
        self._count = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []
        """Uncaught errors, and what the console was told of errors, such as broken policies."""

    async def listen(self) -> None:
        """Take what the browser says; a task."""
        async for raw in self._socket:
            said = json.loads(raw)
            if (answer := self._answers.pop(said.get("id", -1), None)) is not None:
                answer.set_result(said)
            elif said.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(said["params"]["exceptionDetails"])[:500])
            elif said.get("method") == "Log.entryAdded":
                entry = said["params"]["entry"]
                if entry["level"] == "error":
                    self.complaints.append(f"{entry['text']} {entry.get('url', '')}")

    async def open(self) -> None:
        """Make the tab."""
        made = await self.call("Target.createTarget", url="about:blank")
        where = {"targetId": made["targetId"], "flatten": True}
        self._session = (await self.call("Target.attachToTarget", **where))["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol and its result.

        Raises:
            PageError: it was refused.
        """
        self._count += 1
        number = self._count
        asked: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            asked["sessionId"] = self._session
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send(json.dumps(asked))
        async with asyncio.timeout(PATIENCE + 5.0):
            said = await answer
        if "error" in said:
            raise PageError(f"{method}: {said['error']}")
        result: dict[str, Any] = said["result"]
        return result

    async def go(self, url: str) -> None:
        """Load that address; returns when its document and scripts are there."""
        await self.call("Page.navigate", url=url)
        await self.until(f"location.href.startsWith({url!r}) && document.readyState === 'complete'")

    async def evaluate(self, expression: str) -> Any:
        """The value of that expression in the page, awaited if it is a promise."""
        said = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in said:
            raise PageError(f"{expression}: {said['exceptionDetails']}")
        return said["result"].get("value")

    async def until(self, condition: str, within: float = PATIENCE) -> float:
        """Wait, inside the page, until that is true; returns the page's time then, in seconds."""
        watch = f"""new Promise((resolve) => {{
            const end = performance.now() + {within * 1000};
            const look = () => {{
                let holds = false;
                try {{ holds = Boolean({condition}); }} catch (error) {{ holds = false; }}
                if (holds) resolve(performance.now() / 1000);
                else if (performance.now() > end) resolve(null);
                else setTimeout(look, 10);
            }};
            look();
        }})"""
        async with asyncio.timeout(within + 5.0):
            at = await self._through_navigation(watch)
        if at is None:
            text = await self.evaluate("document.body.innerText")
            raise PageError(f"not in {within:g} s: {condition}; the page says:\n{text}")
        return float(at)

    async def _through_navigation(self, watch: str) -> Any:
        while True:
            try:
                return await self.evaluate(watch)
            except PageError as error:
                if "context" not in str(error).lower():  # the old page went away under us
                    raise

    async def click(self, selector: str) -> None:
        """As a mouse does: what lies over it gets the click instead."""
        where = await self.evaluate(
            f"""(() => {{ const e = document.querySelector({selector!r});
            e.scrollIntoView({{block: "center", behavior: "instant"}});
            const b = e.getBoundingClientRect();
            return [b.x + b.width / 2, b.y + b.height / 2]; }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            at = {"x": where[0], "y": where[1], "button": "left", "clickCount": 1}
            await self.call("Input.dispatchMouseEvent", type=kind, **at)

    async def write(self, text: str) -> None:
        """Into whatever has the focus."""
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, code: int, text: str = "") -> None:
        """A key, with its Windows virtual code (Tab 9, Enter 13, Escape 27, Space 32)."""
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    async def size(self, width: int, height: int, *, scheme: str = "light") -> None:
        """The window's size in pixels, and whether its owner prefers light or dark."""
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.call("Emulation.setDeviceMetricsOverride", **shape)
        prefers = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=prefers)

    async def screenshot(self, *, whole: bool = True) -> bytes:
        """A PNG of the page, or of the window."""
        shot = await self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])


@asynccontextmanager
async def browsing(profile: Path) -> AsyncIterator[Page]:
    """Chromium with one tab, in a process group of its own that ends with it."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *FLAGS.split(),
        f"--user-data-dir={profile}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            address = await _address(profile / "DevToolsActivePort")
        async with connect(address, max_size=1 << 26) as socket, asyncio.TaskGroup() as group:
            page = Page(socket)
            listening = group.create_task(page.listen())
            await page.open()
            yield page
            listening.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _lines(path: Path) -> list[str]:
    return path.read_text().split("\n") if path.is_file() else []


async def _address(told: Path) -> str:
    """Where the browser takes commands: it writes a port and a path to that file."""
    while True:
        lines = _lines(told)
        if len(lines) >= 2 and lines[1]:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        await asyncio.sleep(0.02)  # a file tells nobody that it is there
