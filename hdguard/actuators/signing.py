"""What proves that a message is wanted: a signature for who says it, a nonce for when.

A signed payload begins with `{"signature":"<64 hexadecimal digits>",`. The digits are HMAC-SHA256,
with the shared key, over the topic, one newline, and the payload without that member: exactly the
bytes that were sent, so that no two writers of JSON have to agree on anything.
"""

import hashlib
import hmac
import re
from collections.abc import Callable

from hdguard.actuators.wire import LIMIT, WireError

SHORTEST_KEY = 16
"""Characters; below that a key can be guessed."""

NONCE_EVERY = 2.0
NONCE_VALID = 5.0
"""Seconds: DESIGN section 5."""

_SIGNED = re.compile(rb'\{"signature":"([0-9a-f]{64})",')


def check_key(key: str | None, name: str) -> bytes | None:
    """The key's bytes, without the white space around what a file holds.

    Raises:
        ValueError: it is too short.
    """
    if key is None:
        return None
    if len(key.strip()) < SHORTEST_KEY:
        msg = f"{name}: a key has at least {SHORTEST_KEY} characters"
        raise ValueError(msg)
    return key.strip().encode()


def seal(topic: str, body: bytes, key: bytes | None) -> bytes:
    """The payload to be sent: the JSON object `body`, signed if there is a key."""
    if key is None:
        return body
    return b'{"signature":"' + _mac(topic, body, key) + b'",' + body[1:]


def unseal(topic: str, payload: bytes, key: bytes | None) -> bytes:
    """The payload without its signature. Without a key nothing is checked but its length.

    Raises:
        WireError: it is too long; or there is a key, and the signature is missing or wrong.
    """
    if len(payload) > LIMIT:
        raise WireError(f"{len(payload)} bytes are over the limit of {LIMIT}")
    found = _SIGNED.match(payload)
    body = payload if found is None else b"{" + payload[found.end() :]
    if key is None:
        return body
    if found is None:
        raise WireError("not signed")
    if not hmac.compare_digest(found[1], _mac(topic, body, key)):
        raise WireError("wrong signature")
    return body


def _mac(topic: str, body: bytes, key: bytes) -> bytes:
    return hmac.new(key, topic.encode() + b"\n" + body, hashlib.sha256).hexdigest().encode()


class Nonces:
    """What a reset must quote: renewed while halted, short-lived, good for one use.

    Args:
        token: makes a word that nobody can guess.
    """

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token
        self._live: dict[str, float] = {}

    def issue(self, now: float) -> str:
        """A new one; older ones stay good until they expire."""
        self._live = {n: at for n, at in self._live.items() if now < at + NONCE_VALID}
        nonce = self._token()
        self._live[nonce] = now
        return nonce

    def current(self, now: float) -> str:
        """The newest, or a new one if that is due for renewal."""
        if self._live:
            nonce, at = next(reversed(self._live.items()))
            if now < at + NONCE_EVERY:
                return nonce
        return self.issue(now)

    def spend(self, nonce: str, now: float) -> bool:
        """True if it is good; it is not any more."""
        at = self._live.pop(nonce, None)
        return at is not None and now < at + NONCE_VALID

    def clear(self) -> None:
        """None is good any more: what they were for is over."""
        self._live.clear()
