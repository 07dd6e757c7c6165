"""Diagnosis and map of a collection, computed for a call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facets.documents import MAX_DIAGNOSE_QUERIES, CollectionDiagnosis, CollectionEngine, CollectionMap
from facets.model.contract import TextModel
from facets_server.documents.searching import reader_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.requests import check_count
from facets_server.texts.served import TextModels

_MAX_KEPT_MAPS = 4
_WORDS_PER_THEME = 3
_NUM_CANDIDATE_WORDS = 12  # of a theme, before those of larger themes are dropped


def diagnose(
    name: str, queries: Sequence[str], engine: CollectionEngine, *, models: TextModels, call: CallContext
) -> tuple[CollectionDiagnosis, TextModel]:
    """Diagnosis of a collection, and the model that encoded the queries.

    Raises:
        NotFoundError: The collection does not exist, or its model is not served.
        InvalidInputError: The collection is empty, there are too many queries, or one has no word.
    """
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


@dataclass(frozen=True, slots=True)
class Theme:
    """A group of documents: its nearest words with cosines, and its size."""

    words: tuple[tuple[str, float], ...]
    num_documents: int


class Maps:
    """Maps of collections with their themes, the largest first; the last few are kept until the next write."""

    def __init__(self, models: TextModels, engine: CollectionEngine) -> None:
        self._models = models
        self._engine = engine
        self._kept: dict[tuple[str, int, int], tuple[CollectionMap, tuple[Theme, ...]]] = {}

    def of(self, name: str, max_documents: int) -> tuple[CollectionMap, tuple[Theme, ...]]:
        """The map of a collection and its themes; raises as ``CollectionEngine.map``."""
        key = (name, max_documents, self._engine.revision)
        kept = self._kept.get(key)
        if kept is None:
            record = self._engine.record(name)
            model = reader_of(record, self._models, "").model
            collection_map = self._engine.map(name, max_documents=max_documents, seen=record)
            kept = collection_map, _themes(collection_map, model)
            self._kept = dict([*self._kept.items(), (key, kept)][-_MAX_KEPT_MAPS:])
        return kept


def _themes(collection_map: CollectionMap, model: TextModel) -> tuple[Theme, ...]:
    centers = collection_map.centers
    counts = np.bincount(collection_map.document_themes, minlength=len(centers)).tolist()
    nearest = model.words.nearest(centers, _NUM_CANDIDATE_WORDS, exclude_stop_words=True)
    used: set[str] = set()
    themes = []
    for candidates, num_documents in zip(nearest, counts, strict=True):
        words = tuple((word, cosine) for word, cosine in candidates if word not in used)[:_WORDS_PER_THEME]
        used.update(word for word, _ in words)
        themes.append(Theme(words, num_documents))
    return tuple(themes)
