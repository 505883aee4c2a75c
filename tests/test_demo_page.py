"""The demo's page: one address for all clips, and nothing to order."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.core.types import FrameRef
from hdguard.demo_page import LINGER, LOADING, OVER, DemoPage, demo_page, outcome
from hdguard.ingest.base import Frame
from hdguard.observe.http import Demo
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpError
from hdguard.replay.dataset import Entry
from hdguard.replay.results import Outcome, VideoResult, video_result
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.video_result import Warned
from hdguard.runtime.virtual_time import run_virtual
from tests.observe.shown import Painted
from tests.observe.support import request, run, send

POLICY = replace(SIDECAR, brains=(BrainPlan("reflex", adaptive=False),))
CRASH = Entry(
    video="01.mp4",
    keyframes=KeyFrames(1.0, 4.0, 5.0, 6.0),
    extra={"about": "It drives at a crate."},
    path=Path("01.mp4"),
)
CALM = Entry(video="02.mp4", keyframes=None, extra={"about": "It turns."}, path=Path("02.mp4"))
HALTED = Warned(trigger=3.0, issued=3.2, stopped=3.9, cause="fast_red")
LATE = Warned(trigger=5.0, issued=5.5, stopped=6.2, cause="fast_red")


def ended(entry: Entry, warning: Warned | None = None, failed: str | None = None) -> VideoResult:
    return video_result(entry, Outcome(warning=warning, failed=failed))


def guard(entry: Entry) -> Guard:
    policy = replace(POLICY, sources=(SourcePlan(entry.video),))
    return Guard(policy, asyncio.get_running_loop().time(), boot=1)


def said(page: DemoPage) -> Demo:
    demo = page.parts().demo
    assert demo is not None
    return demo


@pytest.mark.parametrize(
    ("video", "words"),
    [
        (ended(CRASH, HALTED), "halted 1.8 s before it was too late"),
        (ended(CRASH, LATE), "halted 0.5 s too late"),
        (ended(CRASH), "NOT halted"),
        (ended(CALM), "safe, not halted"),
        (ended(CALM, HALTED), "safe, but halted: a false stop"),
        (ended(CRASH, failed="no such file"), "could not be run (no such file)"),
    ],
)
def test_what_became_of_a_clip_is_said_in_a_few_words(video: VideoResult, words: str) -> None:
    assert outcome(video) == words


def test_clip_follows_clip_and_the_earlier_ones_stay_listed() -> None:
    async def story() -> None:
        page = DemoPage(POLICY, [CRASH, CALM])
        assert said(page) == Demo(LOADING)
        assert [s["name"] for s in page.parts().status.report()["sources"]] == ["01.mp4"]
        first = page.begins(CRASH, guard(CRASH))
        assert page.parts().status in first
        assert page.parts().metrics in first
        assert said(page) == Demo("Clip 1 of 2: It drives at a crate.")
        await page.ended(ended(CRASH, HALTED))
        now = "Clip 1 of 2 has ended: halted 1.8 s before it was too late."
        assert said(page) == Demo(now, over=True)
        page.begins(CALM, guard(CALM))
        told = "Clip 1 of 2, halted 1.8 s before it was too late: It drives at a crate."
        assert said(page) == Demo("Clip 2 of 2: It turns.", earlier=(told,))
        assert [s["name"] for s in page.parts().status.report()["sources"]] == ["02.mp4"]
        await page.ended(ended(CALM))
        page.finish()
        assert (said(page).title, said(page).over) == (OVER, True)
        assert said(page).earlier[0] == "Clip 2 of 2, safe, not halted: It turns."

    run_virtual(story())


@pytest.mark.parametrize(("lookers", "warning"), [(0, HALTED), (1, None), (1, HALTED)])
def test_a_halt_stays_for_those_who_look_and_nobody_else_waits(
    lookers: int, warning: Warned | None
) -> None:
    class Server:
        clients = lookers

    async def story() -> float:
        page = DemoPage(POLICY, [CRASH])
        page.server = cast("HttpServer", Server())
        page.begins(CRASH, guard(CRASH))
        await page.ended(ended(CRASH, warning))
        return asyncio.get_running_loop().time()

    assert run_virtual(story()) == (LINGER if lookers and warning else 0.0)


def test_a_picture_is_that_of_the_present_clip() -> None:
    async def story() -> None:
        async with demo_page([CRASH, CALM], 0, lambda _: None, POLICY) as page:
            assert page.server is not None

            async def picture(video: str) -> int:
                raw = request("GET", f"/api/v1/cameras/{video}/picture")
                here = raw.replace(b"Host: guard", b"Host: localhost")
                assert page.server is not None
                return (await send(page.server.port, here)).status

            page.begins(CRASH, guard(CRASH))
            page.pictures.saw(Frame(FrameRef("01.mp4", 1, 1.0, 1.0), Painted(1)), kept=True)
            assert await picture("01.mp4") == 200
            page.begins(CALM, guard(CALM))
            assert await picture("01.mp4") == 404

    run(story())


def test_it_says_that_it_is_a_demo_and_takes_no_order() -> None:
    async def story() -> None:
        addresses: list[str] = []
        async with demo_page([CRASH], 0, addresses.append, POLICY) as page:
            assert page.server is not None
            port = page.server.port
            assert addresses == [f"http://127.0.0.1:{port}/"]
            report: dict[str, Any] = (await send(port, request("GET", "/api/v1/status"))).json
            here = report["here"]
            assert here["demo"] == {"title": LOADING, "over": False, "earlier": []}
            assert (here["halt"], here["reset"]) == (False, False)
            for order in ("/api/v1/halt", "/api/v1/reset?halt_id=1-1"):
                assert (await send(port, request("POST", order))).status == 403
            assert (await send(port, request("GET", "/metrics"))).status == 200

    run(story())


def test_a_port_that_is_taken_is_an_error_only_if_somebody_asked_for_it() -> None:
    async def story() -> None:
        async with demo_page([CRASH], 0, lambda _: None, POLICY) as first:
            assert first.server is not None
            with pytest.raises(HttpError, match=r"cannot be listened on"):
                async with demo_page([CRASH], first.server.port, lambda _: None, POLICY):
                    pass
        async with (
            demo_page([CRASH], None, lambda _: None, POLICY) as usual,
            demo_page([CRASH], None, lambda _: None, POLICY) as other,
        ):
            assert usual.server is not None
            assert other.server is not None
            assert usual.server.port != other.server.port

    run(story())
