"""A model behind an OpenAI-compatible server, as its brains see it: settings, time, health.

The way there is `openai_client`, which only a process that asks loads; this file is also read where
a brain is only configured.
"""

import importlib
import ipaddress
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.warmup import CLEARLY, canaries
from hdguard.core.types import ImageSpec

if TYPE_CHECKING:
    from hdguard.brains.openai_client import Server

PATIENCE = 10.0
"""Seconds, where neither the settings nor a policy give a deadline: hd-guard's review deadline."""
MARGIN = 0.1
"""Of the deadline, left for the way of the question and the answer: a choice."""
LOADING = 20.0
"""Seconds in which the requests of the health check must all be answered: a choice, below a
worker's 30 s to be ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What both brains behind a server have in common.

    Attributes:
        url: of the server's interface, such as `http://127.0.0.1:8000/v1`.
        name: the brain's name.
        model: as the server calls it; empty: the only one that it lists.
        api_key: sent as a bearer token; may be empty, else printable ASCII without spaces.
        allow_remote: pictures may leave this machine.
        deadline: seconds for one answer; 0: the policy's, else 10.
        jpeg_quality: 1 to 100, of the pictures sent.
        size: pixels of the square picture to ask for, letterboxed.
        seconds: declared time for one answer, for the virtual pace; a choice, not measured.
        thinking_switch: send `enable_thinking: false` where no thoughts are wanted. Models that
            may think or not need it, others ignore it; a server that refuses the field does not.

    Raises:
        ValueError: names the field.
    """

    url: str
    name: str = "openai"
    model: str = ""
    api_key: str = field(default="", repr=False)
    allow_remote: bool = False
    deadline: float = 0.0
    jpeg_quality: int = 90
    size: int = 448
    seconds: float = 0.1
    thinking_switch: bool = True

    def __post_init__(self) -> None:
        _check_url(self.url, self.allow_remote)
        if not all("!" <= character <= "~" for character in self.api_key):
            # The key itself is not shown: messages are logged.
            msg = "api_key: must be printable ASCII without spaces or line ends"
            raise ValueError(msg)
        for name, least, most in (
            ("deadline", 0.0, 600.0),
            ("jpeg_quality", 1, 100),
            ("size", 28, 4096),
            ("seconds", 0.0, 600.0),
        ):
            if not least <= getattr(self, name) <= most:
                msg = f"{name}: {getattr(self, name)} must be {least} to {most}"
                raise ValueError(msg)

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain will ask for."""
        return ImageSpec(self.size, self.size)

    @property
    def limit(self) -> float:
        """Seconds in which the brain gives its answer, or says why there is none."""
        return (self.deadline or PATIENCE) * (1.0 - MARGIN)


def _check_url(url: str, allow_remote: bool) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError as error:
        msg = f"url: {url!r}: {error}"
        raise ValueError(msg) from error
    if parts.scheme not in ("http", "https") or not host:
        msg = f"url: {url!r} must be like http://127.0.0.1:8000/v1"
        raise ValueError(msg)
    if parts.username is not None or parts.password is not None:
        msg = "url: must hold no password; set api_key"
        raise ValueError(msg)
    if not allow_remote and not _is_here(host):
        msg = (
            f"url: {host} is not this machine and would be sent pictures of the home; "
            "set allow_remote = true if it may"
        )
        raise ValueError(msg)


def _is_here(host: str) -> bool:
    """Loopback by its spelling; no name is looked up, for an answer may change."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Stopwatch:
    """Seconds that are left of a brain's own limit."""

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds  # measures our work; no frame's age

    @property
    def left(self) -> float:
        """Seconds; 0 when there are none."""
        return max(0.0, self._end - time.perf_counter())


def connect(settings: ServerSettings) -> "Server":
    """The way to the server.

    Raises:
        BrainError: the openai client is not installed; or no model is set and the server does not
            list just one.
    """
    try:
        # Here, because it takes a third of a second and who only configures does not need it.
        client = importlib.import_module("hdguard.brains.openai_client")
    except ImportError as error:
        raise BrainError(f"{error}: a server needs `pip install hdguard[server]`") from error
    server: Server = client.Server(settings)
    return server


SHOWN = ("red",) * 2 + ("green",) * 2 + ("red",) * 3 + ("green",) * 3
"""Canaries as they are shown, in runs of two lengths: a server that answers for a picture up to
nine requests back mixes its answers within a run, or has only one."""


def check_sight(look: Callable[[Rgb], Sequence[float] | None], spec: ImageSpec) -> list[float]:
    """Show `SHOWN`, and compare the answers; returns the seconds that each look took.

    A server whose caches mix pictures up, or that ignores them, answers fluently. As in
    `warmup.check_sight`, the answers to one picture may waver, since servers add up in another
    order each time, and those to two pictures must be more than `CLEARLY` times as far apart.

    Args:
        look: asks about a picture, with the same words each time; log-probabilities of the same
            labels each time, or None where the answer has nothing to compare, which passes.
        spec: of the pictures.

    Raises:
        BrainError: `look`'s own, or the server does not tell the two apart.
    """
    pictures = canaries(spec)
    took: list[float] = []
    seen: dict[str, list[Sequence[float]]] = {"red": [], "green": []}
    for name in SHOWN:
        started = time.perf_counter()  # measures the server's work
        answer = look(pictures[name])
        took.append(time.perf_counter() - started)
        if answer is not None:
            seen[name].append(answer)
    if not all(seen.values()):
        return took
    wavers = max(_apart(a, b) for same in seen.values() for a, b in combinations(same, 2))
    apart = min(_apart(a, b) for a, b in product(seen["red"], seen["green"]))
    if apart <= CLEARLY * wavers:
        raise BrainError(
            f"log-probabilities for a red and a green picture are {apart:.3g} apart, and for one "
            f"picture shown again {wavers:.3g}: the server ignores pictures or answers for one "
            "before; try it with its prefix and picture caches off"
        )
    return took


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))
