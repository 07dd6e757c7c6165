"""The routes of OpenAI, Hugging Face's Text Embeddings Inference (TEI), Cohere and Jina that their clients use.

Their rerankers return probabilities, so these routes return the confidence of a text, or its score without one.
"""

import base64
import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from facets_proto.v1 import models_pb2, texts_pb2
from facets_proto.v1.documents_pb2 import RerankRequest
from facets_proto.values import array_from_message
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.errors import CallError, bad_request
from facets_server.gateway.protobuf_json import parse_json
from facets_server.gateway.rpc_routes import JSON, content_type_of
from facets_server.gateway.upstream import Backend

_TASKS = ("passages", "sentences")  # of models that embed texts, in the order of preference
_VENDOR_MODELS = ("text-embedding-", "embed-", "rerank-", "jina-")
_MAX_FIELD_CHARS = 40
_CREATED = 1_700_000_000  # OpenAI's clients expect a number; our models have no date
_OPENAI_ERRORS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_TEI_ERRORS = {413: "Validation", 429: "Overloaded", 503: "Unhealthy"}
_RERANK = "/facets.v1.DocumentService/Rerank"
_IGNORED = "Ignored: models of passages read long texts in windows, other models cut them."


class RequestFields(BaseModel):
    """Fields of a JSON body; unknown ones are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _as_list(value: object) -> object:
    if isinstance(value, list) and any(type(item) in (int, list) for item in value):
        raise ValueError("has token ids, expected texts: the models have their own tokenizers")
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], Field(min_length=1), BeforeValidator(_as_list, json_schema_input_type=str | list[str])]
"""One text, or a list of texts."""


_text_of = BeforeValidator(
    lambda value: value.get("text") if isinstance(value, dict) else value,
    json_schema_input_type=str | dict[Literal["text"], str],
)
DocumentText = Annotated[str, _text_of]
"""A text, or an object with a text."""


class EmbeddingsRequest(RequestFields):
    """Body of ``/v1/embeddings``."""

    input: Texts
    model: str = Field("", description="Name of a model; empty: the first of /v1/models.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1, description="Only the model's own number.")
    user: str = Field("", description="Ignored.")
    facets: bool = Field(False, description="Extension: also return the facets of each text.")


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


class CompatibleRoute(Route):
    """A route of another API, with errors in its format; OpenAPI describes it by name, docstring and fields.

    ``texts`` is the API's name for ``texts`` in messages and field paths of the server, which ``error_body`` gets after
    the error. ``fields`` are those of a POST body; None: a GET route, whose handler gets no fields.
    """

    def __init__(
        self,
        path: str,
        name: str,
        handler: Callable[[Backend, Request, Any], Awaitable[object]],
        error_body: Callable[[CallError, str, str], dict[str, Any]],
        texts: str,
        fields: type[RequestFields] | None = None,
    ) -> None:
        self.description = handler.__doc__ or ""
        self.fields = fields

        async def endpoint(request: Request) -> Response:
            backend: Backend = request.app.state.backend
            try:
                given = fields and await _read_fields(backend, request, fields)
                return JSONResponse(await handler(backend, request, given))
            except CallError as error:
                message, field = (re.sub("^texts", texts, text) for text in (error.message, error.field))
                body = error_body(error, message, field)
                return JSONResponse(body, status_code=error.http_status, headers=error.headers)

        super().__init__(path, endpoint, methods=["POST" if fields else "GET"], name=name)


async def _read_fields(backend: Backend, request: Request, fields_type: type[RequestFields]) -> RequestFields:
    """Reads a JSON body; null counts as unset. The error's ``field`` is the first invalid one."""
    content_type_of(request, JSON)
    values = await backend.reader.body(request, parse_json)
    if not isinstance(values, dict):
        raise bad_request("the body is not a JSON object")
    try:
        return fields_type.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name, *steps = problem["loc"]
        field = str(name)[:_MAX_FIELD_CHARS] + "".join(f"[{step}]" for step in steps)
        message = problem["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
        if problem["type"] == "extra_forbidden":
            message = f"is unknown, expected some of {', '.join(sorted(fields_type.model_fields))}"
        raise bad_request(f"{field}: {message[0].lower()}{message[1:]}", field=field) from error


async def _embed_texts(
    backend: Backend, request: Request, texts: Sequence[str], *, dimensions: int | None, model: str, facets: bool
) -> texts_pb2.EmbedResponse:
    """Embeds texts; without ``facets`` at half the work. ``dimensions`` must be None or the model's."""
    message = texts_pb2.EmbedRequest(texts=texts, model=model, include_vectors=True)
    message.include_spans, message.vectors_only = facets, not facets
    reply: texts_pb2.EmbedResponse = await _call(backend, request, "/facets.v1.EmbeddingService/Embed", message)
    dim = reply.vectors.shape[1]
    if dimensions not in (None, dim):
        raise bad_request(f"dimensions: is {dimensions}, the model has {dim}", field="dimensions")
    return reply


async def _call(backend: Backend, request: Request, path: str, message: Any) -> Any:
    """Calls an rpc whose message names a model; see ``HttpConfig.vendor_models``."""
    try:
        return await backend.call(request, path, message)
    except CallError as error:
        if error.http_status != 404 or not message.model.startswith(_VENDOR_MODELS):
            raise
        if not backend.vendor_models:
            hint = "the setting http.vendor_models takes names of other vendors as the default model"
            raise CallError(error.code, f"{error.message}; {hint}") from error
    message.model = ""
    return await backend.call(request, path, message)


async def _text_models(backend: Backend, request: Request) -> list[models_pb2.Model]:
    """The models that embed texts, the default one first."""
    reply = await backend.call(request, "/facets.v1.ModelService/ListModels", models_pb2.ListModelsRequest())
    models = [model for model in reply.models if model.task in _TASKS]
    return sorted(models, key=lambda model: (_TASKS.index(model.task), not model.is_default))


async def _embeddings(backend: Backend, request: Request, fields: EmbeddingsRequest) -> object:
    """OpenAI: one vector per text."""

    def encoded(vector: NDArray[np.floating]) -> object:
        if fields.encoding_format == "base64":
            return base64.b64encode(vector.tobytes()).decode()
        return vector.tolist()

    reply = await _embed_texts(
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
    names = [model.name for model in await _text_models(backend, request)]
    data = [{"id": name, "object": "model", "created": _CREATED, "owned_by": "facets"} for name in names]
    return {"object": "list", "data": data}


async def _embed(backend: Backend, request: Request, fields: TeiEmbedRequest) -> object:
    """TEI: one vector per text, by the first of /v1/models."""
    reply = await _embed_texts(backend, request, fields.inputs, dimensions=fields.dimensions, model="", facets=False)
    vectors = array_from_message(reply.vectors)
    if fields.normalize:
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return vectors.tolist()


async def _info(backend: Backend, request: Request, fields: None) -> object:
    """TEI: the model of /embed."""
    models = await _text_models(backend, request)
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
    reply = await _call(backend, request, _RERANK, message)
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


def _openai_error(error: CallError, message: str, field: str) -> dict[str, Any]:
    status = error.http_status
    default_type = "server_error" if status >= 500 else "invalid_request_error"
    body = {
        "message": message,
        "type": _OPENAI_ERRORS.get(status, default_type),
        "param": field or ("model" if status == 404 else None),
        "code": "model_not_found" if status == 404 else error.code.name.lower(),
    }
    return {"error": body}


def _tei_error(error: CallError, message: str, field: str) -> dict[str, Any]:
    default_type = "Backend" if error.http_status >= 500 else "Validation"
    return {"error": message, "error_type": _TEI_ERRORS.get(error.http_status, default_type)}


def _cohere_error(error: CallError, message: str, field: str) -> dict[str, Any]:
    return {"message": message}


COMPATIBLE_ROUTES = [
    CompatibleRoute("/v1/embeddings", "openai.embeddings", _embeddings, _openai_error, "input", EmbeddingsRequest),
    CompatibleRoute("/v1/models", "openai.models", _models, _openai_error, "input"),
    CompatibleRoute("/", "tei", _embed, _tei_error, "inputs", TeiEmbedRequest),
    CompatibleRoute("/embed", "tei.embed", _embed, _tei_error, "inputs", TeiEmbedRequest),
    CompatibleRoute("/info", "tei.info", _info, _tei_error, "inputs"),
    CompatibleRoute("/rerank", "tei.rerank", _rerank, _tei_error, "texts", TeiRerankRequest),
    CompatibleRoute("/v1/rerank", "rerank.v1", _cohere_rerank, _cohere_error, "documents", CohereRerankRequest),
    CompatibleRoute("/v2/rerank", "rerank.v2", _cohere_rerank, _cohere_error, "documents", CohereRerankRequest),
]
