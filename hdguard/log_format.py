"""How a line of the log looks: JSON for programs, columns for people, priorities for journald.

Runs in the thread that writes the log. What a line says may come from a model, a camera or anybody
on the network, so no line break or terminal code in it gets out as such.
"""

import json
import logging
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from structlog.dev import ConsoleRenderer
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from hdguard.log_secrets import OWN_KEYS, Redactor
from hdguard.runtime.one_line import BREAKS, SHOWN, one_line

PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Levels and syslog's priorities for them (sd-daemon(3)); anything lower is 7."""

_LINES = {n: shown for n, shown in SHOWN.items() if n != 0x0A}
_JSON_REST = {n: f"\\u{n:04x}" for n in (*range(0x7F, 0xA0), *BREAKS)}


@dataclass(frozen=True, slots=True)
class Look:
    """How lines are to look.

    Attributes:
        style: for people or for programs.
        colours: a terminal that shows them reads along (console alone).
        journal: journald reads along: it is told priorities, and keeps the time itself.
    """

    style: Literal["json", "console"]
    colours: bool = False
    journal: bool = False


def make_formatter(look: Look, secrets: Iterable[str]) -> logging.Formatter:
    """Renders records, structlog's and all others, without these values and any other secret."""
    render: Processor = _Console(look.colours) if look.style == "console" else _json
    steps: list[Processor] = [_Begin(stamped=not look.journal), Redactor(secrets), render]
    return _Prefixed(steps) if look.journal else ProcessorFormatter(processors=steps)


class _Begin:
    """A line as plain keys, the same ones first in every line."""

    def __init__(self, *, stamped: bool) -> None:
        self._stamped = stamped

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        record: logging.LogRecord = event.pop("_record")
        event.pop("_from_structlog", None)
        error, stack = event.pop("exc_info", None), event.pop("stack_info", None)
        line: dict[str, Any] = {}
        if self._stamped:
            line["timestamp"] = _utc(record.created)
        line |= {"level": record.levelname.lower(), "logger": record.name}
        line["event"] = str(event.pop("event", "")).strip()
        line |= {f"{key}_" if key in OWN_KEYS else key: value for key, value in event.items()}
        if stack:
            line["stack"] = stack
        if error := _error(error):
            line["exc"] = "".join(traceback.format_exception(error)).rstrip()
        return line


def _error(found: Any) -> BaseException | None:
    """The error of an `exc_info`, which may be one, or a triple with one."""
    if isinstance(found, tuple):
        found = found[1]
    return found if isinstance(found, BaseException) else None


def _utc(created: float) -> str:
    at = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")
    return at.replace("+00:00", "Z")


def _json(logger: WrappedLogger, method: str, event: EventDict) -> str:
    """One object, in one line for whoever splits lines by whatever rule."""
    return json.dumps(event, ensure_ascii=False, default=str).translate(_JSON_REST)


class _Console:
    """Columns; a traceback stands below them."""

    def __init__(self, colours: bool) -> None:
        self._render = ConsoleRenderer(0, colors=colours, sort_keys=False)  # 0: unpadded

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> str:
        shown = {one_line(k): _in_one_line(v) for k, v in event.items()}
        if "exc" in event:
            del shown["exc"]
            shown["exception"] = event["exc"].translate(_LINES)
        return self._render(logger, method, shown)


def _in_one_line(value: Any) -> Any:
    return one_line(value) if isinstance(value, str) else value


class _Prefixed(ProcessorFormatter):
    """Every line begins with its priority: to journald each is an entry of its own."""

    def __init__(self, steps: list[Processor]) -> None:
        super().__init__(processors=steps)

    def format(self, record: logging.LogRecord) -> str:
        """The lines of this record."""
        number = next((n for level, n in PRIORITIES if record.levelno >= level), 7)
        return f"<{number}>" + super().format(record).replace("\n", f"\n<{number}>")
