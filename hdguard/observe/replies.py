"""How the HTTP edge says no, and everything else that is not a page: one JSON shape.

A refusal is `{"error": "..."}`, and the log and the audit get the same words.
"""

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Refused(Exception):  # noqa: N818 - a reply, not a defect
    """A request is not taken; `status` is its HTTP status. The text holds nothing secret."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def refused(error: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """The reply that says so."""
    also = CHALLENGE if error.status == 401 else {}
    also = {"Retry-After": "1"} if error.status == 429 else also
    return JSONResponse(
        {"error": str(error)}, status_code=error.status, headers={**(headers or {}), **also}
    )


async def not_found(_: Request, error: Exception) -> Response:
    """The router's own refusals, 404 and 405, in the same shape."""
    assert isinstance(error, HTTPException)  # it is registered for these alone
    said = {"error": error.detail.lower()}
    return JSONResponse(said, status_code=error.status_code, headers=error.headers)
