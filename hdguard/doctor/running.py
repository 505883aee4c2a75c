"""Whether a guard of this robot runs on this machine, and whether it says that it is ready."""

import asyncio
import fcntl
import os
import ssl
from contextlib import suppress
from pathlib import Path

import msgspec

from hdguard.doctor.findings import Finding, fail, ok, warn
from hdguard.observe.settings import HttpSettings

ANSWERS_WITHIN = 3.0
"""Seconds: a choice. A loop that takes so long has long lost the robot's lease."""
MOST_ANSWER = 1 << 16
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # to be asked


def guard_runs(lock: Path) -> bool:
    """Whether a guard holds that lock file; one that is not there is not made.

    Only a share of the lock is asked for, and given back at once: two doctors do not take each
    other for a guard, and a guard that starts in that very instant is started again by systemd.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        file = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


async def ask_guard(http: HttpSettings) -> list[Finding]:
    """Ask the running guard whether it is ready.

    Raises:
        HttpError: the certificate or its key cannot be used.
    """
    tls = http.tls() is not None
    where = f"{'https' if tls else 'http'}://{http.host}:{http.port}/readyz"
    if http.port == 0:
        how = "set http.port to be able to ask it"
        return [warn("http", "the running guard took a port that only its log names", how)]
    try:
        async with asyncio.timeout(ANSWERS_WITHIN):
            status, body = await _get(http, _trusting() if tls else None)
    except TimeoutError:
        return [_silent(where, f"no answer in {ANSWERS_WITHIN:g} s")]
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        return [_silent(where, str(error) or "no answer")]
    if status == 200:
        return [ok("http", f"{where}: the running guard says that it is ready")]
    if status == 503:
        how = "the robot stands or is slowed until that is mended; /api/v1/status tells more"
        return [warn("http", f"{where}: the running guard is not ready: {_reasons(body)}", how)]
    return [_silent(where, f"answered {status}")]


def _silent(where: str, why: str) -> Finding:
    how = "a guard runs and cannot be asked: look at its log, or restart it"
    return fail("http", f"{where}: {why}", how)


def _trusting() -> ssl.SSLContext:
    """For our own port: nothing secret is sent, and its name may be another than 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _get(http: HttpSettings, tls: ssl.SSLContext | None) -> tuple[int, bytes]:
    """Status and body of /readyz; a ValueError if what answers is no HTTP server."""
    host = ANY_ADDRESS.get(http.host, http.host)
    reader, writer = await asyncio.open_connection(host, http.port, ssl=tls)
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: guard\r\nConnection: close\r\n\r\n")
        said = bytearray()
        while (part := await reader.read(MOST_ANSWER)) and len(said) < MOST_ANSWER:
            said += part
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
    head, _, body = bytes(said).partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 3 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        msg = "what answers there is no HTTP server"
        raise ValueError(msg)
    return int(words[1]), body


def _reasons(body: bytes) -> str:
    try:
        return "; ".join(msgspec.json.decode(body)["unready"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return "it does not say why"
