"""Reranking as others have it: ``/rerank`` of Text Embeddings Inference (TEI), ``/v1/rerank`` of Cohere and Jina.

Their scores are probabilities, so they are our confidence; where a model has none, and for TEI's ``raw_scores``, the
score of search.
"""

import uuid
from collections.abc import Sequence
from typing import Any

from facets_proto.v1 import documents_pb2, results_pb2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from facets_server.gateway.embedding_routes import BadFieldError, Fields, ForeignRoutes, read_fields, renamed, tei_error
from facets_server.gateway.failures import CallFailedError
from facets_server.gateway.upstream import caller_of, unless_gone

_RERANK = "/facets.v1.DocumentService/Rerank"
_TEI_FIELDS = ("query", "texts", "raw_scores", "return_text", "truncate", "truncation_direction")
_COHERE_FIELDS = (
    "model",
    "query",
    "documents",
    "top_n",
    "return_documents",
    "max_tokens_per_doc",
    "max_chunks_per_doc",
)


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

    def routes(self) -> list[Route]:
        """The route."""
        return [self._route("POST", "/rerank", self._rerank)]

    async def _rerank(self, request: Request) -> Response:
        fields = await read_fields(self._reader, request, known=_TEI_FIELDS)
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

    def routes(self) -> list[Route]:
        """The route."""
        return [self._route("POST", "/v1/rerank", self._rerank)]

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
