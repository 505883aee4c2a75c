"""No secret in the log, whoever logs what: values are hidden by name, by shape, and by being known.

A library's message, a camera's answer or the text of an error may hold anything. So every string of
a line is gone through, wherever in it it stands, before the line is put together; numbers and
objects as the text that they would be shown as.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from structlog.typing import EventDict, WrappedLogger

from hdguard.config import Config, Elsewhere
from hdguard.ingest.redact import HIDDEN, redacted

SHORTEST = 4
"""Characters of a value that is known to be secret. To hide shorter ones wherever they stand would
leave nothing to read, and they are guessed in no time."""

MOST_TEXT = 20_000
"""Characters of one string of a line, about 200 lines of a traceback; more is cut off."""

MOST_WORD = 500
"""Characters without a blank; longer ones are left out. Nobody reads them, and to look for names in
them takes the square of their length."""

MOST_DEPTH = 6
"""Objects in objects; what is deeper is shown as its text."""

OWN_KEYS = frozenset({"timestamp", "level", "logger", "event", "exc", "stack"})
"""Keys of every line, which stay as they are."""

PLAIN = frozenset({"timestamp", "level"})
"""Keys whose values are written by us alone."""

_NAMES = (
    r"token|passw|passphrase|pwd|secret|authori[sz]ation|nonce|signature|credential|cookie|hmac"
)
_SECRET_NAME = re.compile(rf"{_NAMES}|(?:^|[^a-z])(?:api)?keys?(?:$|[^a-z])")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# As people, `repr` and headers write it: password=x, 'token': 'x', ("token", "x"). Nothing here may
# look back over a text again and again: who sends it may have made it for that.
_NAMED = rf"(?i)((?:{_NAMES}|(?<![a-z])(?:api)?key)[\w.-]{{0,40}}"
_VALUE = r"(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,;&)}\]]+)"
_ASSIGNED = re.compile(rf"{_NAMED}['\"]?\s{{0,4}}=\s{{0,4}}){_VALUE}")
_QUOTED = re.compile(rf"{_NAMED}['\"]\s{{0,4}}[:,]\s{{0,4}}b?){_VALUE}")
_HEADER = re.compile(
    r"(?i)(authori[sz]ation['\"]?\s{0,4}[:=,]\s{0,4}b?['\"]?)(?:[a-z]{1,20}\s{1,4})?[^\s'\"]+"
)
_LONG = re.compile(rf"\S{{{MOST_WORD},}}")
_BEARER = re.compile(r"(?i)\b(bearer\s{1,4})[\w.~+/=-]+")

# All of these need one of these characters. Most texts of a line are a word or two: to look at each
# nine times took 0.4 ms of a line, in which the loop had no interpreter.
_WORD = re.compile(rf"[^\s=:,/'\"]{{0,{MOST_WORD - 1}}}")


class Redactor:
    """A structlog processor: takes a line's values and returns them without what is secret.

    Args:
        secrets: values that are known to be secret; see `secrets_of`.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        longest_first = sorted((f for f in forms if len(f) >= SHORTEST), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """The same line; its order is kept."""
        line: dict[str, Any] = {}
        for key, value in event.items():
            shown = value if key in PLAIN else self._named(key, value, 0)
            line[key if key in OWN_KEYS else self.text(key)] = shown
        return line

    def text(self, text: str) -> str:
        """A text without secrets, and not too long."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        if _WORD.fullmatch(text):
            return text
        if len(text) > MOST_TEXT:  # at a word's end: half a secret would not be found
            text = f"{text[:MOST_TEXT].rpartition(' ')[0]} ... ({len(text)} characters)"
        text = _LONG.sub(lambda found: f"({len(found[0])} characters)", text)
        text = redacted(_HEADER.sub(rf"\1{HIDDEN}", text))
        for pattern in (_BEARER, _ASSIGNED, _QUOTED):
            text = pattern.sub(rf"\1{HIDDEN}", text)
        return text

    def _named(self, name: object, value: Any, depth: int) -> Any:
        if is_secret_name(name) and value is not None and not isinstance(value, bool):
            return HIDDEN
        return self._value(value, depth)

    def _value(self, value: Any, depth: int) -> Any:
        match value:
            case None | bool():
                return value
            case str():
                return self.text(value)
            case float() if not math.isfinite(value):
                return str(value)  # JSON has no such number
            case int() | float():
                shown = self.text(str(value))
                return value if shown == str(value) else shown
            case Mapping() if depth < MOST_DEPTH:
                return {self.text(str(k)): self._named(k, v, depth + 1) for k, v in value.items()}
            case (str() | bytes() as name, second) if is_secret_name(name):  # a header, as a pair
                return [self._value(name, depth + 1), None if second is None else HIDDEN]
            case list() | tuple() | set() | frozenset() if depth < MOST_DEPTH:
                return [self._value(each, depth + 1) for each in value]
            case bytes() | bytearray():
                return self.text(value.decode(errors="backslashreplace"))
            case BaseException():
                return self.text(f"{type(value).__name__}: {value}")
            case _:
                return self.text(str(value))


def is_secret_name(name: object) -> bool:
    """True for a key whose value is secret: `reset_key`, `httpToken`, `Authorization`, ..."""
    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    return _SECRET_NAME.search(_HUMP.sub("_", text).lower()) is not None


def secrets_of(config: Config) -> frozenset[str]:
    """Every value of a configuration that no log may show.

    These are what a part's settings keep out of their own `repr`, what came from elsewhere, what
    has a secret's name among a camera's options or a brain's settings, and the credentials of URLs.
    """
    return frozenset(_found(config, secret=False))


def _found(value: Any, *, secret: bool) -> Iterator[str]:
    match value:
        case str():
            if secret or isinstance(value, Elsewhere):
                yield str(value)
            yield from _of_url(value)
        case Mapping():
            for key, each in value.items():
                yield from _found(each, secret=secret or is_secret_name(key))
        case list() | tuple():
            for each in value:
                yield from _found(each, secret=secret)
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from _found(getattr(value, field.name), secret=secret or not field.repr)
        case _:
            pass


def _of_url(text: str) -> Iterator[str]:
    """The password of a URL's user, and what its query calls a secret."""
    if "://" not in text:
        return
    try:
        url = urlsplit(text)
        password = url.password
    except ValueError:  # its shape is hidden all the same
        return
    if password:
        yield password
        yield unquote(password)
    yield from (value for name, value in parse_qsl(url.query) if is_secret_name(name))


def _forms(secret: str) -> Iterator[str]:
    """As it is, and as it stands in a URL, in a `repr`, and in JSON."""
    yield from (secret, quote(secret, safe=""), quote(secret), quote_plus(secret))
    yield from (repr(secret)[1:-1], ascii(secret)[1:-1])
    yield repr(secret.encode(errors="replace"))[2:-1]
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
