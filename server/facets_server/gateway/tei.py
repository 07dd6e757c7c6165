"""Those routes of Hugging Face's Text Embeddings Inference (TEI), Cohere and Jina that their clients use.

Their rerankers return probabilities, so these routes return the confidence of a text.
"""

import uuid
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.compatible import (
    RequestFields,
    Texts,
    array_of,
    compatible_route,
    embed,
    probability,
    read_fields,
    renamed,
    rerank,
    text_models,
)
from facets_server.gateway.errors import CallError, bad_request
from facets_server.gateway.upstream import Backend

_ERROR_TYPES = {413: "Validation", 429: "Overloaded", 503: "Unhealthy"}
_IGNORED = "Ignored: models of passages read long texts in windows, other models cut them."


def _text_of(value: object) -> object:
    return value.get("text") if isinstance(value, dict) else value


DocumentText = Annotated[
    str,
    BeforeValidator(_text_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            ]
        }
    ),
]
"""A text, or an object with a text."""


class TeiEmbedRequest(RequestFields):
    """Body of ``/embed``."""

    inputs: Texts
    normalize: bool = True
    truncate: bool = Field(False, description=_IGNORED)
    truncation_direction: Literal["Right", "right"] = "Right"
    prompt_name: Literal[""] = Field("", description="The models have no prompts.")
    dimensions: int | None = Field(None, ge=1, description="Only the model's own number.")


class TeiRerankRequest(RequestFields):
    """Body of ``/rerank``."""

    query: str = ""
    texts: Texts
    raw_scores: bool = Field(False, description="Return the search score instead of its confidence.")
    return_text: bool = False
    truncate: bool = Field(False, description=_IGNORED)
    truncation_direction: Literal["Right", "right"] = "Right"


class CohereRerankRequest(RequestFields):
    """Body of ``/v1/rerank``."""

    model: str = Field("", description="Name of a model; empty: the default model for collections.")
    query: str = ""
    documents: list[DocumentText] = Field(min_length=1)
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False
    max_tokens_per_doc: Any = Field(None, description=_IGNORED)
    max_chunks_per_doc: Any = Field(None, description=_IGNORED)


def tei_routes(backend: Backend) -> list[Route]:
    """TEI's routes."""
    return [
        compatible_route(backend, "POST", "/embed", _embed, partial(_tei_error_body, texts="inputs")),
        compatible_route(backend, "GET", "/info", _info, partial(_tei_error_body, texts="inputs")),
        compatible_route(backend, "POST", "/rerank", _rerank, partial(_tei_error_body, texts="texts")),
    ]


def cohere_routes(backend: Backend) -> list[Route]:
    """The rerank route of Cohere and Jina."""
    return [compatible_route(backend, "POST", "/v1/rerank", _cohere_rerank, _cohere_error_body)]


async def _embed(backend: Backend, request: Request) -> Response:
    fields = await read_fields(backend, request, TeiEmbedRequest)
    vectors = array_of((await embed(backend, request, fields.inputs, dimensions=fields.dimensions)).vectors)
    if fields.normalize:
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return JSONResponse(vectors.tolist())


async def _info(backend: Backend, request: Request) -> Response:
    models = await text_models(backend, request)
    if not models:
        raise bad_request("the server has no model that embeds texts", http_status=503)
    model = models[0]
    info = {
        "model_id": model.name,
        "model_sha": model.revision,
        "model_dtype": "float32",
        "model_type": {"embedding": {"pooling": "mean"}},
        "max_input_length": model.max_tokens,
        "max_client_batch_size": model.limits.max_texts_per_request,
        "auto_truncate": True,
    }
    return JSONResponse(info)


async def _rerank(backend: Backend, request: Request) -> Response:
    fields = await read_fields(backend, request, TeiRerankRequest)
    reply = await rerank(backend, request, fields.query, fields.texts)
    ranked = []
    for result in reply.results:
        entry: dict[str, Any] = {"index": result.index}
        entry["score"] = result.score if fields.raw_scores else probability(result)
        if fields.return_text:
            entry["text"] = fields.texts[result.index]
        ranked.append(entry)
    return JSONResponse(ranked)


def _tei_error_body(error: CallError, *, texts: str) -> dict[str, Any]:
    default_type = "Backend" if error.http_status >= 500 else "Validation"
    return {"error": renamed(error.message, texts), "error_type": _ERROR_TYPES.get(error.http_status, default_type)}


async def _cohere_rerank(backend: Backend, request: Request) -> Response:
    fields = await read_fields(backend, request, CohereRerankRequest)
    top_k = None if fields.top_n is None else min(fields.top_n, len(fields.documents))
    reply = await rerank(backend, request, fields.query, fields.documents, top_k=top_k, model=fields.model)
    results = []
    for result in reply.results:
        entry: dict[str, Any] = {"index": result.index, "relevance_score": probability(result)}
        if fields.return_documents:
            entry["document"] = {"text": fields.documents[result.index]}
        results.append(entry)
    body = {
        "id": str(uuid.uuid4()),
        "model": reply.model.name,
        "results": results,
        "meta": {"api_version": {"version": "1"}, "billed_units": {"search_units": 0}},
        "usage": {"total_tokens": reply.num_tokens},
    }
    return JSONResponse(body)


def _cohere_error_body(error: CallError) -> dict[str, Any]:
    return {"message": renamed(error.message, "documents")}
