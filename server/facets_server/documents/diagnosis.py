"""A collection looked at as a whole: with questions that people ask, and as a map."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from facets.documents import MAX_DIAGNOSE_QUERIES, CollectionDiagnosis, CollectionEngine, CollectionMap
from facets.model.contract import TextModel
from facets_server.documents.searching import reader_of
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.limits import check_count
from facets_server.texts.served import TextModels


def diagnose(
    name: str, queries: Sequence[str], engine: CollectionEngine, *, models: TextModels, call: CallContext
) -> tuple[CollectionDiagnosis, TextModel]:
    """What is known of a collection, and the model that read the queries.

    Raises:
        NotFoundError: No such collection, or its model is not served.
        InvalidInputError: An empty collection, too many queries, one without a word.
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
        found = engine.diagnose(record.name, queries_QD, seen=record)
    return found, served.model


_MAPS_KEPT = 4
_THEME_WORDS = 3
_WORDS_ASKED = 12  # of which those of larger themes are left out


@dataclass(frozen=True, slots=True)
class Theme:
    """What a group of documents is about."""

    words: tuple[tuple[str, float], ...]
    num_documents: int


@dataclass(frozen=True, slots=True)
class NamedMap:
    """A map and its themes in words, the largest first."""

    map: CollectionMap
    themes: tuple[Theme, ...]


class Maps:
    """Maps of collections; the last few are kept until something is written."""

    def __init__(self, models: TextModels, engine: CollectionEngine) -> None:
        self._models = models
        self._engine = engine
        self._kept: dict[tuple[str, int, int], NamedMap] = {}

    def of(self, name: str, max_documents: int) -> NamedMap:
        """The map of a collection; see ``map_collection`` for what it raises."""
        key = (name, max_documents, self._engine.revision)
        found = self._kept.get(key)
        if found is None:
            record = self._engine.record(name)
            model = reader_of(record, self._models, "").model
            drawn = self._engine.map(name, max_documents=max_documents, seen=record)
            found = NamedMap(drawn, _themes(drawn, model))
            self._kept = dict([*self._kept.items(), (key, found)][-_MAPS_KEPT:])
        return found


def _themes(drawn: CollectionMap, model: TextModel) -> tuple[Theme, ...]:
    counts = np.bincount(drawn.document_themes, minlength=len(drawn.centers)).tolist()
    said: set[str] = set()
    themes = []
    for near, number in zip(
        model.words.nearest(drawn.centers, _WORDS_ASKED, exclude_stop_words=True), counts, strict=True
    ):
        own = tuple((word, cosine) for word, cosine in near if word not in said)[:_THEME_WORDS]
        said.update(word for word, _ in own)
        themes.append(Theme(own, number))
    return tuple(themes)
