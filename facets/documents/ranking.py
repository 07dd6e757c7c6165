"""From candidates to hits: exact scores from the store, ties by id, evidence.

Shape letters: Q queries, J facets of a query, K facets of a document, D dimensions, C candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.documents.records import CollectionRecord
from facets.documents.types import FacetMatch, Hit
from facets.documents.views import StoreView
from facets.index.candidates import Candidates, Meetings, meet

__all__ = ["rank"]

_CHUNK = 2048  # candidates whose facets are held at a time
_APPROXIMATE_WIDTH = 16  # an approximate search rescores at most this many times top_k documents


@dataclass(frozen=True, slots=True)
class _Scored:
    """Candidates of one query, ``[C]``, and how they answer it."""

    rows: NDArray[np.int64]
    met: Meetings

    def __getitem__(self, kept: NDArray[np.int64]) -> "_Scored":
        met = Meetings(self.met.scores[kept], self.met.shares[kept], self.met.document_facets[kept])
        return _Scored(self.rows[kept], met)


def rank(
    view: StoreView,
    record: CollectionRecord,
    query_QJD: NDArray[np.float32],
    *,
    candidates: Candidates,
    top_k: int,
) -> tuple[tuple[Hit, ...], ...] | None:
    """The best ``top_k`` documents of every query, best first, ties in the order of ids.

    Args:
        view: The store.
        record: The collection.
        query_QJD: Weighted facets of the queries, see :func:`facets.index.candidates.meet`.
        candidates: What the index found.
        top_k: How many.

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
    best = [_best(scored, ids, top_k) for scored in _score(view, record, query_QJD, rows_QC, rows)]
    return _hits(view, record, query_QJD, best)


def _score(
    view: StoreView,
    record: CollectionRecord,
    query_QJD: NDArray[np.float32],
    rows_QC: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> list[_Scored]:
    """Exact scores; ``rows`` are all candidates, ascending, read from the store once."""
    lines = [np.sort(line[line >= 0]) for line in rows_QC]
    parts: list[list[Meetings]] = [[] for _ in lines]
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        units = view.units(record, chunk)
        for query_JD, line, met in zip(query_QJD, lines, parts, strict=True):
            mine = line[(line >= chunk[0]) & (line <= chunk[-1])]
            met.append(meet(query_JD, units[np.searchsorted(chunk, mine)]))
    nothing = meet(query_QJD[0], np.empty((0, record.num_facets, record.dim), dtype=np.float16))
    return [_Scored(line, _joined([nothing, *met])) for line, met in zip(lines, parts, strict=True)]


def _joined(parts: Sequence[Meetings]) -> Meetings:
    return Meetings(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.shares for part in parts]),
        np.concatenate([part.document_facets for part in parts]),
    )


def _best(scored: _Scored, ids: Mapping[int, str], top_k: int) -> _Scored:
    """The best ``top_k`` in order; only documents that reach the top_k-th score need their ids compared."""
    scores = scored.met.scores
    kept = np.arange(len(scores))
    if len(kept) > top_k:
        kth = np.partition(scores, len(kept) - top_k)[len(kept) - top_k]
        kept = np.flatnonzero(scores >= kth)
    names = [ids[row] for row in scored.rows[kept].tolist()]
    values = (-scores[kept]).tolist()
    order = sorted(range(len(kept)), key=lambda place: (values[place], names[place]))[:top_k]
    return scored[kept[np.array(order, dtype=np.int64)]]


def _hits(
    view: StoreView, record: CollectionRecord, query_QJD: NDArray[np.float32], best: Sequence[_Scored]
) -> tuple[tuple[Hit, ...], ...]:
    """Documents and evidence of what was chosen for each query."""
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(scored.rows for scored in best)]))
    documents = view.documents(rows)
    units = view.units(record, rows).astype(np.float32)
    norms = np.linalg.norm(units, axis=2, keepdims=True)
    units /= np.where(norms > 0, norms, 1.0)
    weights_QJ = np.linalg.norm(query_QJD.astype(np.float64), axis=2)
    hits: list[tuple[Hit, ...]] = []
    for weights_J, scored in zip(weights_QJ, best, strict=True):
        found = []
        for place, row in enumerate(scored.rows.tolist()):
            document = documents[row]
            facets_KD = units[np.searchsorted(rows, row)]
            hit = Hit(
                id=document.id,
                score=float(scored.met.scores[place]),
                text=document.text,
                payload=document.payload,
                matches=_matches(weights_J, scored.met.shares[place], scored.met.document_facets[place], facets_KD),
                revision=document.revision,
            )
            found.append(hit)
        hits.append(tuple(found))
    return tuple(hits)


def _matches(
    weights_J: NDArray[np.float64],
    shares_J: NDArray[np.float32],
    document_facets_J: NDArray[np.int64],
    facets_KD: NDArray[np.float32],
) -> tuple[FacetMatch, ...]:
    positive_J = np.maximum(shares_J.astype(np.float64), 0.0)
    total = float(positive_J.sum()) or 1.0
    cosines_J = np.clip(np.divide(shares_J, weights_J, out=np.zeros_like(weights_J), where=weights_J > 0), -1.0, 1.0)
    return tuple(
        FacetMatch(
            query_facet=facet,
            document_facet=int(document_facets_J[facet]),
            cosine=float(cosines_J[facet]),
            contribution=float(positive_J[facet]) / total,
            facet=facets_KD[document_facets_J[facet]],
        )
        for facet in np.argsort(-shares_J, kind="stable").tolist()
    )
