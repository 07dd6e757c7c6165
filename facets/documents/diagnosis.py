"""Diagnosis of a whole collection: its vectors, the recall of its index, and a map of its documents.

Shape letters: Q queries, D dimensions, R rows of the index (parts of documents), T facets of some of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.diagnose import VectorReport, describe, lay_out
from facets.documents.ranking import SearchRequest
from facets.documents.records import CollectionRecord
from facets.documents.types import SearchResult
from facets.documents.views import StoreView
from facets.errors import InvalidInputError
from facets.language.interruption import check_interrupted

MAX_DIAGNOSE_QUERIES = 1_000
_MAX_ROWS = 100_000  # parts of documents that are looked at; more are sampled
_DESCRIBED = 20_000  # facets that are compared with each other
_CHUNK = 2_048  # parts whose facets are in memory at a time
_TOP_K = 10
_MISSED_SHOWN = 20

_NUM_THEMES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionDiagnosis:
    """What is known of a collection."""

    num_documents: int  # now stored
    num_parts: int  # rows of its index: parts of documents
    num_parts_seen: int  # those that were looked at: all, or a random sample
    num_queries: int  # Q
    vectors: VectorReport  # of a sample of the facets
    recall: float | None = None  # share of the first 10 exact hits that the index finds; None without queries
    missed_ids: tuple[str, ...] = ()  # documents that the index misses, most frequently missed first, at most 20
    index_kind: str = ""  # index that the queries were searched with; empty without queries
    index_revision: int  # revision that was read


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectionMap:
    """Documents of a collection as points of a plane."""

    num_documents: int  # now stored
    ids: tuple[str, ...]  # of the documents on the map: all, or a random sample. Letter N.
    points: NDArray[np.float32]  # `[N, 2]`, float32; documents that are about the same lie together
    document_themes: tuple[int, ...]  # `[N]` which theme each is of, the largest theme first
    centers: NDArray[np.float32]  # `[T, D]` middle of each theme, in the space of the facets
    method: str  # how the plane was found
    index_revision: int  # revision that was read


def map_collection(view: StoreView, record: CollectionRecord, *, max_documents: int, seed: int) -> CollectionMap:
    """Lays out a collection, each document by the mean of its facets; a long one by its first part.

    ``max_documents``: of more a random sample is laid out; 0, and at most, 100,000.

    Raises:
        InvalidInputError: The collection is empty, or more documents are asked for.
    """
    if max_documents > _MAX_ROWS:
        raise InvalidInputError(f"is {max_documents}, the limit is {_MAX_ROWS}", path="max_documents")
    firsts = view.document_rows(record).firsts
    if not len(firsts):
        raise InvalidInputError(f"collection {record.name!r} holds no documents to draw")
    rows = firsts
    if len(firsts) > (most := max_documents or _MAX_ROWS):
        rows = np.sort(np.random.default_rng(seed).choice(firsts, most, replace=False))
    sums = [np.add.reduceat(facets, starts[:-1], axis=0) for facets, starts in _chunks(view, record, rows)]
    vectors = np.concatenate(sums)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    plane = lay_out(vectors, num_themes=_NUM_THEMES, seed=seed, on_step=check_interrupted)
    located: dict[int, tuple[int, str]] = {}
    for start in range(0, len(rows), _CHUNK):
        located |= view.located(rows[start : start + _CHUNK])
    return CollectionMap(
        num_documents=len(firsts),
        ids=tuple(located[row][1] for row in rows.tolist()),
        points=plane.points,
        document_themes=tuple(plane.themes.tolist()),
        centers=plane.centers,
        method=plane.method,
        index_revision=view.revision(),
    )


def diagnose_collection(
    view: StoreView,
    record: CollectionRecord,
    queries_QD: NDArray[np.floating],
    *,
    search: Callable[[SearchRequest], SearchResult],
    seed: int,
) -> CollectionDiagnosis:
    """Looks at a collection.

    ``queries_QD``: a vector each of questions as people ask them; ``[0, D]``: only the vectors are described.

    Raises:
        InvalidInputError: The collection is empty, or the queries are not of its space.
    """
    if queries_QD.ndim != 2 or queries_QD.shape[1] != record.dim or len(queries_QD) > MAX_DIAGNOSE_QUERIES:
        expected = f"expected at most {MAX_DIAGNOSE_QUERIES} of {record.dim} dimensions"
        raise InvalidInputError(f"has shape {list(queries_QD.shape)}, {expected}", path="queries")
    every_R = view.rows(record)
    if not len(every_R):
        raise InvalidInputError(f"collection {record.name!r} holds no documents to look at")
    generator = np.random.default_rng(seed)
    seen_R = every_R
    if len(every_R) > _MAX_ROWS:
        seen_R = np.sort(generator.choice(every_R, _MAX_ROWS, replace=False))
    vectors = _described(view, record, generator.permutation(seen_R))
    recall, missed_ids, index_kind = _recall(search, queries_QD) if len(queries_QD) else (None, (), "")
    return CollectionDiagnosis(
        num_documents=record.num_documents,
        num_parts=len(every_R),
        num_parts_seen=len(seen_R),
        num_queries=len(queries_QD),
        vectors=vectors,
        recall=recall,
        missed_ids=missed_ids,
        index_kind=index_kind,
        index_revision=view.revision(),
    )


def _chunks(
    view: StoreView, record: CollectionRecord, rows_R: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Facets of some parts at a time and where those of each begin, one at least: of a part without any a zero one."""
    for start in range(0, len(rows_R), _CHUNK):
        check_interrupted()
        stored = view.facets(record, rows_R[start : start + _CHUNK])
        used = stored.norms > 0
        first = np.zeros(len(used), dtype=bool)
        first[stored.starts[:-1]] = True
        empty = np.add.reduceat(used, stored.starts[:-1]) == 0
        kept = used | (first & np.repeat(empty, np.diff(stored.starts)))
        counts = np.add.reduceat(kept.astype(np.int64), stored.starts[:-1])
        yield stored.units[kept].astype(np.float32), np.concatenate([[0], np.cumsum(counts)])


def _described(view: StoreView, record: CollectionRecord, shuffled_R: NDArray[np.int64]) -> VectorReport:
    facets: list[NDArray[np.float32]] = []
    owners: list[NDArray[np.int64]] = []
    num_facets = num_parts = 0
    for facets_TD, starts in _chunks(view, record, shuffled_R):
        facets.append(facets_TD)
        owners.append(num_parts + np.repeat(np.arange(len(starts) - 1), np.diff(starts)))
        num_facets, num_parts = num_facets + len(facets_TD), num_parts + len(starts) - 1
        if num_facets >= _DESCRIBED:
            break
    return describe(np.concatenate(facets), owners_N=np.concatenate(owners))


def _recall(
    search: Callable[[SearchRequest], SearchResult], queries_QD: NDArray[np.floating]
) -> tuple[float, tuple[str, ...], str]:
    """Recall of the index for some queries, the ids it misses, and which index it is."""
    facets = np.asarray(queries_QD, dtype=np.float32)[:, None]
    found = search(SearchRequest(facets=facets, top_k=_TOP_K, mode="facets"))
    if found.exhaustive:
        return 1.0, (), found.index_kind
    exact = search(SearchRequest(facets=facets, top_k=_TOP_K, mode="facets", exact=True))
    missed: dict[str, int] = {}
    num_wanted = 0
    for hits, wanted in zip(found.hits, exact.hits, strict=True):
        reached = {hit.id for hit in hits}
        num_wanted += len(wanted)
        for hit in wanted:
            if hit.id not in reached:
                missed[hit.id] = missed.get(hit.id, 0) + 1
    most = sorted(missed, key=lambda id: (-missed[id], id))[:_MISSED_SHOWN]
    recall = 1.0 - sum(missed.values()) / max(1, num_wanted)
    return recall, tuple(most), found.index_kind
