"""Routes of OpenAI, of Hugging Face's Text Embeddings Inference (TEI), of Cohere and Jina.

OpenAI's have facets on demand, in a field of our own. Of TEI's there are those that its clients use. Scores of
reranking are probabilities elsewhere, so they are our confidence; where a model has none, and for ``raw_scores``, the
score of search.
"""

import base64
import uuid
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from facets_proto.v1 import common_pb2, documents_pb2, models_pb2, results_pb2, texts_pb2
from google.rpc.error_details_pb2 import BadRequest
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.bodies import BodyReader
from facets_server.gateway.failures import CallFailedError, bad_request, headers_of, http_status_of
from facets_server.gateway.rpc_routes import JSON, content_type_of
from facets_server.gateway.transcoding import parsed_json
from facets_server.gateway.upstream import Caller, RouteSet, Upstream, caller_of, unless_gone

_MOST_NAMED = 40  # characters of a name that we do not know
_EMBED = "/facets.v1.EmbeddingService/Embed"
_LIST = "/facets.v1.ModelService/ListModels"
_TASKS = ("passages", "sentences")
_OPENAI_FIELDS = ("input", "model", "encoding_format", "dimensions", "user", "facets")
_FORMATS = ("float", "base64")
_CREATED = 1_700_000_000  # clients want a number; models here have none
_OPENAI_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
}
_TEI_FIELDS = ("inputs", "normalize", "truncate", "truncation_direction", "prompt_name", "dimensions")
_TEI_KINDS = {413: "Validation", 429: "Overloaded", 503: "Unhealthy"}

_RERANK = "/facets.v1.DocumentService/Rerank"
_TEI_RERANK_FIELDS = ("query", "texts", "raw_scores", "return_text", "truncate", "truncation_direction")
_COHERE_FIELDS = (
    *("model", "query", "documents", "top_n", "return_documents"),
    *("max_tokens_per_doc", "max_chunks_per_doc"),  # not used: long texts are read in windows
)


class BadFieldError(CallFailedError):
    """A field breaks its rule.

    Attributes:
        field: Its name.
    """

    def __init__(self, field: str, rule: str) -> None:
        problem = bad_request(f"{field} {rule}")
        super().__init__(problem.code, problem.message)
        self.field = field


async def read_fields(reader: BodyReader, request: Request, *, known: Collection[str]) -> "Fields":
    """The fields of a JSON body.

    Raises:
        CallFailedError: It is no JSON object.
        BadFieldError: It has a field that is not known.
    """
    content_type_of(request, JSON)
    values = await reader.body(request, parsed_json)
    if not isinstance(values, dict):
        raise bad_request("the body is no JSON object")
    for name in values:
        if name not in known:
            raise BadFieldError(name[:_MOST_NAMED], f"is not known, expected one of {', '.join(sorted(known))}")
    return Fields(values)


class Fields:
    """Values by name; null is as if it were not given."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def texts(self, name: str) -> list[str]:
        """One text or a list of them.

        Raises:
            BadFieldError: It is neither.
        """
        value = self._values.get(name, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts:
            is_what = "is missing or empty" if texts in ([], None) else f"is of type {type(value).__name__}"
            raise BadFieldError(name, f"{is_what}, expected a text or a list of texts")
        for place, text in enumerate(texts):
            if isinstance(text, int | list):
                raise BadFieldError(name, "has tokens, expected texts: models have tokens of their own here")
            if not isinstance(text, str):
                raise BadFieldError(f"{name}[{place}]", "is no text")
            if not _is_unicode(text):
                raise BadFieldError(f"{name}[{place}]", "holds half of a surrogate pair, expected Unicode text")
        return texts

    def items(self, name: str) -> list[Any]:
        """A list of at least one value.

        Raises:
            BadFieldError: It is none.
        """
        value = self._values.get(name)
        if not isinstance(value, list) or not value:
            raise BadFieldError(name, "is missing or empty, expected a list")
        return value

    def text(self, name: str, default: str = "", *, of: Collection[str] = ()) -> str:
        """A text, one of some where they are named.

        Raises:
            BadFieldError: It is none.
        """
        value = self._values.get(name, default)
        if not isinstance(value, str) or not _is_unicode(value):
            raise BadFieldError(name, "is no text")
        if of and value not in of:
            raise BadFieldError(name, f"is {value[:_MOST_NAMED]!r}, expected one of {', '.join(of)}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false.

        Raises:
            BadFieldError: It is neither.
        """
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise BadFieldError(name, "is neither true nor false")
        return value

    def number(self, name: str) -> int | None:
        """A whole number >= 1; None where none is given.

        Raises:
            BadFieldError: It is none.
        """
        value = self._values.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise BadFieldError(name, "is no whole number of at least 1")
        return value


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text) if not text.isascii() else True


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Texts as vectors.

    Attributes:
        model: Name of the model that answered.
        vectors: ``[texts, D]``, float32.
        facets: Of each text ``[its facets, D]``, float32.
        spans: Of each text where its facets stand, ``(start, end)``; none where facets have no place.
        num_tokens: Tokens read of all texts.
    """

    model: str
    vectors: NDArray[np.float32]
    facets: list[NDArray[np.float32]]
    spans: list[list[tuple[int, int]]]
    num_tokens: int


async def embed(
    upstream: Upstream, texts: Sequence[str], model: str, *, caller: Caller, with_facets: bool
) -> EmbeddedTexts:
    """Embeds texts.

    Args:
        upstream: The gRPC server.
        texts: At least one.
        model: Name of the model; empty: the first of ``listed_models``, whose vectors are best compared.
        caller: For whom.
        with_facets: Whether anybody asks for facets: without them models of passages have half the work.

    Raises:
        CallFailedError: The server refuses them.
    """
    if not model:
        model = next((found.name for found in await listed_models(upstream, caller)), "")
    request = texts_pb2.EmbedRequest(texts=texts, model=model, include_vectors=True)
    request.include_spans, request.vectors_only = with_facets, not with_facets
    data = await upstream.call(_EMBED, request.SerializeToString(), caller)
    reply = texts_pb2.EmbedResponse.FromString(data)
    facets = _array(reply.facet_embeddings) if with_facets else np.empty((0, 1, 1), np.float32)
    are_there: list[NDArray[np.bool_]] = list(np.any(facets, axis=2))  # a short text has fewer than K
    spans = [[(span.start, span.end) for span in found.spans] for found in reply.facet_spans]
    return EmbeddedTexts(
        model=reply.model.name,
        vectors=_array(reply.vectors),
        facets=[of_text[there] for of_text, there in zip(facets, are_there, strict=True)],
        spans=[
            [span for span, is_there in zip(of_text, there, strict=True) if is_there]
            for of_text, there in zip(spans, are_there, strict=True)
        ]
        if spans and with_facets
        else [],
        num_tokens=sum(stats.num_tokens for stats in reply.token_stats),
    )


async def listed_models(upstream: Upstream, caller: Caller) -> list[models_pb2.Model]:
    """The models that embed texts, first the one that answers where none is named.

    Raises:
        CallFailedError: The server refuses the call.
    """
    data = await upstream.call(_LIST, models_pb2.ListModelsRequest().SerializeToString(), caller)
    models = models_pb2.ListModelsResponse.FromString(data).models
    of_texts = (model for model in models if model.task in _TASKS)
    return sorted(of_texts, key=lambda model: (_TASKS.index(model.task), not model.is_default))


def renamed(failure: CallFailedError, name: str) -> str:
    """The message of a failure in which the texts are called as the route calls them."""
    rest = failure.message.removeprefix("texts")
    return name + rest if rest != failure.message else failure.message


def _array(array: common_pb2.FacetArray) -> NDArray[np.float32]:
    return np.frombuffer(array.data, dtype="<f4").reshape(tuple(array.shape))


_Table = list[tuple[str, str, Callable[[Request], Awaitable[Response]]]]


class ForeignRoutes(RouteSet):
    """Routes of other services, with errors in their form."""

    def routes(self) -> list[Route]:
        """The routes."""
        return [self._route(*row) for row in self._table()]

    @abstractmethod
    def _table(self) -> _Table:
        """Method, path and handler of each."""

    def _route(self, method: str, path: str, handle: Callable[[Request], Awaitable[Response]]) -> Route:
        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except CallFailedError as failure:
                status = http_status_of(failure)
                return JSONResponse(self._error(failure, status), status_code=status, headers=headers_of(failure))

        return Route(path, answered, methods=[method])

    @abstractmethod
    def _error(self, failure: CallFailedError, status: int) -> dict[str, Any]:
        """A failure as clients of these routes expect it."""


class _EmbeddingRoutes(ForeignRoutes):
    """What the routes of both have in common."""

    async def _embedded(
        self, request: Request, texts: Sequence[str], model: str, *, fields: Fields, with_facets: bool = False
    ) -> EmbeddedTexts:
        dimensions = fields.number("dimensions")
        caller = caller_of(request, timeout_s=self._timeout_s)
        found = await unless_gone(request, embed(self._upstream, texts, model, caller=caller, with_facets=with_facets))
        width = found.vectors.shape[1]
        if dimensions not in (None, width):
            raise BadFieldError("dimensions", f"is {dimensions}, expected {width} or none: vectors are not shortened")
        return found

    async def _listed(self, request: Request) -> list[models_pb2.Model]:
        return await listed_models(self._upstream, caller_of(request, timeout_s=self._timeout_s))


class OpenAIRoutes(_EmbeddingRoutes):
    """``/v1/embeddings`` and ``/v1/models``."""

    def _table(self) -> _Table:
        return [("POST", "/v1/embeddings", self._embeddings), ("GET", "/v1/models", self._models)]

    async def _embeddings(self, request: Request) -> Response:
        fields = await read_fields(self._reader, request, known=_OPENAI_FIELDS)
        texts, model = fields.texts("input"), fields.text("model")
        encoding = fields.text("encoding_format", _FORMATS[0], of=_FORMATS)
        with_facets = fields.flag("facets", default=False)
        fields.text("user")
        found = await self._embedded(request, texts, model, fields=fields, with_facets=with_facets)
        data = [_entry(found, place, encoding, with_facets=with_facets) for place in range(len(texts))]
        usage = {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens}
        return JSONResponse({"object": "list", "data": data, "model": found.model, "usage": usage})

    async def _models(self, request: Request) -> Response:
        models = await self._listed(request)
        data = [{"id": one.name, "object": "model", "created": _CREATED, "owned_by": "facets"} for one in models]
        return JSONResponse({"object": "list", "data": data})

    def _error(self, failure: CallFailedError, status: int) -> dict[str, Any]:
        kind = "server_error" if status >= 500 else _OPENAI_KINDS.get(status, "invalid_request_error")
        code = "model_not_found" if status == 404 else failure.code.name.lower()
        error = {"message": renamed(failure, "input"), "type": kind, "param": _param_of(failure), "code": code}
        return {"error": error}


def _entry(found: EmbeddedTexts, place: int, encoding: str, *, with_facets: bool) -> dict[str, Any]:
    entry = {"object": "embedding", "index": place, "embedding": _encoded(found.vectors[place], encoding)}
    if with_facets:
        entry["facets"] = [_encoded(facet, encoding) for facet in found.facets[place]]
        if found.spans:
            entry["facet_spans"] = found.spans[place]
    return entry


def _encoded(vector: NDArray[np.float32], encoding: str) -> object:
    return base64.b64encode(vector.tobytes()).decode() if encoding == "base64" else vector.tolist()


def _param_of(failure: CallFailedError) -> str | None:
    """The field that is wrong, as OpenAI calls it."""
    if isinstance(failure, BadFieldError):
        return failure.field
    found = BadRequest()
    for detail in failure.details:
        if detail.Unpack(found) and found.field_violations:
            return found.field_violations[0].field.replace("texts", "input", 1)
    return "model" if http_status_of(failure) == 404 else None


class TeiRoutes(_EmbeddingRoutes):
    """``/embed`` and ``/info``."""

    def _table(self) -> _Table:
        return [("POST", "/embed", self._embed), ("GET", "/info", self._info)]

    async def _embed(self, request: Request) -> Response:
        fields = await read_fields(self._reader, request, known=_TEI_FIELDS)
        texts, normalize = fields.texts("inputs"), fields.flag("normalize", default=True)
        fields.flag("truncate", default=False)  # models of passages read long texts in windows, others cut them
        fields.text("truncation_direction", "Right", of=("Right", "right"))
        if fields.text("prompt_name"):
            raise BadFieldError("prompt_name", "is given, but these models take no prompts")
        found = await self._embedded(request, texts, "", fields=fields)
        return JSONResponse((_unit(found.vectors) if normalize else found.vectors).tolist())

    async def _info(self, request: Request) -> Response:
        models = await self._listed(request)
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

    def _error(self, failure: CallFailedError, status: int) -> dict[str, Any]:
        return tei_error(failure, status, texts="inputs")


def tei_error(failure: CallFailedError, status: int, *, texts: str) -> dict[str, Any]:
    """A failure as TEI words it, where the texts are called as the route calls them."""
    kind = _TEI_KINDS.get(status, "Backend" if status >= 500 else "Validation")
    return {"error": renamed(failure, texts), "error_type": kind}


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


class _RerankRoutes(ForeignRoutes):
    async def _reranked(
        self, request: Request, query: str, texts: Sequence[str], *, top_k: int | None = None, model: str = ""
    ) -> documents_pb2.RerankResponse:
        wanted = documents_pb2.RerankRequest(query=query, texts=texts, top_k=top_k, model=model)
        caller = caller_of(request, timeout_s=self._timeout_s)
        data = await unless_gone(request, self._upstream.call(_RERANK, wanted.SerializeToString(), caller))
        return documents_pb2.RerankResponse.FromString(data)


class TeiRerankRoutes(_RerankRoutes):
    """``/rerank``."""

    def _table(self) -> _Table:
        return [("POST", "/rerank", self._rerank)]

    async def _rerank(self, request: Request) -> Response:
        fields = await read_fields(self._reader, request, known=_TEI_RERANK_FIELDS)
        query, texts = fields.text("query"), fields.texts("texts")
        raw, with_text = fields.flag("raw_scores", default=False), fields.flag("return_text", default=False)
        fields.flag("truncate", default=False)  # long texts are read in windows
        fields.text("truncation_direction", "Right", of=("Right", "right"))
        found = await self._reranked(request, query, texts)
        return JSONResponse(
            [
                {
                    "index": one.index,
                    "score": one.score if raw else _sureness(one),
                    **({"text": texts[one.index]} if with_text else {}),
                }
                for one in found.results
            ]
        )

    def _error(self, failure: CallFailedError, status: int) -> dict[str, Any]:
        return tei_error(failure, status, texts="texts")


class CohereRerankRoutes(_RerankRoutes):
    """``/v1/rerank``."""

    def _table(self) -> _Table:
        return [("POST", "/v1/rerank", self._rerank)]

    async def _rerank(self, request: Request) -> Response:
        fields = await read_fields(self._reader, request, known=_COHERE_FIELDS)
        texts, top_n = _documents(fields), fields.number("top_n")
        with_documents = fields.flag("return_documents", default=False)
        top_k = None if top_n is None else min(top_n, len(texts))
        model = fields.text("model")
        found = await self._reranked(request, fields.text("query"), texts, top_k=top_k, model=model)
        results = [
            {
                "index": one.index,
                "relevance_score": _sureness(one),
                **({"document": {"text": texts[one.index]}} if with_documents else {}),
            }
            for one in found.results
        ]
        return JSONResponse(
            {
                "id": str(uuid.uuid4()),
                "model": found.model.name,
                "results": results,
                "meta": {"api_version": {"version": "1"}, "billed_units": {"search_units": 0}},
                "usage": {"total_tokens": found.num_tokens},
            }
        )

    def _error(self, failure: CallFailedError, status: int) -> dict[str, Any]:
        return {"message": renamed(failure, "documents")}


def _documents(fields: Fields) -> list[str]:
    """Texts, given as they are or as objects with a text."""
    given = fields.items("documents")
    texts = [one.get("text") if isinstance(one, dict) else one for one in given]
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadFieldError(f"documents[{place}]", "is neither a text nor an object with a text")
    return Fields({"documents": texts}).texts("documents")


def _sureness(one: results_pb2.RankedText) -> float:
    return one.confidence if one.HasField("confidence") else one.score
