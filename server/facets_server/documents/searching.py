"""A search from texts or facets to hits with their evidence, and texts in the order in which they answer a query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from facets.documents import (
    CollectionEngine,
    CollectionRecord,
    Combination,
    Document,
    FilterWarning,
    RankedText,
    RelevanceCurve,
    SearchHit,
    SearchResult,
    check_search,
    rerank,
)
from facets.errors import InvalidInputError
from facets.model.contract import FOREIGN, ModelInfo, TextModel, check_readable, is_foreign
from facets_server.documents.recall import RecallSampler
from facets_server.documents.requests import DocumentQuery, RerankQuery
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import ModelMismatchError
from facets_server.texts.served import ServedTexts, TextModels

_MAX_MATCHES = 3  # of the facets of a query, those that contribute most are explained


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What was found.

    Attributes:
        hits: Those of each query, best first, with evidence in words where it is asked for, the largest contribution
            first.
        index_revision: Every write up to this revision was seen.
        exhaustive: Every allowed document was compared.
        index_kind: How it was searched.
        model: The model of the queries.
        warnings: What is odd about the filter.
        recall: Share of the exact hits that searches of the collection found of late; None: not known, or all.
        left_out: What could not be asked; empty: nothing.
    """

    hits: tuple[tuple[SearchHit, ...], ...]
    index_revision: int
    exhaustive: bool
    index_kind: str
    model: TextModel
    warnings: tuple[FilterWarning, ...] = ()
    recall: float | None = None
    left_out: str = ""


def search(
    query: DocumentQuery, engine: CollectionEngine, models: TextModels, call: CallContext, *, recall: RecallSampler
) -> Found:
    """Searches a collection.

    Args:
        query: What to search.
        engine: Where the documents are.
        models: One of them encodes the texts.
        call: On whose behalf.
        recall: Takes a share of the searches to check them exactly.

    Raises:
        NotFoundError: No such collection, or the model is not served.
        ModelMismatchError: The model is of another space than the collection.
        InvalidInputError: Facets of the wrong dimension, a text without a word, or without one that the model knows in
            mode facets.
        NotReadyError: ``min_revision`` lies in the future.
        DeadlineExceededError: The deadline passed before the texts were encoded.
    """
    record = engine.record(query.collection)
    served = reader_of(record, models, query.model)
    _check_arrays(query, record)
    encoded = _encoded(query, served, record, call)
    facets = [entry.facets for entry in encoded]
    call.check()
    find = partial(_search_group, encoded=encoded, query=query, engine=engine, record=record, curve=served.relevance)
    with call.stages.measured("search", num_items=len(facets)):
        groups = [(places, find(places)) for places in _alike(query, encoded)]
    hits: list[tuple[SearchHit, ...]] = [()] * len(facets)
    for places, result in groups:
        recall.offer(result.found, result.again_exactly, of=record.number)
        for place, found in zip(places, result.found.hits, strict=True):
            hits[place] = found
    results = [result.found for _, result in groups]
    exhaustive = all(result.exhaustive for result in results)
    return Found(
        hits=_explained(hits, facets, served.model, query.num_words if query.evidence else 0),
        index_revision=min(result.index_revision for result in results),
        exhaustive=exhaustive,
        recall=None if exhaustive else recall.of(record.number),
        left_out=next((result.left_out for result in results if result.left_out), _left_out(query, encoded)),
        index_kind=results[0].index_kind,
        warnings=results[0].warnings,
        model=served.model,
    )


def reader_of(record: CollectionRecord, models: TextModels, name: str) -> ServedTexts:
    """The model that encodes the queries to a collection: its own, or another one of its space.

    Raises:
        NotFoundError: It is not served.
        ModelMismatchError: It is of another space.
    """
    served = models.get(name or record.model)
    if served.model.space != record.space:
        raise ModelMismatchError(
            f"collection {record.name!r} was made by model {record.model} in space {record.space}, expected a model of "
            f"that space, got {served.model.name} of space {served.model.space}: name another model, or move the "
            "collection with ReindexCollection (facets collections reindex)"
        )
    return served


@dataclass(frozen=True, slots=True)
class _EncodedQuery:
    """Facets ``[J, D]`` of one query, their weights ``[J]``, and how they make one score."""

    facets: NDArray[np.float32]
    weights: NDArray[np.float32]
    combine: Combination = "sum"


def _encoded(
    query: DocumentQuery, served: ServedTexts, record: CollectionRecord, call: CallContext
) -> list[_EncodedQuery]:
    """Every query with its facets, those of weight 0 left out; without any by words alone."""
    texts = [text for text in query.queries if isinstance(text, str)]
    none = _EncodedQuery(np.empty((0, record.dim), np.float32), np.empty(0, np.float32))
    if query.mode == "lexical":
        return [none] * len(texts)
    for place, entry in enumerate(query.queries):
        if isinstance(entry, str):
            served.check_one(entry, "queries", place, "text")
            if query.mode == "facets":
                check_readable(served.model, entry, ("queries", place, "text"))
    texts = [text for text in texts if not is_foreign(served.model, text)]
    of_texts = dict(zip(texts, _of_texts(texts, served, call) if texts else (), strict=True))
    return [
        of_texts.get(entry, none) if isinstance(entry, str) else _EncodedQuery(entry, _weights_of(entry))
        for entry in query.queries
    ]


def _left_out(query: DocumentQuery, encoded: Sequence[_EncodedQuery]) -> str:
    """Which query was asked by its words alone because the model cannot read it; empty: none."""
    places = [place for place, one in enumerate(encoded) if query.mode != "lexical" and not len(one.facets)]
    return f"queries[{places[0]}].text {FOREIGN}: its words alone were looked for" if places else ""


def _weights_of(facets: NDArray[np.float32]) -> NDArray[np.float32]:
    """All facets count alike but those of zeros, which a text with fewer facets has."""
    used: NDArray[np.bool_] = np.any(facets != 0, axis=1)
    return used.astype(np.float32) if used.any() else np.ones(len(facets), np.float32)


def _of_texts(texts: Sequence[str], served: ServedTexts, call: CallContext) -> list[_EncodedQuery]:
    encoded = served.encode_queries(texts, call)
    return [
        _EncodedQuery(facets[weights > 0], weights[weights > 0], "any" if several else "sum")
        for facets, weights, several in zip(encoded.facets, encoded.weights, encoded.are_questions, strict=True)
    ]


def _check_arrays(query: DocumentQuery, record: CollectionRecord) -> None:
    for i, array in enumerate(query.queries):
        path = ("queries", i, "facet_embeddings")
        if not isinstance(array, str) and query.mode == "lexical":
            raise InvalidInputError("has no words to look for: must be a text in mode lexical", path=path)
        if not isinstance(array, str) and array.shape[1] != record.dim:
            raise InvalidInputError(f"must have dimension {record.dim}, got {array.shape[1]}", path=path)


def _alike(query: DocumentQuery, encoded: Sequence[_EncodedQuery]) -> list[list[int]]:
    """Places of the queries of one kind with as many facets that are combined alike: the engine wants one array."""
    groups: dict[tuple[int, bool, Combination], list[int]] = {}
    for place, (entry, one) in enumerate(zip(query.queries, encoded, strict=True)):
        groups.setdefault((len(one.facets), isinstance(entry, str), query.combine or one.combine), []).append(place)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class _GroupFound:
    """What was found for queries that are alike, and the same search as an exhaustive one."""

    found: SearchResult
    again_exactly: Callable[[], SearchResult]


def _search_group(
    places: Sequence[int],
    *,
    encoded: Sequence[_EncodedQuery],
    query: DocumentQuery,
    engine: CollectionEngine,
    record: CollectionRecord,
    curve: RelevanceCurve | None,
) -> _GroupFound:
    texts = [entry for entry in (query.queries[place] for place in places) if isinstance(entry, str)]
    mode = query.mode if texts else "facets"
    if texts and not len(encoded[places[0]].facets):
        mode = "lexical"
    request = replace(
        query,
        facets=np.stack([encoded[place].facets for place in places]),
        weights=np.stack([encoded[place].weights for place in places]),
        texts=texts or None,
        mode=mode,
        combine=query.combine or encoded[places[0]].combine,
    )
    find = partial(engine.search, query.collection, curve=curve, seen=record)
    return _GroupFound(find(request), partial(find, replace(request, exact=True)))


def _explained(
    hits: Sequence[Sequence[SearchHit]], facets: Sequence[NDArray[np.float32]], model: TextModel, num_words: int
) -> tuple[tuple[SearchHit, ...], ...]:
    """Hits with the matches that contribute most, in words; without evidence when no words are asked for."""
    if not num_words:
        return tuple(tuple(replace(hit, evidence=()) for hit in found) for found in hits)
    shown = [[hit.evidence[:_MAX_MATCHES] for hit in found] for found in hits]
    matches = [match for found in shown for of in found for match in of]
    met = sorted({(place, match.first_facet) for place, found in enumerate(shown) for of in found for match in of})
    if not met:
        return tuple(map(tuple, hits))
    of_queries = map(tuple, model.words.nearest(np.stack([facets[place][facet] for place, facet in met]), num_words))
    of_query = dict(zip(met, of_queries, strict=True))
    of_documents = map(tuple, model.words.nearest(np.stack([match.facet for match in matches]), num_words))
    return tuple(
        tuple(
            replace(
                hit,
                evidence=tuple(
                    replace(match, first_words=of_query[place, match.first_facet], second_words=next(of_documents))
                    for match in of
                ),
            )
            for hit, of in zip(found, shown[place], strict=True)
        )
        for place, found in enumerate(hits)
    )


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
