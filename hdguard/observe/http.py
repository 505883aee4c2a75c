"""What the guard answers over HTTP: the page, probes, status, metrics, operators, WHIP.

| request | answer |
|---|---|
| GET / | the status page, with /page.css, /page.js and /past.js |
| GET /livez | 200 while the process answers at all |
| GET /readyz | 200 while the guard's decisions are fresh, else 503 and why not |
| GET /api/v1/status | all that `Status` knows |
| GET /api/v1/events | the same as it changes, as server-sent events |
| GET /api/v1/cameras/CAMERA/picture | its newest frame as JPEG; X-Frame-Age: seconds |
| GET /metrics | the numbers, for Prometheus |
| POST /api/v1/halt?operator=NAME | halts the robot; the operator's token |
| POST /api/v1/reset?halt_id=ID&operator=NAME | ends that halt if all is GREEN; likewise |
| POST, DELETE /whip/CAMERA | see `hdguard.observe.whip`; the camera's token |

What may be read is open to whoever reaches the port: probes and Prometheus have no secrets to keep,
and none is shown. Pictures of a home are another matter: beyond this machine they need the
operator's token. What changes something needs a token.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hdguard.ingest.base import SourceError
from hdguard.observe.auth import Door
from hdguard.observe.limits import Bucket
from hdguard.observe.metrics import CONTENT_TYPE, Metrics
from hdguard.observe.page import FILES, HEADERS, PageFiles
from hdguard.observe.pictures import Picture
from hdguard.observe.replies import Refused, not_found, refused
from hdguard.observe.settings import HttpSettings, is_loopback
from hdguard.observe.status import Status
from hdguard.observe.stream import ReportStream
from hdguard.observe.visitor import keep_place
from hdguard.observe.whip import Publishing, Whip

Handler = Callable[[Request], Awaitable[Response]]

RATES = {
    **dict.fromkeys((*FILES, "/readyz", "/api/v1/status"), (20.0, 40)),
    "/metrics": (5.0, 10),
}
"""Answers a second, and at once. Several probes, pages and scrapers together stay far below; a
scrape takes 1 to 2 ms of the decision loop (measured, three cameras and three brains)."""

LONGEST_NAME = 64
TOO_OFTEN = "asked too often; try again in a second"
NO_TOKEN = "the operator's halt is off: set http.token in the configuration"
PICTURES, STREAMS = (20.0, 40), (20.0, 100)
"""The same for pictures, of which `page.js` asks for fewer the more people look, and for streams,
each of which is asked for again after `STREAM_LASTS`."""

PROXIED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""What proxies add to a request. One that adds none of them must pass on the client's Host."""

RESETS = (1.0, 3)
"""The same for resets with the operator's token; a person who is refused reads why first."""


class Pictures(Protocol):
    """The newest picture of each camera."""

    async def jpeg(self, source: str) -> Picture | None:
        """That camera's; None before its first.

        Raises:
            SourceError: it cannot be shown.
        """
        ...


@dataclass(frozen=True, slots=True)
class Demo:
    """What a page says of itself where no real robot is watched: then nothing can be ordered.

    Attributes:
        title: what is shown now.
        over: it has ended: the last picture stays.
        earlier: what became of what was shown before, newest first.
    """

    title: str
    over: bool = False
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpParts:
    """What the endpoints show and call.

    Attributes:
        status: what the guard is doing.
        metrics: its numbers.
        halt: halts the robot in the name of an operator, before it returns. What it raises ends
            `HttpServer.serve`: a decision that fails must not be an HTTP error alone.
        cameras: name -> what takes a publisher's offers.
        on_rejected: told "halt", "reset" or "whip" and why, of every command that is refused.
        reset: asks for the end of that halt in the name of that operator, and returns when the
            guard has decided; None: nothing can be reset here. Errors as `halt`.
        pictures: of the cameras; None: there are none to be seen.
        demo: what is said of a demo; None: a robot is watched.
    """

    status: Status
    metrics: Metrics
    halt: Callable[[str], None]
    cameras: Mapping[str, Publishing] = field(default_factory=dict)
    on_rejected: Callable[[str, str], None] = lambda _what, _why: None
    reset: Callable[[str, str], None] | None = None
    pictures: Pictures | None = None
    demo: Demo | None = None


class Pages:
    """The endpoints.

    Args:
        settings: the tokens.
        parts: what they show and call; asked with every request, so that one guard may follow
            another. The cameras that are published to are those of the first.
        clock: seconds, the loop's.
        failed: told of an error that the halt raised.
    """

    def __init__(
        self,
        settings: HttpSettings,
        parts: Callable[[], HttpParts],
        clock: Callable[[], float],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._parts = parts
        self._failed = failed
        self._door = Door(settings.token, settings.publish_tokens)
        self._at_home = is_loopback(settings.host)
        limits = {**RATES, "picture": PICTURES, "stream": STREAMS, "reset": RESETS}
        self._buckets = {name: Bucket(*rate, clock) for name, rate in limits.items()}
        self._clock = clock
        self._stream = ReportStream(self._report, clock)
        self._files = PageFiles()
        self._whip = Whip(parts().cameras, self._door, clock, self._reject)

    def application(self) -> Starlette:
        """All endpoints, as ASGI."""
        picture = "/api/v1/cameras/{camera}/picture"
        routes = [
            *(self._read(path, self._files.answer) for path in FILES),
            Route("/livez", self._livez),
            self._read("/readyz", self._readyz),
            self._read("/api/v1/status", self._status),
            self._read("/api/v1/events", self._events, "stream"),
            Route(picture, self._picture),
            self._read("/metrics", self._metrics),
            Route("/api/v1/halt", self._halt, methods=["POST"]),
            Route("/api/v1/reset", self._reset, methods=["POST"]),
            *self._whip.routes,
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: not_found})

    def _read(self, path: str, handler: Handler, limit: str = "") -> Route:
        bucket = self._buckets[limit or path]

        async def limited(request: Request) -> Response:
            if not bucket.take():
                return refused(Refused(429, TOO_OFTEN))
            return await handler(request)

        return Route(path, limited)

    async def _livez(self, _: Request) -> Response:
        return JSONResponse({"live": True})

    async def _readyz(self, _: Request) -> Response:
        status = self._parts().status
        unready = status.unready()
        said = {"ready": not unready, "state": status.state, "unready": list(unready)}
        return JSONResponse(said, status_code=503 if unready else 200)

    async def _status(self, _: Request) -> Response:
        return JSONResponse(self._report())

    async def _metrics(self, _: Request) -> Response:
        return Response(self._parts().metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    # Looking.

    def _report(self) -> dict[str, Any]:
        """What a page needs to know: of the guard, and of what it may ask here."""
        parts = self._parts()
        parts.status.on_change = self._stream.changed
        pictures = "none" if parts.pictures is None else "open" if self._at_home else "token"
        here = {
            "viewers": self._stream.viewers,
            "pictures": pictures,
            "halt": self._door.has_operator,
            "reset": self._door.has_operator and parts.reset is not None,
            "demo": None if parts.demo is None else asdict(parts.demo),
        }
        return {**parts.status.report(), "here": here}

    async def _events(self, _: Request) -> Response:
        return self._stream.answer()

    async def _picture(self, request: Request) -> Response:
        try:
            self._check_looking(request)
            if not self._buckets["picture"].take():  # those who are not let in use none of it up
                raise Refused(429, TOO_OFTEN)
            pictures = self._parts().pictures
            name = request.path_params["camera"]
            found = None if pictures is None else await pictures.jpeg(name)
            if found is None:
                raise Refused(404, "there is no picture of such a camera")
        except SourceError as error:
            return refused(Refused(503, str(error)))
        except Refused as error:
            return refused(error)
        stamps = {
            "X-Frame-Age": f"{self._clock() - found.captured_at:.3f}",
            "X-Captured-At": f"{found.captured_at:.3f}",  # on the clock of the report's `now`
        }
        headers = {**HEADERS, **stamps, "Content-Type": "image/jpeg"}
        return Response(found.jpeg, headers=headers)

    def _check_looking(self, request: Request) -> None:
        """Whoever sits at this machine may look.

        A page from elsewhere that has made its name lead here (DNS rebinding) comes under its name,
        and whoever comes through a proxy on this machine may sit anywhere.
        """
        proxied = any(name in request.headers for name in PROXIED)
        if self._at_home and is_loopback(_called(request)) and not proxied:
            return
        self._check_operator(request)

    # Commands. The token is all that they need: a body is not read, so that nothing in it can
    # delay.

    def _check_operator(self, request: Request) -> None:
        if not self._door.has_operator:
            raise Refused(403, NO_TOKEN)
        if not self._door.admits_operator(request.headers.get("authorization")):
            raise Refused(401, "not admitted")

    def _reject(self, what: str, why: str) -> None:
        self._parts().on_rejected(what, why)

    async def _halt(self, request: Request) -> Response:
        try:
            self._check_operator(request)
            keep_place(request)
        except Refused as error:
            self._reject("halt", f"{error.status} {error}")
            return refused(error)
        parts = self._parts()
        try:
            parts.halt(operator_name(request.query_params.get("operator", "")))
        except BaseException as error:
            self._failed(error)
            raise
        return JSONResponse({"halt": parts.status.halt()})

    async def _reset(self, request: Request) -> Response:
        parts = self._parts()
        try:
            self._check_operator(request)
            keep_place(request)
            halt_id = request.query_params.get("halt_id", "")
            self._check_reset(halt_id, parts)
            self._decide_reset(halt_id, request, parts)
        except Refused as error:
            self._reject("reset", f"{error.status} {error}")
            return refused(error)
        return JSONResponse({"released": halt_id})

    def _check_reset(self, halt_id: str, parts: HttpParts) -> None:
        """What is named must be the halt in force: one that nobody has seen is not ended."""
        if not self._buckets["reset"].take():
            raise Refused(429, TOO_OFTEN)
        if parts.reset is None:
            raise Refused(409, "nothing can be reset here")
        in_force = parts.status.halt()
        if in_force is None:
            raise Refused(409, "no halt is in force")
        if in_force["halt_id"] != halt_id:
            raise Refused(409, f"halt_id: must be {in_force['halt_id']}, the halt in force")

    def _decide_reset(self, halt_id: str, request: Request, parts: HttpParts) -> None:
        assert parts.reset is not None  # it is checked
        try:
            parts.reset(halt_id, operator_name(request.query_params.get("operator", "")))
        except BaseException as error:
            self._failed(error)
            raise
        still = parts.status.halt()
        if still is not None and still["halt_id"] == halt_id:
            why = "; ".join(parts.status.unreleased()) or "the policy does not let it end"
            raise Refused(409, f"not released: {why}")


def _called(request: Request) -> str:
    """The name under which the client knows us, without the port; empty if it is none."""
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def operator_name(given: str) -> str:
    """Who asks, for the log; a name that cannot be printed or is too long does not stop a halt."""
    if not given or not given.isprintable() or len(given) > LONGEST_NAME:
        return "an operator over HTTP"
    return given
