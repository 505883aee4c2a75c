"""A real browser with its made-up camera publishes to the guard, and its pictures arrive."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import pytest

from hdguard.core.types import ImageSpec
from hdguard.ingest.webrtc import WhipSettings, WhipSource
from hdguard.observe.http import HttpParts
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpSettings
from tests.ingest.http_stub import Request, reply, serving
from tests.ingest.webrtc_peers import Watch, needs_network, on_uvloop, watched
from tests.observe import support

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
TOKEN = "the-hall-camera's-token"
PAGE = Path(__file__).parent.parent / "pages" / "publish.html"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-dev-shm-usage "
    "--use-fake-device-for-media-stream --use-fake-ui-for-media-stream"
)
# Without a name to look up by multicast, which is not every network's to answer.
FEATURES = "--disable-features=WebRtcHideLocalIpsWithMdns"

pytestmark = [
    needs_network,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (package chromium)"),
]


@asynccontextmanager
async def browser(url: str, profile: Path) -> AsyncIterator[None]:
    """Chromium on that page, in a process group of its own that ends with it."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *FLAGS.split(),
        FEATURES,
        f"--user-data-dir={profile}",
        url,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@asynccontextmanager
async def endpoint(source: WhipSource) -> AsyncIterator[int]:
    """The guard's own HTTP server with that camera; its port."""
    seen = support.Watched()
    settings = HttpSettings(port=0, publish_tokens={source.source_id: TOKEN})
    cameras = {source.source_id: source}
    parts = HttpParts(seen.status, seen.metrics, lambda _: None, cameras)
    server = HttpServer(settings, lambda: parts)
    await server.start()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.serve())
        try:
            yield server.port
        finally:
            task.cancel()


def test_a_browser_publishes_its_camera_and_its_death_is_told_by_its_frames(
    tmp_path: Path,
) -> None:
    async def page(request: Request, watch: Watch) -> bytes:
        if request.target == "/failed":
            watch.give_up(request.body)
        return reply(200, PAGE.read_text(encoding="utf-8"), Content_Type="text/html")

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with (
            watched(WhipSettings("hall", silent_after=1.1)) as watch,
            endpoint(watch.source) as port,
            serving(lambda request: page(request, watch)) as address,
        ):
            url = f"http://{address}/page#http://127.0.0.1:{port}/whip/hall,{TOKEN}"
            async with browser(url, tmp_path):
                got = await watch.more(30)
                assert watch.error is None
            died = loop.time()
            assert "no clean picture came in time" in str(await watch.over())
            assert watch.arrivals[-1] < died + 0.5
            assert loop.time() - watch.arrivals[-1] < 2.0
        assert got[29].ref.media_time - got[0].ref.media_time > 0.5
        ages = [at - f.ref.captured_at for f, at in zip(got, watch.arrivals, strict=False)]
        assert median(ages) < 0.3
        picture = got[29].image.rgb(ImageSpec(64))
        assert picture.std() > 10  # a test picture with a moving part
        assert (picture != got[0].image.rgb(ImageSpec(64))).any()

    on_uvloop(story(), within=50.0)
