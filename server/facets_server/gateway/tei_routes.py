"""The routes of Hugging Face's Text Embeddings Inference that its clients use: ``/embed`` and ``/info``."""

from collections.abc import Awaitable, Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.embeddings import embed, listed_models, renamed
from facets_server.gateway.failures import CallFailedError, bad_request, headers_of, http_status_of
from facets_server.gateway.request_fields import BadFieldError, read_fields
from facets_server.gateway.route_set import RouteSet
from facets_server.gateway.upstream import caller_of, unless_gone

__all__ = ["TeiRoutes"]

_FIELDS = ("inputs", "normalize", "truncate", "truncation_direction", "prompt_name", "dimensions")
_KINDS = {413: "Validation", 429: "Overloaded", 503: "Unhealthy"}


class TeiRoutes(RouteSet):
    """``/embed`` and ``/info``."""

    def routes(self) -> list[Route]:
        """The routes."""
        return [
            Route("/embed", partial(_answered, self._embed), methods=["POST"]),
            Route("/info", partial(_answered, self._info), methods=["GET"]),
        ]

    async def _embed(self, request: Request) -> Response:
        fields = await read_fields(self._reader, request, known=_FIELDS)
        texts, normalize = fields.texts("inputs"), fields.flag("normalize", default=True)
        fields.flag("truncate", default=False)  # models of passages read long texts in windows, others cut them
        fields.text("truncation_direction", "Right", of=("Right", "right"))
        if fields.text("prompt_name"):
            raise BadFieldError("prompt_name", "is given, but these models take no prompts")
        dimensions = fields.number("dimensions")
        caller = caller_of(request, timeout_s=self._timeout_s)
        found = await unless_gone(request, embed(self._upstream, texts, "", caller))
        width = found.vectors.shape[1]
        if dimensions not in (None, width):
            raise BadFieldError("dimensions", f"is {dimensions}, expected {width} or none: vectors are not shortened")
        return JSONResponse((_unit(found.vectors) if normalize else found.vectors).tolist())

    async def _info(self, request: Request) -> Response:
        models = await listed_models(self._upstream, caller_of(request, timeout_s=self._timeout_s))
        if not models:
            raise bad_request("the server has no model that embeds texts", status=503)
        model = models[0]
        return JSONResponse(
            {
                "model_id": model.name,
                "model_sha": model.revision,
                "model_dtype": "float32",
                "model_type": {"embedding": {"pooling": "mean"}},
                "max_input_length": model.max_tokens,
                "max_client_batch_size": model.limits.max_texts_per_request,
                "auto_truncate": True,
            }
        )


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


async def _answered(handle: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    """The reply of a handler; its failures in TEI's form."""
    try:
        return await handle(request)
    except CallFailedError as failure:
        status = http_status_of(failure)
        kind = _KINDS.get(status, "Backend" if status >= 500 else "Validation")
        error = {"error": renamed(failure, "inputs"), "error_type": kind}
        return JSONResponse(error, status_code=status, headers=headers_of(failure))
