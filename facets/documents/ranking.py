"""From candidates to hits: exact scores from the store, ties by id, evidence.

Shape letters: Q queries, K facets, D dimensions, C candidates.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.documents.records import CollectionRecord
from facets.documents.types import Hit
from facets.documents.views import StoreView
from facets.index.candidates import Candidates, best_pairs

__all__ = ["rank"]

_CHUNK = 2048  # candidates whose facets are held at a time
_APPROXIMATE_WIDTH = 8  # an approximate search rescores at most this many times top_k documents


@dataclass(frozen=True, slots=True)
class _Scored:
    """Candidates of one query with exact scores, ``[C]`` each."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    query_facets: NDArray[np.int64]
    document_facets: NDArray[np.int64]


def rank(
    view: StoreView,
    record: CollectionRecord,
    query_QKD: NDArray[np.float32],
    *,
    candidates: Candidates,
    top_k: int,
) -> tuple[tuple[Hit, ...], ...] | None:
    """The best ``top_k`` documents of every query, best first, ties in the order of ids.

    Returns:
        Hits of every query; None when a candidate no longer exists: the index and the view saw different
        states, search again.
    """
    rows_QC = candidates.rows
    if not candidates.exhaustive:
        rows_QC = rows_QC[:, : _APPROXIMATE_WIDTH * top_k]
    rows = np.unique(rows_QC[rows_QC >= 0])
    ids = view.ids(rows)
    if len(ids) < len(rows):
        return None
    best = [_best(scored, ids, top_k) for scored in _score(view, record, query_QKD, rows_QC, rows)]
    final = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(scored.rows for scored in best)]))
    documents = view.documents(final)
    units = view.units(record, final).astype(np.float32)
    norms = np.linalg.norm(units, axis=2, keepdims=True)
    units /= np.where(norms > 0, norms, 1.0)
    hits: list[tuple[Hit, ...]] = []
    for scored in best:
        places = np.searchsorted(final, scored.rows)
        hits.append(
            tuple(
                Hit(
                    id=documents[row].id,
                    score=score,
                    text=documents[row].text,
                    payload=documents[row].payload,
                    query_facet=query_facet,
                    document_facet=document_facet,
                    facet=units[place, document_facet],
                    revision=documents[row].revision,
                )
                for row, score, query_facet, document_facet, place in zip(
                    scored.rows.tolist(),
                    scored.scores.tolist(),
                    scored.query_facets.tolist(),
                    scored.document_facets.tolist(),
                    places.tolist(),
                    strict=True,
                )
            )
        )
    return tuple(hits)


def _score(
    view: StoreView,
    record: CollectionRecord,
    query_QKD: NDArray[np.float32],
    rows_QC: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> list[_Scored]:
    """Exact scores; ``rows`` are all candidates, ascending, read from the store once."""
    lines = [line[line >= 0] for line in rows_QC]
    scored = [
        _Scored(
            line,
            np.empty(len(line), dtype=np.float32),
            np.empty(len(line), dtype=np.int64),
            np.empty(len(line), dtype=np.int64),
        )
        for line in lines
    ]
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        units = view.units(record, part)
        for query, line in zip(query_QKD, scored, strict=True):
            mine = np.flatnonzero((line.rows >= part[0]) & (line.rows <= part[-1]))
            chosen = units[np.searchsorted(part, line.rows[mine])]
            line.scores[mine], line.query_facets[mine], line.document_facets[mine] = best_pairs(query, chosen)
    return scored


def _best(scored: _Scored, ids: dict[int, str], top_k: int) -> _Scored:
    """The best ``top_k`` in order; only documents that reach the top_k-th score need their ids compared."""
    kept = np.arange(len(scored.rows))
    if len(kept) > top_k:
        kth = np.partition(scored.scores, len(kept) - top_k)[len(kept) - top_k]
        kept = np.flatnonzero(scored.scores >= kth)
    names = [ids[row] for row in scored.rows[kept].tolist()]
    values = (-scored.scores[kept]).tolist()
    order = sorted(range(len(kept)), key=lambda place: (values[place], names[place]))[:top_k]
    kept = kept[order]
    return _Scored(scored.rows[kept], scored.scores[kept], scored.query_facets[kept], scored.document_facets[kept])
