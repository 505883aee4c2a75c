"""HTTP that ends in time, however slowly the other side sends.

An HTTP client's own time limits hold for one read each, so a server that sends a byte now and then
would be waited for without end. Here one limit holds for everything that a request does: connect,
send, headers and body. A limit on the bytes received keeps an endless answer out of memory, and
so compressed answers, of which a few bytes may become many, are refused.
"""

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any

import httpcore2
import httpx2

MOST_BYTES = 16 << 20
"""Of one answer. The longest honest one, some thousand streamed tokens of some 300 bytes each, is
below 2 MiB; the number is a choice."""
KEEP_ALIVE = 4.0
"""Seconds for which an idle connection is used again; uvicorn, which vLLM and SGLang run on, closes
one after 5 s (its documented default), perhaps just as we send."""

SLICE = 64 << 10
"""Bytes sent at once: after each the time is looked at. A choice; a picture is about as long."""


class Allowance:
    """What the request in hand may still use up."""

    def __init__(self) -> None:
        self._end = 0.0
        self._room = 0

    def grant(self, seconds: float) -> None:
        """Begin a request that must end in so many seconds."""
        # Measures how long our own work has taken; frames and verdicts have their own clock.
        self._end = time.perf_counter() + seconds
        self._room = MOST_BYTES

    def seconds(self) -> float:
        """Seconds left.

        Raises:
            httpcore2.ReadTimeout: none.
        """
        left = self._end - time.perf_counter()
        if left <= 0.0:
            raise httpcore2.ReadTimeout("the request's time is up")
        return left

    def take(self, data: bytes) -> bytes:
        """Count what was received.

        Raises:
            httpcore2.ReadError: it is more than any answer has.
        """
        self._room -= len(data)
        if self._room < 0:
            raise httpcore2.ReadError(f"the answer is longer than {MOST_BYTES >> 20} MiB")
        return data


class _Stream(httpcore2.NetworkStream):
    """A connection on which every operation ends with the request's time."""

    def __init__(self, inner: httpcore2.NetworkStream, allowance: Allowance) -> None:
        self._inner = inner
        self._allowance = allowance

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._allowance.take(self._inner.read(max_bytes, self._allowance.seconds()))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # A slow reader takes a little at a time, and the inner loop would wait anew for each.
        for start in range(0, len(buffer), SLICE):
            self._inner.write(buffer[start : start + SLICE], self._allowance.seconds())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        seconds = self._allowance.seconds()
        return _Stream(
            self._inner.start_tls(ssl_context, server_hostname, seconds), self._allowance
        )

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, allowance: Allowance) -> None:
        self._inner = httpcore2.SyncBackend()
        self._allowance = allowance

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = _addresses(host, port)
        while True:
            # An equal share for each address left, so that a silent one leaves time for the next.
            seconds = self._allowance.seconds() / len(addresses)
            try:
                stream = self._inner.connect_tcp(
                    addresses.pop(0), port, seconds, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if not addresses:
                    raise
            else:
                return _Stream(stream, self._allowance)


def _addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, the preferred one first; at least one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore2.ConnectError(f"{host}: {error}") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class LimitedTransport(httpx2.BaseTransport):
    """Carries requests within an allowance; one at a time. Uses no proxy, whatever is set."""

    def __init__(self, allowance: Allowance) -> None:
        self._pool = httpcore2.ConnectionPool(
            keepalive_expiry=KEEP_ALIVE, network_backend=_Backend(allowance)
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; the response's body is still to be read.

        Raises:
            httpx2.TransportError: what went wrong on the way.
        """
        url = request.url
        target = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        body = request.stream
        if not isinstance(body, httpx2.SyncByteStream):
            raise httpx2.UnsupportedProtocol("only requests of the synchronous client are carried")
        with _as_httpx():
            response = self._pool.handle_request(
                httpcore2.Request(request.method, target, headers=request.headers.raw, content=body)
            )
        headers = httpx2.Headers(response.headers)
        if (encoding := headers.get("content-encoding", "identity")) != "identity":
            response.close()
            raise httpx2.ReadError(
                f"the answer is encoded as {encoding!r}, which was not asked for"
            )
        return httpx2.Response(
            response.status,
            headers=headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close every connection; the other side sees that nobody waits any more."""
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


@contextmanager
def _as_httpx() -> Iterator[None]:
    """Give the connection's errors the names that the HTTP client knows."""
    try:
        yield
    except httpcore2.TimeoutException as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise httpx2.ReadError(str(error)) from error
