"""Pictures of a home: who may see them, how old they are, and at what rate."""

import asyncio

import pytest

from hdguard.ingest.base import SourceError
from hdguard.observe.http import NO_TOKEN, PICTURES
from hdguard.observe.settings import HttpSettings
from tests.observe.support import CAMERA_TOKEN, OPEN, TOKEN, ask, get, request, run, send, serving

PICTURE = "/api/v1/cameras/kitchen/picture"


def exposed() -> HttpSettings:
    """As if other machines could reach it; TLS would only be in the way here."""
    settings = HttpSettings(port=0, token=TOKEN)
    object.__setattr__(settings, "host", "0.0.0.0")
    return settings


def test_a_picture_comes_with_its_age() -> None:
    async def story() -> None:
        async with serving() as stage:
            before = asyncio.get_running_loop().time()
            reply = await send(stage.server.port, home(PICTURE))
            assert (reply.status, reply.body) == (200, b"a picture")
            assert reply.headers["content-type"] == "image/jpeg"
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["cross-origin-resource-policy"] == "same-origin"
            assert 0.25 <= float(reply.headers["x-frame-age"]) < 1.0
            captured = float(reply.headers["x-captured-at"])
            assert before - 0.251 <= captured <= asyncio.get_running_loop().time()

    run(story())


def test_a_camera_without_a_picture_is_404_and_a_broken_picture_says_why() -> None:
    async def story() -> None:
        async with serving() as stage:
            for name in ("hall", "..", "%2e%2e", "kitchen%00"):
                reply = await send(stage.server.port, home(f"/api/v1/cameras/{name}/picture"))
                assert reply.status == 404
            stage.picture_error = SourceError("kitchen: cannot convert")
            reply = await send(stage.server.port, home(PICTURE))
            assert (reply.status, reply.json) == (503, {"error": "kitchen: cannot convert"})

    run(story())


def home(path: str) -> bytes:
    """Asked by whoever sits at this machine."""
    return request("GET", path).replace(b"Host: guard", b"Host: localhost:8090")


@pytest.mark.parametrize(
    "host", ["guard", "evil.example:8090", "192.168.1.7", "", "[", "127.0.0.1.x"]
)
def test_under_a_foreign_name_it_needs_the_token_even_here(host: str) -> None:
    """DNS rebinding: a page from elsewhere whose name has come to mean this machine."""

    async def story() -> None:
        async with serving() as stage:
            raw = request("GET", PICTURE).replace(b"Host: guard", f"Host: {host}".encode())
            assert (await send(stage.server.port, raw)).status in {400, 401}
            raw = request("GET", PICTURE, token=TOKEN)
            assert (await send(stage.server.port, raw)).status == 200

    run(story())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8090", "[::1]:8090"])
def test_whoever_sits_at_this_machine_may_look(host: str) -> None:
    async def story() -> None:
        async with serving(HttpSettings(port=0)) as stage:
            raw = request("GET", PICTURE).replace(b"Host: guard", f"Host: {host}".encode())
            assert (await send(stage.server.port, raw)).status == 200

    run(story())


def test_beyond_this_machine_it_needs_the_operators_token_whatever_the_name() -> None:
    async def story() -> None:
        async with serving(exposed()) as stage:
            assert (await send(stage.server.port, home(PICTURE))).status == 401
            for token in (CAMERA_TOKEN, "", TOKEN[1:]):
                assert (await ask(stage, "GET", PICTURE, token=token)).status == 401
            assert (await ask(stage, "GET", PICTURE, token=TOKEN)).status == 200
            assert (await get(stage, "/api/v1/status")).json["here"]["pictures"] == "token"

    run(story())


@pytest.mark.parametrize(
    "header", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"]
)
def test_who_comes_through_a_proxy_may_sit_anywhere_and_needs_the_token(header: str) -> None:
    """nginx passes 127.0.0.1 on as the name that was asked for, unless it is told otherwise."""

    async def story() -> None:
        async with serving() as stage:
            raw = home(PICTURE).replace(b"\r\n", f"\r\n{header}: x\r\n".encode(), 1)
            assert (await send(stage.server.port, raw)).status == 401

    run(story())


def test_those_who_are_not_let_in_do_not_take_the_operators_share_of_pictures() -> None:
    async def story() -> None:
        async with serving(exposed()) as stage:
            for _ in range(PICTURES[1] + 20):
                assert (await ask(stage, "GET", PICTURE, token=CAMERA_TOKEN)).status == 401
            assert (await ask(stage, "GET", PICTURE, token=TOKEN)).status == 200

    run(story())


def test_where_there_is_no_token_a_foreign_name_learns_what_to_set() -> None:
    async def story() -> None:
        async with serving(HttpSettings(port=0)) as stage:
            reply = await get(stage, PICTURE)
            assert (reply.status, reply.json) == (403, {"error": NO_TOKEN})

    run(story())


def test_more_than_a_few_a_second_are_429() -> None:
    async def story() -> None:
        async with serving(OPEN) as stage:
            burst = PICTURES[1]
            async with asyncio.TaskGroup() as group:
                asked = [send(stage.server.port, home(PICTURE)) for _ in range(burst + 20)]
                tasks = [group.create_task(each) for each in asked]
            statuses = [task.result().status for task in tasks]
            assert statuses.count(200) >= burst
            assert statuses.count(429) > 5

    run(story())


def test_no_secret_is_in_what_is_shown() -> None:
    async def story() -> None:
        async with serving() as stage:
            stage.watched.starts()
            for path in ("/", "/page.js", "/api/v1/status"):
                body = (await get(stage, path)).body.decode()
                assert TOKEN not in body
                assert CAMERA_TOKEN not in body

    run(story())
