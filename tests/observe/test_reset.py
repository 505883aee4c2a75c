"""An operator ends a halt over HTTP: only this one, only with the token, only when all is GREEN."""

import asyncio

import pytest

from hdguard.core.events import HaltRequested
from hdguard.core.types import Light
from hdguard.observe.http import NO_TOKEN, RESETS
from hdguard.observe.settings import HttpSettings
from tests.observe.support import CAMERA_TOKEN, TOKEN, Stage, ask, get, run, serving

RESET = "/api/v1/reset?halt_id=7-1&operator=anna"


def halted(stage: Stage, greens: int = 3) -> None:
    """An operator's halt, and so many GREEN since."""
    stage.watched.starts()
    stage.watched.step(HaltRequested("bob"))
    stage.watched.now += 0.2
    stage.watched.sees(Light.YELLOW)
    for _ in range(greens):
        stage.watched.now += 0.2
        stage.watched.sees()


def test_it_is_released_and_the_answer_says_so() -> None:
    async def story() -> None:
        async with serving() as stage:
            halted(stage)
            reply = await ask(stage, "POST", RESET, token=TOKEN)
            assert (reply.status, reply.json) == (200, {"released": "7-1"})
            assert stage.resets == [("7-1", "anna")]
            assert stage.watched.guard.halt is None

    run(story())


def test_until_all_is_green_the_answer_says_what_is_missing() -> None:
    async def story() -> None:
        async with serving() as stage:
            halted(stage, greens=1)
            reply = await ask(stage, "POST", RESET, token=TOKEN)
            words = "not released: reflex on kitchen has said GREEN 1 of 3 times"
            assert (reply.status, reply.json) == (409, {"error": words})
            stage.watched.now += 0.2
            stage.watched.sees(Light.YELLOW)
            reply = await ask(stage, "POST", RESET, token=TOKEN)
            assert "reflex on kitchen is YELLOW" in reply.json["error"]
            stage.watched.now += 5.0
            reply = await ask(stage, "POST", RESET, token=TOKEN)
            assert "kitchen has no fresh frame" in reply.json["error"]
            assert stage.watched.guard.halt is not None
            assert len(stage.rejected) == 3

    run(story())


@pytest.mark.parametrize("token", [None, "", "wrong-wrong-wrong", CAMERA_TOKEN, TOKEN[:-1]])
def test_nobody_else_ends_it(token: str | None) -> None:
    async def story() -> None:
        async with serving() as stage:
            halted(stage)
            reply = await ask(stage, "POST", RESET, token=token)
            assert (reply.status, reply.json) == (401, {"error": "not admitted"})
            assert reply.headers["www-authenticate"] == "Bearer"
            assert (stage.resets, stage.rejected) == ([], [("reset", "401 not admitted")])

    run(story())


def test_without_a_token_it_is_off() -> None:
    async def story() -> None:
        async with serving(HttpSettings(port=0)) as stage:
            halted(stage)
            reply = await ask(stage, "POST", RESET, token=TOKEN)
            assert (reply.status, reply.json) == (403, {"error": NO_TOKEN})

    run(story())


@pytest.mark.parametrize("named", ["", "7-0", "7-2", "7-1 ", "x" * 5000])
def test_it_must_name_the_halt_in_force(named: str) -> None:
    async def story() -> None:
        async with serving() as stage:
            halted(stage)
            path = f"/api/v1/reset?halt_id={named.replace(' ', '%20')}"
            reply = await ask(stage, "POST", path, token=TOKEN)
            assert reply.status == 409
            assert reply.json == {"error": "halt_id: must be 7-1, the halt in force"}
            assert (stage.resets, len(stage.rejected)) == ([], 1)

    run(story())


def test_when_none_is_in_force_it_says_so() -> None:
    async def story() -> None:
        async with serving() as stage:
            stage.watched.starts()
            reply = await ask(stage, "POST", RESET, token=TOKEN)
            assert (reply.status, reply.json) == (409, {"error": "no halt is in force"})

    run(story())


def test_impatience_is_answered_429_and_a_crowd_without_a_token_takes_nobodys_turn() -> None:
    async def story() -> None:
        async with serving() as stage:
            halted(stage, greens=0)
            for _ in range(20):
                assert (await ask(stage, "POST", RESET, token="wrong-wrong")).status == 401
            async with asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(ask(stage, "POST", RESET, token=TOKEN)) for _ in "abcdef"
                ]
            statuses = sorted(task.result().status for task in asked)
            assert statuses == [409] * RESETS[1] + [429] * (6 - RESETS[1])

    run(story())


def test_looking_at_its_address_resets_nothing() -> None:
    async def story() -> None:
        async with serving() as stage:
            halted(stage)
            for method in ("GET", "HEAD", "PUT", "DELETE"):
                assert (await ask(stage, method, RESET, token=TOKEN)).status == 405
            assert stage.resets == []

    run(story())


def test_an_error_in_the_decision_ends_the_server_and_so_the_daemon() -> None:
    async def story() -> None:
        with pytest.RaisesGroup(pytest.RaisesGroup(ZeroDivisionError)):
            async with serving() as stage:
                halted(stage)
                stage.fails = ZeroDivisionError()
                await ask(stage, "POST", RESET, token=TOKEN)
                await asyncio.Event().wait()

    run(story())


def test_the_report_tells_the_page_what_may_be_asked_here() -> None:
    async def story() -> None:
        async with serving(HttpSettings(port=0)) as stage:
            assert (await get(stage, "/api/v1/status")).json["here"] == {
                "viewers": 0,
                "pictures": "open",
                "halt": False,
                "reset": False,
                "demo": None,
            }

    run(story())
