"""How the log is written, as the configuration says it: settings that need no logging library."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`[log]`: what `hdguard run` says on standard error.

    Attributes:
        format: `console` for people, `json` for programs, one object a line; `auto`: console on a
            terminal, else JSON.
        level: the least that is said. Of libraries nothing below `info` is, whatever stands here:
            they do not know what must be kept secret.
    """

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"
