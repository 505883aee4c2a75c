"""The server through the client: faults in our words, in time, and nothing left behind."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.openai_client import Server
from hdguard.brains.openai_server import ServerSettings
from hdguard.brains.openai_wire import Late, Refused, encode_jpeg, picture_part
from hdguard.brains.warmup import canaries
from hdguard.core.types import ImageSpec
from tests.stub_server import Fault, Stub

RED = picture_part(encode_jpeg(canaries(ImageSpec(28, 28))["red"], 90))
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": [RED]}], "max_tokens": 1}
SOON = 0.3  # seconds that a call may take here


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as stub:
        yield stub


def server(stub: Stub, **settings: Any) -> Server:
    return Server(ServerSettings(url=stub.url, model="stub-vl", **settings))


def test_the_only_model_that_is_listed_is_the_one_asked_for(stub: Stub) -> None:
    found = Server(ServerSettings(url=stub.url))
    assert found.model == "stub-vl"
    assert found.ask(5.0, **ASK).words.text == "red"


@pytest.mark.parametrize("models", [(), ("a", "b")])
def test_of_several_models_or_none_no_guess_is_made(stub: Stub, models: tuple[str, ...]) -> None:
    stub.models = models
    with pytest.raises(BrainError, match="model: set one of") as caught:
        Server(ServerSettings(url=stub.url))
    assert all(repr(name) in str(caught.value) for name in models)


FAULTS: dict[Fault | int, str] = {
    429: "answers 429",
    500: "answers 500",
    404: "answers 404",
    "garbage": "not what was asked for",
    "list": "not what was asked for",
    "close": "disconnected|without",
    "no choices": "no choices",
    "wrong model": "answers as model 'another-model', asked was 'stub-vl'",
    "flood": "longer than 16 MiB",
}


@pytest.mark.parametrize(("fault", "says"), FAULTS.items(), ids=map(str, FAULTS))
def test_a_fault_says_which_server_and_what_and_is_not_tried_again(
    stub: Stub, fault: Fault | int, says: str
) -> None:
    asked = server(stub)
    stub.faults["*"] = fault
    with pytest.raises(BrainError, match=says) as caught:
        asked.ask(5.0, **ASK)
    assert str(caught.value).startswith(f"server {stub.url}: ")
    assert len(stub.asked) == 1
    stub.faults.clear()
    assert asked.ask(5.0, **ASK).words.text == "red"


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_server_that_does_not_answer_is_late_and_learns_that_nobody_waits(
    stub: Stub, fault: Fault
) -> None:
    asked = server(stub)
    stub.faults["*"] = fault
    with pytest.raises(Late, match=r"no answer within 0\.30 s"):
        asked.ask(SOON, **ASK)
    assert stub.left.wait(5)
    stub.faults.clear()
    assert asked.ask(5.0, **ASK).words.text == "red"


def test_a_status_is_known_to_who_can_do_without(stub: Stub) -> None:
    stub.refuses = {"guided_choice"}
    with pytest.raises(Refused, match="unknown field") as caught:
        server(stub).ask(5.0, **ASK, extra_body={"guided_choice": ["a"]})
    assert caught.value.status == 400


def test_a_redirect_is_not_followed(stub: Stub) -> None:
    with Stub() as other:
        stub.faults["*"] = "redirect"
        stub.elsewhere = f"{other.url}/chat/completions"
        with pytest.raises(BrainError, match="answers 307"):
            server(stub).ask(5.0, **ASK)
        assert other.asked == []


def test_no_answer_is_asked_for_that_would_have_to_be_unpacked(stub: Stub) -> None:
    server(stub).ask(5.0, **ASK)
    assert "accept-encoding: identity\r\n" in stub.heads[-1].lower()


def test_a_proxy_from_the_environment_gets_no_pictures(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stub() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        server(stub).ask(5.0, **ASK)
        assert proxy.asked == []


def test_the_key_is_the_settings_and_never_the_environments(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    server(stub).ask(5.0, **ASK)
    server(stub, api_key="ours").ask(5.0, **ASK)
    assert "sk-of-another-service" not in "".join(stub.heads)
    assert "Bearer ours" in stub.heads[1]


def test_a_server_that_is_gone_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        stub = Stub(port=free.getsockname()[1])
    with pytest.raises(BrainError, match="refused"):
        server(stub).ask(5.0, **ASK)


def test_a_connection_is_used_again(stub: Stub) -> None:
    asked = server(stub)
    before = threading.active_count()
    for _ in range(3):
        asked.ask(5.0, **ASK)
    assert len(stub.asked) == 3
    assert not stub.left.is_set()
    assert threading.active_count() == before


# Streams.

STREAM: dict[str, Any] = {**ASK, "max_tokens": 50, "stop": ["</think>"]}


def said(asked: Server, seconds: float = 5.0) -> str:
    with closing(asked.stream(seconds, **STREAM)) as pieces:
        return "".join(piece.words.text for piece in pieces)


def test_a_stream_comes_piece_by_piece(stub: Stub) -> None:
    assert said(server(stub)) == "The hob is on, a cloth lies on it . I am sure ."


def test_separators_of_lines_in_a_text_do_not_tear_a_piece_apart(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "It tips.\u2028The cup\u2029falls.\u0085Stop"
    monkeypatch.setattr(Stub, "_words", lambda *_: text)
    assert said(server(stub)) == text


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (500, "answers 500"),
        ("cut", "closed|disconnected|incomplete"),
        ("stop early", "broke off"),
        ("error in stream", "engine is dead"),
        ("wrong model", "answers as model"),
    ],
)
def test_a_stream_that_goes_wrong_is_an_error_and_never_an_end(
    stub: Stub, fault: Fault | int, says: str
) -> None:
    asked = server(stub)
    stub.faults["*"] = fault
    with pytest.raises(BrainError, match=says):
        said(asked)
    stub.faults.clear()
    assert said(asked).endswith("sure .")


def test_a_stream_that_stops_is_late_and_what_came_before_is_kept(stub: Stub) -> None:
    stub.faults["*"] = "hang in stream"
    got: list[str] = []
    with pytest.raises(Late):
        got.extend(p.words.text for p in server(stub).stream(SOON, **STREAM))
    assert "".join(got) == "The hob "
    assert stub.left.wait(5)


def test_who_stops_reading_ends_the_servers_work(stub: Stub) -> None:
    asked = server(stub)
    stub.faults["*"] = "hang in stream"
    with closing(asked.stream(60.0, **STREAM)) as pieces:
        next(pieces)
    assert stub.left.wait(5)
    stub.faults.clear()
    assert said(asked).endswith("sure .")


# Interruptions.


class Cancelled(BaseException):
    """As a worker raises it when nobody waits any more."""


@contextmanager
def interrupted_when(working: threading.Event) -> Iterator[None]:
    """Raise `Cancelled` in this thread, wherever it is, once the server is at work."""

    def raise_it(_number: int, _frame: FrameType | None) -> None:
        raise Cancelled

    def nudge() -> None:
        assert working.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raise_it)
    other = threading.Thread(target=nudge)  # noqa: TID251 - stands for the supervisor
    other.start()
    try:
        yield
    finally:
        other.join(10)
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("fault", ["hang", "drip", "hang in stream"])
def test_a_call_that_is_broken_off_from_outside_ends_the_servers_work(
    stub: Stub, fault: Fault
) -> None:
    asked = server(stub)
    stub.faults["*"] = fault
    call = said if fault == "hang in stream" else lambda a, t: a.ask(t, **ASK)
    with interrupted_when(stub.working), pytest.raises(Cancelled):
        call(asked, 60.0)
    assert stub.left.wait(5)
    stub.faults.clear()
    assert asked.ask(5.0, **ASK).words.text == "red"
