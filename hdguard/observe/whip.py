"""The door for cameras that publish to us over WebRTC: WHIP (RFC 9725), without trickled addresses.

POST an offer, get an answer and the address of the session; DELETE that address to end it. Pages in
a browser may publish from any origin: what admits them is the camera's token, which no browser
sends by itself.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from hdguard.ingest.webrtc import Answer, OfferRefused
from hdguard.observe.auth import Door
from hdguard.observe.limits import (
    MOST_SDP,
    OFFERS_AT_ONCE,
    Bucket,
    Gone,
    TooLong,
    TooSlow,
    read_body,
)
from hdguard.observe.replies import Refused, refused
from hdguard.observe.visitor import keep_place

SDP = "application/sdp"
PREFLIGHT = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, DELETE",
    "Access-Control-Allow-Headers": "authorization, content-type",
    "Access-Control-Max-Age": "600",
}
SHARED = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "location"}

RATE, BURST = 1.0, 5
"""Offers a second to one camera; one that is refused is tried again after a second or so."""


class Publishing(Protocol):
    """What the pictures of one camera come from."""

    async def offer(self, sdp: str) -> Answer:
        """Take a publisher's offer.

        Raises:
            OfferRefused: it is not taken; its status says why.
        """
        ...

    async def end(self, resource_id: str) -> bool:
        """End that session; False if there is none of that name."""
        ...


class Whip:
    """The endpoints of all cameras that may be published to.

    Args:
        cameras: name -> what takes the offers.
        door: who may publish.
        clock: seconds, the loop's.
        on_rejected: told the camera and why, of every request that is not taken.
    """

    def __init__(
        self,
        cameras: Mapping[str, Publishing],
        door: Door,
        clock: Callable[[], float],
        on_rejected: Callable[[str, str], None],
    ) -> None:
        self._cameras = dict(cameras)
        self._door = door
        self._on_rejected = on_rejected
        self._buckets = {name: Bucket(RATE, BURST, clock) for name in cameras}
        self._under_way = 0

    @property
    def routes(self) -> list[Route]:
        """Where the endpoints are."""
        return [
            Route("/whip/{camera}", self._publish, methods=["POST"]),
            Route("/whip/{camera}", self._preflight, methods=["OPTIONS"]),
            Route("/whip/{camera}/{session}", self._end, methods=["DELETE"]),
            Route("/whip/{camera}/{session}", self._preflight, methods=["OPTIONS"]),
        ]

    async def _preflight(self, _: Request) -> Response:
        return Response(status_code=204, headers=PREFLIGHT)

    async def _publish(self, request: Request) -> Response:
        camera = request.path_params["camera"]
        try:
            answer = await self._answer(request, camera)
        except Refused as error:
            self._on_rejected("whip", f"{error.status} {error}")
            return refused(error, SHARED)
        where = f"/whip/{quote(camera, safe='')}/{quote(answer.resource_id, safe='')}"
        return Response(
            answer.sdp, status_code=201, media_type=SDP, headers={**SHARED, "Location": where}
        )

    async def _answer(self, request: Request, camera: str) -> Answer:
        publishing = self._admit(request, camera)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != SDP:
            raise Refused(415, f"content-type must be {SDP}")
        if not self._buckets[camera].take() or self._under_way >= OFFERS_AT_ONCE:
            raise Refused(429, "too many offers; try again in a second")
        self._under_way += 1
        keep_place(request)
        try:
            return await publishing.offer(await read_text(request, MOST_SDP))
        except OfferRefused as error:
            raise Refused(error.status, str(error)) from error
        finally:
            self._under_way -= 1

    async def _end(self, request: Request) -> Response:
        try:
            publishing = self._admit(request, request.path_params["camera"])
            if not await publishing.end(request.path_params["session"]):
                raise Refused(404, "there is no such session")
        except Refused as error:
            self._on_rejected("whip", f"{error.status} {error}")
            return refused(error, SHARED)
        return Response(status_code=200, headers=SHARED)

    def _admit(self, request: Request, camera: str) -> Publishing:
        if not self._door.admits_publisher(request.headers.get("authorization"), camera):
            raise Refused(401, "not admitted")
        if camera not in self._cameras:
            raise Refused(404, "no such camera is published to")
        return self._cameras[camera]


async def read_text(request: Request, most: int) -> str:
    """The request's body.

    Raises:
        Refused: it is too long, too slow, broken off or no text.
    """
    try:
        return (await read_body(_chunks(request), most)).decode()
    except TooLong:
        raise Refused(413, f"the body may have {most} bytes") from None
    except TooSlow:
        raise Refused(408, "the body did not come in time") from None
    except Gone:
        raise Refused(400, "the client left") from None
    except UnicodeDecodeError:
        raise Refused(400, "the body is not UTF-8") from None


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise Gone from None
