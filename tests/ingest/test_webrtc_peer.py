"""One receiving connection: lost packets, oversized pictures, and what it costs to close."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from fractions import Fraction
from typing import Any

import pytest
from aiortc import rtcrtpreceiver

from hdguard.core.types import ImageSpec
from hdguard.ingest.image import View
from hdguard.ingest.webrtc_peer import Patience, PeerGone, Receiver, Shot, Watched, check_settings
from hdguard.ingest.webrtc_sdp import BadDescription
from tests.ingest.webrtc_peers import CLOCK, Camera, Publisher, coloured, needs_network

pytestmark = needs_network

PATIENCE = Patience(connect=5.0, silent=5.0, late=1.0, max_pixels=640 * 480)


@asynccontextmanager
async def receiving(
    publisher: Publisher, patience: Patience = PATIENCE
) -> AsyncIterator[tuple[Receiver, Watched]]:
    watched = Watched(View("kitchen"))
    receiver = Receiver(watched, patience)
    try:
        async with asyncio.timeout(20.0):
            await publisher.accept(await receiver.answer(await publisher.offer()))
            yield receiver, watched
    finally:
        await receiver.close()
        await publisher.peer.close()


class Decoder:
    """The library's own, slower: it takes so many seconds for each picture."""

    def __init__(self, inner: Any, seconds: float) -> None:
        self.count = 0
        self._inner = inner
        self.seconds = seconds

    def decode(self, picture: object) -> object:
        self.count += 1
        threading.Event().wait(self.seconds)
        return self._inner.decode(picture)


def decoding(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> list[Decoder]:
    """From now on the decoders are slow ones, which are listed here."""
    made: list[Decoder] = []
    inner = vars(rtcrtpreceiver)["get_decoder"]

    def make(codec: Any) -> Decoder:
        made.append(Decoder(inner(codec), seconds))
        return made[-1]

    monkeypatch.setattr(rtcrtpreceiver, "get_decoder", make)
    return made


@contextmanager
def longest_hold() -> Iterator[list[float]]:
    """The longest time, in seconds, for which the loop did nothing else meanwhile."""
    loop = asyncio.get_running_loop()
    held, last = [0.0], loop.time()

    async def beat() -> None:
        nonlocal last
        while True:
            await asyncio.sleep(0.001)
            now = loop.time()
            held[0], last = max(held[0], now - last), now

    task = loop.create_task(beat())
    try:
        yield held
    finally:
        task.cancel()
        held[0] = max(held[0], loop.time() - last)


def red(shot: Shot) -> bool:
    red, _, blue = shot.image.rgb(ImageSpec(8)).reshape(-1, 3).mean(axis=0)
    return bool(red > blue)


async def exhausted(receiver: Receiver, shown: list[Shot]) -> None:
    while True:
        shown.append(await receiver.next())


def test_a_lost_key_frame_is_asked_for_again() -> None:
    async def story() -> None:
        publisher = Publisher(Camera())
        publisher.lose(lambda n, _: n < 3)  # its one key frame among them: each picture is a packet
        async with receiving(publisher) as (receiver, _):
            shot = await receiver.next()
            assert shot.image.rgb(ImageSpec(8)).mean() > 50
            assert publisher.camera.sent > 3

    asyncio.run(story())


def test_lost_packets_are_sent_again_and_no_picture_is_smeared() -> None:
    async def story() -> None:
        publisher = Publisher(Camera((200, 40, 40), fps=60))
        publisher.lose(lambda n, repeat: n % 7 == 5 and not repeat)
        async with receiving(publisher) as (receiver, watched):
            for _ in range(40):
                picture = (await receiver.next()).image.rgb(ImageSpec(16))
                assert abs(int(picture[..., 0].min()) - 200) < 30
                assert abs(int(picture[..., 2].max()) - 40) < 30
            assert watched.tally.report.corrupt == 0

    asyncio.run(story())


def test_after_packets_that_nobody_could_repeat_no_smeared_picture_is_shown() -> None:
    async def story() -> None:
        publisher = Publisher(Camera((200, 40, 40), fps=400))
        publisher.camera.change_at(400, (40, 40, 200))
        publisher.lose(lambda n, repeat: repeat or 400 <= n < 404)  # the change itself
        patience = Patience(5.0, silent=2.0, late=1.0, max_pixels=640 * 480)
        async with receiving(publisher, patience) as (receiver, watched):
            shown: list[Shot] = []
            with pytest.raises(PeerGone, match="no clean picture came in time"):
                await exhausted(receiver, shown)
            # All were of before the loss: the library's buffer stays full for good.
            assert len(shown) > 20
            assert all(red(shot) for shot in shown)
            assert shown[-1].captured_at - shown[0].captured_at < 1.1
            lines = " ".join(watched.tally.report.problems)
            assert "frame after lost ones, left out" in lines

    asyncio.run(story())


def test_pictures_that_stay_late_are_no_sign_of_life_and_too_late_ones_are_not_shown() -> None:
    async def story() -> None:
        watched = Watched(View("kitchen"))
        receiver = Receiver(watched, PATIENCE)
        now = asyncio.get_running_loop().time()

        def come(number: int, late: float) -> Shot | None:
            frame = coloured((200, 40, 40))
            frame.pts, frame.time_base = number * 3600, Fraction(1, CLOCK)  # 25 a second
            receiver._newest = None
            receiver._take(frame, now + number / 25 + late)
            return receiver._newest

        for number in range(20):  # the clock is settled after 0.5 s
            come(number, late=0.0)
        alive_until = receiver._due
        assert alive_until == pytest.approx(now + 19 / 25 + PATIENCE.silent)
        for number in range(20, 2000):  # for longer than `LiveClock` remembers
            shot = come(number, late=0.8)
            assert shot is not None
            assert shot.captured_at == pytest.approx(now + number / 25, abs=0.05)
        assert receiver._due == alive_until
        assert come(2000, late=1.5) is None
        for number in range(2040, 2060):  # behind a gap the clock settles anew
            shot = come(number, late=0.0)
        assert shot is not None
        assert receiver._due > alive_until
        assert watched.tally.report.corrupt == 1
        await receiver.close()

    asyncio.run(story())


def test_a_picture_beyond_the_limit_ends_the_connection() -> None:
    async def story() -> None:
        publisher = Publisher(Camera())
        async with receiving(publisher, Patience(5.0, 5.0, 1.0, 64 * 48)) as (receiver, _):
            await receiver.next()
            publisher.camera.size = (320, 240)
            with pytest.raises(PeerGone, match="320x240"):
                await exhausted(receiver, [])
            assert not receiver.fresh(1.0)

    asyncio.run(story())


def test_a_peer_that_never_sends_is_given_up() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        publisher = Publisher(Camera())
        begun = loop.time()
        publisher.lose(lambda *_: True)
        async with receiving(publisher, Patience(0.5, 5.0, 1.0, 1)) as (receiver, _):
            assert receiver.fresh(0.1)  # its first picture is not overdue yet
            with pytest.raises(PeerGone, match="no clean picture came in time"):
                await receiver.next()
            assert 0.5 <= loop.time() - begun < 2.5
            assert not receiver.fresh(5.0)

    asyncio.run(story())


def test_an_answer_to_nothing_is_refused() -> None:
    async def story() -> None:
        receiver = Receiver(Watched(View("kitchen")), PATIENCE)
        publisher = Publisher(Camera())
        with pytest.raises(BadDescription, match=r"cannot be used \(InvalidStateError\)"):
            await receiver.accept(await publisher.offer())
        await receiver.close()
        await publisher.peer.close()

    asyncio.run(story())


@pytest.mark.parametrize("by_us", [True, False])
def test_closing_behind_a_slow_decoder_lets_the_loop_go_on(
    by_us: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoders = decoding(monkeypatch)

    async def story() -> None:
        publisher = Publisher(Camera(fps=60))
        async with receiving(publisher) as (receiver, _):
            await receiver.next()
            decoders[0].seconds = 0.4
            await publisher.camera.reached(publisher.camera.sent + 25)
            assert receiver._inlet is not None
            assert receiver._inlet._waiting.qsize() > 10  # 4 s of decoding and more
            count = decoders[0].count
            while decoders[0].count == count:  # until a picture was just begun
                await publisher.camera.reached(publisher.camera.sent + 1)
            begun = asyncio.get_running_loop().time()
            with longest_hold() as held:
                if by_us:
                    publisher.peer.getSenders()[0].replaceTrack(None)
                    await receiver.close()
                else:
                    await publisher.peer.close()
                    with pytest.raises(PeerGone, match="the other side ended the stream"):
                        await exhausted(receiver, [])
            assert held[0] < 0.1  # a permit is due every 0.2 s
            assert asyncio.get_running_loop().time() - begun < 1.0
            before = decoders[0].count
        for thread in [t for t in threading.enumerate() if "decoder" in t.name]:
            await asyncio.to_thread(thread.join, 2.0)  # it ends with the picture in hand
            assert not thread.is_alive()
        assert decoders[0].count == before

    asyncio.run(story())


def test_a_decoder_that_gets_behind_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    decoding(monkeypatch, seconds=0.1)

    async def story() -> None:
        async with receiving(Publisher(Camera(fps=200))) as (receiver, _):
            with pytest.raises(PeerGone, match="more pictures than can be decoded here"):
                await exhausted(receiver, [])

    asyncio.run(story())


def test_a_small_key_frame_of_a_huge_picture_is_never_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoders = decoding(monkeypatch)
    key = b"\x10\x00\x00\x9d\x01\x2a\x00\x20\x00\x20" + bytes(100)  # of 8192 x 8192
    monkeypatch.setattr(
        "aiortc.codecs.vpx.Vp8Encoder.encode",
        lambda self, frame, _: (self._packetize(key, 1), frame.pts),
    )

    async def story() -> None:
        async with receiving(Publisher(Camera())) as (receiver, _):
            with pytest.raises(PeerGone, match="sends pictures of 8192x8192 pixels, too large"):
                await receiver.next()

    asyncio.run(story())
    assert [decoder.count for decoder in decoders] in ([], [0])


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("ignore_regions", (((0.0, 0.0, 1.1, 1.0),), 0.0, 1.0, 1)),
        ("interval", ((), 61.0, 1.0, 1)),
        ("silent_after", ((), 0.0, 100.0, 1)),
        ("max_pixels", ((), 0.0, 1.0, 0)),
    ],
)
def test_settings_are_checked_by_name(
    key: str, values: tuple[tuple[tuple[float, float, float, float], ...], float, float, int]
) -> None:
    with pytest.raises(ValueError, match=f"^{key}: "):
        check_settings(*values)
