"""A line can be read by programs, by people and by journald, whatever it says."""

import json
import logging
import sys
from types import TracebackType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdguard.core.types import Light, State
from hdguard.log_format import Look, make_formatter

JSON, CONSOLE = Look("json"), Look("console")
TIME = 1_796_000_000.25
Found = tuple[type[BaseException], BaseException, TracebackType | None]


def record(
    level: int = logging.INFO, message: Any = "http: listening", found: Found | None = None
) -> logging.LogRecord:
    made = logging.LogRecord("hdguard.watch", level, "x.py", 1, message, None, found)
    made.created = TIME
    if isinstance(message, dict):
        made.__dict__.update(_logger=None, _name="info")
    return made


def rendered(look: Look, level: int = logging.INFO, message: Any = "http: listening") -> str:
    return make_formatter(look, ()).format(record(level, message))


def defect() -> Found:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        return ValueError, error, error.__traceback__


def test_a_line_of_json_has_the_same_keys_first_and_then_what_it_tells() -> None:
    words = {"decision": "7.5", "event": "halt", "state": State.HALTED, "light": Light.RED.name}
    line = rendered(JSON, logging.WARNING, {**words, "age": 0.15})
    assert line == (
        '{"timestamp": "2026-11-30T00:53:20.250Z", "level": "warning", "logger": "hdguard.watch", '
        '"event": "halt", "decision": "7.5", "state": "halted", "light": "RED", "age": 0.15}'
    )


def test_a_line_of_the_old_manner_has_them_too() -> None:
    found = json.loads(rendered(JSON))
    assert list(found) == ["timestamp", "level", "logger", "event"]
    assert found["event"] == "http: listening"


def test_a_line_for_people_begins_with_time_level_and_words() -> None:
    line = rendered(CONSOLE, logging.WARNING, {"event": "halt", "halt_id": "7-1", "hazard": "a b"})
    assert line == (
        "2026-11-30T00:53:20.250Z [warning  ] halt [hdguard.watch] halt_id=7-1 hazard='a b'"
    )
    assert "\x1b[" in rendered(Look("console", colours=True))


@pytest.mark.parametrize(
    ("level", "prefix"),
    [
        (logging.CRITICAL, "<2>"),
        (logging.ERROR, "<3>"),
        (logging.WARNING, "<4>"),
        (logging.INFO, "<6>"),
        (logging.DEBUG, "<7>"),
    ],
)
def test_the_journal_is_told_the_priority_and_keeps_the_time_itself(
    level: int, prefix: str
) -> None:
    line = rendered(Look("json", journal=True), level)
    assert line.startswith(prefix + "{")
    assert "timestamp" not in json.loads(line.removeprefix(prefix))


def test_to_the_journal_every_line_of_a_traceback_is_an_entry() -> None:
    formatter = make_formatter(Look("console", journal=True), ())
    text = formatter.format(record(logging.ERROR, "broken", defect()))
    assert len(text.splitlines()) > 3
    assert all(line.startswith("<3>") for line in text.splitlines())


def test_an_error_is_told_in_the_same_object_and_below_the_line_for_people() -> None:
    found = json.loads(make_formatter(JSON, ()).format(record(logging.ERROR, "broken", defect())))
    assert found["exc"].startswith("Traceback (most recent call last):\n")
    assert found["exc"].endswith("ValueError: two\nlines")
    text = make_formatter(CONSOLE, ()).format(record(logging.ERROR, "broken", defect()))
    first, second, *_ = text.splitlines()
    assert first.endswith("[error    ] broken [hdguard.watch]")
    assert second == "Traceback (most recent call last):"


def test_where_a_line_comes_from_is_told_too() -> None:
    made = record()
    made.stack_info = "Stack (most recent call last):\n  here"
    assert json.loads(make_formatter(JSON, ()).format(made))["stack"].endswith("here")


def test_a_key_of_ours_that_a_line_uses_for_itself_takes_nothings_place() -> None:
    found = json.loads(rendered(JSON, message={"event": "x", "level": "high", "logger": "mine"}))
    assert (found["level"], found["level_"]) == ("info", "high")
    assert found["logger_"] == "mine"


def test_an_error_that_is_none_is_none() -> None:
    made = record()
    made.exc_info = (None, None, None)
    assert "exc" not in json.loads(make_formatter(JSON, ()).format(made))
    assert sys.exc_info() == (None, None, None)


@given(st.text(), st.text(min_size=1), st.recursive(st.text() | st.floats(), st.lists))
def test_whatever_it_says_json_is_one_object_in_one_line(text: str, key: str, value: Any) -> None:
    for message in (text, {"event": text, key: value}):
        line = make_formatter(JSON, ()).format(record(message=message))
        assert len(line.splitlines()) == 1
        assert isinstance(json.loads(line, parse_constant=pytest.fail), dict)


@given(st.text(), st.text(min_size=1), st.recursive(st.text(), st.lists))
def test_nobody_forges_a_line_or_commands_a_terminal(text: str, key: str, value: Any) -> None:
    """A hazard's text comes from a model, a reason from whoever sent a message."""
    for message in (text, {"event": text, key: value}):
        line = make_formatter(CONSOLE, ()).format(record(message=message))
        assert len(line.splitlines()) == 1
        assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in line)
