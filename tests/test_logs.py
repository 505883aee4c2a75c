"""The log reaches whoever reads it, holds nobody up, and says what it lost."""

import io
import json
import logging
import os
import pty
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hdguard.logs import KEPT_FOR_WARNINGS, MOST_WAITING, logging_to, look_of
from hdguard.runtime.log_settings import LogSettings
from hdguard.runtime.structured import get_logger
from tests.actuators.support import PATIENCE

JSON = LogSettings("json")
log = logging.getLogger("hdguard.x")


@pytest.fixture(autouse=True)
def _own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def events(stream: io.StringIO) -> list[str]:
    return [line["event"] for line in lines(stream)]


def test_what_was_said_is_written_in_order_before_the_end_by_whichever_logger() -> None:
    stream = io.StringIO()
    with logging_to(stream, JSON):
        for number in range(100):
            log.info("said %d", number)
            get_logger("hdguard.y").info("told", number=number)
    found = lines(stream)
    assert len(found) == 200
    assert [x["event"] for x in found[::2]] == [f"said {n}" for n in range(100)]
    assert [(x["logger"], x["number"]) for x in found[1::2]] == [
        ("hdguard.y", n) for n in range(100)
    ]


class Stuck(io.StringIO):
    """Nobody reads until `awake` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.awake = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        assert self.awake.wait(PATIENCE)
        return super().write(text)


def test_a_reader_that_sleeps_holds_nobody_up_and_is_told_how_much_it_missed() -> None:
    stream = Stuck()
    with logging_to(stream, JSON):
        log.info("first")
        assert stream.reached.wait(PATIENCE)  # the writer has taken it, and is stuck
        for number in range(MOST_WAITING + 7):
            log.info("line %d", number)
        for number in range(KEPT_FOR_WARNINGS + 5):
            log.warning("halt %d", number)
        stream.awake.set()
    said = events(stream)
    taken = MOST_WAITING - KEPT_FOR_WARNINGS
    assert [x for x in said if x.startswith("line")] == [f"line {n}" for n in range(taken)]
    assert [x for x in said if x.startswith("halt")] == [
        f"halt {n}" for n in range(KEPT_FOR_WARNINGS)
    ]
    missed = [int(x.split()[0]) for x in said if "whoever reads it is too slow" in x]
    assert sum(missed) == 7 + KEPT_FOR_WARNINGS + 5


class Unsayable:
    def __str__(self) -> str:
        raise RuntimeError("hunter2")


def test_what_cannot_be_put_into_words_is_named_and_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's would raise
    stream = io.StringIO()
    with logging_to(stream, JSON):
        log.info("%d", "hunter2")
        log.info("%s", Unsayable())
        get_logger("hdguard.y").info("told", value=Unsayable())
        log.info("goes on")
    assert events(stream) == [
        "a line of hdguard.x cannot be put into words: TypeError",
        "a line of hdguard.x cannot be put into words: RuntimeError",
        "a line of hdguard.y cannot be put into words: RuntimeError",
        "goes on",
    ]
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_is_gone_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    with logging_to(stream, JSON):
        stream.close()
        log.error("nobody hears it")
        log.error("nor this")
    assert capsys.readouterr() == ("", "")


def test_no_secret_is_written() -> None:
    stream = io.StringIO()
    with logging_to(stream, JSON, ["hunter2hunter2"]):
        log.info("logged in as ada with %s", "hunter2hunter2")
    assert events(stream) == ["logged in as ada with ***"]


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("debug", ["ours debug", "ours info", "theirs info", "ours warning"]),
        ("info", ["ours info", "theirs info", "ours warning"]),
        ("error", []),
    ],
)
def test_the_level_is_the_least_that_is_said_and_libraries_say_no_details(
    level: Any, said: list[str]
) -> None:
    stream, before = io.StringIO(), logging.getLogger().level
    theirs = logging.getLogger("library.x")
    with logging_to(stream, LogSettings("json", level)):
        log.debug("ours debug")
        theirs.debug("theirs debug")
        log.info("ours info")
        theirs.info("theirs info")
        get_logger("hdguard.y").warning("ours warning")
    assert events(stream) == said
    assert logging.getLogger().level == before
    assert logging.getLogger("hdguard").level == logging.NOTSET


def test_a_warning_is_a_line() -> None:
    stream = io.StringIO()
    with logging_to(stream, JSON), warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)  # what pytest has put in its place
        warnings.warn("is old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(capture=False)
    (line,) = lines(stream)
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert "DeprecationWarning: is old" in line["event"]


class Careless:
    def __del__(self) -> None:
        raise ValueError("nobody catches this")


def test_what_ends_a_thread_or_cannot_be_caught_is_a_line() -> None:
    def broken() -> None:
        raise ValueError("a defect")

    stream = io.StringIO()
    before = threading.excepthook
    with logging_to(stream, JSON):
        thread = threading.Thread(target=broken, name="reader")  # noqa: TID251
        thread.start()
        thread.join()
        Careless()
    assert threading.excepthook is before
    first, second = lines(stream)
    assert (first["level"], first["event"]) == ("critical", "thread reader ends by a defect")
    assert first["exc"].endswith("ValueError: a defect")
    assert second["exc"].endswith("ValueError: nobody catches this")


PROGRAM = """
import sys
from hdguard.logs import logging_to
from hdguard.runtime.log_settings import LogSettings
with logging_to(sys.stderr, LogSettings({style!r}), ["hunter2hunter2"]):
    try:
        raise KeyError("hunter2hunter2")
    except KeyError as error:
        raise ExceptionGroup("two", [ValueError("hunter2hunter2")]) from error
"""


def ends(style: str) -> str:
    code = textwrap.dedent(PROGRAM.format(style=style))
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


def test_a_defect_that_ends_the_program_is_its_last_line_and_not_told_twice() -> None:
    (line,) = ends("json").splitlines()
    found = json.loads(line)
    assert (found["level"], found["event"]) == (
        "critical",
        "hdguard ends by a defect: two (1 sub-exception)",
    )
    assert "KeyError: '***'" in found["exc"]
    assert "ValueError: ***" in found["exc"]
    text = ends("console")
    assert text.count("ExceptionGroup: two") == 1
    assert "hunter2" not in text


def test_an_end_that_is_an_error_by_blame_is_left_to_whoever_tells_people() -> None:
    stream, before = io.StringIO(), list(logging.getLogger().handlers)
    with pytest.raises(ValueError, match="known"), logging_to(stream, JSON):
        raise ValueError("known")
    assert stream.getvalue() == ""
    assert logging.getLogger().handlers == before


# How lines look.


@contextmanager
def terminal() -> Iterator[Any]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        yield stream
    os.close(ours)


def test_people_at_a_terminal_are_shown_columns_and_programs_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert look_of(io.StringIO(), LogSettings()).style == "json"
    assert look_of(io.StringIO(), LogSettings("console")).style == "console"
    assert not look_of(io.StringIO(), LogSettings("console")).colours
    with terminal() as stream:
        assert look_of(stream, LogSettings()).style == "console"
        assert look_of(stream, LogSettings()).colours
        assert look_of(stream, LogSettings("json")).style == "json"
        monkeypatch.setenv("NO_COLOR", "1")
        assert not look_of(stream, LogSettings()).colours


def test_the_journal_is_known_by_what_systemd_says_of_our_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    there = os.fstat(writer)
    with os.fdopen(reader), os.fdopen(writer, "w") as stream:
        for number, journal in ((there.st_ino, True), (there.st_ino + 1, False)):
            monkeypatch.setenv("JOURNAL_STREAM", f"{there.st_dev}:{number}")
            assert look_of(stream, LogSettings()).journal is journal
        monkeypatch.delenv("JOURNAL_STREAM")
        assert not look_of(stream, LogSettings()).journal
