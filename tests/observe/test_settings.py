"""What the HTTP edge may be told: nothing is reachable from outside without TLS and a token."""

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hdguard.observe.settings import HttpError, HttpSettings, is_loopback
from tests.observe.certificate import make_certificate

TOKEN = "a-token-long-enough"
TLS: dict[str, Any] = {"tls_cert": "cert.pem", "tls_key": "key.pem"}


def test_by_default_only_this_machine_gets_in() -> None:
    assert is_loopback(HttpSettings().host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_a_loopback_address_needs_nothing_else(host: str) -> None:
    HttpSettings(host=host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "robot.local", ""])
def test_any_other_address_needs_tls_and_a_token(host: str) -> None:
    with pytest.raises(ValueError, match="tls_cert: must be given because host"):
        HttpSettings(host=host, token=TOKEN)
    with pytest.raises(ValueError, match="token: must be given because host"):
        HttpSettings(host=host, **TLS)
    HttpSettings(host=host, token=TOKEN, **TLS)


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"port": -1}, "port: "),
        ({"port": 65536}, "port: "),
        ({"max_connections": 7}, "max_connections: 7 must be at least 8"),
        ({"tls_cert": "cert.pem"}, "tls_key: "),
        ({"tls_key": "key.pem"}, "tls_cert: "),
        ({"token": "short"}, "token: "),
        ({"token": "not all of it ascii: ü"}, "token: "),
        ({"token": "a token that has spaces"}, "token: "),
        ({"token": "a-token-with-a\nline"}, "token: "),
        ({"publish_tokens": {"kitchen": ""}}, "publish_tokens.kitchen: "),
    ],
)
def test_a_wrong_setting_names_its_key(wrong: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=f"^{key}"):
        HttpSettings(**wrong)


def test_tokens_do_not_show_in_the_settings() -> None:
    text = repr(HttpSettings(token=TOKEN, publish_tokens={"kitchen": TOKEN}))
    assert TOKEN not in text


def test_a_token_that_is_refused_is_not_shown_either() -> None:
    with pytest.raises(ValueError, match="token: ") as caught:
        HttpSettings(token="hush hush, it is secret")
    assert "hush" not in str(caught.value)


def test_without_a_certificate_there_is_no_tls() -> None:
    assert HttpSettings().tls() is None


def test_the_certificate_is_shown_and_old_tls_is_not_spoken(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    context = HttpSettings(tls_cert=str(cert), tls_key=str(key)).tls()
    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    cert = tmp_path / "cert.pem"
    if content is not None:
        cert.write_text(content)
    with pytest.raises(HttpError, match=r"http\.tls_cert, http\.tls_key: .*cert\.pem"):
        HttpSettings(tls_cert=str(cert), tls_key=str(cert)).tls()


def test_reading_the_settings_starts_no_web_server() -> None:
    heavy = "{'starlette', 'uvicorn', 'prometheus_client', 'aiortc'}"
    code = f"import sys, hdguard.observe.settings; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
