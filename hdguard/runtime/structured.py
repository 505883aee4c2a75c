"""Log lines with keys and values, by structlog, on their way through the standard library's log.

structlog's own `get_logger` prints to standard output where nobody has configured it, from whoever
calls it. Ours never does: it hands the values to `logging`, and whoever renders them is elsewhere.
"""

import logging
import sys
from typing import cast

import structlog
from structlog.typing import EventDict, WrappedLogger


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger whose calls take keys: `log.info("released", halt_id="7-3")`.

    It renders nothing here (a line took 30 microseconds): give it values that do not change.
    """
    wrapped = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            _with_the_error,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return cast("structlog.stdlib.BoundLogger", wrapped)


def _with_the_error(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """The error itself: in the thread that renders the line there is none to be found."""
    if event.get("exc_info") is True:
        event["exc_info"] = sys.exc_info()
    return event
