"""What the guard answers over HTTP, by a real server on loopback."""

import asyncio

import pytest

from hdguard.core import events
from hdguard.observe.http import NO_TOKEN, RATES, operator_name
from hdguard.observe.settings import HttpSettings
from tests.observe.support import CAMERA_TOKEN, TOKEN, ask, get, run, serving


def test_it_is_alive_before_it_is_ready() -> None:
    async def story() -> None:
        async with serving() as stage:
            assert (await get(stage, "/livez")).status == 200
            reply = await get(stage, "/readyz")
            assert reply.status == 503
            assert "kitchen has no fresh frame" in reply.json["unready"]
            stage.watched.starts()
            reply = await get(stage, "/readyz")
            assert (reply.status, reply.json) == (
                200,
                {"ready": True, "state": "monitoring", "unready": []},
            )
            stage.watched.step(events.LinkLost())
            assert (await get(stage, "/readyz")).status == 503

    run(story())


def test_the_status_says_why_the_robot_is_halted_and_what_to_do() -> None:
    async def story() -> None:
        async with serving() as stage:
            stage.watched.starts()
            stage.watched.step(events.HaltRequested("anna"))
            reply = await get(stage, "/api/v1/status")
            assert reply.headers["content-type"] == "application/json"
            assert reply.json["halt"]["cause"] == "operator"
            assert "asked by anna" in reply.json["halt"]["what_to_do"]

    run(story())


def test_prometheus_gets_its_format() -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await get(stage, "/metrics")
            assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert b"\nhdguard_state{" in reply.body

    run(story())


def test_an_operator_halts_the_robot() -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await ask(stage, "POST", "/api/v1/halt?operator=anna", token=TOKEN)
            assert (reply.status, reply.json["halt"]["halt_id"]) == (200, "7-1")
            assert stage.halted == ["anna"]
            assert stage.watched.guard.halt is not None

    run(story())


@pytest.mark.parametrize("body", [b"", b"{", b"\xff" * 60_000])
def test_no_body_keeps_an_operator_from_halting(body: bytes) -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await ask(stage, "POST", "/api/v1/halt", body, token=TOKEN)
            assert (reply.status, stage.halted) == (200, ["an operator over HTTP"])

    run(story())


def test_a_halt_does_not_wait_for_a_body_that_does_not_come() -> None:
    async def story() -> None:
        async with serving() as stage:
            async with asyncio.timeout(2.0):
                reply = await ask(stage, "POST", "/api/v1/halt", token=TOKEN, Content_Length="1000")
            assert (reply.status, len(stage.halted)) == (200, 1)

    run(story())


@pytest.mark.parametrize(
    "token", [None, "", "wrong-wrong-wrong", CAMERA_TOKEN, TOKEN[:-1], f"{TOKEN} x"]
)
def test_nobody_else_halts_it_and_nobody_learns_why_not(token: str | None) -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await ask(stage, "POST", "/api/v1/halt?operator=anna", token=token)
            assert (reply.status, reply.json) == (401, {"error": "not admitted"})
            assert reply.headers["www-authenticate"] == "Bearer"
            assert stage.accepted == 0
            assert stage.rejected == [("halt", "401 not admitted")]

    run(story())


def test_a_token_in_the_address_or_in_the_body_does_not_count() -> None:
    async def story() -> None:
        async with serving() as stage:
            path = f"/api/v1/halt?token={TOKEN}&authorization=Bearer%20{TOKEN}"
            assert (await ask(stage, "POST", path, TOKEN.encode())).status == 401
            assert stage.accepted == 0

    run(story())


def test_without_a_token_the_halt_is_off_and_says_what_to_set() -> None:
    async def story() -> None:
        async with serving(HttpSettings(port=0)) as stage:
            for token in (None, "None", TOKEN):
                reply = await ask(stage, "POST", "/api/v1/halt", token=token)
                assert (reply.status, reply.json) == (403, {"error": NO_TOKEN})
            assert stage.accepted == 0

    run(story())


def test_looking_at_the_halts_address_halts_nothing() -> None:
    async def story() -> None:
        async with serving() as stage:
            for method in ("GET", "HEAD", "PUT", "DELETE"):
                assert (await ask(stage, method, "/api/v1/halt", token=TOKEN)).status == 405
            assert stage.accepted == 0

    run(story())


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("anna", "anna"),
        ("Ünal", "Ünal"),
        ("", "an operator over HTTP"),
        ("a\nb", "an operator over HTTP"),
        ("x" * 65, "an operator over HTTP"),
    ],
)
def test_a_name_that_cannot_be_written_down_stops_no_halt(given: str, named: str) -> None:
    assert operator_name(given) == named


@pytest.mark.parametrize("path", RATES)
def test_a_flood_of_questions_is_answered_429(path: str) -> None:
    async def story() -> None:
        async with serving() as stage:
            burst = RATES[path][1]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(get(stage, path)) for _ in range(burst + 20)]
            found = [task.result() for task in tasks]
            assert sum(reply.status == 429 for reply in found) > 5
            assert sum(reply.status in {200, 503} for reply in found) >= burst
            assert (await get(stage, "/livez")).status == 200

    run(story())


def test_nothing_else_is_there() -> None:
    async def story() -> None:
        async with serving() as stage:
            for path in ("/index.html", "/docs", "/whip", "/static/../etc/passwd", "/%00"):
                reply = await get(stage, path)
                assert (reply.status, reply.json) == (404, {"error": "not found"})

    run(story())


def test_no_answer_may_be_kept_or_guessed_at() -> None:
    async def story() -> None:
        async with serving() as stage:
            headers = (await get(stage, "/livez")).headers
            assert headers["cache-control"] == "no-store"
            assert headers["x-content-type-options"] == "nosniff"
            assert not {"server", "date"} & set(headers)

    run(story())
