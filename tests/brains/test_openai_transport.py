"""One limit for all that a request does."""

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2
import pytest

from hdguard.brains.openai_transport import MOST_BYTES, Allowance, LimitedTransport
from tests.stub_server import Stub


def get(stub: Stub, seconds: float) -> httpx2.Response:
    allowance = Allowance()
    allowance.grant(seconds)
    with httpx2.Client(
        transport=LimitedTransport(allowance), timeout=None, trust_env=False
    ) as client:
        return client.get(f"{stub.url}/models")


def test_an_answer_arrives_whole() -> None:
    with Stub() as stub:
        assert get(stub, 5.0).json() == {"data": [{"id": "stub-vl"}]}


def test_a_byte_now_and_then_does_not_stretch_the_limit() -> None:
    with Stub(faults={"models": "drip"}) as stub:
        with pytest.raises(httpx2.ReadTimeout):
            get(stub, 0.2)  # no read takes this long: a byte comes every 0.02 s
        assert stub.left.wait(5)


def test_a_server_that_says_nothing_is_left_in_time() -> None:
    with Stub(faults={"models": "hang"}) as stub:
        with pytest.raises(httpx2.ReadTimeout):
            get(stub, 0.1)
        assert stub.left.wait(5)


def test_an_endless_answer_does_not_fill_the_memory() -> None:
    with Stub(faults={"models": "flood"}) as stub:
        with pytest.raises(httpx2.ReadError, match="longer than 16 MiB"):
            get(stub, 10.0)
        assert stub.left.wait(5)


def test_a_port_where_nobody_listens_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        stub = Stub(port=free.getsockname()[1])
    with pytest.raises(httpx2.ReadError, match="refused"):
        get(stub, 5.0)


def test_an_answer_that_breaks_off_is_an_error() -> None:
    with Stub(faults={"models": "close"}) as stub, pytest.raises(httpx2.ReadError):
        get(stub, 5.0)


@contextmanager
def accepting(answer: bytes = b"", rest: float = 0.0) -> Iterator[int]:
    """The port of a server that reads a little, rests, and so on; or that answers."""
    over = threading.Event()

    def serve(listening: socket.socket) -> None:
        peer, _ = listening.accept()
        with peer:
            if answer:
                peer.recv(1 << 16)
                peer.sendall(answer)
            while not over.wait(rest) and peer.recv(1 << 18):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        other = threading.Thread(target=serve, args=(listening,))  # noqa: TID251 - the other side
        other.start()
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            other.join(10)


def post(port: int, seconds: float, content: bytes) -> httpx2.Response:
    allowance = Allowance()
    allowance.grant(seconds)
    transport = LimitedTransport(allowance)
    with httpx2.Client(transport=transport, timeout=None, trust_env=False) as client:
        return client.post(f"http://127.0.0.1:{port}/", content=content)


def test_a_reader_that_takes_a_little_now_and_then_does_not_stretch_the_limit() -> None:
    with accepting(rest=0.02) as port:
        started = time.perf_counter()
        with pytest.raises(httpx2.ReadTimeout):
            post(port, 0.5, b"x" * (30 << 20))  # takes seconds, and no single send takes 0.5 s
        assert time.perf_counter() - started < 1.0


def test_a_small_answer_that_would_become_a_large_one_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * (20 << 20))
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n"
    with (
        accepting(head.encode() + packed) as port,
        pytest.raises(httpx2.ReadError, match="encoded as 'gzip'"),
    ):
        post(port, 5.0, b"")


def test_a_silent_address_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, float]] = []
    real = httpcore2.SyncBackend.connect_tcp

    def connect(self: Any, host: str, port: int, timeout: float, *rest: Any) -> Any:
        tried.append((host, timeout))
        if host != "127.0.0.1":
            raise httpcore2.ConnectTimeout("timed out")
        return real(self, host, port, timeout, *rest)

    resolve = socket.getaddrinfo

    def addresses(host: str, port: int, *rest: Any, **_: Any) -> list[Any]:
        if rest:  # the connection's own question, about one address
            return resolve(host, port, *rest)
        return [(0, 0, 0, "", (a, port)) for a in ("127.0.0.9", "127.0.0.1")]

    monkeypatch.setattr(httpcore2.SyncBackend, "connect_tcp", connect)
    with Stub() as stub:
        monkeypatch.setattr(socket, "getaddrinfo", addresses)
        assert get(stub, 4.0).json()
    assert [host for host, _ in tried] == ["127.0.0.9", "127.0.0.1"]
    assert tried[0][1] == pytest.approx(2.0, abs=0.5)
    assert tried[1][1] == pytest.approx(4.0, abs=0.5)


def test_a_name_without_an_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    with Stub() as stub:
        monkeypatch.setattr(socket, "getaddrinfo", fails)
        with pytest.raises(httpx2.ReadError, match="not known"):
            get(stub, 4.0)


def test_nothing_is_allowed_before_it_is_granted() -> None:
    allowance = Allowance()
    with pytest.raises(httpcore2.ReadTimeout):
        allowance.seconds()
    with pytest.raises(httpcore2.ReadError):
        allowance.take(b"x")
    allowance.grant(1.0)
    assert allowance.take(b"x" * MOST_BYTES)
    assert 0.0 < allowance.seconds() <= 1.0
