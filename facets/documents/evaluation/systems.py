"""What is compared: systems that rank the documents of a folder for its queries."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from facets.documents.engine import CollectionEngine
from facets.documents.evaluation.beir import RetrievalData
from facets.documents.evaluation.metrics import DEPTH, Ranking
from facets.documents.types import Document, SearchMode
from facets.index.config import EngineConfig

__all__ = ["METHODS", "CollectionSystem", "RetrievalSystem", "SearchedModel"]

METHODS = ("vector", "facets", "lexical", "hybrid")
"""The passage's own vector; its facets; BM25; facets (or the vector) with BM25."""

_MODES: tuple[SearchMode, ...] = ("facets", "lexical", "hybrid")
_COLLECTION = "evaluation"
_DOCUMENT_BATCH = 1_000
_QUERY_BATCH = 64


class RetrievalSystem(Protocol):
    """Ranks documents by one or more methods."""

    @property
    def name(self) -> str:
        """Its key in the report."""
        ...

    def rankings(self, data: RetrievalData) -> Mapping[str, Sequence[Ranking]]:
        """By method, a ranking for each query: at least ``DEPTH`` + 1 documents where there are so many.

        A method of ``METHODS``, or a variant that is reported apart from them.
        """
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
        """Facet embeddings ``[len(texts), K, D]`` of texts that are not blank."""
        ...


class CollectionSystem:
    """A collection of a model, searched in every mode through the engine that serves, with its defaults."""

    def __init__(self, model: SearchedModel) -> None:
        self.name = model.name
        self._model = model

    def rankings(self, data: RetrievalData) -> Mapping[str, Sequence[Ranking]]:
        """See ``RetrievalSystem``; the collection lies in a temporary folder meanwhile."""
        config = EngineConfig(background=False, snapshot_on_close=False)
        with TemporaryDirectory(prefix="facets-eval-") as folder, CollectionEngine.open(Path(folder), config) as engine:
            self._index(engine, data)
            return self._search(engine, data)

    def _index(self, engine: CollectionEngine, data: RetrievalData) -> None:
        model = self._model
        engine.create_collection(
            _COLLECTION,
            model=model.name,
            model_revision=model.revision,
            num_facets=model.num_facets,
            dim=model.dim,
        )
        for start in range(0, len(data.documents), _DOCUMENT_BATCH):
            ids, texts = (column[start : start + _DOCUMENT_BATCH] for column in (data.document_ids, data.documents))
            documents = [
                Document(id=key, text=text, facet_embeddings=facets)
                for key, text, facets in zip(ids, texts, self._encode(texts), strict=True)
            ]
            engine.upsert(_COLLECTION, documents)
        engine.maintain()  # what a server does in the background: fold a large collection into its index

    def _search(self, engine: CollectionEngine, data: RetrievalData) -> dict[str, list[Ranking]]:
        found: dict[str, list[Ranking]] = {mode: [] for mode in _MODES}
        for start in range(0, len(data.queries), _QUERY_BATCH):
            texts = data.queries[start : start + _QUERY_BATCH]
            query_QKD = self._model.encode(texts)
            for mode in _MODES:
                result = engine.search(_COLLECTION, query_QKD, texts=texts, mode=mode, top_k=DEPTH + 1)
                found[mode] += [[hit.id for hit in hits] for hits in result.hits]
        return found

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Facets of documents; a blank one has nothing to meet and keeps zeros."""
        model = self._model
        facets_NKD = np.zeros((len(texts), model.num_facets, model.dim), dtype=np.float32)
        rows = [row for row, text in enumerate(texts) if text.strip()]
        if rows:
            facets_NKD[rows] = model.encode([texts[row] for row in rows])
        return facets_NKD
