"""What the guard answers over HTTP: probes, status, metrics, the operator's halt, WHIP.

| request | answer |
|---|---|
| GET /livez | 200 while the process answers at all |
| GET /readyz | 200 while the guard's decisions are fresh, else 503 and why not |
| GET /api/v1/status | all that `Status` knows |
| GET /metrics | the numbers, for Prometheus |
| POST /api/v1/halt?operator=NAME | halts the robot; the operator's token |
| POST, DELETE /whip/CAMERA | see `hdguard.observe.whip`; the camera's token |

What may be read is open to whoever reaches the port: probes and Prometheus have no secrets to keep,
and none is shown. What changes something needs a token.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hdguard.observe.auth import Door
from hdguard.observe.limits import Bucket
from hdguard.observe.metrics import CONTENT_TYPE, Metrics
from hdguard.observe.replies import Refused, not_found, refused
from hdguard.observe.settings import HttpSettings
from hdguard.observe.status import Status
from hdguard.observe.visitor import keep_place
from hdguard.observe.whip import Publishing, Whip

Handler = Callable[[Request], Awaitable[Response]]

RATES = {"/readyz": (20.0, 40), "/api/v1/status": (20.0, 40), "/metrics": (5.0, 10)}
"""Answers a second, and at once. Several probes, pages and scrapers together stay far below; a
scrape takes 0.5 ms of the decision loop (measured, two brains)."""

LONGEST_NAME = 64
NO_TOKEN = "the operator's halt is off: set http.token in the configuration"


@dataclass(frozen=True, slots=True)
class HttpParts:
    """What the endpoints show and call.

    Attributes:
        status: what the guard is doing.
        metrics: its numbers.
        halt: halts the robot in the name of an operator, before it returns. What it raises ends
            `HttpServer.serve`: a decision that fails must not be an HTTP error alone.
        cameras: name -> what takes a publisher's offers.
        on_rejected: told "halt" or "whip" and why, of every command that is refused.
    """

    status: Status
    metrics: Metrics
    halt: Callable[[str], None]
    cameras: Mapping[str, Publishing] = field(default_factory=dict)
    on_rejected: Callable[[str, str], None] = lambda _what, _why: None


class Pages:
    """The endpoints.

    Args:
        settings: the tokens.
        parts: what they show and call.
        clock: seconds, the loop's.
        failed: told of an error that the halt raised.
    """

    def __init__(
        self,
        settings: HttpSettings,
        parts: HttpParts,
        clock: Callable[[], float],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._parts = parts
        self._failed = failed
        self._door = Door(settings.token, settings.publish_tokens)
        self._buckets = {path: Bucket(*rate, clock) for path, rate in RATES.items()}
        self._whip = Whip(parts.cameras, self._door, clock, parts.on_rejected)

    def application(self) -> Starlette:
        """All endpoints, as ASGI."""
        routes = [
            Route("/livez", self._livez),
            self._read("/readyz", self._readyz),
            self._read("/api/v1/status", self._status),
            self._read("/metrics", self._metrics),
            Route("/api/v1/halt", self._halt, methods=["POST"]),
            *self._whip.routes,
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: not_found})

    def _read(self, path: str, handler: Handler) -> Route:
        bucket = self._buckets[path]

        async def limited(request: Request) -> Response:
            if not bucket.take():
                return refused(Refused(429, "asked too often; try again in a second"))
            return await handler(request)

        return Route(path, limited)

    async def _livez(self, _: Request) -> Response:
        return JSONResponse({"live": True})

    async def _readyz(self, _: Request) -> Response:
        status = self._parts.status
        unready = status.unready()
        said = {"ready": not unready, "state": status.state, "unready": list(unready)}
        return JSONResponse(said, status_code=503 if unready else 200)

    async def _status(self, _: Request) -> Response:
        return JSONResponse(self._parts.status.report())

    async def _metrics(self, _: Request) -> Response:
        return Response(self._parts.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def _halt(self, request: Request) -> Response:
        """The token is all that it needs: a body is not read, so that nothing in it can delay."""
        try:
            if not self._door.has_operator:
                raise Refused(403, NO_TOKEN)
            if not self._door.admits_operator(request.headers.get("authorization")):
                raise Refused(401, "not admitted")
            keep_place(request)
        except Refused as error:
            self._parts.on_rejected("halt", f"{error.status} {error}")
            return refused(error)
        try:
            self._parts.halt(operator_name(request.query_params.get("operator", "")))
        except BaseException as error:
            self._failed(error)
            raise
        return JSONResponse({"halt": self._parts.status.halt()})


def operator_name(given: str) -> str:
    """Who asks, for the log; a name that cannot be printed or is too long does not stop a halt."""
    if not given or not given.isprintable() or len(given) > LONGEST_NAME:
        return "an operator over HTTP"
    return given
