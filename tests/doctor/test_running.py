"""A guard that runs here, told by its lock, and asked over its own port."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hdguard.doctor import running
from hdguard.doctor.findings import Finding, Status
from hdguard.doctor.running import ask_guard, guard_runs
from hdguard.observe.settings import HttpSettings
from hdguard.runtime.lock import locked
from tests.mosquitto import free_port
from tests.observe.certificate import make_certificate
from tests.observe.support import TOKEN, run, serving


def test_only_who_holds_the_lock_is_a_running_guard(tmp_path: Path) -> None:
    lock = tmp_path / "rosie.lock"
    assert not guard_runs(lock)
    assert not lock.exists()
    with locked(lock):
        assert guard_runs(lock)
    assert not guard_runs(lock)


def test_another_doctor_is_no_guard_and_nothing_stays_locked(tmp_path: Path) -> None:
    lock = tmp_path / "rosie.lock"
    lock.touch()
    another = os.open(lock, os.O_RDONLY)
    fcntl.flock(another, fcntl.LOCK_SH)
    assert not guard_runs(lock)
    os.close(another)
    with locked(lock):
        pass


def of_port(port: int) -> Finding:
    async def look() -> list[Finding]:
        return await ask_guard(HttpSettings(port=port, token=TOKEN))

    (found,) = run(look())
    return found


@pytest.mark.parametrize("over_tls", [False, True])
def test_a_guard_that_is_ready_is_well_and_one_that_is_not_says_why(
    over_tls: bool, tmp_path: Path
) -> None:
    settings = HttpSettings(port=0, token=TOKEN)
    if over_tls:
        cert, key = make_certificate(tmp_path)
        settings = replace(settings, host="0.0.0.0", tls_cert=str(cert), tls_key=str(key))

    async def story() -> None:
        async with serving(settings) as stage:
            here = replace(settings, port=stage.server.port)
            (found,) = await ask_guard(here)
            assert found.status is Status.WARN
            assert "kitchen has no fresh frame; reflex has no fresh verdict" in found.said
            stage.watched.starts()
            (found,) = await ask_guard(here)
            assert (found.status, "is ready" in found.said) == (Status.OK, True)

    run(story())


def test_a_port_at_which_nobody_answers_fails() -> None:
    found = of_port(free_port())
    assert (found.status, "look at its log" in found.do) == (Status.FAIL, True)


@asynccontextmanager
async def answering(said: bytes | None) -> AsyncIterator[int]:
    """Somebody who says this and closes, or says nothing at all."""
    tasks: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.extend(filter(None, [asyncio.current_task()]))
        await reader.readuntil(b"\r\n\r\n")
        if said is None:
            with suppress(ConnectionError):
                await reader.read()
        else:
            writer.write(said)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.wait(tasks)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "no answer in 0.2 s"),
        (b"", "no HTTP server"),
        (b"220 mail ready here\r\n", "no HTTP server"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "answered 404"),
        (b"HTTP/1.1 503 No\r\n\r\nnonsense", "does not say why"),
    ],
)
def test_an_answer_that_is_none_of_a_guards_is_never_well(
    said: bytes | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ANSWERS_WITHIN", 0.2)

    async def story() -> Finding:
        async with answering(said) as port:
            (found,) = await ask_guard(HttpSettings(port=port))
            return found

    found = run(story())
    assert found.status is not Status.OK
    assert why in found.said


def test_a_port_that_the_system_chose_cannot_be_asked() -> None:
    assert of_port(0).status is Status.WARN
