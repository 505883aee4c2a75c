"""The HTTP server inside the daemon's own loop, built so that no client can be felt there.

uvicorn's protocol reads requests and Starlette answers them, but who may come in is decided here.
uvicorn's own server takes every connection that the kernel has, waits for ever for a request's
head, catches the process's signals and ends it when the port is taken. Here connections are taken
one by one at a bounded rate, each carries one request and lives for a bounded time, and when all
places are taken the oldest whose token was not accepted gives up its place to the newest: whoever
has no token cannot keep an operator out, however little it says or reads.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from hdguard.observe.http import HttpParts, Pages
from hdguard.observe.limits import (
    ACCEPTS_AT_ONCE,
    ACCEPTS_PER_SECOND,
    BODY_WITHIN,
    GOODBYE_WITHIN,
    HEAD_WITHIN,
    LIFE,
    MOST_BODY,
    MOST_HEAD,
    READ_AWAY,
    Bucket,
)
from hdguard.observe.replies import Refused, refused
from hdguard.observe.settings import HttpError, HttpSettings
from hdguard.observe.visitor import Visitor, short_reply

log = logging.getLogger(__name__)

BACKLOG = 128  # connections that the kernel keeps for us
AFTER_ERROR = 0.5  # seconds; where no socket is to be had, asking at once again only burns time
HEADERS = [
    ("Connection", "close"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
]


class HttpServer:
    """`start` opens the port, `serve` is the task that answers until it is cancelled.

    Args:
        settings: where, for whom, how many.
        parts: what is shown now; asked with every request.

    Raises:
        HttpError: the certificate cannot be used.
    """

    def __init__(self, settings: HttpSettings, parts: Callable[[], HttpParts]) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._failure: asyncio.Future[None] = self._loop.create_future()
        pages = Pages(settings, parts, self._loop.time, self._fail)
        self._config = _config(Gate(pages.application()))
        self._state = ServerState()
        self._state.default_headers = self._config.encoded_headers
        self._tls = settings.tls()
        self._listener: socket.socket | None = None
        self._visitors: dict[Visitor, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Listen, on the first address that the host's name has.

        Raises:
            HttpError: the address is not ours, or taken.
        """
        host, port = self._settings.host, self._settings.port
        try:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            family, kind, protocol, _, address = found[0]
            listener = socket.socket(family, kind, protocol)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(BACKLOG)
                listener.setblocking(False)
            except OSError:
                listener.close()
                raise
        except OSError as error:
            msg = f"http: {host}:{port} cannot be listened on: {error}; see http.host and http.port"
            raise HttpError(msg) from error
        self._listener = listener

    def close(self) -> None:
        """Give the port back; `serve` does it at its end, and whoever never calls that must."""
        if self._listener is not None:
            self._listener.close()
        self._failure.cancel()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._listener is not None  # `start` comes first
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def clients(self) -> int:
        """Connections that are open."""
        return len(self._visitors)

    async def serve(self) -> None:
        """Answer until cancelled; leaves no connection, no task and no port.

        Raises:
            ExceptionGroup: the halt that a request asked for could not be decided.
        """
        assert self._listener is not None  # `start` comes first
        pace = Bucket(ACCEPTS_PER_SECOND, ACCEPTS_AT_ONCE, self._loop.time)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._failed(), name="http failure")
                while True:
                    visitor = await self._next(self._listener)
                    if visitor is not None and self._makes_room(visitor):
                        self._take_in(visitor, group)
                    await pace.turn()
        finally:
            self.close()
            await self._end()

    async def _next(self, listener: socket.socket) -> socket.socket | None:
        try:
            sock, _ = await self._loop.sock_accept(listener)
        except OSError as error:  # no more files, or the client has left already
            log.warning("http: a connection could not be taken: %s", error)
            await asyncio.sleep(AFTER_ERROR)
            return None
        return sock

    def _makes_room(self, newcomer: socket.socket) -> bool:
        """False if every place is taken by somebody whose token was accepted."""
        if len(self._visitors) < self._settings.max_connections:
            return True
        for visitor, task in self._visitors.items():
            if visitor.may_go:
                task.cancel()
                del self._visitors[visitor]
                return True
        with suppress(OSError):  # it may have left already
            if self._tls is None:
                newcomer.send(short_reply(429))
        newcomer.close()
        return False

    def _take_in(self, sock: socket.socket, group: asyncio.TaskGroup) -> None:
        visitor = Visitor(self._config, self._state)
        task = group.create_task(self._attend(visitor, sock), name="visitor")
        self._visitors[visitor] = task

        def left(_: asyncio.Task[None]) -> None:
            """Also if the task was given up before it began."""
            self._visitors.pop(visitor, None)
            sock.close()

        task.add_done_callback(left)

    async def _attend(self, visitor: Visitor, sock: socket.socket) -> None:
        within, goodbye = (None, None) if self._tls is None else (HEAD_WITHIN, GOODBYE_WITHIN)
        try:
            async with asyncio.timeout(LIFE):
                await self._loop.connect_accepted_socket(
                    lambda: visitor,
                    sock,
                    ssl=self._tls,
                    ssl_handshake_timeout=within,
                    ssl_shutdown_timeout=goodbye,
                )
                await visitor.stay()
        except (OSError, TimeoutError) as error:  # an SSLError is an OSError
            log.debug("http: a client was given up: %s", error)
        finally:
            visitor.abort()

    async def _failed(self) -> None:
        await self._failure

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    async def _end(self) -> None:
        """Give up what is still being answered; uvicorn starts a task of its own for each."""
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Gate:
    """Refuses what no endpoint could want, before one is looked for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        if b"transfer-encoding" in headers:
            reply = refused(Refused(411, "say the body's length: chunks are not read"))
        elif (length := int(headers.get(b"content-length", 0))) > MOST_BODY:
            if length <= READ_AWAY and b"expect" not in headers:
                await _read_away(receive)
            reply = refused(Refused(413, f"a body may have {MOST_BODY} bytes"))
        else:
            await self._app(scope, receive, send)
            return
        await reply(scope, receive, send)


async def _read_away(receive: Receive) -> None:
    """Let a client that is not much too long finish, so that it hears what was wrong."""
    with suppress(TimeoutError):
        async with asyncio.timeout(BODY_WITHIN):
            while (await receive()).get("more_body"):
                pass


def _config(app: ASGIApp) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=H11Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",  # else every malformed request is a line in the log
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,  # the wall clock is nobody's business here
        headers=HEADERS,
        h11_max_incomplete_event_size=MOST_HEAD,
    )
    config.load()
    return config
