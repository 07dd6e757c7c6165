"""Searching a collection: index and store brought to one answer while writes go on.

Shape letters: Q queries, J facets of a query, D dimensions.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import hash_terms
from facets.documents.confidence import RelevanceCurve
from facets.documents.encoding import check_text, normalize
from facets.documents.filters import Filter
from facets.documents.index_manager import IndexManager
from facets.documents.ranking import CheckedSearch, FoundRows, LexicalSide, SearchRequest, rank
from facets.documents.records import CollectionRecord, DocumentRows
from facets.documents.store import DocumentStore
from facets.documents.types import Combination, SearchMode, SearchResult
from facets.documents.views import StoreView
from facets.errors import IndexAwayError, IndexFormatError, InvalidInputError
from facets.index.config import MAX_TEXT_BYTES, MAX_TOP_K
from facets.index.lexical import LexicalIndex
from facets.index.live import LiveIndex
from facets.language.interruption import check_interrupted
from facets.language.terms import QueryTerms, query_terms
from facets.language.terms import terms as terms_of

_MIN_DEPTH = 50  # with words, at least so many documents of each side are candidates
_WIDTH = 2  # so many times the documents wanted are candidates
_MAX_PHRASE_DOCUMENTS = 1000  # documents with all words of a phrase whose texts are looked at, the newest ones
_DOCUMENTS_AT_A_TIME = 16  # of these are in memory
_PHRASE_WEIGHT = 3.0  # a phrase counts more than its words wherever they stand
_REMEMBERED = 16  # filters


class Searcher:
    """Searches collections; thread-safe."""

    def __init__(self, store: DocumentStore, indexes: IndexManager) -> None:
        self._store = store
        self._indexes = indexes
        self._filter_cache = _FilterCache()

    def search(self, record: CollectionRecord, search: CheckedSearch) -> SearchResult | None:
        """One try, which always succeeds where writes to the collection wait meanwhile.

        ``search``: what is looked for; its filter is checked, too. Returns the answer, ``index_revision`` that of the
        collection; None when a write to it came between index and store.
        """
        allowed_rows, filter_revision = None, None
        if search.request.where is not None:
            with self._store.view() as view:
                current = view.collection(record.name)
                if current.number != record.number:
                    return None
                filter_revision = current.revision
                allowed_rows = self._filter_cache.rows(view, current, search.request.where)
        result, revisions = self._answer(record, search, allowed_rows=allowed_rows)
        seen = revisions if filter_revision is None else revisions | {filter_revision}
        if result is None or len(seen) > 1:
            return None  # a document that was replaced between the two would be missed
        return replace(result, index_revision=max(seen, default=0))

    def _answer(
        self, record: CollectionRecord, search: CheckedSearch, *, allowed_rows: NDArray[np.int64] | None
    ) -> tuple[SearchResult | None, set[int]]:
        """The answer, None when the store no longer has it, and the revisions of the collection that were seen."""
        revisions: set[int] = set()
        documents = None
        if search.request.group and record.num_parts > record.num_documents:
            with self._store.view() as view:
                current = view.collection_unchanged(record)
                documents = view.long_documents(current)
                revisions.add(current.revision)
        lines = [np.empty(0, dtype=np.int64)] * len(search.facets)
        sides: list[LexicalSide | None] = [None] * len(lines)
        exhaustive, kind, left_out = True, "lexical", ""
        depth = search.num_pooled if search.mode == "facets" else max(search.num_pooled, _MIN_DEPTH)
        if search.mode != "lexical":
            try:
                live = self._indexes.live(record)
                facets = _FacetSearch(live, search, allowed_rows)
                lines = facets.search(depth, documents)
                revisions |= facets.revisions
                exhaustive, kind = facets.exhaustive, facets.kind
            except IndexFormatError as error:  # damaged where nobody had looked yet
                self._indexes.distrust(record, live, error)
                return None, revisions
            except IndexAwayError as error:  # the words find candidates, which are scored by both all the same
                if search.mode == "facets" or search.request.exact:
                    raise
                exhaustive, left_out = False, f"facets: {error}"
        # Before the view: who loads this index waits for writers, and they for the connections of whoever waits.
        words = None
        if search.mode != "facets":
            words = _WordSearch(self._indexes.lexical(record), allowed_rows, documents)
        with self._store.view() as view:
            if words is not None:
                found_QC = [words.search(terms, depth, rows) for terms, rows in zip(search.terms, lines, strict=True)]
                revisions |= words.revisions
                sides = [words.add_phrases(side, view, record) for side in found_QC]
                lines = [side.found.rows for side in sides if side is not None]
            num_searched = record.num_parts if allowed_rows is None else len(allowed_rows)
            candidates = FoundRows(lines=lines, sides=sides, num_searched=num_searched)
            hits = rank(view, record, search, found=candidates)
        if hits is None:
            return None, revisions
        result = SearchResult(hits=hits, index_revision=0, exhaustive=exhaustive, index_kind=kind, left_out=left_out)
        return result, revisions


def _spread(
    found: NDArray[np.int64],
    find: Callable[[int, NDArray[np.int64]], NDArray[np.int64]],
    *,
    documents: DocumentRows,
    wanted: int,
    rows: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Candidates of so many documents: a long one whose parts are all among the best pushes no other out.

    What is found has the best part of each document that it has a part of, so the next look is for others.

    ``found``: the best rows, at least ``wanted`` where there are as many. ``find``: the best rows, at least so many,
    among sorted rows. ``rows``: that may be found, ascending.
    """
    candidates, held, depth = found, np.unique(documents.of(found)), wanted
    while len(found) and len(held) < wanted:
        rows = rows[~np.isin(documents.of(rows), held)]
        if not len(rows):
            break
        check_interrupted()
        depth *= 2
        found = find(depth, rows)
        candidates, held = np.union1d(candidates, found), np.union1d(held, documents.of(found))
    return candidates


class _FacetSearch:
    """Searches one index of facets for the queries of one call.

    Attributes:
        revisions: Of the collection, as the searches saw it.
        exhaustive: Whether everything allowed was compared.
        kind: Of the index.
    """

    def __init__(self, live: LiveIndex, search: CheckedSearch, allowed_rows: NDArray[np.int64] | None) -> None:
        self._live = live
        self._search = search
        self._allowed_rows = allowed_rows
        self.revisions: set[int] = set()
        self.exhaustive, self.kind = True, ""

    def search(self, depth: int, documents: DocumentRows | None) -> list[NDArray[np.int64]]:
        """Candidates of each query, ascending rows; with long documents of at least ``depth`` documents."""
        lines = self._lines(self._search.facets, depth, self._allowed_rows)
        if documents is None:
            return lines
        rows = self._live.rows() if self._allowed_rows is None else self._allowed_rows
        spread = partial(_spread, documents=documents, wanted=depth, rows=rows)
        find = [partial(self._one, query) for query in self._search.facets]
        return [spread(line, one) for line, one in zip(lines, find, strict=True)]

    def _one(self, query_JD: NDArray[np.float32], depth: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._lines(query_JD[None], depth, rows)[0]

    def _lines(
        self, query_QJD: NDArray[np.float32], depth: int, allowed_rows: NDArray[np.int64] | None
    ) -> list[NDArray[np.int64]]:
        if self._search.any_suffices and query_QJD.shape[1] > 1:
            return [self._of_any(query_JD, depth, allowed_rows) for query_JD in query_QJD]
        wanted = depth if self._search.mode == "facets" else _WIDTH * depth  # words may lift those behind the best
        found = self._live.search(query_QJD, wanted, allowed_rows=allowed_rows, exhaustive=self._search.request.exact)
        self.revisions.add(found.revision)
        self.exhaustive, self.kind = found.candidates.exhaustive, found.kind
        return [np.sort(line[line >= 0]) for line in found.candidates.rows]

    def _of_any(
        self, query_JD: NDArray[np.float32], depth: int, allowed_rows: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        """Candidates of each facet alone; the best by any of them are among these."""
        facets_J1D = query_JD[query_JD.any(axis=1)][:, None]
        return np.unique(np.concatenate(self._lines(facets_J1D, depth, allowed_rows)))


def check_search(request: SearchRequest, *, dim: int, curve: RelevanceCurve | None) -> CheckedSearch:
    """Checks what a search of a collection of ``dim`` dimensions asks for, all but its filter.

    Raises:
        InvalidInputError: A rule of :class:`facets.documents.SearchRequest` is broken; ``path`` names the field.
    """
    mode = request.mode or ("facets" if request.texts is None else "hybrid")
    if mode not in get_args(SearchMode):
        raise InvalidInputError(f"must be one of {', '.join(get_args(SearchMode))}, got {mode!r}", path="mode")
    if request.combine not in (None, *get_args(Combination)):
        allowed = ", ".join(get_args(Combination))
        raise InvalidInputError(f"must be one of {allowed}, got {request.combine!r}", path="combine")
    terms = () if mode == "facets" else _query_terms(request.texts, mode)
    facets_QJD = np.empty((len(terms), 0, dim), dtype=np.float32)
    if mode != "lexical":
        if request.facets is None:
            raise InvalidInputError(f"must be given in mode {mode}", path="facets")
        facets_QJD = weighted_queries(
            request.facets, dim, weights=request.weights, any_suffices=request.combine == "any"
        )
    if terms and len(terms) != len(facets_QJD):
        raise InvalidInputError(f"has {len(terms)} items, expected {len(facets_QJD)}, one a query", path="texts")
    _check_results(request, mode, curve)
    return CheckedSearch(request=request, mode=mode, facets=facets_QJD, terms=terms, curve=curve)


def _query_terms(texts: Sequence[str] | None, mode: SearchMode) -> tuple[QueryTerms, ...]:
    if texts is None or isinstance(texts, str) or not texts:
        raise InvalidInputError(f"must be a sequence of at least one str in mode {mode}", path="texts")
    for position, text in enumerate(texts):
        check_text(text, path=("texts", position), max_bytes=MAX_TEXT_BYTES)
    return tuple(query_terms(text) for text in texts)


def _check_results(request: SearchRequest, mode: SearchMode, curve: RelevanceCurve | None) -> None:
    if not 1 <= request.top_k <= MAX_TOP_K:
        raise InvalidInputError(f"must be 1 to {MAX_TOP_K}, got {request.top_k}", path="top_k")
    for name, number in (("min_confidence", request.min_confidence), ("diversify", request.diversify)):
        if not 0 <= number <= 1:
            raise InvalidInputError(f"must be in [0, 1], got {number}", path=name)
    if request.min_confidence > 0 and (curve is None or mode not in curve.weights):
        raise InvalidInputError(
            f"needs a model whose confidence was calibrated for mode {mode}, got {request.min_confidence} without one",
            path="min_confidence",
        )


def weighted_queries(
    facets: NDArray[np.float32], dim: int, *, weights: NDArray[np.floating] | None = None, any_suffices: bool = False
) -> NDArray[np.float32]:
    """Checks queries and gives every facet its weight as norm, ``[Q, J, D]`` float32.

    Args:
        facets: ``[Q, J, D]``, finite; norms do not matter.
        dim: D of the collection.
        weights: ``[Q, J]``, not negative, one of every query above 0; scaled so that those of a query add up to 1.
            None: all equal.
        any_suffices: Scaled so that the largest is 1 instead.

    Raises:
        InvalidInputError: Wrong shape, NaN or infinite values, weights against the rules.
    """
    path = ("facets",)
    if not isinstance(facets, np.ndarray) or not np.issubdtype(facets.dtype, np.floating):
        raise InvalidInputError("must be an array of floats", path=path)
    if facets.ndim != 3 or facets.shape[2] != dim or not facets.size:
        raise InvalidInputError(
            f"has shape {list(facets.shape)}, expected [queries, facets, {dim}], none of them 0", path=path
        )
    units_QJD, norms = normalize(facets.astype(np.float64))
    if not np.isfinite(norms).all():
        where = (*path, int(np.argwhere(~np.isfinite(norms))[0][0]))
        raise InvalidInputError("has NaN or infinite values: expected finite ones", path=where)
    weights_QJ = np.ones(facets.shape[:2]) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights_QJ.shape != facets.shape[:2]:
        raise InvalidInputError(
            f"has shape {list(weights_QJ.shape)}, expected [queries, facets] = {list(facets.shape[:2])}", path="weights"
        )
    totals_Q = weights_QJ.sum(axis=1)
    if not (np.isfinite(weights_QJ).all() and (weights_QJ >= 0).all() and (totals_Q > 0).all()):
        raise InvalidInputError("must be finite, none below 0, and one of every query above 0", path="weights")
    wholes_Q = weights_QJ.max(axis=1) if any_suffices else totals_Q
    return (units_QJD * (weights_QJ / wholes_Q[:, None])[:, :, None]).astype(np.float32)


class _WordSearch:
    """Searches one lexical index for the queries of one call.

    Attributes:
        revisions: Of the collection, as the searches saw it.
    """

    def __init__(
        self, lexical: LexicalIndex, allowed_rows: NDArray[np.int64] | None, documents: DocumentRows | None
    ) -> None:
        self._lexical = lexical
        self._allowed_rows = allowed_rows
        self._documents = documents
        self.revisions: set[int] = set()

    def search(self, terms: QueryTerms, depth: int, also: NDArray[np.int64]) -> LexicalSide:
        """The best documents by words, and the scores of the candidates of the facets; phrases come later."""
        for phrase in terms.phrases:
            having = self._lexical.having_all(hash_terms(phrase))
            if self._allowed_rows is not None:
                having = np.intersect1d(having, self._allowed_rows)
            also = np.union1d(also, having[-_MAX_PHRASE_DOCUMENTS:])
        hashes = hash_terms([term for term, _ in terms.words])
        if self._documents is not None:
            also = np.union1d(also, self._spread(hashes, depth, self._documents))
        found = self._lexical.search(hashes, _WIDTH * depth, also=also, allowed_rows=self._allowed_rows)
        self.revisions.add(found.revision)
        return LexicalSide(terms=terms, found=found)

    def _spread(self, hashes: Sequence[int], depth: int, documents: DocumentRows) -> NDArray[np.int64]:
        """The best by words of at least ``depth`` documents, as far as any have the words."""

        def find(depth: int, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
            found = self._lexical.search(hashes, depth, allowed_rows=rows)
            self.revisions.add(found.revision)
            return found.rows

        rows = self._lexical.rows() if self._allowed_rows is None else self._allowed_rows
        return _spread(find(depth, self._allowed_rows), find, documents=documents, wanted=depth, rows=rows)

    def add_phrases(self, side: LexicalSide, view: StoreView, record: CollectionRecord) -> LexicalSide:
        """The same with the phrases of the query, looked for in documents and the fields that are searched."""

        def texts_of(rows: NDArray[np.int64]) -> dict[int, tuple[str, ...]]:
            return {row: one.said(record.search_fields).texts for row, one in view.passages(rows).items()}

        return with_phrases(side, self._lexical, texts_of)


def with_phrases(
    side: LexicalSide, lexical: LexicalIndex, texts_of: Callable[[NDArray[np.int64]], Mapping[int, Sequence[str]]]
) -> LexicalSide:
    """A quoted phrase counts as one more term, as rare as its words together.

    ``lexical``: where they were looked for. ``texts_of``: rows -> texts of the documents that are still there.
    """
    phrases = side.terms.phrases
    if not phrases:
        return side
    hashes = [hash_terms(phrase) for phrase in phrases]
    weights = np.array([_PHRASE_WEIGHT * lexical.rarity(one) for one in hashes], dtype=np.float32)
    possible = np.stack([np.isin(side.found.rows, lexical.having_all(one)) for one in hashes], axis=1)
    scores, places = side.found.scores.copy(), np.flatnonzero(possible.any(axis=1))
    for first in range(0, len(places), _DOCUMENTS_AT_A_TIME):
        some = places[first : first + _DOCUMENTS_AT_A_TIME]
        texts = texts_of(side.found.rows[some])
        for place in some.tolist():
            check_interrupted()
            held = texts.get(int(side.found.rows[place]))
            if held is not None:
                scores[place] += weights[possible[place] & _contained(phrases, held)].sum()
    most = side.found.most + float(weights.sum(dtype=np.float64))
    return LexicalSide(terms=side.terms, found=replace(side.found, scores=scores, most=most))


def _contained(phrases: Sequence[Sequence[str]], texts: Sequence[str]) -> list[bool]:
    """Of each phrase, whether its terms stand side by side in one of the texts."""
    held = [_joined(terms_of(text)) for text in texts]
    return [any(_joined(phrase) in one for one in held) for phrase in phrases]


def _joined(found: Sequence[str]) -> str:
    return "".join(f" {term} " for term in found)  # no term holds white space


class _FilterCache:
    """Remembers which rows pass the filters used last; thread-safe.

    What is remembered holds for one revision of the collection: writes to other collections change nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[int, str], tuple[int, NDArray[np.int64]]] = OrderedDict()

    def rows(self, view: StoreView, record: CollectionRecord, where: Filter) -> NDArray[np.int64]:
        """Rows that pass, ascending.

        ``view``: where they are looked for when they are not remembered.
        """
        key = (record.number, repr(where))
        with self._lock:
            revision, rows = self._entries.get(key, (-1, np.empty(0, dtype=np.int64)))
            if revision == record.revision:
                self._entries.move_to_end(key)
                return rows
        rows = view.rows(record, where)
        with self._lock:
            self._entries[key] = (record.revision, rows)
            self._entries.move_to_end(key)
            while len(self._entries) > _REMEMBERED:
                self._entries.popitem(last=False)
        return rows
