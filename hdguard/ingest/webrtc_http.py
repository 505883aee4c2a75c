"""The two HTTP requests of a WHEP client: an offer for an answer, and the session's end.

A whole HTTP client library would be a dependency for two requests; h11, which the server side of
the house brings along, reads the replies, and sizes and times are bounded here.
"""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, urljoin, urlsplit

import h11

from hdguard.ingest.base import SourceError

MAX_BODY = 64 * 1024  # bytes of an answer; they are a few thousand
_MAX_HEAD = 16 * 1024  # bytes of status line and header
_CHUNK = 16 * 1024
_FAREWELL = 1.0  # s; the daemon's own end may wait for it


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a session is asked for, and as whom.

    Attributes:
        url: http or https, without credentials.
        name: what error messages call it.
        authorization: value of the header of that name; empty: none is sent.
        tls: for https; made once, because it reads the trusted certificates from disk.
        timeout: seconds for one request with its reply.
    """

    url: str
    name: str
    authorization: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    timeout: float = 5.0


async def exchange(endpoint: Endpoint, offer: str) -> tuple[str, str]:
    """Post the offer; the answer, and the session's URL or empty.

    A redirect is not followed, and a session elsewhere than at the endpoint is not ended by us:
    the token is for the endpoint alone.

    Raises:
        SourceError: no answer in time, or something else than an answer; says what to do.
    """
    status, headers, body = await _request(endpoint, endpoint.url, "POST", offer.encode())
    if status in {401, 403}:
        msg = f"{endpoint.name}: refused with status {status}; check the token or the password"
        raise SourceError(msg)
    if status == 404:
        msg = f"{endpoint.name}: there is no such stream (404); check the URL's path"
        raise SourceError(msg)
    if status not in {200, 201}:
        msg = f"{endpoint.name}: answered the offer with status {status}, not 201"
        raise SourceError(msg)
    if headers.get("content-type", "").partition(";")[0].strip() != "application/sdp":
        msg = f"{endpoint.name}: answered with something else than application/sdp"
        raise SourceError(msg)
    return body.decode(errors="replace"), _session(endpoint.url, headers.get("location", ""))


def parsed(url: str) -> SplitResult:
    """The parts of an http or https URL that can be asked for.

    Raises:
        ValueError: what is wrong with it, without a word of the URL: it may hold a password.
    """
    if not all("!" <= c <= "~" for c in url):
        msg = "must be ASCII without spaces; write other characters as %XX, a name as xn--..."
        raise ValueError(msg)
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
        host.encode("idna")
    except ValueError:
        msg = "has a host or a port that cannot be one"
        raise ValueError(msg) from None  # its text quotes what may be a part of the password
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        msg = "must be http or https with a host, and a port from 1 to 65535 if any"
        raise ValueError(msg)
    return parts


async def end(endpoint: Endpoint, session: str) -> None:
    """Tell the server that the session is over; it would notice anyway, later."""
    with contextlib.suppress(SourceError):
        await _request(replace(endpoint, timeout=_FAREWELL), session, "DELETE", b"")


async def _request(
    endpoint: Endpoint, url: str, method: str, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    try:
        async with asyncio.timeout(endpoint.timeout):
            return await _converse(endpoint, parsed(url), method, body)
    except TimeoutError as error:
        msg = f"{endpoint.name}: no answer in {endpoint.timeout:g} s"
        raise SourceError(msg) from error
    except ssl.SSLCertVerificationError as error:
        msg = f"{endpoint.name}: its certificate is not trusted ({error.verify_message})"
        raise SourceError(msg) from error
    except OSError as error:
        msg = f"{endpoint.name}: cannot be reached ({error.strerror or type(error).__name__})"
        raise SourceError(msg) from error
    except h11.RemoteProtocolError as error:
        msg = f"{endpoint.name}: does not speak HTTP as it should ({error})"
        raise SourceError(msg) from error
    except (h11.LocalProtocolError, ValueError):
        msg = f"{endpoint.name}: cannot be asked; check the URL and the token"
        raise SourceError(msg) from None  # its text may quote the token


async def _converse(
    endpoint: Endpoint, url: SplitResult, method: str, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await asyncio.open_connection(
        url.hostname,
        _port(url),
        ssl=endpoint.tls,
        limit=_CHUNK,
    )
    try:
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
        headers = [
            ("Host", url.netloc),
            ("Connection", "close"),
            ("Accept", "application/sdp"),
            ("Content-Type", "application/sdp"),
            ("Content-Length", str(len(body))),
        ]
        if endpoint.authorization:
            headers.append(("Authorization", endpoint.authorization))
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        writer.write(http.send(h11.Request(method=method, target=target, headers=headers)) or b"")
        writer.write((http.send(h11.Data(body)) or b"") + (http.send(h11.EndOfMessage()) or b""))
        await writer.drain()
        return await _reply(http, reader)
    finally:
        writer.close()


async def _reply(
    http: h11.Connection, reader: asyncio.StreamReader
) -> tuple[int, dict[str, str], bytes]:
    status, headers, body = 0, dict[str, str](), b""
    while True:
        match http.next_event():
            case h11.NEED_DATA:
                http.receive_data(await reader.read(_CHUNK))
            case h11.Response() as reply:
                status = reply.status_code
                headers = {k.decode().lower(): v.decode("latin-1") for k, v in reply.headers}
            case h11.Data() as data:
                body += data.data
                if len(body) > MAX_BODY:
                    msg = f"a body of more than {MAX_BODY} bytes"
                    raise h11.RemoteProtocolError(msg)
            case h11.EndOfMessage():
                return status, headers, body
            case h11.ConnectionClosed() | h11.PAUSED:
                msg = "the connection ended before the reply did"
                raise h11.RemoteProtocolError(msg)
            case _:
                pass  # an informational reply


def _session(url: str, location: str) -> str:
    """The session's URL; empty if there is none, or none that gets our token."""
    try:
        session = urljoin(url, location)
        same = _origin(session) == _origin(url)
    except ValueError:
        return ""
    return session if location and same else ""


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = parsed(url)
    return parts.scheme, parts.hostname, _port(parts)


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)
