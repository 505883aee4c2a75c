"""Whether a request may do what it asks: bearer tokens, compared in constant time.

A refusal says nothing that helps the next guess: neither which part was wrong nor whether the
camera exists. Tokens are never part of a text.
"""

import hashlib
import hmac
from collections.abc import Mapping

NOBODY = ""
"""Stands for a token that was not configured; no request can carry it."""


def bearer(header: str | None) -> str:
    """The token of an `Authorization` header; empty if there is none in it."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else ""


def same(given: str, expected: str | None) -> bool:
    """True if the request carries this token; takes as long whatever it carries.

    Digests are compared, not tokens, so that even the length of ours stays unknown.
    """
    digests = [_digest(each) for each in (given, expected or NOBODY)]
    equal = hmac.compare_digest(*digests)
    return equal and bool(expected)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class Door:
    """Who may do what.

    Args:
        operator: the operators' token; None: nobody may halt.
        publishers: camera -> the token of who may send it pictures.
    """

    def __init__(self, operator: str | None, publishers: Mapping[str, str]) -> None:
        self._operator = operator
        self._publishers = dict(publishers)

    @property
    def has_operator(self) -> bool:
        """An operator's token is configured."""
        return self._operator is not None

    def admits_operator(self, header: str | None) -> bool:
        """True if this request may halt the robot."""
        return same(bearer(header), self._operator)

    def admits_publisher(self, header: str | None, camera: str) -> bool:
        """True if this request may publish that camera; an unknown one is refused likewise."""
        return same(bearer(header), self._publishers.get(camera))
