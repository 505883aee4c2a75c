"""Where pictures may be sent, what the settings refuse, and who is told apart."""

import subprocess
import sys

import msgspec
import numpy as np
import pytest

from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.openai_server import (
    PATIENCE,
    SHOWN,
    ServerSettings,
    Stopwatch,
    check_sight,
    connect,
)
from hdguard.brains.warmup import canaries
from hdguard.core.types import ImageSpec

SPEC = ImageSpec(28, 28)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "http://127.8.9.1/v1",
        "http://[::1]:8000/v1",
        "https://localhost:8000/v1",
    ],
)
def test_this_machine_needs_no_leave(url: str) -> None:
    assert ServerSettings(url=url).url == url


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.2",
        "0.0.0.0",
        "example.org",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "127.1",
        "[::ffff:10.0.0.2]",
        "[fe80::1]",
    ],
)
def test_pictures_of_the_home_leave_it_only_by_leave(host: str) -> None:
    url = f"http://{host}:8000/v1"
    with pytest.raises(ValueError, match=r"^url: .* set allow_remote = true"):
        ServerSettings(url=url)
    assert ServerSettings(url=url, allow_remote=True).url == url


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "file:///etc/passwd", "http:///v1", "http://[::1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^url: "):
        ServerSettings(url=url, allow_remote=True)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="set api_key") as caught:
        ServerSettings(url="http://me:secret@127.0.0.1/v1")
    assert "secret" not in str(caught.value)


def test_the_key_is_not_shown_with_the_settings() -> None:
    assert "secret" not in repr(ServerSettings(url="http://127.0.0.1/v1", api_key="secret"))


@pytest.mark.parametrize("key", ["schl\u00fcssel", "secret\n", "se cret", "secret\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ValueError, match=r"^api_key: must be printable ASCII") as caught:
        ServerSettings(url="http://127.0.0.1/v1", api_key=key)
    assert key.strip() not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"), [("deadline", -1.0), ("jpeg_quality", 0), ("size", 20), ("seconds", 1e9)]
)
def test_a_number_out_of_range_names_its_field(field: str, value: float) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"^{field}: "):
        msgspec.convert({"url": "http://127.0.0.1/v1", field: value}, ServerSettings)


def test_the_answer_is_due_a_little_before_the_deadline() -> None:
    assert ServerSettings(url="http://[::1]", deadline=2.0).limit == pytest.approx(1.8)
    assert ServerSettings(url="http://[::1]").limit == pytest.approx(0.9 * PATIENCE)


def test_no_time_is_left_when_it_is_used_up() -> None:
    assert Stopwatch(0.0).left == 0.0
    assert 59.0 < Stopwatch(60.0).left <= 60.0


class Eyes:
    """Answers for the picture so many looks before, with numbers that waver by so much.

    What it was shown before the first look were red pictures, or green ones.
    """

    def __init__(self, behind: int = 0, wavers: float = 0.0, *, before: str = "red") -> None:
        self.behind, self.wavers, self.before = behind, wavers, before
        self.seen: list[Rgb] = []

    def __call__(self, rgb: Rgb) -> tuple[float, ...]:
        self.seen.append(rgb)
        shown = [canaries(SPEC)[self.before]] * self.behind + self.seen
        off = self.wavers * (len(self.seen) % 2)
        return (-1.0 + off, -2.0) if shown[len(self.seen) - 1][0, 0, 0] else (-2.0 + off, -1.0)


def test_who_sees_the_pictures_passes_though_its_numbers_waver() -> None:
    eyes = Eyes(wavers=0.3)
    assert len(check_sight(eyes, SPEC)) == 10
    assert tuple(("red", "green")[rgb[0, 0].argmax()] for rgb in eyes.seen) == SHOWN


@pytest.mark.parametrize("before", ["red", "green"])
@pytest.mark.parametrize("behind", range(1, 11))
def test_a_server_that_answers_for_a_picture_before_is_found_out(behind: int, before: str) -> None:
    with pytest.raises(BrainError, match="answers for one before"):
        check_sight(Eyes(behind, before=before), SPEC)


def test_numbers_that_only_waver_are_no_sight() -> None:
    noise = np.random.default_rng(0)
    with pytest.raises(BrainError, match="the server ignores pictures"):
        check_sight(lambda _: tuple(noise.normal(size=2)), SPEC)


def test_answers_with_nothing_to_compare_pass() -> None:
    assert len(check_sight(lambda _: None, SPEC)) == 10


def test_without_the_client_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "hdguard.brains.openai_client", raising=False)
    with pytest.raises(BrainError, match=r"pip install hdguard\[server\]"):
        connect(ServerSettings(url="http://127.0.0.1:1/v1"))


def test_whoever_only_configures_the_brains_does_not_load_the_client() -> None:
    code = (
        "import sys, hdguard.brains.openai_fast, hdguard.brains.openai_slow; "
        "assert not {'openai', 'httpx2', 'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
