"""Cameras that publish to us: offers in, answers and sessions out."""

import asyncio

import pytest

from hdguard.ingest.webrtc import OfferRefused
from hdguard.observe.limits import MOST_SDP, OFFERS_AT_ONCE
from tests.observe.support import (
    CAMERA_TOKEN,
    TOKEN,
    Reply,
    Stage,
    ask,
    request,
    run,
    send,
    serving,
)

SDP = "application/sdp"


async def publish(stage: Stage, offer: bytes = b"v=0", **more: str) -> Reply:
    more.setdefault("Content_Type", SDP)
    more.setdefault("token", CAMERA_TOKEN)
    return await ask(stage, "POST", "/whip/kitchen", offer, **more)


def test_an_offer_is_answered_with_the_address_of_its_session() -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await publish(stage, "v=0 ünicode".encode())
            assert (reply.status, reply.body) == (201, b"v=0 the answer")
            assert reply.headers["content-type"] == SDP
            assert stage.camera.offers == ["v=0 ünicode"]
            assert reply.headers["location"] == "/whip/kitchen/session-1"

    run(story())


def test_a_session_is_ended_once() -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await publish(stage)
            where = reply.headers["location"]
            first = await ask(stage, "DELETE", where, token=CAMERA_TOKEN)
            again = await ask(stage, "DELETE", "/whip/kitchen/other", token=CAMERA_TOKEN)
            assert (first.status, again.status) == (200, 404)
            assert stage.camera.ended == ["session-1", "other"]

    run(story())


@pytest.mark.parametrize("token", [None, "", "wrong-wrong-wrong", TOKEN, CAMERA_TOKEN + "x"])
def test_without_the_cameras_token_nothing_is_offered_or_ended(token: str | None) -> None:
    async def story() -> None:
        async with serving() as stage:
            for method, path in (
                ("POST", "/whip/kitchen"),
                ("POST", "/whip/cellar"),
                ("DELETE", "/whip/kitchen/abc"),
            ):
                reply = await ask(stage, method, path, b"v=0", token=token, Content_Type=SDP)
                assert (reply.status, reply.json) == (401, {"error": "not admitted"})
            assert stage.accepted == 0
            assert stage.rejected == [("whip", "401 not admitted")] * 3

    run(story())


def test_a_camera_that_nobody_may_publish_to_is_not_told_from_a_wrong_token() -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await ask(
                stage, "POST", "/whip/hall", b"v=0", token=CAMERA_TOKEN, Content_Type=SDP
            )
            assert reply.status == 401

    run(story())


@pytest.mark.parametrize("status", [400, 409, 503])
def test_the_cameras_own_refusal_is_passed_on(status: int) -> None:
    async def story() -> None:
        async with serving() as stage:
            stage.camera.refuses = OfferRefused(status, "somebody else is publishing")
            reply = await publish(stage)
            assert (reply.status, reply.json) == (status, {"error": "somebody else is publishing"})
            assert stage.rejected == [("whip", f"{status} somebody else is publishing")]

    run(story())


def test_an_offer_that_is_no_sdp_is_refused_unread() -> None:
    async def story() -> None:
        async with serving() as stage:
            assert (await publish(stage, Content_Type="application/json")).status == 415
            assert (await publish(stage, b"\xff\xfe")).status == 400
            assert (
                await publish(stage, Content_Type="Application/SDP; charset=utf-8")
            ).status == 201
            assert stage.camera.offers == ["v=0"]

    run(story())


def test_an_offer_of_just_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    async def story() -> None:
        async with serving() as stage:
            assert (await publish(stage, b"v" * MOST_SDP)).status == 201
            assert (await publish(stage, b"v" * (MOST_SDP + 1))).status == 413
            assert [len(offer) for offer in stage.camera.offers] == [MOST_SDP]

    run(story())


def test_a_flood_of_offers_is_slowed_down() -> None:
    async def story() -> None:
        async with serving() as stage:
            replies = [(await publish(stage)).status for _ in range(8)]
            assert replies == [201] * 5 + [429] * 3

    run(story())


def test_no_more_than_a_few_offers_are_worked_on_at_a_time() -> None:
    async def story() -> None:
        async with serving() as stage:
            stage.camera.waits = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                for _ in range(OFFERS_AT_ONCE):
                    group.create_task(publish(stage))
                for _ in range(OFFERS_AT_ONCE):
                    await stage.camera.came.get()
                assert (await publish(stage)).status == 429
                stage.camera.waits.set()

    run(story())


def test_a_publisher_that_leaves_in_the_middle_of_its_offer_offers_nothing() -> None:
    async def story() -> None:
        async with serving() as stage:
            half = request(
                "POST", "/whip/kitchen", token=CAMERA_TOKEN, Content_Type=SDP, Content_Length="100"
            )
            _, writer = await asyncio.open_connection("127.0.0.1", stage.server.port)
            writer.write(half + b"v=0")
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            assert await stage.refusals.get() == "400 the client left"
            assert stage.camera.offers == []

    run(story())


def test_a_page_from_anywhere_may_publish_if_it_has_the_token() -> None:
    async def story() -> None:
        async with serving() as stage:
            asked = await ask(stage, "OPTIONS", "/whip/kitchen", Origin="https://example.org")
            assert asked.status == 204
            assert asked.headers["access-control-allow-headers"] == "authorization, content-type"
            reply = await publish(stage)
            assert reply.headers["access-control-allow-origin"] == "*"
            assert reply.headers["access-control-expose-headers"] == "location"

    run(story())


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH"])
def test_what_whip_does_not_have_is_405(method: str) -> None:
    async def story() -> None:
        async with serving() as stage:
            for path in ("/whip/kitchen", "/whip/kitchen/abc"):
                reply = await send(stage.server.port, request(method, path, token=CAMERA_TOKEN))
                assert reply.status == 405

    run(story())
