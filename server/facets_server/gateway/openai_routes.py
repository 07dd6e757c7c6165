"""OpenAI's routes for embeddings, with facets in a field of our own."""

import base64
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import numpy as np
from google.rpc.error_details_pb2 import BadRequest
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.embeddings import EmbeddedTexts, embed, listed_models, renamed
from facets_server.gateway.failures import CallFailedError, headers_of, http_status_of
from facets_server.gateway.request_fields import BadFieldError, read_fields
from facets_server.gateway.route_set import RouteSet
from facets_server.gateway.upstream import caller_of, unless_gone

__all__ = ["OpenAIRoutes"]

_FIELDS = ("input", "model", "encoding_format", "dimensions", "user", "facets")
_FORMATS = ("float", "base64")
_CREATED = 1_700_000_000  # clients want a number; models here have none
_KINDS = {401: "authentication_error", 403: "permission_error", 404: "invalid_request_error", 429: "rate_limit_error"}


class OpenAIRoutes(RouteSet):
    """``/v1/embeddings`` and ``/v1/models``."""

    def routes(self) -> list[Route]:
        """The routes."""
        return [
            Route("/v1/embeddings", partial(_answered, self._embeddings), methods=["POST"]),
            Route("/v1/models", partial(_answered, self._models), methods=["GET"]),
        ]

    async def _embeddings(self, request: Request) -> Response:
        fields = await read_fields(self._reader, request, known=_FIELDS)
        texts, model = fields.texts("input"), fields.text("model")
        encoding = fields.text("encoding_format", _FORMATS[0], of=_FORMATS)
        with_facets, dimensions = fields.flag("facets", default=False), fields.number("dimensions")
        fields.text("user")
        caller = caller_of(request, timeout_s=self._timeout_s)
        found = await unless_gone(request, embed(self._upstream, texts, model, caller))
        width = found.vectors.shape[1]
        if dimensions not in (None, width):
            raise BadFieldError("dimensions", f"is {dimensions}, expected {width} or none: vectors are not shortened")
        data = [_entry(found, place, encoding, with_facets=with_facets) for place in range(len(texts))]
        usage = {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens}
        return JSONResponse({"object": "list", "data": data, "model": found.model, "usage": usage})

    async def _models(self, request: Request) -> Response:
        models = await listed_models(self._upstream, caller_of(request, timeout_s=self._timeout_s))
        data = [{"id": one.name, "object": "model", "created": _CREATED, "owned_by": "facets"} for one in models]
        return JSONResponse({"object": "list", "data": data})


def _entry(found: EmbeddedTexts, place: int, encoding: str, *, with_facets: bool) -> dict[str, Any]:
    entry = {"object": "embedding", "index": place, "embedding": _encoded(found.vectors[place], encoding)}
    if with_facets:
        entry["facets"] = [_encoded(facet, encoding) for facet in found.facets[place]]
        if found.spans:
            entry["facet_spans"] = found.spans[place]
    return entry


def _encoded(vector: NDArray[np.float32], encoding: str) -> object:
    return base64.b64encode(vector.tobytes()).decode() if encoding == "base64" else vector.tolist()


async def _answered(handle: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    """The reply of a handler; its failures in OpenAI's form."""
    try:
        return await handle(request)
    except CallFailedError as failure:
        status = http_status_of(failure)
        kind = "server_error" if status >= 500 else _KINDS.get(status, "invalid_request_error")
        code = "model_not_found" if status == 404 else failure.code.name.lower()
        error = {"message": renamed(failure, "input"), "type": kind, "param": _param_of(failure), "code": code}
        return JSONResponse({"error": error}, status_code=status, headers=headers_of(failure))


def _param_of(failure: CallFailedError) -> str | None:
    """The field that is wrong, as OpenAI calls it."""
    if isinstance(failure, BadFieldError):
        return failure.field
    found = BadRequest()
    for detail in failure.details:
        if detail.Unpack(found) and found.field_violations:
            return found.field_violations[0].field.replace("texts", "input", 1)
    return "model" if http_status_of(failure) == 404 else None
