"""The client's two requests, against servers that answer well, badly, too much or never."""

import asyncio

import pytest

from hdguard.ingest.base import SourceError
from hdguard.ingest.webrtc_http import MAX_BODY, Endpoint, _session, end, exchange, parsed
from tests.ingest.http_stub import Reply, Request, reply, serving

SDP = "application/sdp"


def ask(answer: Reply, timeout: float = 5.0) -> tuple[str, str, str]:
    """The answer, the session's URL, and the server's address."""

    async def story() -> tuple[str, str, str]:
        async with serving(answer) as address:
            endpoint = Endpoint(f"http://{address}/cam/whep?x=1", "hall", "Bearer t", None, timeout)
            return *await exchange(endpoint, "v=0 offer"), address

    return asyncio.run(story())


def always(data: bytes | None) -> Reply:
    async def answer(_: Request) -> bytes | None:
        return data

    return answer


def test_the_offer_is_posted_and_the_answer_comes_back_with_its_session() -> None:
    seen: list[Request] = []

    async def answer(request: Request) -> bytes:
        seen.append(request)
        return reply(201, "v=0 answer", Content_Type=f"{SDP}; charset=utf-8", Location="/s/7")

    text, session, address = ask(answer)
    assert (text, session) == ("v=0 answer", f"http://{address}/s/7")
    assert (seen[0].method, seen[0].target) == ("POST", "/cam/whep?x=1")
    assert seen[0].body == "v=0 offer"
    assert seen[0].headers["content-type"] == SDP
    assert seen[0].headers["authorization"] == "Bearer t"
    assert seen[0].headers["host"] == address


def test_an_answer_in_chunks_is_put_together() -> None:
    head = f"HTTP/1.1 201 Created\r\nContent-Type: {SDP}\r\nTransfer-Encoding: chunked\r\n\r\n"
    text, session, _ = ask(always(f"{head}4\r\nv=0 \r\n6\r\nanswer\r\n0\r\n\r\n".encode()))
    assert (text, session) == ("v=0 answer", "")


def test_an_informational_reply_is_passed_over() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    assert ask(always(hint + reply(200, "v=0", Content_Type=SDP)))[0] == "v=0"


@pytest.mark.parametrize(
    "elsewhere", ["http://192.0.2.9/s/7", "https://127.0.0.1/s/7", "//example.com/s"]
)
def test_a_session_elsewhere_never_gets_our_token(elsewhere: str) -> None:
    assert ask(always(reply(201, "v=0", Content_Type=SDP, Location=elsewhere)))[1] == ""


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.1:99999/s", "http://127.0.0.1:x/s", "http://[", "/s/\xfc", "/s/a b"],
)
def test_a_session_that_is_no_url_is_none(location: str) -> None:
    assert ask(always(reply(201, "v=0", Content_Type=SDP, Location=location)))[:2] == ("v=0", "")


def test_the_port_that_goes_without_saying_may_be_said() -> None:
    assert _session("http://cam/whep", "http://cam:80/s/7") == "http://cam:80/s/7"
    assert _session("https://cam:443/whep", "https://cam/s/7") == "https://cam/s/7"
    assert _session("http://cam/whep", "http://cam:443/s/7") == ""


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "http or https"),
        ("ftp://cam/1", "http or https"),
        ("http:///1", "http or https"),
        ("http://cam:0/1", "1 to 65535"),
        ("http://cam:99999/1", "a host or a port"),
        ("http://cam:none/1", "a host or a port"),
        ("http://[/1", "a host or a port"),
        ("http://cam..local/1", "a host or a port"),
        (f"http://{'a' * 70}.local/1", "a host or a port"),
        ("http://cam/a b", "ASCII without spaces"),
        ("http://cam/\u00fc", "ASCII without spaces"),
        ("http://k\u00fcche.local/1", "ASCII without spaces"),
    ],
)
def test_a_mistyped_url_is_told_without_a_word_of_it(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as raised:
        parsed(url.replace("cam", "robin:sec@ret@cam"))
    assert "sec" not in str(raised.value)


def test_a_url_that_can_be_asked_for_is_taken() -> None:
    assert parsed("https://[::1]:8889/cam/whep?x=1").hostname == "::1"
    assert parsed("http://cam.local.:80").port == 80


def test_what_cannot_be_asked_is_an_error_that_does_not_quote_the_token() -> None:
    async def story() -> None:
        async with serving(always(None)) as address:
            for url in (f"http://{address}/", "http://cam..local/"):
                endpoint = Endpoint(url, "hall", "Bearer sesame\r\nx")
                with pytest.raises(SourceError, match=r"^hall: cannot be asked; check") as raised:
                    await exchange(endpoint, "v=0")
                assert "sesame" not in str(raised.value)
                await end(endpoint, url)  # as silent about it as about everything else

    asyncio.run(story())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (reply(401), "401; check the token or the password"),
        (reply(403), "403; check the token or the password"),
        (reply(404), "no such stream .* check the URL"),
        (reply(307, Location="http://192.0.2.9/"), "status 307, not 201"),
        (reply(500, "v=0", Content_Type=SDP), "status 500"),
        (reply(201, "<html>", Content_Type="text/html"), "something else than application/sdp"),
        (reply(201, "v=0"), "something else than application/sdp"),
        (reply(201, "x" * (MAX_BODY + 1), Content_Type=SDP), f"more than {MAX_BODY} bytes"),
        (reply(201, "v=0", Content_Type=SDP, X="x" * 40_000), "does not speak HTTP"),
        (reply(201, "v=0", Content_Type=SDP)[:-1], "does not speak HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
        (b"", "does not speak HTTP"),
    ],
)
def test_what_is_no_answer_is_an_error_that_names_the_camera(data: bytes, says: str) -> None:
    with pytest.raises(SourceError, match=f"^hall: .*{says}"):
        ask(always(data))


def test_a_server_that_never_answers_is_left_in_time() -> None:
    with pytest.raises(SourceError, match=r"^hall: no answer in 0\.2 s"):
        ask(always(None), timeout=0.2)


def test_a_server_that_is_not_there_is_an_error() -> None:
    async def story() -> None:
        async with serving(always(None)) as address:
            pass
        with pytest.raises(SourceError, match=r"^hall: cannot be reached"):
            await exchange(Endpoint(f"http://{address}/", "hall"), "v=0")

    asyncio.run(story())


def test_the_end_is_told_and_nobody_minds_if_it_is_not_heard() -> None:
    seen: list[str] = []

    async def answer(request: Request) -> bytes:
        seen.append(f"{request.method} {request.target} {request.headers['authorization']}")
        return reply(500)

    async def story() -> None:
        async with serving(answer) as address:
            endpoint = Endpoint(f"http://{address}/cam", "hall", "Bearer t")
            await end(endpoint, f"http://{address}/s/7")
        await end(endpoint, f"http://{address}/s/7")

    asyncio.run(story())
    assert seen == ["DELETE /s/7 Bearer t"]
