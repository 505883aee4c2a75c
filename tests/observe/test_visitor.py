"""One client's connection, sent raw bytes that no honest client sends."""

import asyncio
import time

import pytest

from hdguard.observe import server
from hdguard.observe.limits import MOST_BODY, MOST_HEAD, READ_AWAY
from tests.observe.support import CAMERA_TOKEN, TOKEN, Stage, get, request, run, send, serving

SDP = "application/sdp"


def status_of(*parts: bytes) -> int:
    """What a fresh server answers; it must answer others afterwards, and obey nobody."""

    async def story() -> int:
        async with serving() as stage:
            reply = await send(stage.server.port, *parts)
            assert (await get(stage, "/livez")).status == 200
            assert stage.accepted == 0
            return reply.status

    return run(story())


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",  # TLS to a port without it
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"GET /livez\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n\r\n",  # no host
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
    ],
)
def test_what_is_not_http_is_400(raw: bytes) -> None:
    assert status_of(raw) == 400


def test_a_head_that_does_not_end_is_refused_at_its_limit() -> None:
    line = b"X-Filler: " + b"x" * 1000 + b"\r\n"
    assert status_of(b"GET /livez HTTP/1.1\r\nHost: x\r\n" + line * (MOST_HEAD // 1000 + 2)) == 400


def test_a_head_of_very_many_lines_is_refused_before_it_is_parsed() -> None:
    assert status_of(b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * 200 + b"\r\n") == 431


def test_a_head_that_comes_byte_by_byte_is_read() -> None:
    raw = request("GET", "/livez")
    assert status_of(*[raw[n : n + 1] for n in range(len(raw))]) == 200


@pytest.mark.parametrize("path", ["/livez", "/api/v1/halt", "/whip/kitchen"])
def test_a_body_above_the_limit_is_413_whoever_it_is_for(path: str) -> None:
    body = b"x" * (MOST_BODY + 1)
    for token in (None, CAMERA_TOKEN):
        assert status_of(request("POST", path, body, token=token, Content_Type=SDP)) == 413


@pytest.mark.parametrize("length", [MOST_BODY + 1, READ_AWAY + 1, 10**18])
def test_who_asks_first_whether_a_body_is_too_long_need_not_send_it(length: int) -> None:
    head = request("POST", "/livez", Expect="100-continue", Content_Length=str(length))
    assert status_of(head) == 413


def test_chunks_are_not_read() -> None:
    head = request("POST", "/api/v1/halt", token=TOKEN, Transfer_Encoding="chunked")
    assert status_of(head) == 411
    assert status_of(head + b"1\r\nx\r\n" * 300 + b"0\r\n\r\n") == 411


def test_a_head_with_nonsense_right_behind_it_is_answered_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    head = request("POST", "/api/v1/halt", token=TOKEN, Transfer_Encoding="chunked")
    assert status_of(head + b"no chunk\r\n") == 400
    assert caplog.messages == []


def test_a_body_of_tiny_chunks_does_not_hold_up_the_loop() -> None:
    """Parsing 40,000 chunks of one byte in one go takes half a second."""

    async def story() -> float:
        async with serving() as stage:
            head = request("POST", "/whip/kitchen", Transfer_Encoding="chunked")
            loop = asyncio.get_running_loop()
            longest, sending = 0.0, True

            async def watch() -> None:
                nonlocal longest
                while sending:
                    before = loop.time()
                    await asyncio.sleep(0)
                    longest = max(longest, loop.time() - before)

            async with asyncio.TaskGroup() as group:
                group.create_task(watch())
                await send(stage.server.port, head + b"1\r\nx\r\n" * 40_000)
                sending = False
            return longest

    assert min(run(story()) for _ in range(3)) < 0.05  # the best of three: others share the cores


def test_a_second_request_on_a_connection_is_not_heard() -> None:
    async def story() -> None:
        async with serving() as stage:
            twice = request("GET", "/livez") + request("POST", "/api/v1/halt", token=TOKEN)
            reply = await send(stage.server.port, twice)
            assert reply.status == 200
            assert reply.headers["connection"] == "close"
            assert reply.body == b'{"live":true}'
            assert stage.accepted == 0

    run(story())


def test_a_websocket_is_not_opened() -> None:
    asked = request("GET", "/livez", Connection="Upgrade", Upgrade="websocket")
    assert status_of(asked) == 200


async def slowly(stage: Stage, *parts: bytes) -> tuple[int, float]:
    """The answer's status, and seconds until it was there; `parts` come one every 0.5 s."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.server.port)
    started = time.perf_counter()

    async def trickle() -> None:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.5)

    async with asyncio.TaskGroup() as group:
        trickling = group.create_task(trickle())
        try:
            line = await reader.readline()
        except ConnectionError:
            line = b""
        took = time.perf_counter() - started
        trickling.cancel()
    writer.close()
    return int(line.split()[1]) if line else 0, took


def test_slow_heads_and_slow_bodies_are_given_up_after_five_seconds() -> None:
    offer = request(
        "POST", "/whip/kitchen", token=CAMERA_TOKEN, Content_Type=SDP, Content_Length="1000"
    )
    too_long = request("POST", "/livez", Content_Length=str(MOST_BODY + 1))

    async def story() -> None:
        async with serving() as stage, asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(slowly(stage, *parts))
                for parts in (
                    (),
                    (b"GET /livez HT",),
                    (b"GET /livez HTTP/1.1\r\n", *[b"X: y\r\n"] * 20),
                    (offer,),
                    (offer, *[b"x"] * 20),
                    (too_long, *[b"x"] * 20),
                )
            ]
            answers = [await task for task in tasks]
            assert [status for status, _ in answers] == [408] * 5 + [413]
            assert all(4.9 < took < 6.0 for _, took in answers), answers
            assert stage.accepted == 0

    run(story())


def test_a_connection_lives_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LIFE", 0.2)

    async def story() -> None:
        async with serving() as stage:
            stage.camera.waits = asyncio.Event()
            offer = request("POST", "/whip/kitchen", b"v=0", token=CAMERA_TOKEN, Content_Type=SDP)
            async with asyncio.timeout(3.0):
                reply = await send(stage.server.port, offer)
            assert (reply.status, len(stage.camera.offers)) == (0, 1)

    run(story())
