"""A camera that publishes to us, as a second WebRTC peer on this machine."""

import asyncio
import sys
import threading
from contextlib import AsyncExitStack, aclosing
from itertools import pairwise
from statistics import median

import pytest

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import SourceError
from hdguard.ingest.webrtc import Answer, OfferRefused, WhipSettings, WhipSource
from hdguard.ingest.webrtc_peer import Patience, Receiver, Watched
from tests.ingest.webrtc_peers import (
    Camera,
    Publisher,
    answer,
    needs_network,
    on_uvloop,
    publishing,
    watched,
)

pytestmark = needs_network

RED, BLUE = (200, 40, 40), (40, 40, 200)


def test_what_a_robot_publishes_arrives_as_frames_in_colour() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with watched(WhipSettings("kitchen", interval=1 / 30)) as watch:

            async def take(offer: str) -> str:
                sdp = await answer(watch.source, offer)
                sound = sdp.split("m=audio")[1]
                assert "a=inactive" in sound.split("m=video", maxsplit=1)[0]
                return sdp

            async with publishing(take, Publisher(Camera(RED), sound=True)):
                got = await watch.more(20)
                now = loop.time()
        refs = [frame.ref for frame in got]
        assert [(r.source_id, r.seq) for r in refs] == [("kitchen", n) for n in range(20)]
        assert refs[0].media_time == 0.0
        for before, after in pairwise(refs):
            assert before.captured_at < after.captured_at <= now
            assert before.media_time < after.media_time
        assert refs[-1].media_time == pytest.approx(19 / 30, abs=0.2)
        red, green, blue = got[-1].image.rgb(ImageSpec(16)).reshape(-1, 3).mean(axis=0)
        assert (red, green, blue) == (pytest.approx(200, abs=20), *[pytest.approx(40, abs=20)] * 2)
        assert watch.source.interval == 1 / 30
        assert watch.source.report.frames == len(watch.frames)
        assert watch.source.report.corrupt == 0

    on_uvloop(story())


def test_a_second_publisher_is_refused_while_pictures_are_fresh_and_takes_over_when_not() -> None:
    async def story() -> None:
        settings = WhipSettings("kitchen", fresh_for=0.3)
        async with watched(settings) as watch, AsyncExitStack() as peers:

            async def take(offer: str) -> str:
                return await answer(watch.source, offer)

            first = await peers.enter_async_context(publishing(take, Publisher(Camera(RED))))
            await watch.more(3)
            second = Publisher(Camera(BLUE))
            peers.push_async_callback(second.peer.close)
            offer = await second.offer()
            with pytest.raises(OfferRefused) as refused:
                await watch.source.offer(offer)
            assert refused.value.status == 409
            first.vanish()
            accepted = None
            while accepted is None:
                try:
                    accepted = await watch.source.offer(offer)
                except OfferRefused:
                    await asyncio.sleep(0.05)  # as a publisher would try again
            await second.accept(accepted.sdp)
            got = await watch.more(3)
        assert watch.error is None  # one stream of frames
        assert got[-1].image.rgb(ImageSpec(8))[4, 4, 2] > 150
        assert [f.ref.seq for f in watch.frames] == list(range(len(watch.frames)))
        assert all(a.ref.captured_at < b.ref.captured_at for a, b in pairwise(watch.frames))

    on_uvloop(story())


def test_a_peer_that_vanishes_is_told_by_its_frames_and_not_by_ice() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        settings = WhipSettings("kitchen", silent_after=1.1)
        async with watched(settings) as watch:

            async def take(offer: str) -> str:
                return await answer(watch.source, offer)

            async with publishing(take, Publisher(Camera())) as publisher:
                await watch.more(10)
                publisher.vanish()
                gone = loop.time()
                error = await watch.over()
                assert watch.arrivals[-1] - gone < 0.5  # what was on its way, and nothing after it
                assert 0.9 < loop.time() - watch.arrivals[-1] < 2.0
        assert str(error) == "kitchen: the publisher is gone: no clean picture came in time"
        assert watch.source.retry_after() == 0.0

    on_uvloop(story())


def test_deleting_the_session_ends_it_at_once_and_only_with_its_own_name() -> None:
    async def story() -> None:
        async with watched(WhipSettings("kitchen")) as watch, AsyncExitStack() as peers:
            accepted: list[Answer] = []

            async def take(offer: str) -> str:
                accepted.append(await watch.source.offer(offer))
                return accepted[0].sdp

            await peers.enter_async_context(publishing(take, Publisher(Camera())))
            await watch.more(3)
            assert not await watch.source.end("")
            assert not await watch.source.end("ünknown")
            assert watch.error is None
            assert len(accepted[0].resource_id) >= 20
            assert await watch.source.end(accepted[0].resource_id)
            assert "the publisher ended its session" in str(await watch.over())
            assert not await watch.source.end(accepted[0].resource_id)

    on_uvloop(story())


def test_the_other_side_closing_is_known_at_once() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with watched(WhipSettings("kitchen")) as watch:

            async def take(offer: str) -> str:
                return await answer(watch.source, offer)

            async with publishing(take, Publisher(Camera())):
                await watch.more(3)
            closed = loop.time()
            assert "the other side ended the stream" in str(await watch.over())
            assert loop.time() - closed < 1.0

    on_uvloop(story())


def test_an_unread_track_keeps_one_picture_and_it_is_the_newest() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with watched(WhipSettings("kitchen")) as watch:

            async def take(offer: str) -> str:
                return await answer(watch.source, offer)

            camera = Camera(fps=200)
            async with publishing(take, Publisher(camera)):
                await watch.more(1)
                watch.stalled.clear()
                await watch.more(1)
                seen, sent = len(watch.frames), camera.sent
                await camera.reached(sent + 300)
                assert len(watch.frames) == seen
                receiver = watch.source._receiver
                assert receiver is not None
                assert watch.source.dropped > 250
                track = receiver._peer.getTransceivers()[0].receiver.track
                assert track._queue.qsize() <= 2  # type: ignore[attr-defined]
                watch.stalled.set()
                (frame,) = (await watch.more(1))[:1]
                assert loop.time() - frame.ref.captured_at < 0.3

    on_uvloop(story())


def test_the_delay_does_not_grow_behind_a_slow_consumer() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        source = WhipSource(WhipSettings("kitchen"))
        ages: list[float] = []

        async def consume() -> None:
            async with aclosing(source.frames()) as frames:
                async for frame in frames:
                    ages.append(loop.time() - frame.ref.captured_at)
                    await asyncio.sleep(0.06)  # twelve pictures' time

        async with asyncio.TaskGroup() as group:
            consumer = group.create_task(consume())
            await asyncio.sleep(0)

            async def take(offer: str) -> str:
                return await answer(source, offer)

            camera = Camera(fps=200)
            async with publishing(take, Publisher(camera)):
                while len(ages) < 15:
                    await camera.reached(camera.sent + 20)
                consumer.cancel()
        assert median(ages[-5:]) < 0.3  # it would be 0.8 s if each were waited for
        assert source.dropped > 8 * len(ages)

    on_uvloop(story())


def test_a_connection_that_does_not_close_is_reported_and_answered_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with watched(WhipSettings("kitchen")) as watch:

            async def take(offer: str) -> str:
                return await answer(watch.source, offer)

            async with publishing(take, Publisher(Camera())):
                await watch.more(2)
                receiver = watch.source._receiver
                assert receiver is not None
                close = receiver._peer.close
                monkeypatch.setattr(receiver._peer, "close", lambda: asyncio.sleep(60.0))
                monkeypatch.setattr("hdguard.ingest.webrtc_peer._CLOSE_TIMEOUT", 0.05)
                assert await watch.source.end(watch.source._session)
                assert "does not close" in str(watch.source.report.problems)
                await watch.over()
                await close()

    on_uvloop(story())


def test_nobody_can_publish_to_a_camera_that_is_not_watched() -> None:
    async def story() -> None:
        source = WhipSource(WhipSettings("kitchen"))
        with pytest.raises(OfferRefused) as refused:
            await source.offer("v=0")
        assert refused.value.status == 503
        async with watched(WhipSettings("kitchen")) as watch:
            with pytest.raises(SourceError, match="watched already"):
                await anext(watch.source.frames())

    on_uvloop(story())


def test_an_offer_that_cannot_be_used_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Receiver] = []

    class Recorded(Receiver):
        def __init__(self, watched: Watched, patience: Patience) -> None:
            super().__init__(watched, patience)
            made.append(self)

    monkeypatch.setattr("hdguard.ingest.webrtc.Receiver", Recorded)

    async def story() -> None:
        threads = threading.active_count()
        async with watched(WhipSettings("kitchen")) as watch:
            good = Publisher(Camera())
            offer = await good.offer()
            without = "".join(x for x in offer.splitlines(True) if "ice-pwd" not in x)
            for bad in ("", "v=0", offer.replace("VP8", "VP9").replace("H264", "AV1"), without):
                with pytest.raises(OfferRefused) as refused:
                    await watch.source.offer(bad)
                assert refused.value.status == 400
            await good.peer.close()
            assert watch.source._receiver is None
            assert [r._peer.connectionState for r in made] == ["closed"] * 4
            assert threading.active_count() == threads

    on_uvloop(story())


def test_closing_the_source_disconnects_the_publisher() -> None:
    async def story() -> None:
        publisher = Publisher(Camera())
        closed = asyncio.Event()
        publisher.peer.on("connectionstatechange", closed.set)
        async with watched(WhipSettings("kitchen")) as watch:
            await publisher.accept(await answer(watch.source, await publisher.offer()))
            await watch.more(2)
            closed.clear()
        await asyncio.wait_for(closed.wait(), 2.0)
        assert publisher.peer.connectionState == "closed"
        await publisher.peer.close()
        assert not [t for t in threading.enumerate() if "decoder" in t.name]

    on_uvloop(story())


def test_without_webrtc_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiortc", None)
    with pytest.raises(SourceError, match=r"kitchen: .*pip install 'hdguard\[webrtc\]'"):
        WhipSource(WhipSettings("kitchen"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("source_id", ""),
        ("ignore_regions", ((0.5, 0.0, 0.2, 1.0),)),
        ("interval", -1.0),
        ("interval", float("nan")),
        ("fresh_for", 0.0),
        ("fresh_for", 6.0),
        ("silent_after", 0.0),
        ("max_pixels", 0),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{key}: "):
        WhipSettings(**{"source_id": "kitchen", key: value})  # type: ignore[arg-type]
