"""Diagnosis of a whole collection: its vectors, the recall of its index, and a map of its documents.

Shape letters: D dimensions, R rows of the index (parts of documents), T facets of some of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from facets.diagnose import VectorReport, describe, lay_out
from facets.documents.records import CollectionRecord
from facets.documents.request import SearchRequest
from facets.documents.types import SearchResult
from facets.documents.view import StoreView
from facets.errors import InvalidInputError
from facets.language.interruption import Run, check_interrupted

if TYPE_CHECKING:
    from facets.model.contract import ModelInfo

MAX_DIAGNOSE_QUERIES = 1_000
_MAX_ROWS = 100_000  # parts or documents that are examined; more are sampled
_MIN_DESCRIBED_FACETS = 20_000  # sample of facets that are compared with each other
_PARTS_AT_A_TIME = 2_048  # parts whose facets are in memory at once
_TOP_K = 10
_MAX_MISSED_IDS = 20
_NUM_THEMES = 8
_SEED = 1  # of samples, layout and themes


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionDiagnosis:
    """Diagnosis of a collection."""

    num_documents: int
    num_parts: int  # rows of its index
    num_parts_seen: int  # rows that were examined: all, or a random sample
    num_queries: int
    vectors: VectorReport  # of a sample of the facets
    recall: float | None = None  # share of the first 10 exact hits that the index finds; None without queries
    missed_ids: tuple[str, ...] = ()  # documents that the index misses, most frequently missed first, at most 20
    index_kind: str = ""  # index that the queries were searched with; empty without queries
    index_revision: int  # revision that was read
    model: "ModelInfo | None" = None  # that encoded the queries


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionMap:
    """Two-dimensional layout of the documents of a collection."""

    num_documents: int  # in the collection
    ids: tuple[str, ...]  # of the N documents on the map: all, or a random sample
    points: NDArray[np.float32]  # `[N, 2]`; similar documents lie close together
    document_themes: tuple[int, ...]  # theme of each document, `[N]`; theme 0 is the largest
    centers: NDArray[np.float32]  # center of each theme in the space of the facets, `[themes, D]`
    method: str  # see `facets.diagnose.Plane`
    index_revision: int  # revision that was read
    # Nearest words of each theme, with cosines, and the number of its documents; empty unless asked for.
    themes: tuple[tuple[tuple[tuple[str, float], ...], int], ...] = ()


def map_collection(view: StoreView, record: CollectionRecord, *, max_documents: int, run: Run) -> CollectionMap:
    """Lays out a collection by the mean facet of each document; a long document is represented by its first part.

    ``max_documents``: size of the random sample of a larger collection, at most 100,000; 0: 100,000.
    """
    if max_documents > _MAX_ROWS:
        raise InvalidInputError(f"is {max_documents}, the limit is {_MAX_ROWS}", path="max_documents")
    firsts = view.document_rows(record).firsts
    if not len(firsts):
        raise InvalidInputError(f"collection {record.name!r} is empty: expected at least one document")
    rows = _sample(firsts, max_documents or _MAX_ROWS, np.random.default_rng(_SEED))
    sums = [np.add.reduceat(facets, starts[:-1], axis=0) for facets, starts in _chunks(view, record, rows)]
    vectors = np.concatenate(sums)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    plane = run(partial(lay_out, num_themes=_NUM_THEMES, seed=_SEED, on_step=check_interrupted), vectors)
    first_rows_and_ids = view.first_rows_and_ids(rows)
    return CollectionMap(
        num_documents=len(firsts),
        ids=tuple(first_rows_and_ids[row][1] for row in rows.tolist()),
        points=plane.points,
        document_themes=tuple(plane.themes.tolist()),
        centers=plane.centers,
        method=plane.method,
        index_revision=view.revision(),
    )


def diagnose_collection(
    view: StoreView,
    record: CollectionRecord,
    requests: Sequence[SearchRequest],
    *,
    search: Callable[[SearchRequest], SearchResult],
    run: Run,
) -> CollectionDiagnosis:
    """Describes the vectors of a collection, and with queries the recall of its index.

    ``requests``: searches by facets, which are made with and without the index.
    """
    all_rows = view.document_rows(record).parts
    if not len(all_rows):
        raise InvalidInputError(f"collection {record.name!r} is empty: expected at least one document")
    generator = np.random.default_rng(_SEED)
    rows = _sample(all_rows, _MAX_ROWS, generator)
    facets_TD, owners_T = _sample_of_facets(view, record, generator.permutation(rows))
    vectors = run(partial(describe, owners_N=owners_T), facets_TD)
    num_queries = sum(len(request.facets) for request in requests if request.facets is not None)
    recall, missed_ids, index_kind = _recall(search, requests) if requests else (None, (), "")
    return CollectionDiagnosis(
        num_documents=record.num_documents,
        num_parts=len(all_rows),
        num_parts_seen=len(rows),
        num_queries=num_queries,
        vectors=vectors,
        recall=recall,
        missed_ids=missed_ids,
        index_kind=index_kind,
        index_revision=view.revision(),
    )


def _sample(rows: NDArray[np.int64], size: int, generator: np.random.Generator) -> NDArray[np.int64]:
    return rows if len(rows) <= size else np.sort(generator.choice(rows, size, replace=False))


def _chunks(
    view: StoreView, record: CollectionRecord, rows_R: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Yields the facets of a few parts at a time, and their offsets; a part without facets has one zero facet."""
    for start in range(0, len(rows_R), _PARTS_AT_A_TIME):
        check_interrupted()
        stored = view.facets(record, rows_R[start : start + _PARTS_AT_A_TIME])
        is_used = stored.norms > 0
        is_first = np.zeros(len(is_used), dtype=bool)
        is_first[stored.starts[:-1]] = True
        is_empty = np.add.reduceat(is_used, stored.starts[:-1]) == 0
        kept = is_used | (is_first & np.repeat(is_empty, np.diff(stored.starts)))
        counts = np.add.reduceat(kept.astype(np.int64), stored.starts[:-1])
        yield stored.units[kept].astype(np.float32), np.concatenate([[0], np.cumsum(counts)])


def _sample_of_facets(
    view: StoreView, record: CollectionRecord, shuffled_R: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Facets ``[T, D]`` of parts, and which part each belongs to, ``[T]``."""
    facets, owners = list[NDArray[np.float32]](), list[NDArray[np.int64]]()
    num_facets = num_parts = 0
    for facets_TD, starts in _chunks(view, record, shuffled_R):
        facets.append(facets_TD)
        owners.append(num_parts + np.repeat(np.arange(len(starts) - 1), np.diff(starts)))
        num_facets, num_parts = num_facets + len(facets_TD), num_parts + len(starts) - 1
        if num_facets >= _MIN_DESCRIBED_FACETS:
            break
    return np.concatenate(facets), np.concatenate(owners)


def _recall(
    search: Callable[[SearchRequest], SearchResult], requests: Sequence[SearchRequest]
) -> tuple[float, tuple[str, ...], str]:
    """Recall of the index for some queries, the ids it misses, and its kind."""
    num_expected, num_missed, index_kind = 0, Counter[str](), ""
    for request in requests:
        request = replace(request, top_k=_TOP_K, mode="facets", reasons=False)
        result = search(request)
        exact = result if result.exhaustive else search(replace(request, exact=True))
        for hits, expected in zip(result.hits, exact.hits, strict=True):
            num_missed.update({hit.id for hit in expected} - {hit.id for hit in hits})
            num_expected += len(expected)
        index_kind = result.index_kind
    missed_ids = sorted(num_missed, key=lambda id: (-num_missed[id], id))[:_MAX_MISSED_IDS]
    return 1.0 - num_missed.total() / max(1, num_expected), tuple(missed_ids), index_kind
