"""Diagnosis and map of a collection, computed for a call."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from facets.documents import (
    MAX_DIAGNOSE_QUERIES,
    CollectionDiagnosis,
    CollectionEngine,
    CollectionMap,
    CollectionRecord,
)
from facets.language.vectors import WordVectors
from facets.model.contract import TextModel
from facets_server.documents.searching import reader_of
from facets_server.documents.words import CollectionWords
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.requests import check_count
from facets_server.texts.served import TextModels

_MAX_KEPT_MAPS = 4
_WAIT_S = 600.0  # for the words of themes: the map itself may take as long
_WORDS_PER_THEME = 3
_NUM_CANDIDATE_WORDS = 12  # of a theme, before those of larger themes are dropped


def diagnose(
    name: str, queries: Sequence[str], engine: CollectionEngine, *, models: TextModels, call: CallContext
) -> tuple[CollectionDiagnosis, TextModel]:
    """Diagnosis of a collection, and the model that encoded the queries; raises as ``reader_of`` and the engine."""
    record = engine.record(name)
    served = reader_of(record, models, "")
    queries_QD = np.empty((0, record.dim), dtype=np.float32)
    if queries:
        check_count(queries, ("queries",), MAX_DIAGNOSE_QUERIES)
        served.check(queries, "queries")
        queries_QD = served.embed(queries, call)
    call.num_items = len(queries)
    with call.stages.measured("search", num_items=len(queries)):
        return engine.diagnose(record.name, queries_QD, seen=record), served.model


Theme = tuple[tuple[tuple[str, float], ...], int]  # its nearest words with cosines, and its number of documents
Maps = Callable[[str, int, CallContext], tuple[CollectionMap, tuple[Theme, ...]]]


def maps_of(models: TextModels, engine: CollectionEngine, words: CollectionWords) -> Maps:
    """A function from name, most documents and call to the map of a collection and its themes, largest first."""

    @lru_cache(maxsize=_MAX_KEPT_MAPS)
    def kept_map(name: str, max_documents: int, revision: int) -> tuple[CollectionRecord, CollectionMap]:
        record = engine.record(name)
        return record, engine.map(name, max_documents=max_documents, seen=record)

    def map_of(name: str, max_documents: int, call: CallContext) -> tuple[CollectionMap, tuple[Theme, ...]]:
        record, collection_map = kept_map(name, max_documents, engine.revision)
        nearest = words.of(record, reader_of(record, models, ""), call, wait_s=_WAIT_S)
        return collection_map, _themes(collection_map, nearest)

    return map_of


def _themes(collection_map: CollectionMap, words: WordVectors | None) -> tuple[Theme, ...]:
    centers = collection_map.centers
    counts = np.bincount(collection_map.document_themes, minlength=len(centers)).tolist()
    nearest = (
        words.nearest(centers, _NUM_CANDIDATE_WORDS, excluded=words.vocabulary.is_stop)
        if words
        else [[]] * len(centers)
    )
    used: set[str] = set()
    themes = []
    for candidates, num_documents in zip(nearest, counts, strict=True):
        own = tuple((word, cosine) for word, cosine in candidates if word not in used)[:_WORDS_PER_THEME]
        used.update(word for word, _ in own)
        themes.append((own, num_documents))
    return tuple(themes)
