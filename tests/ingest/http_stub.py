"""An HTTP server that answers one request per connection with whatever bytes a test wants."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: str


Reply = Callable[[Request], Awaitable[bytes | None]]
"""The reply's bytes; None: never answer."""


def reply(status: int, body: str = "", **headers: str) -> bytes:
    """A well-formed reply; an underscore in a header's name is a hyphen."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@asynccontextmanager
async def serving(answer: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The server's address, HOST:PORT."""
    waiting = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            method, target, _ = head[0].split(" ")
            fields = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in fields}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            data = await answer(Request(method, target, headers, body.decode()))
            if data is None:
                await waiting.wait()
            else:
                writer.write(data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"
    finally:
        waiting.set()
        server.close()
        await server.wait_closed()


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 that signs itself, and a server's context with it."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    names = ["-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context
