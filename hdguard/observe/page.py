"""The status page: a few files of this package, served as they are.

There is nothing to build and nothing is fetched from elsewhere; the browser is told to allow
nothing else, so that words of a model that look like markup stay words.
"""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "page"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/past.js": ("past.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class PageFiles:
    """The files, read once: the disk may be full, slow or gone later."""

    def __init__(self) -> None:
        self._answers = {
            path: ((FOLDER / name).read_bytes(), kind) for path, (name, kind) in FILES.items()
        }

    async def answer(self, request: Request) -> Response:
        """The file at that path, which must be one of `FILES`."""
        content, kind = self._answers[request.url.path]
        return Response(content, headers={**HEADERS, "Content-Type": kind})
