"""What is compared: systems that rank the documents of a folder for its queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.documents.types import SearchMode
from facets_lab.documents.evaluation.beir import RetrievalData
from facets_lab.documents.evaluation.collection import PassageSearchedModel, SearchedModel, indexed
from facets_lab.documents.evaluation.metrics import DEPTH, Ranking
from facets_lab.documents.evaluation.scorers import VectorScorer, best_rows

__all__ = ["METHODS", "CollectionSystem", "Ranked", "RetrievalSystem"]

METHODS = ("vector", "facets", "lexical", "hybrid")
"""The passage's own vector; its facets; BM25; facets (or the vector) with BM25."""

_MODES: tuple[SearchMode, ...] = ("facets", "lexical", "hybrid")
_QUERY_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Ranked:
    """What a system found.

    Attributes:
        rankings: By method, a ranking for each query: at least ``DEPTH`` + 1 documents where there are so many.
        num_vectors: By method, vectors a document that the system keeps for it, on average; 0 without any.
    """

    rankings: Mapping[str, Sequence[Ranking]]
    num_vectors: Mapping[str, float]


class RetrievalSystem(Protocol):
    """Ranks documents by one or more methods."""

    @property
    def name(self) -> str:
        """Its key in the report."""
        ...

    @property
    def version(self) -> str:
        """Its name, and what else tells it from others of that name."""
        ...

    def rank(self, data: RetrievalData) -> Ranked:
        """By methods of ``METHODS``, or variants that are reported apart from them."""
        ...


class CollectionSystem:
    """A collection of a model, searched in every mode through the engine that serves, with its defaults.

    A model of passages is measured by its one vector besides, every document compared.
    """

    def __init__(self, model: SearchedModel) -> None:
        self.name = model.name
        self.version = f"{model.name} {model.revision}"
        self._model = model

    def rank(self, data: RetrievalData) -> Ranked:
        """See ``RetrievalSystem``; the collection lies in a temporary folder meanwhile."""
        with indexed(self._model, data) as collection:
            found = collection.search(data.queries, _MODES, top_k=DEPTH + 1)
        rankings = self._by_vector(data, collection.vectors)
        for mode, hits in found.items():
            rankings[mode] = [[hit.id for hit in of_query] for of_query in hits]
        kept = {"vector": 1.0, "facets": collection.num_facets, "lexical": 0.0, "hybrid": collection.num_facets}
        return Ranked(rankings, {method: kept[method] for method in rankings})

    def _by_vector(self, data: RetrievalData, vectors_ND: NDArray[np.float32]) -> dict[str, list[Ranking]]:
        if not isinstance(self._model, PassageSearchedModel):
            return {}
        scorer = VectorScorer(vectors_ND, self._model.embed(data.queries))
        blocks = (slice(start, start + _QUERY_BLOCK) for start in range(0, len(data.queries), _QUERY_BLOCK))
        scored = (scores_N for block in blocks for scores_N in scorer.scores(block))
        return {"vector": [[data.document_ids[row] for row in best_rows(scores_N, DEPTH + 1)] for scores_N in scored]}
