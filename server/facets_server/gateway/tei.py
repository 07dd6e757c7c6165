"""Those routes of Hugging Face's Text Embeddings Inference (TEI), Cohere and Jina that their clients use.

Their rerankers return probabilities, so these routes return the confidence of a text, or its score without one.
"""

import uuid
from typing import Annotated, Any, Literal

import numpy as np
from facets_proto.v1.documents_pb2 import RerankRequest
from facets_proto.values import array_from_message
from pydantic import BeforeValidator, Field
from starlette.requests import Request

from facets_server.gateway.compatible import CompatibleRoute, RequestFields, Texts, call, embed, text_models
from facets_server.gateway.errors import CallError, bad_request
from facets_server.gateway.upstream import Backend

_ERROR_TYPES = {413: "Validation", 429: "Overloaded", 503: "Unhealthy"}
_RERANK = "/facets.v1.DocumentService/Rerank"
_IGNORED = "Ignored: models of passages read long texts in windows, other models cut them."


_text_of = BeforeValidator(
    lambda value: value.get("text") if isinstance(value, dict) else value,
    json_schema_input_type=str | dict[Literal["text"], str],
)
DocumentText = Annotated[str, _text_of]
"""A text, or an object with a text."""


class _TeiRequest(RequestFields):
    truncate: bool = Field(False, description=_IGNORED)
    truncation_direction: Literal["Right", "right"] = "Right"


class TeiEmbedRequest(_TeiRequest):
    """Body of ``/embed``."""

    inputs: Texts
    normalize: bool = True
    prompt_name: Literal[""] = Field("", description="The models have no prompts.")
    dimensions: int | None = Field(None, ge=1, description="Only the model's own number.")


class TeiRerankRequest(_TeiRequest):
    """Body of ``/rerank``."""

    query: str = ""
    texts: Texts
    raw_scores: bool = Field(False, description="Return the search score instead of its confidence.")
    return_text: bool = False


class CohereRerankRequest(RequestFields):
    """Body of ``/v1/rerank`` and ``/v2/rerank``."""

    model: str = Field("", description="Name of a model; empty: the default model for collections.")
    query: str = ""
    documents: list[DocumentText] = Field(min_length=1)
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False
    max_tokens_per_doc: Any = Field(None, description=_IGNORED)
    max_chunks_per_doc: Any = Field(None, description=_IGNORED)


async def _embed(backend: Backend, request: Request, fields: TeiEmbedRequest) -> object:
    """TEI: one vector per text, by the first of /v1/models."""
    reply = await embed(backend, request, fields.inputs, dimensions=fields.dimensions, model="", facets=False)
    vectors = array_from_message(reply.vectors)
    if fields.normalize:
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return vectors.tolist()


async def _info(backend: Backend, request: Request, fields: None) -> object:
    """TEI: the model of /embed."""
    models = await text_models(backend, request)
    if not models:
        raise bad_request("the server has no model that embeds texts", http_status=503)
    model = models[0]
    return {
        "model_id": model.name,
        "model_sha": model.revision,
        "model_dtype": "float32",
        "model_type": {"embedding": {"pooling": "mean"}},
        "max_input_length": model.max_tokens,
        "max_client_batch_size": model.limits.max_texts_per_request,
        "auto_truncate": True,
    }


async def _rerank(backend: Backend, request: Request, fields: TeiRerankRequest) -> object:
    """TEI: texts ranked by how well they answer a query."""
    message = RerankRequest(query=fields.query, texts=fields.texts)
    ranked = []
    for result in (await backend.call(request, _RERANK, message)).results:
        text = {"text": fields.texts[result.index]} if fields.return_text else {}
        score = result.score if fields.raw_scores else _probability(result)
        ranked.append({"index": result.index, "score": score, **text})
    return ranked


async def _cohere_rerank(backend: Backend, request: Request, fields: CohereRerankRequest) -> object:
    """Cohere and Jina: documents ranked by how well they answer a query."""
    texts = fields.documents
    top_k = None if fields.top_n is None else min(fields.top_n, len(texts))
    message = RerankRequest(query=fields.query, texts=texts, top_k=top_k, model=fields.model)
    reply = await call(backend, request, _RERANK, message)
    results = []
    for result in reply.results:
        document = {"document": {"text": texts[result.index]}} if fields.return_documents else {}
        results.append({"index": result.index, "relevance_score": _probability(result), **document})
    return {
        "id": str(uuid.uuid4()),
        "model": reply.model.name,
        "results": results,
        "meta": {"api_version": {"version": request.url.path[2]}},
        "usage": {"total_tokens": reply.num_tokens},
    }


def _probability(result: Any) -> float:
    return result.confidence if result.HasField("confidence") else result.score


def _tei_error(error: CallError, message: str, field: str) -> dict[str, Any]:
    default_type = "Backend" if error.http_status >= 500 else "Validation"
    return {"error": message, "error_type": _ERROR_TYPES.get(error.http_status, default_type)}


def _cohere_error(error: CallError, message: str, field: str) -> dict[str, Any]:
    return {"message": message}


TEI_ROUTES = [
    CompatibleRoute("/", "tei", _embed, _tei_error, "inputs", TeiEmbedRequest),
    CompatibleRoute("/embed", "tei.embed", _embed, _tei_error, "inputs", TeiEmbedRequest),
    CompatibleRoute("/info", "tei.info", _info, _tei_error, "inputs"),
    CompatibleRoute("/rerank", "tei.rerank", _rerank, _tei_error, "texts", TeiRerankRequest),
    CompatibleRoute("/v1/rerank", "rerank.v1", _cohere_rerank, _cohere_error, "documents", CohereRerankRequest),
    CompatibleRoute("/v2/rerank", "rerank.v2", _cohere_rerank, _cohere_error, "documents", CohereRerankRequest),
]
