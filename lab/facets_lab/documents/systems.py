"""What is compared: the engine that serves, on a collection of a folder's documents, and exact scores beside it.

Shape letters: N documents, Q queries, B queries of a block, J facets of a query, K facets of a document, F facets of
all documents, D dimensions.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from facets.documents.engine import CollectionEngine
from facets.documents.parts import EncodedText, from_encoded, split_text
from facets.documents.ranking import SearchRequest
from facets.documents.types import SearchHit, SearchMode
from facets.index.config import EngineConfig
from facets.model.checkpoint import read_settings
from facets.model.contract import Model
from facets.model.facet_model import FacetModel
from facets.model.loading import TASKS, load
from facets.model.passage_checkpoint import TASK
from facets.model.passage_model import PassageFacets, PassageModel, QueryFacets
from facets.model.shipped import find_model
from facets_lab.documents.beir import DEPTH, Ranking, RetrievalData

_K1, _B = 0.9, 0.4


class Scorer(Protocol):
    """Scores documents.

    Attributes:
        num_vectors: Vectors a document that it keeps, on average; 0 without any.
    """

    num_vectors: float

    def scores(self, block: slice) -> NDArray[np.float32]:
        """``[B, N]`` for these queries; higher is better."""
        ...


class Bm25Scorer:
    """BM25 with k1 0.9, b 0.4, English stemming and stop words (bm25s); 0 where no term is shared."""

    num_vectors = 0.0

    def __init__(self, documents: Sequence[str], queries: Sequence[str]) -> None:
        """Indexes the documents.

        Raises:
            ImportError: bm25s or PyStemmer is not installed.
        """
        import bm25s
        from Stemmer import Stemmer

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for everything when it is imported
        options: dict[str, Any] = {"stopwords": "en", "stemmer": Stemmer("english"), "show_progress": False}
        self._num_documents = len(documents)
        self._queries: list[list[str]] = bm25s.tokenize(list(queries), return_ids=False, **options)
        terms = bm25s.tokenize(list(documents), **options)
        self._index: Any = None
        if any(terms.ids):  # bm25s fails on documents without a single term
            self._index = bm25s.BM25(k1=_K1, b=_B)
            self._index.index(terms, show_progress=False)

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        scores_BN = np.zeros((len(self._queries[block]), self._num_documents), dtype=np.float32)
        for row, terms in enumerate(self._queries[block]):
            if terms and self._index is not None:
                scores_BN[row] = self._index.get_scores(terms)
        return scores_BN


class VectorScorer:
    """Cosines of one vector a document."""

    num_vectors = 1.0

    def __init__(self, units_ND: NDArray[np.float32], query_units_QD: NDArray[np.float32]) -> None:
        self._units_ND = units_ND
        self._query_units_QD = query_units_QD

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        return self._query_units_QD[block] @ self._units_ND.T


class FacetScorer:
    """The cosine of the document's best facet."""

    num_vectors: float

    def __init__(self, facets: Sequence[NDArray[np.float32]], query_units_QD: NDArray[np.float32]) -> None:
        """Takes the facets of each document, one or more unit vectors ``[., D]``."""
        self._query_units_QD = query_units_QD
        self._facets_FD = np.concatenate(facets)
        self._starts_N = np.cumsum([0, *(len(of_document) for of_document in facets[:-1])])
        self.num_vectors = len(self._facets_FD) / len(facets)

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        cosines_BF = self._query_units_QD[block] @ self._facets_FD.T
        return np.asarray(np.maximum.reduceat(cosines_BF, self._starts_N, axis=1))


class SummedScorer:
    """The sum of several scorers: of a document's own vector and its best facet."""

    def __init__(self, *scorers: Scorer) -> None:
        self._scorers = scorers
        self.num_vectors = sum(scorer.num_vectors for scorer in scorers)

    def scores(self, block: slice) -> NDArray[np.float32]:
        """See ``Scorer``."""
        return np.sum([scorer.scores(block) for scorer in self._scorers], axis=0, dtype=np.float32)


def best_rows(scores_N: NDArray[np.floating], num_rows: int) -> NDArray[np.int64]:
    """Rows of the greatest scores, best first, ties by row.

    Example:
        >>> best_rows(np.array([0.1, 0.7, 0.3, 0.7]), 3).tolist()
        [1, 3, 2]
    """
    if num_rows < len(scores_N):
        threshold = np.partition(scores_N, -num_rows)[-num_rows]
        rows = np.flatnonzero(scores_N >= threshold)
    else:
        rows = np.arange(len(scores_N))
    return rows[np.argsort(-scores_N[rows], kind="stable")][:num_rows]


_COLLECTION = "evaluation"
_DOCUMENT_BATCH = 1_000
_QUERY_BATCH = 64


SearchedModel = Model
"""What a collection needs of a model."""


@runtime_checkable
class PassageSearchedModel(Protocol):
    """What it uses where a model has more: one vector a text, queries of their own."""

    def encode_passages(self, texts: Sequence[str]) -> PassageFacets:
        """Facets of texts that are not blank."""
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
    """

    engine: CollectionEngine
    model: SearchedModel
    num_facets: float

    def search(
        self, texts: Sequence[str], modes: Sequence[SearchMode], *, top_k: int, reasons: bool = False
    ) -> dict[SearchMode, list[tuple[SearchHit, ...]]]:
        """Hits of every query by mode, with evidence and answer where these are wanted; queries are encoded once."""
        found: dict[SearchMode, list[tuple[SearchHit, ...]]] = {mode: [] for mode in modes}
        for start in range(0, len(texts), _QUERY_BATCH):
            batch = texts[start : start + _QUERY_BATCH]
            query_QJD, weights_QJ = _encode_queries(self.model, batch)
            for mode in modes:
                request = SearchRequest(
                    facets=query_QJD, weights=weights_QJ, texts=batch, mode=mode, top_k=top_k, reasons=reasons
                )
                found[mode] += self.engine.search(_COLLECTION, request).hits
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


EncodedTexts = dict[str, EncodedText]
"""What a model made of texts."""


@contextmanager
def indexed(
    model: SearchedModel,
    data: RetrievalData,
    encoded: EncodedTexts | None = None,
    *,
    in_parts: bool = True,
    title_field: bool = False,
) -> Iterator[IndexedCollection]:
    """The documents in a temporary folder, indexed as a server would have them.

    Args:
        model: Of the facets.
        data: The documents.
        encoded: Texts that need not be encoded again; those that are come in.
        in_parts: Whether long documents are cut, as a server does; else each is one text.
        title_field: Whether titles are a field of the payload; else they stand before the text.
    """
    kept: EncodedTexts = {} if encoded is None else encoded
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
        record = engine.record(_COLLECTION)
        num_facets = 0
        for start in range(0, len(data.documents), _DOCUMENT_BATCH):
            batch = range(start, min(start + _DOCUMENT_BATCH, len(data.documents)))
            texts = [data.apart(row) if title_field else (data.documents[row], {}) for row in batch]
            parts = [split_text(text) if in_parts else () for text, _ in texts]
            said = [record.said(*of, cut) for of, cut in zip(texts, parts, strict=True)]
            _encode_new(model, [part.read for one in said for part in one], kept)
            documents = [
                from_encoded(key, *of, parts=cut, said=one, encoded=[kept[part.read] for part in one])
                for key, of, cut, one in zip(data.document_ids[start:], texts, parts, said, strict=False)
            ]
            num_facets += sum(int(document.facet_embeddings.any(axis=1).sum()) for document in documents)
            engine.upsert(_COLLECTION, documents)
            if encoded is None:
                kept.clear()
        engine.maintain()  # what a server does in the background: fold a large collection into its index
        yield IndexedCollection(engine=engine, model=model, num_facets=num_facets / len(data.documents))


def _encode_new(model: SearchedModel, texts: Sequence[str], kept: EncodedTexts) -> None:
    """Encodes texts that are not kept; a blank one has nothing to meet and keeps zeros."""
    new = [text for text in dict.fromkeys(texts) if text not in kept]
    nothing = EncodedText.of_nothing(model.num_facets, model.dim)
    if not isinstance(model, PassageSearchedModel):
        nothing = EncodedText(nothing.facets)
    kept.update((text, nothing) for text in new if not text.strip())
    known = [text for text in new if text.strip()]
    if known and isinstance(model, PassageSearchedModel):
        encoded = model.encode_passages(known)
        kept.update((text, EncodedText(*encoded.document(place))) for place, text in enumerate(known))
    elif known:
        kept.update((text, EncodedText(facets_KD)) for text, facets_KD in zip(known, model.encode(known), strict=True))


def _encode_queries(
    model: SearchedModel, texts: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    if isinstance(model, PassageSearchedModel):
        queries = model.encode_queries(texts)
        return queries.facets, queries.weights
    return model.encode(texts), None


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

    def rank(self, data: RetrievalData) -> Ranked:
        """By methods of ``METHODS``, or variants that are reported apart from them."""
        ...


class CollectionSystem:
    """A collection of a model, searched in every mode through the engine that serves, with its defaults.

    A model of passages is measured by its one vector besides, every document compared.
    """

    def __init__(self, model: SearchedModel, *, in_parts: bool = True, title_field: bool = False) -> None:
        """Takes the model, and whether long documents are cut and titles a field, see :func:`indexed`."""
        self.name = f"{model.name}+title" if title_field else model.name
        self._model = model
        self._indexed = partial(indexed, model, in_parts=in_parts, title_field=title_field)

    def rank(self, data: RetrievalData) -> Ranked:
        """See ``RetrievalSystem``; the collection lies in a temporary folder meanwhile."""
        with self._indexed(data) as collection:
            found = collection.search(data.queries, _MODES, top_k=DEPTH + 1)
        rankings = self._by_vector(data)
        for mode, hits in found.items():
            rankings[mode] = [[hit.id for hit in of_query] for of_query in hits]
        kept = {"vector": 1.0, "facets": collection.num_facets, "lexical": 0.0, "hybrid": collection.num_facets}
        return Ranked(rankings, {method: kept[method] for method in rankings})

    def _by_vector(self, data: RetrievalData) -> dict[str, list[Ranking]]:
        if not isinstance(self._model, PassageSearchedModel):
            return {}
        vectors_ND = np.zeros((len(data.documents), self._model.dim), dtype=np.float32)  # of a blank text
        known = [row for row, text in enumerate(data.documents) if text.strip()]
        vectors_ND[known] = self._model.embed([data.documents[row] for row in known])
        scorer = VectorScorer(vectors_ND, self._model.embed(data.queries))
        blocks = (slice(start, start + _QUERY_BLOCK) for start in range(0, len(data.queries), _QUERY_BLOCK))
        scored = (scores_N for block in blocks for scores_N in scorer.scores(block))
        return {"vector": [[data.document_ids[row] for row in best_rows(scores_N, DEPTH + 1)] for scores_N in scored]}
