"""The playground: files of a folder, for a browser that runs nothing but them."""

from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

__all__ = ["PLAYGROUND", "Pages"]

PLAYGROUND = Path(__file__).parent / "playground"

# By the end of the name; the tables of the machine differ, and browsers run no script of another type.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # asked for again by their ETag
}


class Pages(StaticFiles):
    """Serves a folder with the right types, ETags and a policy that allows its own files only."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file; ``index.html`` of a folder."""
        response = await super().get_response(path, scope)
        name = "index.html" if path in (".", "") else path
        known = _TYPES.get(Path(name).suffix)
        if known is not None and "content-type" in response.headers:
            response.headers["content-type"] = known
        response.headers.update(_HEADERS)
        return response
