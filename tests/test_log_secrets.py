"""No secret survives: wherever it stands, whatever it is written as, whoever logs it."""

import json
import logging
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hdguard.config import load_config
from hdguard.ingest.redact import HIDDEN
from hdguard.log_format import Look, make_formatter
from hdguard.log_secrets import MOST_TEXT, Redactor, is_secret_name, secrets_of

LOOKS = (Look("json"), Look("console"), Look("console", colours=True), Look("json", journal=True))
SECRETS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=6, max_size=30)
"""What a person may have chosen. Blanks around it no configuration keeps."""

WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
OURS = re.compile(r"(?a)[\w*.:;,\[\] /-]*")
"""Texts that may be part of every line: dates, levels, file names, keys."""


def structured(**words: Any) -> logging.LogRecord:
    """As structlog hands a line to the standard library."""
    record = logging.LogRecord("hdguard.x", logging.WARNING, "", 0, words, None, None)
    record.__dict__.update(_logger=None, _name="warning")
    return record


def plain(text: str, error: BaseException | None = None) -> logging.LogRecord:
    found = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord("hdguard.x", logging.WARNING, "", 0, text, None, found)


def raised(text: str) -> BaseException:
    """An error with others behind it, all of which a traceback shows."""
    try:
        try:
            raise KeyError(text)
        except KeyError as first:
            raise ExceptionGroup(text, [ValueError(text)]) from first
    except ExceptionGroup as error:
        error.add_note(text)
        return error


def everywhere(secret: str, word: str) -> list[logging.LogRecord]:
    """Lines with the secret in every place that a line has."""
    text = f"{word}{secret}{word}"
    return [
        plain(text),
        plain(word, raised(text)),
        structured(event=text),
        structured(event=word, **{text: word}),
        structured(event=word, value=text, timestamp=text, level=text, exc=text),
        structured(event=word, value=[text, (text, {word: {text: [text]}})]),
        structured(event=word, value=text.encode(), other=bytearray(text.encode())),
        structured(event=word, value=ValueError(text), exc_info=raised(text)),
        structured(event=word, value={"a": {"b": {"c": {"d": {"e": {"f": {"g": text}}}}}}}),
        structured(event=word, value=Path(f"/x/{text}"), other=repr(text), more=json.dumps(text)),
    ]


def forms(secret: str) -> set[str]:
    """As people would recognise it in a line."""
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]}


@settings(max_examples=100, deadline=None)
@given(SECRETS, WORDS)
@example('quo"te\\back', "")
@example("line\nbreak\x1b[31m", "x")
@example("пароль-пароль", "a")
@example("with blanks in it", " ")
@example("1234567890", "")
@example("a+b%20c&d=e", "://x")
def test_a_value_that_is_known_survives_nowhere(secret: str, word: str) -> None:
    assume(OURS.fullmatch(secret) is None or len(set(secret)) > 5)
    assume(not any(form in word * 3 for form in forms(secret)))
    empty = "".join(make_formatter(look, ()).format(plain("")) for look in LOOKS)
    assume(not any(form in empty for form in forms(secret)))
    for look in LOOKS:
        formatter = make_formatter(look, [secret])
        for record in everywhere(secret, word):
            line = formatter.format(record)
            for form in forms(secret):
                assert form not in line, line


@settings(max_examples=30, deadline=None)
@given(st.from_regex(r"[A-Za-z0-9_~+-]{8,40}", fullmatch=True), WORDS)
def test_a_value_that_is_not_known_is_hidden_by_its_name_or_its_shape(
    secret: str, word: str
) -> None:
    assume(secret not in word and not secret.islower())
    secret = f"Zq{secret}"
    word = re.sub(r"[^\w ]", "", word)
    shapes = [
        f"rtsp://user:{secret}@192.0.2.1/live",
        f"{word} http://hub/x?token={secret}&y={secret} {word}",
        f"Authorization: Bearer {secret}",
        f"authorization: Basic {secret}",
        f"{word} bearer {secret}",
        f"MqttSettings(password='{secret}', reset_key='{secret}')",
        f'{{"token": "{secret}", "apikey":"{secret}"}}',
        f"api_key={secret} nonce={secret}, signature={secret}",
        f"[(b'authorization', b'Bearer {secret}')]",
    ]
    names = ("token", "password", "client_secret", "reset_key", "key", "Authorization", "nonce")
    for look in (Look("json"), Look("console", colours=True)):
        formatter = make_formatter(look, ())
        for shape in shapes:
            for record in (
                plain(shape),
                structured(event=word, value=[shape]),
                plain("", raised(shape)),
            ):
                assert secret not in formatter.format(record), shape
        for name in (*names, "httpToken", "X-Signature"):
            for value in (secret, [secret], {"x": secret}, secret.encode()):
                assert secret not in formatter.format(structured(event=word, **{name: value}))
                assert secret not in formatter.format(structured(event=word, x={name: value}))
            assert secret not in formatter.format(structured(event=word, x=[(name, secret)]))


def test_what_is_no_secret_stays_as_it_is() -> None:
    words = {
        "event": "mqtt.robot_key: set it to the old one; a token must be given",
        "keyframes": 3,
        "keepalive": 5,
        "monkey": "x",
        "halt_id": "7-3",
        "hazard": "a knife moves toward a hand",
        "url": "rtsp://192.0.2.1:554/live",
        "age": 0.15,
        "ok": True,
        "none": None,
        "file": "/var/lib/hdguard/rosie.audit.jsonl",
        "command": ["relay", "--line", "4"],
    }
    assert Redactor(["hunter2hunter2"])(None, "", dict(words)) == words
    assert Redactor()(None, "", {"token": None, "has_key": True}) == {
        "token": None,
        "has_key": True,
    }


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("reset_key", True),
        ("resetKey", True),
        ("publish_tokens", True),
        (b"Authorization", True),
        ("keyframes", False),
        ("source", False),
        (7, False),
    ],
)
def test_names_of_secrets(name: object, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_the_log_knows_every_secret_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", "from-the-environment")
    (tmp_path / "mqtt").write_text("from-a-file-of-its-own\n")
    path = tmp_path / "hdguard.toml"
    path.write_text("""
[[camera]]
name = "kitchen"
url = "rtsp://ada:in%20the%20url@192.0.2.1/live?channel=1&token=in-the-query"
[[camera]]
name = "hall"
url = "whep+https://media.example/hall/whep"
options = { token = "of-the-media-server" }
[mqtt]
robot = "rosie"
username = "guard"
password = { from_file = "mqtt" }
reset_key = "the-operators-long-key"
robot_key = "the-robots-very-long-key"
[http]
token = "an-operators-token"
[http.publish_tokens]
head = "a-token-of-the-publisher"
[[fast]]
brain = "openai"
settings = { url = "http://127.0.0.1:8001/v1", api_key = { from_env = "SERVER_KEY" } }
[slow]
brain = "openai"
settings = { url = "http://127.0.0.1:8001/v1", password = "in-the-file-itself" }
""")
    assert secrets_of(load_config(path)) == {
        "in%20the%20url",
        "in the url",
        "in-the-query",
        "of-the-media-server",
        "from-a-file-of-its-own",
        "the-operators-long-key",
        "the-robots-very-long-key",
        "an-operators-token",
        "a-token-of-the-publisher",
        "from-the-environment",
        "in-the-file-itself",
    }


def test_a_secret_that_is_too_short_to_be_one_does_not_black_out_the_log() -> None:
    assert Redactor(["a", ""]).text("a halt") == "a halt"


def test_the_end_of_a_long_text_is_cut_off_with_no_half_of_a_secret_left() -> None:
    secret = "hunter2hunter2"
    text = Redactor([secret]).text("x " * (MOST_TEXT // 2 - 3) + secret + " y" * MOST_TEXT)
    assert text.endswith(f" ... ({3 * MOST_TEXT - 6 + len(HIDDEN)} characters)")
    assert "hunter" not in text


@pytest.mark.parametrize(
    "piece",
    [
        "://",
        "://a@",
        "token",
        "key.",
        "a=",
        "authorization ",
        "bearer ",
        "'",
        "x",
        "'token' ",
        "x" * 499 + " ",
    ],
)
def test_a_text_made_to_be_slow_to_search_is_not(piece: str) -> None:
    """The thread that writes the log shares the interpreter with the loop."""
    text = (piece * MOST_TEXT)[: MOST_TEXT - 1]
    began = time.process_time()
    Redactor(["hunter2hunter2"]).text(text)
    assert time.process_time() - began < 0.5
