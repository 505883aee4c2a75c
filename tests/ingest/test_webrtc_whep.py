"""A camera pulled from a small WHEP server that has one real WebRTC peer behind it."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, SourceError
from hdguard.ingest.webrtc_whep import WhepSettings, WhepSource
from tests.ingest.http_stub import Request, certificate, reply, serving
from tests.ingest.webrtc_peers import Camera, needs_network, on_uvloop

pytestmark = needs_network

TOKEN = "sesame"


class Server:
    """MediaMTX in miniature: sends its camera to whoever asks with the token."""

    def __init__(self, authorization: str = f"Bearer {TOKEN}") -> None:
        self.camera = Camera()
        self.peers: list[RTCPeerConnection] = []
        self.requests: list[str] = []
        self._authorization = authorization

    async def answer(self, request: Request) -> bytes:
        self.requests.append(f"{request.method} {request.target}")
        if request.headers.get("authorization") != self._authorization:
            return reply(401)
        if request.method == "DELETE":
            return reply(200)
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.peers.append(peer)
        await peer.setRemoteDescription(RTCSessionDescription(request.body, "offer"))
        peer.addTrack(self.camera)
        await peer.setLocalDescription(await peer.createAnswer())
        sdp = str(peer.localDescription.sdp)
        return reply(201, sdp, Content_Type="application/sdp", Location="/session/1")

    async def close(self) -> None:
        for peer in self.peers:
            await peer.close()


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[str]:
    async with serving(server.answer) as address:
        try:
            yield address
        finally:
            await server.close()


async def some(source: WhepSource, count: int) -> list[Frame]:
    got = []
    async with aclosing(source.frames()) as frames:
        async for frame in frames:
            got.append(frame)
            if len(got) == count:
                break
    return got


async def exhausted(frames: AsyncIterator[Frame]) -> None:
    async for _ in frames:
        pass


async def error_of(source: WhepSource) -> str:
    with pytest.raises(SourceError) as raised:
        await some(source, 1_000_000)
    return str(raised.value)


def test_a_stream_is_pulled_and_its_session_ended() -> None:
    async def story() -> None:
        server = Server()
        async with running(server) as address:
            url = f"whep+http://{address}/cam/whep"
            source = WhepSource(WhepSettings(url, "hall", TOKEN, interval=1 / 30))
            got = await some(source, 5)
            assert server.requests == ["POST /cam/whep", "DELETE /session/1"]
            again = await some(source, 2)
        assert [f.ref.seq for f in [*got, *again]] == list(range(7))
        assert got[0].ref.source_id == source.source_id == "hall"
        assert got[0].ref.media_time == 0.0
        assert got[-1].ref.captured_at < again[0].ref.captured_at
        assert got[-1].ref.media_time < again[0].ref.media_time
        assert got[-1].image.rgb(ImageSpec(8))[3, 3, 0] > 150
        assert source.report.frames == 7
        assert source.interval == 1 / 30

    on_uvloop(story())


def test_a_server_that_dies_is_noticed_and_its_successor_is_pulled() -> None:
    async def story() -> None:
        server = Server()
        async with running(server) as address:
            url = f"http://{address}/cam/whep"
            source = WhepSource(WhepSettings(url, "hall", TOKEN, silent_after=0.5))
            async with aclosing(source.frames()) as frames:
                await anext(frames)
                await server.close()
                with pytest.raises(SourceError, match=r"^hall: the other side ended the stream"):
                    await exhausted(frames)
            assert 0.5 <= source.retry_after() <= 1.0
            assert len(await some(source, 3)) == 3

    on_uvloop(story())


def test_https_is_checked_against_the_given_certificate(tmp_path: Path) -> None:
    cert, tls = certificate(tmp_path)

    async def story() -> None:
        server = Server()
        async with serving(server.answer, tls) as address:
            url = f"whep+https://{address}/cam"
            assert "not trusted" in await error_of(WhepSource(WhepSettings(url, "hall", TOKEN)))
            assert server.requests == []
            source = WhepSource(WhepSettings(url, "hall", TOKEN, ca_file=str(cert)))
            assert len(await some(source, 2)) == 2
            await server.close()

    on_uvloop(story())


def test_user_and_password_of_the_url_are_sent_and_shown_nowhere() -> None:
    async def story() -> None:
        pair = base64.b64encode(b"robin:p@ss").decode()
        server = Server(f"Basic {pair}")
        async with running(server) as address:
            source = WhepSource(WhepSettings(f"whep+http://robin:p%40ss@{address}/cam"))
            assert len(await some(source, 1)) == 1
            source = WhepSource(WhepSettings(f"whep+http://robin:wrong@{address}/cam"))
            error = await error_of(source)
        assert error == f"{address}/cam: refused with status 401; check the token or the password"
        assert source.source_id == f"{address}/cam"

    on_uvloop(story())


def test_an_answer_that_is_none_is_an_error_and_leaves_nothing() -> None:
    async def nonsense(_: Request) -> bytes:
        return reply(201, "v=0", Content_Type="application/sdp")

    async def story() -> None:
        async with serving(nonsense) as address:
            source = WhepSource(WhepSettings(f"http://{address}/cam", "hall"))
            assert "the answer must have one video track" in await error_of(source)

    on_uvloop(story())


def test_a_session_that_is_no_url_hides_no_error() -> None:
    async def story(location: str) -> None:
        async def nonsense(_: Request) -> bytes:
            return reply(201, "v=0", Content_Type="application/sdp", Location=location)

        async with serving(nonsense) as address:
            source = WhepSource(WhepSettings(f"http://{address}/cam", "hall"))
            assert "the answer must have one video track" in await error_of(source)

    for location in ("http://127.0.0.1:99999/x", "http://[", "/s/\xfc", "/s/a b"):
        on_uvloop(story(location))


def test_a_server_that_is_away_is_asked_less_and_less_often() -> None:
    async def story() -> None:
        async with serving(lambda _: asyncio.sleep(0, b"")) as address:
            pass
        source = WhepSource(WhepSettings(f"http://{address}/cam", "hall"))
        waits = []
        for _ in range(6):
            assert "cannot be reached" in await error_of(source)
            waits.append(source.retry_after())
        assert all(0.5 <= wait <= 5.0 for wait in waits)
        assert waits[0] <= 1.0
        assert waits[-1] >= 2.5

    on_uvloop(story())


def test_without_webrtc_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiortc", None)
    with pytest.raises(SourceError, match=r"hall: .*pip install 'hdguard\[webrtc\]'"):
        WhepSource(WhepSettings("http://127.0.0.1/cam", "hall"))


def test_a_certificate_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SourceError, match=r"hall: ca_file nowhere\.pem cannot be read"):
        WhepSource(WhepSettings("https://127.0.0.1/cam", "hall", ca_file="nowhere.pem"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("url", ""),
        ("url", "rtsp://camera/1"),
        ("url", "whep+http:///cam"),
        ("url", "whep+http://cam:99999/x"),
        ("url", "whep+http://["),
        ("url", "whep+http://cam..local/x"),
        ("url", "whep+http://cam/a b"),
        ("url", "whep+http://cam/k\u00fcche"),
        ("token", "two words"),
        ("token", "two\r\nlines"),
        ("token", "schlüssel"),
        ("connect_timeout", 0.0),
        ("silent_after", 61.0),
        ("max_pixels", 0),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{key}: ") as raised:
        WhepSettings(**{"url": "http://127.0.0.1/cam", key: value})  # type: ignore[arg-type]
    assert "schl" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://robin:secret@camera/1",
        "http://robin:secret word@camera/1",
        "http://robin:secret#@camera/1",
        "http://robin:secret@camera:99999/1",
    ],
)
def test_a_wrong_url_is_quoted_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"^url: ") as raised:
        WhepSettings(url)
    assert "secret" not in str(raised.value)
