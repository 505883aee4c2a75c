"""The report in a real browser: from a file, without the network, at any size and in any light."""

import asyncio
from pathlib import Path

import pytest

from hdguard.replay.html_report.page import write_report
from hdguard.replay.html_report.settings import ReportSettings
from tests.browser import CHROMIUM, Page, browsing
from tests.replay.made import make_dataset
from tests.test_cli import replay

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (package chromium)")

PLOTS = """[...document.querySelectorAll("svg[role=img]")].map((svg) => {
    const box = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")];
    return {width: box.width, height: box.height, name: svg.querySelector("title").textContent,
            drawn: texts.filter((t) => t.getBoundingClientRect().width > 0).length};
})"""
PICTURES = """Promise.all([...document.images].map(async (image) => {
    await image.decode();
    return image.naturalWidth;
}))"""
LOADED = "performance.getEntriesByType('resource').map((e) => e.name)"
COLOURS = """[getComputedStyle(document.body).backgroundColor, getComputedStyle(
    document.querySelector("#phases-title").parentElement.querySelector("text")).fill]"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    result = replay(make_dataset(folder / "data"), folder / "run")
    assert result.exit_code == 0, result.output
    out = folder / "page.html"
    write_report(folder / "run", out, ReportSettings(), lambda *_: None)
    return out


async def sideways(page: Page) -> float:
    """Pixels by which the page itself is wider than its window."""
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return float(await page.evaluate(wide))


def test_a_stranger_can_read_it_in_a_browser(page_file: Path, tmp_path: Path) -> None:
    async def story() -> None:
        async with browsing(tmp_path / "profile") as page:
            await page.size(1100, 900)
            await page.go(page_file.as_uri())
            assert await page.evaluate(LOADED) == []
            text = await page.evaluate("document.body.innerText")
            for words in ("Report of a replay", "InternVL3.5-8B", "not re-run", "red.mp4"):
                assert words in text
            plots = await page.evaluate(PLOTS)
            assert len(plots) >= 2 + 5  # phases, latency, a timeline each
            for plot in plots:
                assert plot["width"] > 300, plot
                assert plot["height"] > 50, plot
                assert plot["drawn"] > 3, plot
            assert await page.evaluate(PICTURES) == [320] * 8
            assert await sideways(page) == 0
            light = await page.evaluate(COLOURS)
            await page.size(375, 800, scheme="dark")
            dark = await page.evaluate(COLOURS)
            assert light[0] != dark[0]
            assert light[1] != dark[1]
            assert await sideways(page) == 0
            assert page.complaints == []

    asyncio.run(story())
