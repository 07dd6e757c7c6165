"""OpenAI's routes: ``/v1/embeddings`` and ``/v1/models``. The request field ``facets`` is an extension."""

import base64
from typing import Any, Literal

import numpy as np
from facets_proto.values import array_from_message
from numpy.typing import NDArray
from pydantic import Field
from starlette.requests import Request

from facets_server.gateway.compatible import CompatibleRoute, RequestFields, Texts, embed, text_models
from facets_server.gateway.errors import CallError
from facets_server.gateway.upstream import Backend

_CREATED = 1_700_000_000  # clients expect a number; our models have no date
_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class EmbeddingsRequest(RequestFields):
    """Body of ``/v1/embeddings``."""

    input: Texts
    model: str = Field("", description="Name of a model; empty: the first of /v1/models.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1, description="Only the model's own number.")
    user: str = Field("", description="Ignored.")
    facets: bool = Field(False, description="Extension: also return the facets of each text.")


async def _embeddings(backend: Backend, request: Request, fields: EmbeddingsRequest) -> object:
    """OpenAI: one vector per text."""

    def encoded(vector: NDArray[np.floating]) -> object:
        if fields.encoding_format == "base64":
            return base64.b64encode(vector.tobytes()).decode()
        return vector.tolist()

    reply = await embed(
        backend, request, fields.input, model=fields.model, dimensions=fields.dimensions, facets=fields.facets
    )
    data: list[dict[str, Any]] = [
        {"object": "embedding", "index": index, "embedding": encoded(vector)}
        for index, vector in enumerate(array_from_message(reply.vectors))
    ]
    if fields.facets:
        for index, (entry, facets) in enumerate(zip(data, array_from_message(reply.facet_embeddings), strict=True)):
            used = np.any(facets, axis=1)  # a short text has fewer than K facets
            entry["facets"] = [encoded(facet) for facet in facets[used]]
            if reply.facet_spans:
                spans = zip(reply.facet_spans[index].spans, used, strict=True)
                entry["facet_spans"] = [(span.start, span.end) for span, is_used in spans if is_used]
    num_tokens = sum(stats.num_tokens for stats in reply.token_stats)
    usage = {"prompt_tokens": num_tokens, "total_tokens": num_tokens}
    return {"object": "list", "data": data, "model": reply.model.name, "usage": usage}


async def _models(backend: Backend, request: Request, fields: None) -> object:
    """OpenAI: the models that embed texts."""
    names = [model.name for model in await text_models(backend, request)]
    data = [{"id": name, "object": "model", "created": _CREATED, "owned_by": "facets"} for name in names]
    return {"object": "list", "data": data}


def _error_body(error: CallError, message: str, field: str) -> dict[str, Any]:
    status = error.http_status
    default_type = "server_error" if status >= 500 else "invalid_request_error"
    body = {
        "message": message,
        "type": _ERROR_TYPES.get(status, default_type),
        "param": field or ("model" if status == 404 else None),
        "code": "model_not_found" if status == 404 else error.code.name.lower(),
    }
    return {"error": body}


OPENAI_ROUTES = [
    CompatibleRoute("/v1/embeddings", "openai.embeddings", _embeddings, _error_body, "input", EmbeddingsRequest),
    CompatibleRoute("/v1/models", "openai.models", _models, _error_body, "input"),
]
