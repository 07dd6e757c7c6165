"""From candidates to hits: exact scores from the store, ties by id, evidence.

Shape letters: Q queries, J facets of a query, K facets of a document, D dimensions, C candidates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from facets.documents.fusion import fuse
from facets.documents.lexical_terms import matched_words
from facets.documents.records import CollectionRecord
from facets.documents.types import FacetMatch, Hit
from facets.documents.views import StoreView
from facets.index.candidates import Candidates, Meetings, meet
from facets.text.terms import QueryTerms

__all__ = ["LexicalSide", "rank", "rank_with_words"]

_CHUNK = 2048  # candidates whose facets are held at a time
_APPROXIMATE_WIDTH = 16  # an approximate search rescores at most this many times top_k documents


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalSide:
    """What the words of one query say.

    Attributes:
        terms: Of the query.
        rows: Candidates, ascending, those of the facets among them.
        scores: Their BM25.
    """

    terms: QueryTerms
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Scored:
    """Candidates of one query, ``[C]``, and how they answer it."""

    rows: NDArray[np.int64]
    met: Meetings
    scores: NDArray[np.float32]
    lexical: NDArray[np.float32]

    def __getitem__(self, kept: NDArray[np.int64]) -> "_Scored":
        met = Meetings(self.met.scores[kept], self.met.shares[kept], self.met.document_facets[kept])
        return _Scored(self.rows[kept], met, self.scores[kept], self.lexical[kept])


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
    lines = [np.sort(line[line >= 0]) for line in rows_QC]
    ids = _ids(view, lines)
    if ids is None:
        return None
    nothing = np.zeros(rows_QC.shape[1], dtype=np.float32)
    best = [
        _best(_Scored(line, met, met.scores, nothing[: len(line)]), ids, top_k)
        for line, met in zip(lines, _meet(view, record, query_QJD, lines), strict=True)
    ]
    return _hits(view, record, query_QJD, best)


def rank_with_words(
    view: StoreView,
    record: CollectionRecord,
    query_QJD: NDArray[np.float32],
    *,
    sides: Sequence[LexicalSide],
    top_k: int,
) -> tuple[tuple[Hit, ...], ...] | None:
    """The best ``top_k`` documents by words, and by facets too where the queries have any (J > 0).

    Both scores are exact for every candidate, whichever side found it.

    Args:
        view: The store.
        record: The collection.
        query_QJD: As for :func:`rank`.
        sides: Candidates of every query.
        top_k: How many.

    Returns:
        As :func:`rank`.
    """
    hybrid = query_QJD.shape[1] > 0
    lines = [side.rows for side in sides]
    ids = _ids(view, lines)
    if ids is None:
        return None
    best = []
    for side, met in zip(sides, _meet(view, record, query_QJD, lines), strict=True):
        scores = fuse(met.scores, side.scores) if hybrid else side.scores
        scored = _Scored(side.rows, met, scores, side.scores)
        best.append(_best(scored if hybrid else scored[np.flatnonzero(side.scores > 0)], ids, top_k))
    return _hits(view, record, query_QJD, best, terms=[side.terms for side in sides])


def _ids(view: StoreView, lines: Sequence[NDArray[np.int64]]) -> dict[int, str] | None:
    """Ids of all candidates; None when one no longer exists."""
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *lines]))
    ids = view.ids(rows)
    return None if len(ids) < len(rows) else ids


def _meet(
    view: StoreView, record: CollectionRecord, query_QJD: NDArray[np.float32], lines: Sequence[NDArray[np.int64]]
) -> list[Meetings]:
    """Exact scores of the candidates of each query, rows ascending; each is read from the store once."""
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *lines]))
    parts: list[list[Meetings]] = [[] for _ in lines]
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        codes = view.facets(record, chunk).codes
        for query_JD, line, met in zip(query_QJD, lines, parts, strict=True):
            mine = line[(line >= chunk[0]) & (line <= chunk[-1])]
            met.append(meet(query_JD, codes[np.searchsorted(chunk, mine)]))
    nothing = meet(query_QJD[0], np.empty((0, record.num_facets, record.dim), dtype=np.float16))
    return [_joined([nothing, *met]) for met in parts]


def _joined(parts: Sequence[Meetings]) -> Meetings:
    return Meetings(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.shares for part in parts]),
        np.concatenate([part.document_facets for part in parts]),
    )


def _best(scored: _Scored, ids: Mapping[int, str], top_k: int) -> _Scored:
    """The best ``top_k`` in order; only documents that reach the top_k-th score need their ids compared."""
    scores = scored.scores
    kept = np.arange(len(scores))
    if len(kept) > top_k:
        kth = np.partition(scores, len(kept) - top_k)[len(kept) - top_k]
        kept = np.flatnonzero(scores >= kth)
    names = [ids[row] for row in scored.rows[kept].tolist()]
    values = (-scores[kept]).tolist()
    order = sorted(range(len(kept)), key=lambda place: (values[place], names[place]))[:top_k]
    return scored[kept[np.array(order, dtype=np.int64)]]


def _hits(
    view: StoreView,
    record: CollectionRecord,
    query_QJD: NDArray[np.float32],
    best: Sequence[_Scored],
    *,
    terms: Sequence[QueryTerms] = (),
) -> tuple[tuple[Hit, ...], ...]:
    """Documents and evidence of what was chosen for each query."""
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(scored.rows for scored in best)]))
    documents = view.documents(rows)
    units = view.facets(record, rows).units.astype(np.float32)
    norms = np.linalg.norm(units, axis=2, keepdims=True)
    units /= np.where(norms > 0, norms, 1.0)
    weights_QJ = np.linalg.norm(query_QJD.astype(np.float64), axis=2)
    hits: list[tuple[Hit, ...]] = []
    for query, (weights_J, scored) in enumerate(zip(weights_QJ, best, strict=True)):
        found = []
        for place, row in enumerate(scored.rows.tolist()):
            document = documents[row]
            facets_KD = units[np.searchsorted(rows, row)]
            hit = Hit(
                id=document.id,
                score=float(scored.scores[place]),
                facets_score=float(scored.met.scores[place]),
                lexical_score=float(scored.lexical[place]),
                matched_words=matched_words(terms[query], document.text) if terms else (),
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
