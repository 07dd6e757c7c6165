"""From candidates to hits: exact scores from the store, three signals combined, diversity, and the reasons.

Shape letters: Q queries, J facets of a query, K facets of a document, D dimensions, C candidates, F features,
T facets of all documents, S signals.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from facets.arrays import Doubles, Floats, Ints, Vectors, products, take_groups
from facets.documents.answers import MAX_READ_HITS, QueryWords, Sentences, read_answers, sentences_in
from facets.documents.confidence import SIGNALS, features_of
from facets.documents.fields import SearchedText, hash_terms
from facets.documents.queries import PreparedSearch
from facets.documents.records import CollectionRecord
from facets.documents.types import FacetMatch, RankedText, SearchHit, Span
from facets.documents.view import StoreView
from facets.index.candidates import Meetings, meet, select_diverse
from facets.index.lexical import LexicalScores, TermCounts
from facets.index.live import LiveIndex
from facets.language.interruption import check_interrupted
from facets.language.terms import QueryTerms
from facets.language.vectors import unit_rows

_PAIRS_MET_AT_A_TIME = 8192  # candidates times facets of the query
_MAX_MATCHES = 3  # facets of a query that explain a hit: those that contribute most
_FACETS_COMPARED_AT_A_TIME = 1024
_READER_WEIGHT = 0.2  # of the confidence of the answer in the score of a hit, see docs/measure/experiments.md
_SENTENCE_SPACES = ("all-MiniLM-L6-v2", "sentence-transformers:")  # what the names of spaces begin with
HitT = TypeVar("HitT", SearchHit, RankedText)


class SignalWeights(NamedTuple):
    """Weights of the signals in the hybrid score; they add up to 1."""

    facets: float  # of the closest facets
    whole: float  # of the document as a whole
    words: float


# Chosen on ten sets with two encoders, see docs/measure/experiments.md; with their scores on one scale, they serve any
# encoder of sentences. In spaces of word vectors, words count most.
_SENTENCE_WEIGHTS = SignalWeights(facets=0.52, whole=0.18, words=0.3)
_WORD_WEIGHTS = SignalWeights(facets=0.2, whole=0.0, words=0.8)
_FACETS_OF_NAMED = np.float32(0.01)  # weight of the facets of documents that the query names


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates of one query, ``[C]``, with their scores."""

    rows: Ints
    met: Meetings  # scores of the facets, and of the documents as a whole
    scores: Floats  # ranking score
    lexical: Floats  # scores of the words
    signals: Doubles  # `[C, S]`
    confidences: Floats | None = None

    def __getitem__(self, places: Ints) -> "Scored":
        return Scored(
            self.rows[places],
            Meetings._make(values[places] for values in self.met),
            self.scores[places],
            self.lexical[places],
            self.signals[places],
            None if self.confidences is None else self.confidences[places],
        )

    def numbers_of(self, place: int) -> dict[str, Any]:
        """The scores and the confidence of a candidate, by the names that they have in results."""
        return {
            "score": float(self.scores[place]),
            "facets_score": float(self.met.scores[place]),
            "lexical_score": float(self.lexical[place]),
            "confidence": None if self.confidences is None else float(self.confidences[place]),
        }


class FoundText(NamedTuple):
    """The text of a hit."""

    searched: SearchedText
    facets: Floats  # `[K, D]`, unit norm
    spans: Ints | None  # of these facets, `[K, 2]`; None: not known


class Reasons(NamedTuple):
    """Why a hit was found."""

    matches: tuple[FacetMatch, ...]  # up to three of the query's facets, largest contribution first
    answer: Span | None  # the part of the document that answers
    log_odds: float | None = None  # that it answers, by the reader; None: it was not read


def rank(
    view: StoreView,
    record: CollectionRecord,
    search: PreparedSearch,
    candidate_rows: Sequence[Ints],
    word_scores: Sequence[LexicalScores | None],
    *,
    live: LiveIndex | None,
    num_searched: int,
) -> Callable[[], tuple[tuple[SearchHit, ...], ...]] | None:
    """Finds the best documents or parts for each query, best first, ties ordered by id.

    What it returns makes the hits, without the view: a search must not keep a connection while it waits for the reader.

    ``candidate_rows``: of each query, ascending. ``word_scores``: of these candidates; None in mode facets.
    ``live``: the index that found the candidates, if there is one. ``num_searched``: number of parts that pass the
    filter.

    Returns None if a candidate no longer exists, because index and view are at different revisions.
    """
    all_rows = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *candidate_rows]))
    first_rows_and_ids = view.first_rows_and_ids(all_rows)
    if len(first_rows_and_ids) < len(all_rows):
        return None
    best, request = list[Scored](), search.request
    met_by_query = _meet(view, live, record, search, candidate_rows, all_rows)
    for query, (rows, met, words) in enumerate(zip(candidate_rows, met_by_query, word_scores, strict=True)):
        check_interrupted()
        terms = search.terms[query] if search.terms else None
        scored = score(rows, met, terms, words, search=search, space=record.space, num_searched=num_searched)
        best.append(best_of(scored, first_rows_and_ids, search))
    for place, scored in enumerate(best) if request.diversify else ():
        check_interrupted()
        stored = view.facets(record, scored.rows)
        alike, shares = similarities(stored.units, stored.starts).__getitem__, scored.met.shares
        chosen = select_diverse(scored.scores, shares, alike, diversify=request.diversify, top_k=request.top_k)
        best[place] = scored[chosen]
    found = np.concatenate([np.empty(0, dtype=np.int64), *(scored.rows for scored in best)])
    rows, times = np.unique(found, return_counts=True)
    passages, explained = view.passages(rows, times, max_bytes=request.max_bytes), request.reasons
    document_terms = view.terms(record, rows)[1] if explained and search.terms else []
    stored = view.facets(record, rows if explained else rows[:0])

    def hits_of_queries() -> tuple[tuple[SearchHit, ...], ...]:
        units = unit_rows(stored.units.astype(np.float32))
        hits: list[list[SearchHit]] = [[] for _ in best]
        for query, (scored, words) in enumerate(zip(best, word_scores, strict=True)):
            terms = search.terms[query] if search.terms else None
            places = np.searchsorted(rows, scored.rows).tolist()
            reasons = [Reasons((), None)] * len(places)
            if explained:
                searched = [passages[row].searched(record.search_fields) for row in scored.rows.tolist()]
                found = [
                    FoundText(text, units[stored.starts[index] : stored.starts[index + 1]], stored.spans[index])
                    for text, index in zip(searched, places, strict=True)
                ]
                reasons = explain(search, query, found, scored.met, words)
            for place, (row, index) in enumerate(zip(scored.rows.tolist(), places, strict=True)):
                passage, is_part = passages[row], passages[row].num_parts > 1
                found_words = () if terms is None or not explained else matched_words(terms, document_terms[index])
                hits[query].append(
                    SearchHit(
                        **scored.numbers_of(place),
                        id=passage.id,
                        matched_words=found_words,
                        text=passage.text,
                        payload=passage.payload,
                        evidence=reasons[place].matches,
                        answer=reasons[place].answer,
                        signals=dict(zip(SIGNALS, scored.signals[place].tolist(), strict=True)),
                        revision=passage.revision,
                        part=passage.part if is_part else None,
                        part_number=passage.number if is_part else 0,
                        num_parts=passage.num_parts,
                    )
                )
            keys = [hit.id for hit in hits[query]] if request.group else places
            hits[query] = judged(hits[query], keys, reasons, search)
        return tuple(map(tuple, hits))

    return hits_of_queries


def score(
    rows: Ints,
    met: Meetings,
    terms: QueryTerms | None,
    words: LexicalScores | None,
    *,
    search: PreparedSearch,
    space: str,
    num_searched: int,
) -> Scored:
    """Scores the candidates of one query, ``rows``; in mode lexical only those that have a word of the query remain.

    ``met``: their scores by facets. ``terms``: terms of the query, ``words``: their scores by words; both None in mode
    facets. ``space``: of the facets. ``num_searched``: number of documents that were searched.
    """
    lexical = np.zeros(len(rows), dtype=np.float32) if words is None else words.scores
    cosines, whole = met.scores, met.whole
    if search.curve is not None and search.facets.shape[1]:
        cosines, whole = search.curve.comparable(cosines), search.curve.comparable(whole)
    scores = met.scores + lexical  # if one of the two is not used, its scores are 0
    if search.mode == "hybrid" and words is not None:
        is_named = lexical >= np.float32(words.upper_bound or np.inf)  # only a document that the query names reaches it
        fused = fuse(cosines, whole, lexical, max_lexical=words.upper_bound, weights=signal_weights(space))
        scores = np.where(is_named, np.float32(1.0) - _FACETS_OF_NAMED * (1 - cosines), fused)
    coverage = np.zeros_like(met.scores)
    if terms is not None and words is not None and any(not terms.is_stop_word(word) for _, word in terms.words):
        coverage = words.coverage
    signals = np.stack([cosines, coverage], axis=1).astype(np.float64)  # in the order of SIGNALS
    scored = Scored(rows, met, scores, lexical, signals)
    if search.mode == "lexical":
        scored = scored[np.flatnonzero(lexical > 0)]
    if search.curve is None:
        return scored
    compared = scored.signals[:, 0] if search.mode == "facets" else scored.scores
    features = features_of(compared, scored.signals, num_searched=num_searched)
    return replace(scored, confidences=search.curve.confidence(search.mode, features))


def _meet(
    view: StoreView,
    live: LiveIndex | None,
    record: CollectionRecord,
    search: PreparedSearch,
    candidate_rows: Sequence[Ints],
    all_rows: Ints,
) -> list[Meetings]:
    """Exact facet scores of the candidates of each query, from the codes in the index, or else in the store."""
    query_QJD = search.facets
    none = np.empty((0, record.dim), dtype=np.float16)
    if not query_QJD.shape[1]:
        return [meet(query_QJD[0], none, np.arange(len(rows) + 1)) for rows in candidate_rows]
    met_by_query = [list[Meetings]() for _ in query_QJD]
    size = max(1, _PAIRS_MET_AT_A_TIME // query_QJD.shape[1])
    for start in range(0, len(all_rows), size):
        check_interrupted()
        chunk = all_rows[start : start + size]
        held = None if live is None else live.codes_of(chunk)
        if held is None:
            stored = view.facets(record, chunk)
            held = stored.codes, stored.starts
        codes, starts = held
        for query_JD, rows, met in zip(query_QJD, candidate_rows, met_by_query, strict=True):
            own_codes, own_starts = codes, starts
            if len(query_QJD) > 1:
                rows_in_chunk = rows[(rows >= chunk[0]) & (rows <= chunk[-1])]
                taken, own_starts = take_groups(starts, np.searchsorted(chunk, rows_in_chunk))
                own_codes = codes[taken]
            met.append(meet(query_JD, own_codes, own_starts, any_suffices=search.any_suffices))
    return [
        Meetings(*map(np.concatenate, zip(*met, strict=True))) if met else meet(query_JD, none, np.array([0]))
        for query_JD, met in zip(query_QJD, met_by_query, strict=True)
    ]


def best_of(scored: Scored, first_rows_and_ids: Mapping[int, tuple[int, str]], search: PreparedSearch) -> Scored:
    """The best candidates in order; of a document that the reader reads, more than one part if they are good enough."""
    num_ranked = search.num_ranked
    if search.request.group:
        first_rows = np.array([first_rows_and_ids[row][0] for row in scored.rows.tolist()], dtype=np.int64)
        order = np.lexsort((-scored.scores, first_rows))  # in a tie, the first part of a document is its best
        _, firsts = np.unique(first_rows[order], return_index=True)
        kept = order[firsts]
        if _reader_weight(search):  # another part of a long document may hold the answer
            kept = np.union1d(kept, np.argsort(-scored.scores, kind="stable")[:MAX_READ_HITS])
        num_ranked += len(kept) - len(firsts)
        scored = scored[np.sort(kept)]
    min_confidence = search.request.min_confidence
    if scored.confidences is not None and search.reader is None and min_confidence > 0:
        scored = scored[np.flatnonzero(scored.confidences >= min_confidence)]
    scores = scored.scores
    kept = np.arange(len(scores))
    if len(kept) > num_ranked:  # ids are compared only among candidates that reach the last score
        last_score = np.partition(scores, len(kept) - num_ranked)[len(kept) - num_ranked]
        kept = np.flatnonzero(scores >= last_score)
    ids = [first_rows_and_ids[row][1] for row in scored.rows[kept].tolist()]
    return scored[kept[np.lexsort((np.array(ids, dtype=np.str_), -scores[kept]))[:num_ranked]]]


def explain(
    search: PreparedSearch, query: int, found: Sequence[FoundText], met: Meetings, words: LexicalScores | None
) -> list[Reasons]:
    """The reasons for the hits of one query, best hit first; facets of weight 0 are left out.

    ``query``: its index in the search. ``met``: how its facets met those of the hits. ``words``: its scores by words.
    """
    query_JD, terms = search.facets[query], search.terms[query] if search.terms else None
    asked = QueryWords("", {})
    if terms is not None and words is not None:
        known = [term for term, _ in terms.words]
        rarities = [words.rarities.get(hash, 0.0) for hash in hash_terms(known)]
        asked = QueryWords(terms.language, dict(zip(known, rarities, strict=True)))
    reasons, texts = list[Reasons](), list[Sentences]()
    for one, shares_J, best_J in zip(found, met.shares, met.document_facets, strict=True):
        check_interrupted()
        spans_K2 = np.zeros((0, 2), dtype=np.int64) if one.spans is None else one.spans
        # Sentences are scored by the facet of the query that contributed most.
        query_D = query_JD[int(shares_J.argmax())] if len(query_JD) else np.zeros(one.facets.shape[1], np.float32)
        texts.append(sentences_in(one.searched, one.facets[: len(spans_K2)], spans_K2, query_D, asked))
        reasons.append(Reasons(_matches(query_JD, one, shares_J, best_J), texts[-1].answer(asked)))
    if search.reader is not None and search.request.texts:
        question = search.request.texts[query]
        for place, answer in enumerate(read_answers(search.reader, question, texts[:MAX_READ_HITS], asked)):
            if answer is not None:
                reasons[place] = Reasons(reasons[place].matches, *answer)
    return reasons


def _matches(query_JD: Floats, found: FoundText, shares_J: Floats, best_J: Ints) -> tuple[FacetMatch, ...]:
    weights_J = np.linalg.norm(query_JD.astype(np.float64), axis=1)
    positive_J = np.maximum(shares_J.astype(np.float64), 0.0)
    total = float(positive_J.sum()) or 1.0
    cosines_J = np.clip(np.divide(shares_J, weights_J, out=np.zeros_like(weights_J), where=weights_J > 0), -1.0, 1.0)
    return tuple(
        FacetMatch(
            first_facet=facet,
            second_facet=int(best_J[facet]),
            cosine=float(cosines_J[facet]),
            contribution=float(positive_J[facet]) / total,
            facet=found.facets[best_J[facet]],
            second_span=None if found.spans is None else found.searched.span(*found.spans[best_J[facet]].tolist()),
        )
        for facet in np.argsort(-shares_J, kind="stable")[:_MAX_MATCHES].tolist()
        if weights_J[facet] > 0
    )


def matched_words(query: QueryTerms, document_terms: TermCounts) -> tuple[str, ...]:
    """Words of the query that a document has, in any form, each once."""
    hashes = hash_terms([term for term, _ in query.words])
    found = set(document_terms.hashes.tolist())
    return tuple(dict.fromkeys(word for (_, word), hash in zip(query.words, hashes, strict=True) if hash in found))


def judged(
    hits: Sequence[HitT], keys: Sequence[str | int], reasons: Sequence[Reasons], search: PreparedSearch
) -> list[HitT]:
    """The best hits of a query with the confidence that the reader gives them, in the order that it prefers.

    ``keys``: of several hits with the same one, the best is kept.
    """
    if (reader := search.reader) is None:
        return list(hits)
    weight = _reader_weight(search)
    confidences = [None if one.log_odds is None else reader.answer_confidence(one.log_odds) for one in reasons]
    read = [sure for sure in confidences if sure is not None]
    best, worst = max(read, default=0.0), min(read, default=0.0)
    judged_hits = list[tuple[HitT, str | int]]()
    for hit, key, one, sure in zip(hits, keys, reasons, confidences, strict=True):
        behind = best - (worst if sure is None else sure)  # hits that were not read stay behind
        hit = replace(hit, score=hit.score - weight * behind, answer_confidence=sure)
        if one.log_odds is not None and hit.confidence is not None:
            hit = replace(hit, confidence=reader.hit_confidence(hit.confidence, one.log_odds))
        judged_hits.append((hit, key))
    if weight:
        judged_hits.sort(key=lambda pair: -pair[0].score)
    kept = dict[str | int, HitT]()
    for hit, key in judged_hits:
        kept.setdefault(key, hit)
    return _sure_enough(list(kept.values())[: search.request.top_k], search.request.min_confidence)


def _reader_weight(search: PreparedSearch) -> float:
    """How much the reader changes the order of hits."""
    is_used = search.reader is not None and search.mode != "lexical" and not search.request.diversify
    return _READER_WEIGHT if is_used else 0.0


def _sure_enough(hits: Sequence[HitT], min_confidence: float) -> list[HitT]:
    """The hits of at least this confidence, which belongs to the rank: it does not increase."""
    kept, confidence = list[HitT](), 1.0
    for hit in hits:
        if hit.confidence is not None:
            confidence = min(confidence, hit.confidence)
            if confidence < min_confidence:
                break
            hit = replace(hit, confidence=confidence)
        kept.append(hit)
    return kept


def signal_weights(space: str) -> SignalWeights:
    """Weights of the signals for a space of facets."""
    return _SENTENCE_WEIGHTS if space.startswith(_SENTENCE_SPACES) else _WORD_WEIGHTS


def fuse(facets_C: Floats, whole_C: Floats, lexical_C: Floats, *, max_lexical: float, weights: SignalWeights) -> Floats:
    """Convex sum of the scores by facets and as a whole, and of BM25 divided by its upper bound, ``[C]``.

    In [-1, 1] if the scores are. Scores are not scaled over the candidates: those of one collection are comparable
    across queries, and one strong document does not displace the words of the others. See Bruch, Gai and Ingber 2023,
    "An analysis of fusion functions for hybrid retrieval" (theoretical bounds).

    ``max_lexical``: upper bound of BM25 for this query; 0 if the collection has none of its words.
    """
    words_C = lexical_C / max_lexical if max_lexical > 0 else np.zeros_like(lexical_C)
    return np.asarray(weights.facets * facets_C + weights.whole * whole_C + weights.words * words_C, dtype=np.float32)


def similarities(facets_TD: Vectors, starts_C1: Ints) -> Doubles:
    """Similarity of documents, ``[C, C]`` in [0, 1], symmetric, 1 for equal ones.

    The mean, over the facets of both documents, of the best cosine with a facet of the other one; norms and zero facets
    are ignored. ``starts_C1``: offset of each document's facets; each has at least one.
    """
    units = unit_rows(facets_TD.astype(np.float32))
    # [T, T] -> the best facet of each document for every facet, [T, C]; zero facets have cosine 0
    best_TC = np.empty((len(units), len(starts_C1) - 1), dtype=np.float32)
    for start in range(0, len(units), _FACETS_COMPARED_AT_A_TIME):
        cosines = products(units[start : start + _FACETS_COMPARED_AT_A_TIME], units)
        best_TC[start : start + _FACETS_COMPARED_AT_A_TIME] = np.maximum.reduceat(cosines, starts_C1[:-1], axis=1)
    best_CC = np.add.reduceat(np.maximum(best_TC, 0.0), starts_C1[:-1], axis=0)
    counts_C = np.add.reduceat(units.any(axis=1).astype(np.int64), starts_C1[:-1])
    both = np.maximum(counts_C[:, None] + counts_C, 1)
    return np.clip(((best_CC + best_CC.T) / both).astype(np.float64), 0.0, 1.0)
