"""Whoever has no token cannot keep an operator from halting the robot by holding places."""

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hdguard.observe.limits import GOODBYE_WITHIN, MOST_BODY
from hdguard.observe.settings import HttpSettings
from tests.observe.certificate import make_certificate
from tests.observe.support import CAMERA_TOKEN, TOKEN, Stage, request, run, send, serving

SILENT = Path(__file__).with_name("silent.py")
TOO_LONG = str(MOST_BODY + 1)
SAID = {
    "nothing": b"",
    "half a head": b"GET /livez HTTP/1.1\r\nHost: x\r\n",
    "a request whose answer is not read": request("GET", "/livez"),
    "an oversized body that does not come": request("POST", "/x", Content_Length=TOO_LONG),
    "an oversized offer": request("POST", "/whip/kitchen", Content_Length=TOO_LONG, token="x" * 20),
    "a guess": request("POST", "/api/v1/halt", token="guess-guess-guess", Content_Length="9"),
}


def told(port: int, tls: ssl.SSLContext) -> ssl.SSLSocket:
    """A client that has asked and never reads its answer, nor says goodbye."""
    sock = tls.wrap_socket(
        socket.create_connection(("127.0.0.1", port), timeout=2.0), server_hostname="127.0.0.1"
    )
    sock.sendall(request("GET", "/livez"))
    return sock


def encrypted(folder: Path) -> tuple[HttpSettings, ssl.SSLContext]:
    """A server's settings, and what its clients trust."""
    cert, key = make_certificate(folder)
    settings = HttpSettings(port=0, token=TOKEN, tls_cert=str(cert), tls_key=str(key))
    return settings, ssl.create_default_context(cafile=str(cert))


def test_a_tls_client_that_never_reads_its_answer_has_no_place_for_long(tmp_path: Path) -> None:
    settings, trusting = encrypted(tmp_path)

    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with serving(settings) as stage:
            sock = await asyncio.to_thread(told, stage.server.port, trusting)
            asked = loop.time()
            await asyncio.wait(stage.server._visitors.values())
            sock.close()
            return loop.time() - asked

    assert run(story()) < GOODBYE_WITHIN + 0.5


def test_a_publisher_with_its_token_keeps_its_place_in_a_crowd() -> None:
    offer = request(
        "POST",
        "/whip/kitchen",
        b"v=0",
        token=CAMERA_TOKEN,
        Content_Type="application/sdp",
    )

    async def story() -> None:
        async with serving() as stage, asyncio.TaskGroup() as group:
            stage.camera.waits = asyncio.Event()
            publishing = group.create_task(send(stage.server.port, offer))
            await stage.camera.came.get()
            async with crowd(stage, b"", ""):
                await halts(stage, None)
            stage.camera.waits.set()
            assert (await publishing).status == 201

    run(story())


@asynccontextmanager
async def crowd(stage: Stage, said: bytes, cert: str) -> AsyncIterator[None]:
    """64 silent clients, and 30 more every second."""
    command = [sys.executable, str(SILENT), str(stage.server.port), cert, said.hex()]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"there\n"
        yield
    finally:
        process.kill()
        await process.communicate()


async def halts(stage: Stage, tls: ssl.SSLContext | None) -> list[float]:
    """Seconds until each of 20 halts was answered 200."""
    loop = asyncio.get_running_loop()
    took = []
    for _ in range(20):
        asked = loop.time()
        reply = await send(stage.server.port, request("POST", "/api/v1/halt", token=TOKEN), tls=tls)
        took.append(loop.time() - asked)
        assert reply.status == 200, (reply, took)
    assert len(stage.halted) == 20
    return took


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_silent_clients_do_not_keep_an_operator_out(said: bytes) -> None:
    async def story() -> list[float]:
        async with serving() as stage, crowd(stage, said, ""):
            return await halts(stage, None)

    took = run(story())
    assert max(took) < 1.0, took


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_silent_clients_over_tls_do_not_keep_an_operator_out(said: bytes, tmp_path: Path) -> None:
    settings, trusting = encrypted(tmp_path)

    async def story() -> list[float]:
        async with serving(settings) as stage, crowd(stage, said, settings.tls_cert or ""):
            return await halts(stage, trusting)

    took = run(story())
    assert max(took) < 1.0, took


def test_handshakes_that_are_never_begun_do_not_keep_an_operator_out(tmp_path: Path) -> None:
    settings, trusting = encrypted(tmp_path)

    async def story() -> list[float]:
        async with serving(settings) as stage, crowd(stage, b"", ""):
            return await halts(stage, trusting)

    took = run(story())
    assert max(took) < 1.0, took
