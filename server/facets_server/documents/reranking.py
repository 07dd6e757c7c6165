"""Texts of a request in the order in which they answer its query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from facets.documents import Document, RankedText, check_search, rerank
from facets.model.contract import ModelInfo, check_readable
from facets_server.documents.requests import RerankQuery
from facets_server.runtime.call_context import CallContext
from facets_server.texts.served import ServedTexts, TextModels


@dataclass(frozen=True, kw_only=True, slots=True)
class Reranked:
    """The best texts.

    Attributes:
        results: Best first.
        num_tokens: Tokens read of all texts.
        model: The model that read them.
    """

    results: tuple[RankedText, ...]
    num_tokens: int
    model: ModelInfo


def rerank_texts(query: RerankQuery, models: TextModels, call: CallContext) -> Reranked:
    """Encodes query and texts, and puts the texts in order.

    Raises:
        NotFoundError: The model is not served.
        InvalidInputError: A text without a word.
        DeadlineExceededError: The deadline passed before the texts were encoded.
    """
    served = models.get(query.model)
    if query.mode == "lexical":
        return _ranked(query, served, [_unread(text, place) for place, text in enumerate(query.documents)], call)
    served.check_one(query.query, "query")
    check_readable(served.model, query.query, ("query",))
    served.check(query.documents, "texts")
    pending = served.submit(list(query.documents), call)
    queries = served.encode_queries([query.query], call)
    encoded = pending.result()
    documents = [
        Document(id=str(place), text=text, facet_embeddings=facets, facet_spans=spans)
        for place, text in enumerate(query.documents)
        for facets, spans in (encoded.document(place),)
    ]
    used = queries.weights[0] > 0
    asked = replace(query, facets=queries.facets[:1, used], weights=queries.weights[:1, used])
    if queries.are_questions[0]:
        asked = replace(asked, combine="any")
    return _ranked(asked, served, documents, call, num_tokens=sum(stats.num_tokens for stats in encoded.stats))


def _unread(text: str, place: int) -> Document:
    return Document(id=str(place), text=text, facet_embeddings=np.zeros((1, 1), np.float32))


def _ranked(
    query: RerankQuery, served: ServedTexts, documents: Sequence[Document], call: CallContext, *, num_tokens: int = 0
) -> Reranked:
    call.check()
    search = check_search(query, dim=documents[0].facet_embeddings.shape[1], curve=served.relevance)
    with call.stages.measured("search", num_items=len(documents)):
        results = rerank(documents, search, space=served.model.space)
    return Reranked(results=results, num_tokens=num_tokens, model=served.model)
