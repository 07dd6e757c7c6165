"""What is compared: systems that rank the documents of a folder for its queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from facets.documents.engine import CollectionEngine
from facets.documents.evaluation.beir import RetrievalData
from facets.documents.evaluation.metrics import DEPTH, Ranking
from facets.documents.evaluation.scorers import VectorScorer, best_rows
from facets.documents.types import Document, SearchMode
from facets.index.config import EngineConfig
from facets.model.passage_model import PassageFacets
from facets.model.query_facets import QueryFacets

__all__ = [
    "METHODS",
    "CollectionSystem",
    "PassageSearchedModel",
    "Ranked",
    "RetrievalSystem",
    "SearchedModel",
]

METHODS = ("vector", "facets", "lexical", "hybrid")
"""The passage's own vector; its facets; BM25; facets (or the vector) with BM25."""

_MODES: tuple[SearchMode, ...] = ("facets", "lexical", "hybrid")
_COLLECTION = "evaluation"
_DOCUMENT_BATCH = 1_000
_QUERY_BATCH = 64


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

    def rank(self, data: RetrievalData) -> Ranked:
        """By methods of ``METHODS``, or variants that are reported apart from them."""
        ...


class SearchedModel(Protocol):
    """What a collection needs of a model."""

    @property
    def name(self) -> str:
        """Name of the checkpoint."""
        ...

    @property
    def revision(self) -> str:
        """Content hash."""
        ...

    @property
    def num_facets(self) -> int:
        """K."""
        ...

    @property
    def dim(self) -> int:
        """D."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facet embeddings ``[len(texts), K, D]`` of texts that are not blank; zeros where a text has fewer."""
        ...


@runtime_checkable
class PassageSearchedModel(SearchedModel, Protocol):
    """What it uses where a model has more: one vector a text, queries of their own."""

    def encode_passages(self, texts: Sequence[str]) -> PassageFacets:
        """Facets and vectors of texts that are not blank."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> QueryFacets:
        """Facets of queries that are not blank, and their weights."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector a text, ``[len(texts), D]``."""
        ...


class CollectionSystem:
    """A collection of a model, searched in every mode through the engine that serves, with its defaults.

    A model of passages is measured by its one vector besides, every document compared.
    """

    def __init__(self, model: SearchedModel) -> None:
        self.name = model.name
        self._model = model

    def rank(self, data: RetrievalData) -> Ranked:
        """See ``RetrievalSystem``; the collection lies in a temporary folder meanwhile."""
        config = EngineConfig(background=False, snapshot_on_close=False)
        with TemporaryDirectory(prefix="facets-eval-") as folder, CollectionEngine.open(Path(folder), config) as engine:
            num_facets, vectors_ND = self._index(engine, data)
            found = {**self._by_vector(data, vectors_ND), **self._search(engine, data)}
        num_vectors = {"vector": 1.0, "facets": num_facets, "lexical": 0.0, "hybrid": num_facets}
        return Ranked(found, {method: num_vectors[method] for method in found})

    def _index(self, engine: CollectionEngine, data: RetrievalData) -> tuple[float, NDArray[np.float32]]:
        """Facets a document, zeros left out, and vectors of documents ``[N, D]``, zeros where there are none."""
        model = self._model
        engine.create_collection(
            _COLLECTION,
            model=model.name,
            model_revision=model.revision,
            num_facets=model.num_facets,
            dim=model.dim,
        )
        num_facets = 0
        vectors_ND = np.zeros((len(data.documents), model.dim), dtype=np.float32)
        for start in range(0, len(data.documents), _DOCUMENT_BATCH):
            batch = slice(start, start + _DOCUMENT_BATCH)
            texts = data.documents[batch]
            facets_NKD, vectors_ND[batch] = self._encode(texts)
            num_facets += int(facets_NKD.any(axis=2).sum())
            documents = [
                Document(id=key, text=text, facet_embeddings=facets)
                for key, text, facets in zip(data.document_ids[batch], texts, facets_NKD, strict=True)
            ]
            engine.upsert(_COLLECTION, documents)
        engine.maintain()  # what a server does in the background: fold a large collection into its index
        return num_facets / len(data.documents), vectors_ND

    def _encode(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Facets and vectors; a blank text has nothing to meet and keeps zeros."""
        model = self._model
        facets_NKD = np.zeros((len(texts), model.num_facets, model.dim), dtype=np.float32)
        vectors_ND = np.zeros((len(texts), model.dim), dtype=np.float32)
        rows = [row for row, text in enumerate(texts) if text.strip()]
        known = [texts[row] for row in rows]
        if known and isinstance(model, PassageSearchedModel):
            encoded = model.encode_passages(known)
            facets_NKD[rows], vectors_ND[rows] = encoded.facets, encoded.vectors
        elif known:
            facets_NKD[rows] = model.encode(known)
        return facets_NKD, vectors_ND

    def _search(self, engine: CollectionEngine, data: RetrievalData) -> dict[str, list[Ranking]]:
        found: dict[str, list[Ranking]] = {mode: [] for mode in _MODES}
        for start in range(0, len(data.queries), _QUERY_BATCH):
            texts = data.queries[start : start + _QUERY_BATCH]
            query_QJD, weights_QJ = self._encode_queries(texts)
            for mode in _MODES:
                result = engine.search(
                    _COLLECTION, query_QJD, texts=texts, mode=mode, weights=weights_QJ, top_k=DEPTH + 1
                )
                found[mode] += [[hit.id for hit in hits] for hits in result.hits]
        return found

    def _encode_queries(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        if isinstance(self._model, PassageSearchedModel):
            queries = self._model.encode_queries(texts)
            return queries.facets, queries.weights
        return self._model.encode(texts), None

    def _by_vector(self, data: RetrievalData, vectors_ND: NDArray[np.float32]) -> dict[str, list[Ranking]]:
        if not isinstance(self._model, PassageSearchedModel):
            return {}
        scorer = VectorScorer(vectors_ND, self._model.embed(data.queries))
        blocks = (slice(start, start + _QUERY_BATCH) for start in range(0, len(data.queries), _QUERY_BATCH))
        scored = (scores_N for block in blocks for scores_N in scorer.scores(block))
        return {"vector": [[data.document_ids[row] for row in best_rows(scores_N, DEPTH + 1)] for scores_N in scored]}
