"""From candidates to hits: exact scores from the store, those of facets and words made one, ties by id, variety.

Shape letters: Q queries, J facets of a query, K facets of a document, D dimensions, C candidates, F features,
T facets of all documents, S signals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import starts_of
from facets.documents.confidence import SIGNALS, RelevanceCurve, features_of
from facets.documents.evidence import HeldFacets, matched_words, reasons_of
from facets.documents.filters import Filter
from facets.documents.passages import Passage
from facets.documents.records import CollectionRecord
from facets.documents.types import Combination, SearchHit, SearchMode
from facets.documents.views import StoreView
from facets.index.candidates import Meetings, meet, select_diverse
from facets.index.lexical import LexicalFound
from facets.language.interruption import check_interrupted
from facets.language.terms import QueryTerms, is_stop_word

_POOL = 50  # documents out of which diverse ones are chosen, at least
_CHUNK = 512  # candidates whose facets are held at a time
# Both tuned on squad, covid-qa, bioasq and quora together, see docs/use/search.md
FACETS_SHARES = (0.2, 0.2)  # of word spaces
SHARES_OF_SPACES = {"all-MiniLM-L6-v2": (0.4, 0.8)}
"""Share of the facets by the space they lie in, where it is another one: where a document has all words of the query,
and where none has any. Sentence vectors lie where questions lie, so what stray words find need not win."""
_BLOCK_FACETS = 1024  # compared with all others at a time: bounds the memory


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRequest:
    """What a search asks for, from the message that asks to the ranking.

    Attributes:
        top_k: Hits for each query, 1 to ``MAX_TOP_K``.
        facets: Of the queries, ``[Q, J, D]``, finite; norms do not matter. J may differ from the collection's K.
        weights: Of the facets, ``[Q, J]``, not negative; scaled to add up to 1 for each query. None: all equal.
        texts: Of the queries, ``[Q]``, for their words; quoted phrases are looked for as they stand.
        combine: How facets of a query make one score: ``sum``: ``sum_j w_j max_k cos(q_j, F_k)``; ``any``: any of them
            suffices, ``max_j w_j max_k cos(q_j, F_k)`` with the largest weight as 1. None: sum.
        mode: ``hybrid``: facets and words; ``facets``; ``lexical``: BM25 alone, ``facets`` are not looked at. None:
            hybrid with texts, facets without.
        where: Only documents whose payload matches; None: all.
        group: Whether hits are documents, each with the best of its parts; else parts, of which a document may have
            several among them.
        exact: Compare with every document, also where an approximate index exists.
        min_confidence: Hits of less confidence are left out, in [0, 1]; above 0 it needs a curve for the mode.
        diversify: How much the hits shall differ in what they answer, in [0, 1]; above 0 they are not in the order of
            scores, see :func:`facets.index.candidates.select_diverse`.
        min_revision: The read must see the writes up to this revision; 0: any.
        reasons: Whether hits say why they were found: evidence, answer and matched words, which are most of the work.
    """

    top_k: int = 10
    facets: NDArray[np.float32] | None = None
    weights: NDArray[np.floating] | None = None
    texts: Sequence[str] | None = None
    combine: Combination | None = None
    mode: SearchMode | None = None
    where: Filter | None = None
    group: bool = True
    exact: bool = False
    min_confidence: float = 0.0
    diversify: float = 0.0
    min_revision: int = 0
    reasons: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedSearch:
    """A request that is checked, and what was worked out of it for one collection."""

    request: SearchRequest  # as it came
    mode: SearchMode  # what ranks
    # Those of the queries, `[Q, J, D]`, each with its weight as norm, see `facets.index.candidates.meet`; J = 0 in mode
    # lexical.
    facets: NDArray[np.float32]
    terms: tuple[QueryTerms, ...]  # of each query; none in mode facets
    curve: RelevanceCurve | None  # gives each hit its confidence; None: they have none

    @property
    def any_suffices(self) -> bool:
        """Whether one facet of the query is enough."""
        return self.request.combine == "any"

    @property
    def num_pooled(self) -> int:
        """Documents that are ranked by score."""
        top_k = self.request.top_k
        return top_k if not self.request.diversify else max(_POOL, 2 * top_k)


@dataclass(frozen=True, kw_only=True, slots=True)
class LexicalSide:
    """What the words of one query say."""

    terms: QueryTerms  # of the query
    found: LexicalFound  # candidates, those of the facets among them, and how their words answer


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundRows:
    """What the indexes found for some queries."""

    lines: Sequence[NDArray[np.int64]]  # candidates of each query, ascending rows of parts
    sides: Sequence[LexicalSide | None]  # what its words say about these; None in mode facets
    num_searched: int  # parts among which they were looked for: those that the filter leaves


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates of one query, ``[C]``, and how they answer it: what facets and words say, both, and how surely."""

    rows: NDArray[np.int64]
    met: Meetings
    scores: NDArray[np.float32]
    lexical: NDArray[np.float32]
    signals: NDArray[np.float64]
    confidences: NDArray[np.float32] | None = None

    def __getitem__(self, kept: NDArray[np.int64]) -> "Scored":
        met = Meetings(self.met.scores[kept], self.met.shares[kept], self.met.document_facets[kept])
        confidences = None if self.confidences is None else self.confidences[kept]
        return Scored(self.rows[kept], met, self.scores[kept], self.lexical[kept], self.signals[kept], confidences)


def rank(
    view: StoreView, record: CollectionRecord, search: CheckedSearch, *, found: FoundRows
) -> tuple[tuple[SearchHit, ...], ...] | None:
    """The best documents, or parts of them, of every query, best first, ties in the order of ids.

    Scores are exact for every candidate, whichever side found it.

    ``search``: what is looked for, which hits of it, and how many. Returns hits of every query; None when a candidate
    no longer exists: the index and the view saw different states, search again.
    """
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found.lines]))
    located = view.located(rows)
    if len(located) < len(rows):
        return None
    met_by_query = _meet(view, record, search, found.lines)
    best = [
        best_of(
            score(line, met, side, search=search, space=record.space, num_searched=found.num_searched), located, search
        )
        for line, met, side in zip(found.lines, met_by_query, found.sides, strict=True)
    ]
    if search.request.diversify:
        best = [_diverse(view, record, scored, search.request) for scored in best]
    return _hits(view, record, search, best, found.sides)


def score(
    rows: NDArray[np.int64],
    met: Meetings,
    side: LexicalSide | None,
    *,
    search: CheckedSearch,
    space: str,
    num_searched: int,
) -> Scored:
    """Scores of the candidates of one query, and how sure each is.

    Args:
        rows: Of the candidates, ``[C]``.
        met: How their facets answer, in the same places.
        side: How their words answer; None in mode facets.
        search: What is looked for.
        space: Of the facets.
        num_searched: Documents among which they were looked for.

    Returns:
        The candidates; in mode lexical those that have a word of the query.
    """
    lexical = np.zeros(len(rows), dtype=np.float32) if side is None else side.found.scores
    most = 0.0 if side is None else side.found.most
    scores = met.scores + lexical  # without one of the two its scores are 0
    if search.mode == "hybrid":
        covered = 0.0 if side is None else side.found.covered
        scores = fuse(met.scores, lexical, most_lexical=most, facets_share=share_of(space, covered))
    scored = Scored(rows, met, scores, lexical, _signals(met.scores, side))
    if search.mode == "lexical":
        scored = scored[np.flatnonzero(lexical > 0)]
    if search.curve is None:
        return scored
    features = features_of(scored.scores, scored.signals, num_searched=num_searched)
    return replace(scored, confidences=search.curve.confidence(search.mode, features))


def _signals(cosines_C: NDArray[np.float32], side: LexicalSide | None) -> NDArray[np.float64]:
    """What speaks for each candidate, ``[C, S]``."""
    if side is None:
        return np.stack([cosines_C, np.zeros_like(cosines_C), np.zeros_like(cosines_C)], axis=1).astype(np.float64)
    says_something = any(not is_stop_word(word) for _, word in side.terms.words)
    coverage_C = side.found.coverage if says_something else np.zeros_like(side.found.coverage)
    saturation_C = np.minimum(side.found.scores / (side.found.most or 1.0), 1.0)
    return np.stack([cosines_C, coverage_C, saturation_C], axis=1).astype(np.float64)


def _meet(
    view: StoreView, record: CollectionRecord, search: CheckedSearch, lines: Sequence[NDArray[np.int64]]
) -> list[Meetings]:
    """Exact scores of the candidates of each query, rows ascending; each is read from the store once."""
    query_QJD = search.facets
    if not query_QJD.shape[1]:
        return [met_nothing(len(line)) for line in lines]
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *lines]))
    parts: list[list[Meetings]] = [[] for _ in lines]
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        stored = view.facets(record, chunk)
        for query_JD, line, met in zip(query_QJD, lines, parts, strict=True):
            mine = line[(line >= chunk[0]) & (line <= chunk[-1])]
            own = stored if len(mine) == len(chunk) else stored[np.searchsorted(chunk, mine)]
            met.append(meet(query_JD, own.codes, own.starts, any_suffices=search.any_suffices))
    nothing = meet(query_QJD[0], np.empty((0, record.dim), dtype=np.float16), starts_of([]))
    return [_joined([nothing, *met]) for met in parts]


def met_nothing(count: int) -> Meetings:
    """Of a query without facets."""
    none = np.empty((count, 0))
    return Meetings(np.zeros(count, dtype=np.float32), none.astype(np.float32), none.astype(np.int64))


def _joined(parts: Sequence[Meetings]) -> Meetings:
    return Meetings(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.shares for part in parts]),
        np.concatenate([part.document_facets for part in parts]),
    )


def best_of(scored: Scored, located: Mapping[int, tuple[int, str]], search: CheckedSearch) -> Scored:
    """The best in order; only those that reach the top_k-th score need their ids compared."""
    if search.request.group:
        documents = np.array([located[row][0] for row in scored.rows.tolist()], dtype=np.int64)
        scored = scored[_best_of_each(documents, scored.scores)]
    least = search.request.min_confidence
    if scored.confidences is not None and least > 0:
        scored = scored[np.flatnonzero(scored.confidences >= least)]
    scores, top_k = scored.scores, search.num_pooled
    kept = np.arange(len(scores))
    if len(kept) > top_k:
        kth = np.partition(scores, len(kept) - top_k)[len(kept) - top_k]
        kept = np.flatnonzero(scores >= kth)
    names = [located[row][1] for row in scored.rows[kept].tolist()]
    values = (-scores[kept]).tolist()
    order = sorted(range(len(kept)), key=lambda place: (values[place], names[place]))[:top_k]
    return scored[kept[np.array(order, dtype=np.int64)]]


def _best_of_each(groups_C: NDArray[np.int64], scores_C: NDArray[np.float32]) -> NDArray[np.int64]:
    """Places of the best one of each group, ascending; of equal ones the first."""
    order = np.lexsort((-scores_C, groups_C))
    _, firsts = np.unique(groups_C[order], return_index=True)
    return np.sort(order[firsts])


def _diverse(view: StoreView, record: CollectionRecord, scored: Scored, request: SearchRequest) -> Scored:
    check_interrupted()
    stored = view.facets(record, scored.rows)
    alike = similarities(stored.units, stored.starts)
    shares = scored.met.shares
    return scored[select_diverse(scored.scores, shares, alike, diversify=request.diversify, top_k=request.top_k)]


def _hits(
    view: StoreView,
    record: CollectionRecord,
    search: CheckedSearch,
    best: Sequence[Scored],
    sides: Sequence[LexicalSide | None],
) -> tuple[tuple[SearchHit, ...], ...]:
    """What was chosen for each query, with the reasons where these are asked for."""
    rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(scored.rows for scored in best)]))
    passages = view.passages(rows)
    hits = [[_hit(passages[row], scored, at) for at, row in enumerate(scored.rows.tolist())] for scored in best]
    if not search.request.reasons:
        return tuple(map(tuple, hits))
    held = view.terms(record, rows)[1] if any(sides) else []
    stored = view.facets(record, rows)
    units = stored.units.astype(np.float32)
    norms = np.linalg.norm(units, axis=1, keepdims=True)
    units /= np.where(norms > 0, norms, 1.0)
    for query_JD, scored, side, found in zip(search.facets, best, sides, hits, strict=True):
        terms, rarities = (None, {}) if side is None else (side.terms, side.found.rarities)
        for place, row in enumerate(scored.rows.tolist()):
            check_interrupted()
            at = int(np.searchsorted(rows, row))
            own = slice(stored.starts[at], stored.starts[at + 1])
            says = HeldFacets(passages[row].said(record.search_fields), units[own], stored.spans[at])
            met = scored.met.shares[place], scored.met.document_facets[place]
            matches, answer = reasons_of(query_JD, met, says, terms=terms, rarities=rarities)
            found[place] = replace(
                found[place],
                evidence=matches,
                answer=answer,
                matched_words=() if terms is None else matched_words(terms, held[at]),
            )
    return tuple(map(tuple, hits))


def _hit(passage: Passage, scored: Scored, place: int) -> SearchHit:
    return SearchHit(
        id=passage.id,
        score=float(scored.scores[place]),
        facets_score=float(scored.met.scores[place]),
        lexical_score=float(scored.lexical[place]),
        matched_words=(),
        text=passage.text,
        payload=passage.payload,
        evidence=(),
        answer=None,
        confidence=None if scored.confidences is None else float(scored.confidences[place]),
        signals=dict(zip(SIGNALS, scored.signals[place].tolist(), strict=True)),
        revision=passage.revision,
        part=passage.part if passage.num_parts > 1 else None,
        part_number=passage.number if passage.num_parts > 1 else 0,
        num_parts=passage.num_parts,
    )


def share_of(space: str, covered: float) -> float:
    """Share of the facets in the hybrid score of a collection of this space.

    ``covered``: the largest share of the query's words that one document has, in [0, 1].

    Example:
        >>> [round(share_of("all-MiniLM-L6-v2", covered), 2) for covered in (0.0, 0.5, 1.0)]
        [0.8, 0.6, 0.4]
    """
    of_words, without = SHARES_OF_SPACES.get(space, FACETS_SHARES)
    return without + covered * (of_words - without)


def fuse(
    facet_scores_C: NDArray[np.float32],
    lexical_scores_C: NDArray[np.float32],
    *,
    most_lexical: float,
    facets_share: float = FACETS_SHARES[0],
) -> NDArray[np.float32]:
    """A convex sum of the facets' score as it is and of BM25 as a share of what no document can exceed.

    Nothing is scaled over the candidates, so that scores of one collection can be compared across queries, and one
    strong document does not push the words of the others aside. Without a known word facets alone decide, and where no
    document has many words of the query they count more (:func:`share_of`).

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


def similarities(facets_TD: NDArray[np.floating], starts_C1: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much of one document another one holds too, ``[C, C]`` in [0, 1], symmetric, 1 for equal ones.

    The mean over the facets of both of the best cosine that the other one has for them; zero facets are none.

    Args:
        facets_TD: Facets of the documents, one document after another; norms do not matter.
        starts_C1: Where the facets of each document begin, and T; each has at least one.
    """
    facets = facets_TD.astype(np.float32)
    norms_T = np.linalg.norm(facets, axis=1)
    units = facets / np.where(norms_T > 0, norms_T, 1.0)[:, None]
    # [T, T] -> the best facet of each document for every facet, [T, C]; zero facets of others have cosine 0
    best_TC = np.empty((len(units), len(starts_C1) - 1), dtype=np.float32)
    for start in range(0, len(units), _BLOCK_FACETS):
        cosines = units[start : start + _BLOCK_FACETS] @ units.T
        best_TC[start : start + _BLOCK_FACETS] = np.maximum.reduceat(cosines, starts_C1[:-1], axis=1)
    best_CC = np.add.reduceat(np.maximum(best_TC, 0.0), starts_C1[:-1], axis=0)
    counts_C = np.add.reduceat((norms_T > 0).astype(np.int64), starts_C1[:-1])
    both = np.maximum(counts_C[:, None] + counts_C, 1)
    return np.clip(((best_CC + best_CC.T) / both).astype(np.float64), 0.0, 1.0)
