"""A collection of a folder's documents for as long as it is measured, searched through the engine that serves.

Shape letters: N documents, Q queries, J facets of a query, K facets, D dimensions.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from facets.documents.engine import CollectionEngine
from facets.documents.types import Document, Hit, SearchMode
from facets.index.config import EngineConfig
from facets.model.checkpoint import read_settings
from facets.model.facet_model import FacetModel
from facets.model.loading import TASKS, load
from facets.model.passage_checkpoint import TASK
from facets.model.passage_model import PassageFacets, PassageModel, QueryFacets
from facets.model.shipped import find_model
from facets_lab.documents.evaluation.beir import RetrievalData

__all__ = ["IndexedCollection", "PassageSearchedModel", "SearchedModel", "indexed", "load_searched"]

_COLLECTION = "evaluation"
_DOCUMENT_BATCH = 1_000
_QUERY_BATCH = 64


class SearchedModel(Protocol):
    """What a collection needs of a model."""

    @property
    def space(self) -> str:
        """The space of its facets."""
        ...

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


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexedCollection:
    """A collection and what was encoded for it.

    Attributes:
        engine: Holds it.
        model: Of its facets.
        num_facets: Facets a document, zeros left out, on average.
        vectors: One of each document, ``[N, D]``; zeros where there is none.
    """

    engine: CollectionEngine
    model: SearchedModel
    num_facets: float
    vectors: NDArray[np.float32]

    def search(
        self, texts: Sequence[str], modes: Sequence[SearchMode], *, top_k: int
    ) -> dict[SearchMode, list[tuple[Hit, ...]]]:
        """Hits of every query by mode; queries are encoded once."""
        found: dict[SearchMode, list[tuple[Hit, ...]]] = {mode: [] for mode in modes}
        for start in range(0, len(texts), _QUERY_BATCH):
            batch = texts[start : start + _QUERY_BATCH]
            query_QJD, weights_QJ = _encode_queries(self.model, batch)
            for mode in modes:
                result = self.engine.search(
                    _COLLECTION, query_QJD, texts=batch, mode=mode, weights=weights_QJ, top_k=top_k
                )
                found[mode] += result.hits
        return found


def load_searched(name_or_path: str | None) -> SearchedModel:
    """A model whose facets a collection may hold; the default of collections where none is named.

    Raises:
        NotFoundError: It does not exist.
        CheckpointError: It is damaged.
        InvalidInputError: It is for another task.
    """
    folder = find_model(TASKS[TASK].default if name_or_path is None else name_or_path)
    is_of_passages = read_settings(folder).get("task") == TASK
    return load(folder, PassageModel) if is_of_passages else load(folder, FacetModel)


@contextmanager
def indexed(model: SearchedModel, data: RetrievalData) -> Iterator[IndexedCollection]:
    """The documents in a temporary folder, indexed as a server would have them."""
    config = EngineConfig(background=False, snapshot_on_close=False)
    with TemporaryDirectory(prefix="facets-eval-") as folder, CollectionEngine.open(Path(folder), config) as engine:
        engine.create_collection(
            _COLLECTION,
            model=model.name,
            model_revision=model.revision,
            num_facets=model.num_facets,
            dim=model.dim,
            space=model.space,
        )
        num_facets = 0
        vectors_ND = np.zeros((len(data.documents), model.dim), dtype=np.float32)
        for start in range(0, len(data.documents), _DOCUMENT_BATCH):
            batch = slice(start, start + _DOCUMENT_BATCH)
            texts = data.documents[batch]
            encoded, vectors_ND[batch] = _encode(model, texts)
            num_facets += sum(int(facets.any(axis=1).sum()) for facets, _ in encoded)
            documents = [
                Document(id=key, text=text, facet_embeddings=facets, spans=spans)
                for key, text, (facets, spans) in zip(data.document_ids[batch], texts, encoded, strict=True)
            ]
            engine.upsert(_COLLECTION, documents)
        engine.maintain()  # what a server does in the background: fold a large collection into its index
        yield IndexedCollection(
            engine=engine, model=model, num_facets=num_facets / len(data.documents), vectors=vectors_ND
        )


def _encode(
    model: SearchedModel, texts: Sequence[str]
) -> tuple[list[tuple[NDArray[np.float32], NDArray[np.int32] | None]], NDArray[np.float32]]:
    """Facets and their spans, and vectors; a blank text has nothing to meet and keeps zeros."""
    nothing_KD = np.zeros((model.num_facets, model.dim), dtype=np.float32)
    documents: list[tuple[NDArray[np.float32], NDArray[np.int32] | None]] = [(nothing_KD, None)] * len(texts)
    vectors_ND = np.zeros((len(texts), model.dim), dtype=np.float32)
    rows = [row for row, text in enumerate(texts) if text.strip()]
    known = [texts[row] for row in rows]
    if known and isinstance(model, PassageSearchedModel):
        encoded = model.encode_passages(known)
        vectors_ND[rows] = encoded.vectors
        for place, row in enumerate(rows):
            documents[row] = encoded.document(place)
    elif known:
        for row, facets_KD in zip(rows, model.encode(known), strict=True):
            documents[row] = (facets_KD, None)
    return documents, vectors_ND


def _encode_queries(
    model: SearchedModel, texts: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    if isinstance(model, PassageSearchedModel):
        queries = model.encode_queries(texts)
        return queries.facets, queries.weights
    return model.encode(texts), None
