"""The log: from whoever says something to standard error, by a thread, and never by the loop.

Whoever reads the log may be slow or frozen. So a call only puts its values into a queue; a thread
puts them into words and writes them. The queue is bounded: what it does not take is lost, counted,
and the log says how much that was.
"""

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from logging.handlers import QueueHandler, QueueListener
from types import TracebackType
from typing import Any, TextIO

from hdguard.log_format import Look, make_formatter
from hdguard.runtime.log_settings import LogSettings

MOST_WAITING = 1000
"""Lines in memory while nobody reads them; a choice."""

KEPT_FOR_WARNINGS = 100
"""Of them, those that only warnings and worse may take: halts are said as warnings."""

TOLD_EVERY = 100
"""Lines between two words on how many were lost, while ever more are."""

OURS = "hdguard"
Hook = Callable[[type[BaseException], BaseException, TracebackType | None], None]
Lines = queue.SimpleQueue[logging.LogRecord]


@contextmanager
def logging_to(
    stream: TextIO, settings: LogSettings, secrets: Iterable[str] = ()
) -> Iterator[None]:
    """Log there, warnings and uncaught errors too, until the end; then what waits is written.

    An error that leaves this block uncaught ends the program and is its last line.

    Args:
        stream: standard error.
        settings: `[log]` of the configuration.
        secrets: values that no line may show.
    """
    formatter = make_formatter(look_of(stream, settings), secrets)
    writer = _Writer(stream)
    writer.setFormatter(formatter)
    lines: Lines = queue.SimpleQueue()
    queued = _Queued(lines)
    listener = _Listener(lines, writer, queued)
    listener.start()
    with ExitStack() as back:
        back.callback(listener.stop)
        _levels(settings, back)
        root = logging.getLogger()
        root.addHandler(queued)
        back.callback(root.removeHandler, queued)
        logging.captureWarnings(capture=True)
        back.callback(logging.captureWarnings, capture=False)
        _hooks(back)
        before = sys.excepthook
        sys.excepthook = _last_word(writer)
        yield
        sys.excepthook = before  # not after an error: the interpreter has yet to ask for the hook


def look_of(stream: TextIO, settings: LogSettings) -> Look:
    """How lines look on this stream."""
    terminal, journal = stream.isatty(), _is_journal(stream)
    style = settings.format
    if style == "auto":
        style = "console" if terminal else "json"
    colours = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Look(style, colours, journal)


def _is_journal(stream: TextIO) -> bool:
    """True if it is what systemd has connected to its journal: systemd.exec(5)."""
    try:
        there = os.fstat(stream.fileno())
    except (OSError, ValueError):  # it is no file
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{there.st_dev}:{there.st_ino}"


def _levels(settings: LogSettings, back: ExitStack) -> None:
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    for logger, least in (
        (logging.getLogger(), max(level, logging.INFO)),
        (logging.getLogger(OURS), level),
    ):
        back.callback(logger.setLevel, logger.level)
        logger.setLevel(least)


class _Queued(QueueHandler):
    """Puts records into the queue as they are.

    Attributes:
        lost: lines that the queue did not take.
    """

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines)
        self.lost = 0
        self._lines = lines

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """The record, its message made: its arguments may change. All else can wait."""
        record = copy(record)
        if not isinstance(record.msg, dict):  # structlog's values
            record.msg, record.args = record.getMessage(), None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        """Put it, or count it. This queue is one that a signal handler may use, too."""
        kept = 0 if record.levelno >= logging.WARNING else KEPT_FOR_WARNINGS
        if self._lines.qsize() >= MOST_WAITING - kept:
            self.lost += 1
        else:
            self._lines.put_nowait(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's
        """What cannot be put into words is not shown at all: nobody has looked for secrets."""
        self.enqueue(_unsayable(record))


class _Writer(logging.StreamHandler[TextIO]):
    """Writes lines."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._in_trouble = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's
        """As above; where nothing at all can be written there is nobody to be told."""
        if not self._in_trouble:
            self._in_trouble = True
            self.emit(_unsayable(record))
            self._in_trouble = False


def _unsayable(record: logging.LogRecord) -> logging.LogRecord:
    error = sys.exc_info()[0]
    why = "no error" if error is None else error.__name__
    words = f"a line of {record.name} cannot be put into words: {why}"
    return logging.LogRecord(OURS, logging.ERROR, "", 0, words, None, None)


class _Listener(QueueListener):
    """The thread that writes, and says what was lost once there is room again."""

    def __init__(self, lines: Lines, writer: _Writer, queued: _Queued) -> None:
        super().__init__(lines, writer)
        self._lines = lines
        self._writer = writer
        self._queued = queued
        self._told = 0
        self._since = 0

    def handle(self, record: logging.LogRecord) -> None:
        """Write it."""
        super().handle(record)
        self._since += 1
        lost = self._queued.lost
        if lost > self._told and (self._since >= TOLD_EVERY or self._lines.empty()):
            words = f"{lost - self._told} lines of the log were lost: whoever reads it is too slow"
            self._told, self._since = lost, 0
            said = logging.LogRecord(OURS, logging.WARNING, "", 0, words, None, None)
            self._writer.handle(said)


# What nobody caught.


def _hooks(back: ExitStack) -> None:
    """Errors that end a thread, or that come where nothing can catch them."""
    log = logging.getLogger(OURS)

    def thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:
            name = args.thread.name if args.thread else "?"
            log.critical("thread %s ends by a defect", name, exc_info=args.exc_value)

    def unraisable(args: Any) -> None:
        log.error("%s %r", args.err_msg or "ignored in", args.object, exc_info=args.exc_value)

    back.callback(setattr, threading, "excepthook", threading.excepthook)
    back.callback(setattr, sys, "unraisablehook", sys.unraisablehook)
    threading.excepthook = thread
    sys.unraisablehook = unraisable


def _last_word(writer: _Writer) -> Hook:
    """The interpreter's hook for what ends the program; the thread that writes is gone then."""

    def ends(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, Exception):
            sys.__excepthook__(kind, error, trace)
            return
        words = "hdguard ends by a defect: %s"
        found = (kind, error, trace)
        writer.handle(logging.LogRecord(OURS, logging.CRITICAL, "", 0, words, (error,), found))

    return ends
