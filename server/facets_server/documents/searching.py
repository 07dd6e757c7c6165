"""Searches a collection by texts or facets, explains the hits, and reranks texts for a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from facets_proto.codec import message_of
from facets_proto.v1 import documents_pb2 as pb
from numpy.typing import NDArray

from facets.documents import CollectionEngine, CollectionRecord, Combination, Document, SearchHit, SearchResult, rerank
from facets.errors import InvalidInputError
from facets.language.vectors import WordVectors
from facets.model.contract import FOREIGN, check_readable, is_foreign
from facets_server.documents.recall import RecallSampler
from facets_server.documents.requests import DocumentQuery, RerankQuery
from facets_server.documents.words import CollectionWords
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.errors import ModelMismatchError
from facets_server.texts.served import ServedTexts, TextModels

_MAX_MATCHES = 3  # explained facets of a query: those that contribute most
_WAIT_S = 2.0  # for the words that name facets, from when their encoding began; later searches have them


@dataclass(frozen=True, slots=True)
class _EncodedQuery:
    """Facets ``[J, D]`` of one query, their weights ``[J]``, and how their scores are combined."""

    facets: NDArray[np.float32]
    weights: NDArray[np.float32]
    combine: Combination = "sum"


def search(
    query: DocumentQuery,
    engine: CollectionEngine,
    models: TextModels,
    call: CallContext,
    *,
    recall: RecallSampler,
    words: CollectionWords,
) -> pb.SearchResponse:
    """Searches a collection on behalf of a call; ``recall`` checks a share of the searches, ``words`` name facets."""
    record = engine.record(query.collection)
    served = reader_of(record, models, query.model)
    encoded = _encoded(query, served, record, call)
    call.check()
    hits: list[tuple[SearchHit, ...]] = [()] * len(encoded)
    results: list[SearchResult] = []
    find = partial(engine.search, query.collection, curve=served.relevance, reader=served.reader, seen=record)
    with call.stages.measured("search", num_items=len(encoded)):
        for indices in _groups(query, encoded):
            request = _group_request(query, encoded, indices)
            result = find(request)
            recall.offer(result, partial(find, replace(request, exact=True)), of=record.number)
            results.append(result)
            for index, query_hits in zip(indices, result.hits, strict=True):
                hits[index] = query_hits
    exhaustive = all(result.exhaustive for result in results)
    num_words = query.num_words if query.evidence else 0
    nearest = words.of(record, served, call, wait_s=_WAIT_S) if num_words else None
    found = _explained(hits, encoded, nearest, num_words)
    if not query.include_document:
        found = [[replace(hit, text="", payload=None) for hit in query_hits] for query_hits in found]
    call.num_items = len(found)
    return message_of(
        pb.SearchResponse,
        results=found,
        index_revision=min(result.index_revision for result in results),
        exhaustive=exhaustive,
        index_kind=results[0].index_kind,
        model=served.model,
        warnings=results[0].warnings,
        recall=None if exhaustive else recall.recall.get(record.number),
        left_out=next((result.left_out for result in results if result.left_out), _left_out(query, encoded)),
        timings=call,
    )


def reader_of(record: CollectionRecord, models: TextModels, name: str) -> ServedTexts:
    """The model that encodes the queries to a collection: its own, or the named one if it has the same space."""
    served = models.get(name or record.model)
    if served.model.space != record.space and served.model.name == record.model:
        raise ModelMismatchError(
            f"the files of {record.model} have changed since the documents of {record.name!r} were encoded: encode "
            f"them again with facets collections reindex {record.name} --model {record.model}"
        )
    if served.model.space != record.space:
        raise ModelMismatchError(
            f"collection {record.name!r} was made by model {record.model} in space {record.space}, expected a model of "
            f"that space, got {served.model.name} of space {served.model.space}: name another model, or move the "
            "collection with ReindexCollection (facets collections reindex)"
        )
    return served


def _encoded(
    query: DocumentQuery, served: ServedTexts, record: CollectionRecord, call: CallContext
) -> list[_EncodedQuery]:
    """The queries with their facets of positive weight; none in mode lexical and for texts in a foreign script."""
    for i, entry in enumerate(query.queries):
        path = ("queries", i, "text" if isinstance(entry, str) else "facet_embeddings")
        if isinstance(entry, str):
            if query.mode != "lexical":
                served.check_one(entry, *path)
            if query.mode == "facets":
                check_readable(served.model, entry, path)
        elif query.mode == "lexical":
            raise InvalidInputError("must be a text in mode lexical, got facet_embeddings", path=path)
        elif entry.shape[1] != record.dim:
            raise InvalidInputError(f"must have dimension {record.dim}, got {entry.shape[1]}", path=path)
    nothing = _EncodedQuery(np.empty((0, record.dim), np.float32), np.empty(0, np.float32))
    if query.mode == "lexical":
        return [nothing] * len(query.queries)
    texts = [entry for entry in query.queries if isinstance(entry, str) and not is_foreign(served.model, entry)]
    encoded_texts: dict[str, _EncodedQuery] = {}
    if texts:
        encoded = served.encode_queries(texts, call)
        columns = zip(texts, encoded.facets, encoded.weights, encoded.are_questions, strict=True)
        for text, facets, weights, several in columns:
            used = weights > 0
            encoded_texts[text] = _EncodedQuery(facets[used], weights[used], "any" if several else "sum")
    return [
        encoded_texts.get(entry, nothing) if isinstance(entry, str) else _EncodedQuery(entry, _weights_of(entry))
        for entry in query.queries
    ]


def _weights_of(facets: NDArray[np.float32]) -> NDArray[np.float32]:
    """Equal weights for all facets; 0 for the zero rows that pad a text with fewer facets."""
    used: NDArray[np.bool_] = np.any(facets != 0, axis=1)
    return used.astype(np.float32) if used.any() else np.ones(len(facets), np.float32)


def _left_out(query: DocumentQuery, encoded: Sequence[_EncodedQuery]) -> str:
    """Warns of the first query that was searched by words only, because the model cannot read it; empty: none."""
    indices = [i for i, one in enumerate(encoded) if query.mode != "lexical" and not len(one.facets)]
    return f"queries[{indices[0]}].text {FOREIGN}: only its words were searched" if indices else ""


def _groups(query: DocumentQuery, encoded: Sequence[_EncodedQuery]) -> list[list[int]]:
    """Groups query indices by kind, number of facets and combination: the engine searches one array at a time."""
    groups: dict[tuple[int, bool, Combination], list[int]] = {}
    for index, (entry, one) in enumerate(zip(query.queries, encoded, strict=True)):
        key = (len(one.facets), isinstance(entry, str), query.combine or one.combine)
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _group_request(query: DocumentQuery, encoded: Sequence[_EncodedQuery], indices: Sequence[int]) -> DocumentQuery:
    first = encoded[indices[0]]
    texts = [entry for entry in (query.queries[index] for index in indices) if isinstance(entry, str)]
    mode = query.mode if texts else "facets"
    if texts and not len(first.facets):
        mode = "lexical"
    return replace(
        query,
        facets=np.stack([encoded[index].facets for index in indices]),
        weights=np.stack([encoded[index].weights for index in indices]),
        texts=texts or None,
        mode=mode,
        combine=query.combine or first.combine,
    )


def _explained(
    hits: Sequence[Sequence[SearchHit]], encoded: Sequence[_EncodedQuery], words: WordVectors | None, num_words: int
) -> list[list[SearchHit]]:
    """Adds to each hit the matches that contribute most, with their nearest ``words``; 0 words: no evidence."""
    if not num_words:
        return [[replace(hit, evidence=()) for hit in query_hits] for query_hits in hits]
    matches = [
        (query, match)
        for query, query_hits in enumerate(hits)
        for hit in query_hits
        for match in hit.evidence[:_MAX_MATCHES]
    ]
    if not matches:
        return [list(query_hits) for query_hits in hits]
    query_facets = sorted({(query, match.first_facet) for query, match in matches})

    def nearest(facets: NDArray[np.float32], top_k: int) -> list[list[tuple[str, float]]]:
        return [[] for _ in facets] if words is None else words.nearest(facets, top_k)

    first = nearest(np.stack([encoded[query].facets[facet] for query, facet in query_facets]), num_words)
    first_words = dict(zip(query_facets, map(tuple, first), strict=True))
    second_words = map(tuple, nearest(np.stack([match.facet for _, match in matches]), num_words))
    explained = (
        replace(match, first_words=first_words[query, match.first_facet], second_words=words)
        for (query, match), words in zip(matches, second_words, strict=True)
    )
    return [
        [replace(hit, evidence=tuple(next(explained) for _ in hit.evidence[:_MAX_MATCHES])) for hit in query_hits]
        for query_hits in hits
    ]


def rerank_texts(query: RerankQuery, models: TextModels, call: CallContext) -> pb.RerankResponse:
    """Encodes the query and the texts, and ranks the texts."""
    served, num_tokens = models.get(query.model), 0
    if query.mode == "lexical":
        nothing = np.zeros((1, 1), np.float32)
        documents = [Document(id=str(i), text=text, facet_embeddings=nothing) for i, text in enumerate(query.documents)]
    else:
        served.check_one(query.query, "query")
        check_readable(served.model, query.query, ("query",))
        served.check(query.documents, "texts")
        pending = served.submit(list(query.documents), call)
        queries = served.encode_queries([query.query], call)
        encoded = pending.result()
        documents = [
            Document(id=str(i), text=text, facet_embeddings=facets, facet_spans=spans)
            for i, text in enumerate(query.documents)
            for facets, spans in (encoded.document(i),)
        ]
        used = queries.weights[0] > 0
        query = replace(
            query,
            facets=queries.facets[:1, used],
            weights=queries.weights[:1, used],
            combine="any" if queries.are_questions[0] else query.combine,
        )
        num_tokens = sum(stats.num_tokens for stats in encoded.stats)
    call.check()
    with call.stages.measured("search", num_items=len(documents)):
        results = rerank(documents, query, space=served.model.space, curve=served.relevance, reader=served.reader)
    return message_of(pb.RerankResponse, results=results, num_tokens=num_tokens, model=served.model, timings=call)
