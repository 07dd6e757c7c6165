"""From candidates to hits: exact scores from the store, those of facets and words made one, ties by id.

Shape letters: Q queries, J facets of a query, K facets of a document, D dimensions, C candidates, F features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import starts_of
from facets.documents.confidence import FEATURES, RelevanceCurve, features_of
from facets.documents.diversity import diversify, similarities
from facets.documents.evidence import answer_of, matched_words, matches_of
from facets.documents.records import CollectionRecord
from facets.documents.types import Hit, SearchMode
from facets.documents.views import StoreView
from facets.index.candidates import Meetings, meet
from facets.index.lexical import LexicalFound
from facets.language.interruption import check_interrupted
from facets.language.terms import QueryTerms, is_stop_word

__all__ = [
    "FACETS_SHARE",
    "FACETS_SHARES",
    "FoundRows",
    "LexicalSide",
    "Wanted",
    "fuse",
    "rank",
    "share_of",
]

_POOL = 50  # documents out of which diverse ones are chosen, at least
_CHUNK = 512  # candidates whose facets are held at a time
# Both tuned on squad, covid-qa, bioasq and quora together, see docs/use/search.md
FACETS_SHARE = 0.2  # of word spaces
FACETS_SHARES = {"all-MiniLM-L6-v2": 0.5}
"""Share of the facets by the space they lie in, where it is another one: sentence vectors lie where questions lie."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What hits are asked for.

    Attributes:
        top_k: How many at most.
        curve: Gives each hit its confidence; None: they have none.
        min_confidence: Hits below are left out.
        diversify: How much results shall differ, see :func:`facets.documents.diversity.diversify`; 0: not at all.
    """

    top_k: int
    curve: RelevanceCurve | None = None
    min_confidence: float = 0.0
    diversify: float = 0.0

    @property
    def num_pooled(self) -> int:
        """Documents that are ranked by score."""
        return self.top_k if not self.diversify else max(_POOL, 2 * self.top_k)


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalSide:
    """What the words of one query say.

    Attributes:
        terms: Of the query.
        found: Candidates, those of the facets among them, and how their words answer.
    """

    terms: QueryTerms
    found: LexicalFound


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundRows:
    """What the indexes found for some queries.

    Attributes:
        lines: Candidates of each query, ascending rows.
        sides: What its words say about these; None in mode facets.
        num_searched: Documents among which they were looked for: those that the filter leaves.
    """

    lines: Sequence[NDArray[np.int64]]
    sides: Sequence[LexicalSide | None]
    num_searched: int


@dataclass(frozen=True, slots=True)
class _Scored:
    """Candidates of one query, ``[C]``, and how they answer it."""

    rows: NDArray[np.int64]
    met: Meetings
    scores: NDArray[np.float32]
    lexical: NDArray[np.float32]
    features: NDArray[np.float64]
    confidences: NDArray[np.float32] | None = None

    def __getitem__(self, kept: NDArray[np.int64]) -> "_Scored":
        met = Meetings(self.met.scores[kept], self.met.shares[kept], self.met.document_facets[kept])
        confidences = None if self.confidences is None else self.confidences[kept]
        return _Scored(self.rows[kept], met, self.scores[kept], self.lexical[kept], self.features[kept], confidences)


def rank(
    view: StoreView,
    record: CollectionRecord,
    query_QJD: NDArray[np.float32],
    *,
    mode: SearchMode,
    found: FoundRows,
    wanted: Wanted,
) -> tuple[tuple[Hit, ...], ...] | None:
    """The best documents of every query, best first, ties in the order of ids.

    Scores are exact for every candidate, whichever side found it.

    Args:
        view: The store.
        record: The collection.
        query_QJD: Weighted facets of the queries, see :func:`facets.index.candidates.meet`; J = 0 in mode lexical.
        mode: What ranks.
        found: Candidates.
        wanted: Which of them, and how many.

    Returns:
        Hits of every query; None when a candidate no longer exists: the index and the view saw different
        states, search again.
    """
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found.lines]))
    ids = view.ids(rows)
    if len(ids) < len(rows):
        return None
    best = []
    for line, met, side in zip(found.lines, _meet(view, record, query_QJD, found.lines), found.sides, strict=True):
        features = _features(met.scores, side, num_searched=found.num_searched)
        scored = _scored(line, met, side, mode=mode, facets_share=share_of(record.space), features=features)
        if wanted.curve is not None:
            scored = replace(scored, confidences=wanted.curve.confidence(mode, scored.features))
        best.append(_best(scored, ids, wanted))
    if wanted.diversify:
        best = [_diverse(view, record, scored, wanted) for scored in best]
    return _hits(view, record, query_QJD, best, found.sides)


def _scored(
    rows: NDArray[np.int64],
    met: Meetings,
    side: LexicalSide | None,
    *,
    mode: SearchMode,
    facets_share: float,
    features: NDArray[np.float64],
) -> _Scored:
    lexical = np.zeros(len(rows), dtype=np.float32) if side is None else side.found.scores
    most = 0.0 if side is None else side.found.most
    scores = met.scores + lexical  # without one of the two its scores are 0
    if mode == "hybrid":
        scores = fuse(met.scores, lexical, most_lexical=most, facets_share=facets_share)
    scored = _Scored(rows, met, scores, lexical, features)
    return scored[np.flatnonzero(lexical > 0)] if mode == "lexical" else scored


def _features(cosines_C: NDArray[np.float32], side: LexicalSide | None, *, num_searched: int) -> NDArray[np.float64]:
    """What confidence goes by, ``[C, F]``."""
    if side is None:
        nothing_C = np.zeros_like(cosines_C)
        return features_of(cosines_C, nothing_C, nothing_C, num_words=0, num_searched=num_searched)
    num_words = len({term for term, word in side.terms.words if not is_stop_word(word)})
    coverage_C = side.found.coverage if num_words else np.zeros_like(side.found.coverage)
    saturation_C = np.minimum(side.found.scores / (side.found.most or 1.0), 1.0)
    return features_of(cosines_C, coverage_C, saturation_C, num_words=num_words, num_searched=num_searched)


def _meet(
    view: StoreView, record: CollectionRecord, query_QJD: NDArray[np.float32], lines: Sequence[NDArray[np.int64]]
) -> list[Meetings]:
    """Exact scores of the candidates of each query, rows ascending; each is read from the store once."""
    if not query_QJD.shape[1]:
        return [_met_nothing(len(line)) for line in lines]
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *lines]))
    parts: list[list[Meetings]] = [[] for _ in lines]
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        stored = view.facets(record, chunk)
        for query_JD, line, met in zip(query_QJD, lines, parts, strict=True):
            mine = line[(line >= chunk[0]) & (line <= chunk[-1])]
            own = stored if len(mine) == len(chunk) else stored[np.searchsorted(chunk, mine)]
            met.append(meet(query_JD, own.codes, own.starts))
    nothing = meet(query_QJD[0], np.empty((0, record.dim), dtype=np.float16), starts_of([]))
    return [_joined([nothing, *met]) for met in parts]


def _met_nothing(count: int) -> Meetings:
    """Of a query without facets."""
    none = np.empty((count, 0))
    return Meetings(np.zeros(count, dtype=np.float32), none.astype(np.float32), none.astype(np.int64))


def _joined(parts: Sequence[Meetings]) -> Meetings:
    return Meetings(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.shares for part in parts]),
        np.concatenate([part.document_facets for part in parts]),
    )


def _best(scored: _Scored, ids: Mapping[int, str], wanted: Wanted) -> _Scored:
    """The best in order; only documents that reach the top_k-th score need their ids compared."""
    if scored.confidences is not None and wanted.min_confidence > 0:
        scored = scored[np.flatnonzero(scored.confidences >= wanted.min_confidence)]
    scores, top_k = scored.scores, wanted.num_pooled
    kept = np.arange(len(scores))
    if len(kept) > top_k:
        kth = np.partition(scores, len(kept) - top_k)[len(kept) - top_k]
        kept = np.flatnonzero(scores >= kth)
    names = [ids[row] for row in scored.rows[kept].tolist()]
    values = (-scores[kept]).tolist()
    order = sorted(range(len(kept)), key=lambda place: (values[place], names[place]))[:top_k]
    return scored[kept[np.array(order, dtype=np.int64)]]


def _diverse(view: StoreView, record: CollectionRecord, scored: _Scored, wanted: Wanted) -> _Scored:
    check_interrupted()
    stored = view.facets(record, scored.rows)
    alike = similarities(stored.units, stored.starts)
    shares = scored.met.shares
    return scored[diversify(scored.scores, shares, alike, strength=wanted.diversify, top_k=wanted.top_k)]


def _hits(
    view: StoreView,
    record: CollectionRecord,
    query_QJD: NDArray[np.float32],
    best: Sequence[_Scored],
    sides: Sequence[LexicalSide | None],
) -> tuple[tuple[Hit, ...], ...]:
    """Documents and evidence of what was chosen for each query."""
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(scored.rows for scored in best)]))
    documents = view.documents(rows)
    held = view.terms(rows)[1] if any(sides) else []
    stored = view.facets(record, rows)
    units = stored.units.astype(np.float32)
    norms = np.linalg.norm(units, axis=1, keepdims=True)
    units /= np.where(norms > 0, norms, 1.0)
    weights_QJ = np.linalg.norm(query_QJD.astype(np.float64), axis=2)
    hits: list[tuple[Hit, ...]] = []
    for weights_J, scored, side in zip(weights_QJ, best, sides, strict=True):
        found = []
        for place, row in enumerate(scored.rows.tolist()):
            check_interrupted()
            document, at = documents[row], int(np.searchsorted(rows, row))
            matches = matches_of(
                weights_J,
                shares_J=scored.met.shares[place],
                document_facets_J=scored.met.document_facets[place],
                facets_KD=units[stored.starts[at] : stored.starts[at + 1]],
                text=document.text,
                spans_K2=stored.spans[at],
            )
            terms, rarities = (None, {}) if side is None else (side.terms, side.found.rarities)
            hit = Hit(
                id=document.id,
                score=float(scored.scores[place]),
                facets_score=float(scored.met.scores[place]),
                lexical_score=float(scored.lexical[place]),
                matched_words=() if terms is None else matched_words(terms, held[at]),
                text=document.text,
                payload=document.payload,
                matches=matches,
                answer=answer_of(document.text, matches, terms, rarities),
                confidence=None if scored.confidences is None else float(scored.confidences[place]),
                signals=dict(zip(FEATURES, scored.features[place].tolist(), strict=True)),
                revision=document.revision,
            )
            found.append(hit)
        hits.append(tuple(found))
    return tuple(hits)


def share_of(space: str) -> float:
    """Share of the facets in the hybrid score of a collection of this space."""
    return FACETS_SHARES.get(space, FACETS_SHARE)


def fuse(
    facet_scores_C: NDArray[np.float32],
    lexical_scores_C: NDArray[np.float32],
    *,
    most_lexical: float,
    facets_share: float = FACETS_SHARE,
) -> NDArray[np.float32]:
    """A convex sum of the facets' score as it is and of BM25 as a share of what no document can exceed.

    Nothing is scaled over the candidates, so that scores of one collection can be compared across queries, and one
    strong document does not push the words of the others aside. Without a known word facets alone decide.

    Args:
        facet_scores_C: In [-1, 1].
        lexical_scores_C: 0 or more.
        most_lexical: The bound of BM25 for this query; 0 where it has no known word.
        facets_share: Of the facets, in [0, 1].

    Returns:
        ``[C]`` in [-1, 1].

    Example:
        >>> both = np.array([0.25, 0.75], np.float32), np.array([3.0, 0.0], np.float32)
        >>> fuse(*both, most_lexical=4.0, facets_share=0.5).tolist()
        [0.5, 0.375]

    References:
        Bruch, Gai and Ingber 2023, "An analysis of fusion functions for hybrid retrieval" (theoretical bounds).
    """
    lexical_C = lexical_scores_C / most_lexical if most_lexical > 0 else np.zeros_like(lexical_scores_C)
    return np.asarray(facets_share * facet_scores_C + (1 - facets_share) * lexical_C, dtype=np.float32)
