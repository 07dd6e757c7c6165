"""Finds candidates in the indexes of a collection, ranks them while writes go on, and reranks texts.

Shape letters: Q queries, J facets of a query, D dimensions.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from facets.arrays import Floats, Ints
from facets.documents.confidence import RelevanceCurve
from facets.documents.encoders import OpenReader
from facets.documents.encoding import decode_units, encode_documents
from facets.documents.fields import SearchedText, hash_terms, name_term, names_in, names_of
from facets.documents.filters import Filter
from facets.documents.index_manager import IndexManager
from facets.documents.queries import PreparedSearch, SearchRequest, prepare_search
from facets.documents.ranking import FoundText, best_of, explain, judged, rank, score
from facets.documents.records import NO_ROWS, CollectionModel, CollectionRecord, DocumentRows
from facets.documents.store import DocumentStore
from facets.documents.types import Document, FilterWarning, RankedText, SearchResult
from facets.documents.view import StoreView
from facets.errors import IndexAwayError
from facets.index.candidates import meet
from facets.index.lexical import LexicalIndex, LexicalScores
from facets.index.live import LiveIndex
from facets.language.interruption import check_interrupted
from facets.language.terms import QueryTerms
from facets.language.terms import terms as terms_of
from facets.language.vectors import unit_rows

_MORE_CANDIDATES = 2  # factor for hybrid candidates: words may lift documents that facets alone rank lower
_MAX_PHRASE_DOCUMENTS = 1000  # of the documents with all words of a phrase, only this many of the newest are searched
_MAX_NAMED = 50  # a name that more parts have names none of them
_PHRASE_WEIGHT = 3.0  # a phrase counts this many times as much as its words
_FILTER_CACHE_SIZE = 16


class Searcher:
    """Searches collections; thread-safe."""

    def __init__(self, store: DocumentStore, indexes: IndexManager) -> None:
        self._store = store
        self._indexes = indexes
        self._filtered: dict[tuple[int, int, str], Ints] = {}  # rows that pass recent filters, the last one used last
        self._lock = threading.Lock()

    def search(self, record: CollectionRecord, search: PreparedSearch) -> SearchResult | None:
        """Makes one attempt; the result has the revision of the collection as ``index_revision``.

        Returns None if index and store were read at different revisions, because a write to the collection interfered:
        a document replaced between the two could be missed.
        """
        request, finder = search.request, _CandidateFinder(search)
        warnings: tuple[FilterWarning, ...] = ()
        has_long_documents = request.group and record.num_parts > record.num_documents
        if request.where is not None or has_long_documents:
            with self._store.view() as view:
                current = view.collection_unchanged(record)
                finder.revisions.add(current.revision)
                if request.where is not None:
                    finder.allowed_rows = self._passing(view, current, request.where)
                    warnings = view.filter_warnings(current, request.where, finder.allowed_rows)
                if has_long_documents:
                    finder.long_documents = view.long_documents(current)
        candidate_rows = [NO_ROWS] * len(search.facets)
        left_out, live = "", None
        if search.mode != "lexical":
            try:
                live = self._indexes.live(record)
                candidate_rows = finder.by_facets(live)
            except IndexAwayError as error:  # candidates come from words alone, but are scored by both
                if search.mode == "facets" or request.exact:
                    raise
                finder.exhaustive, left_out = False, f"facets: {error}"
        # Loaded before the view: loading waits for writers, which may wait for our connection to the store.
        lexical = None if search.mode == "facets" else self._indexes.lexical(record)
        with self._store.view() as view:
            word_scores: list[LexicalScores | None] = [None] * len(candidate_rows)
            if lexical is not None:

                def texts_of(rows: Ints) -> dict[int, list[str]]:
                    searched = {row: one.searched(record.search_fields) for row, one in view.passages(rows).items()}
                    return {row: [one.text, *(field.text for field in one.fields)] for row, one in searched.items()}

                named = [finder.named(lexical, view, record, query) for query in request.texts or ()]
                also = [np.concatenate([rows, *own.values()]) for rows, own in zip(candidate_rows, named, strict=True)]
                found = list(map(partial(finder.by_words, lexical), search.terms, also))
                candidate_rows = [scores.rows for scores in found]
                word_scores = [
                    add_names(add_phrases(scores, terms, lexical, texts_of), terms, own)
                    for scores, terms, own in zip(found, search.terms, named, strict=True)
                ]
            num_searched = record.num_parts if finder.allowed_rows is None else len(finder.allowed_rows)
            make_hits = rank(view, record, search, candidate_rows, word_scores, live=live, num_searched=num_searched)
        if make_hits is None or len(finder.revisions) > 1:
            return None
        return SearchResult(
            hits=make_hits(),
            index_revision=max(finder.revisions, default=0),
            exhaustive=finder.exhaustive,
            index_kind=finder.index_kind,
            left_out=left_out,
            warnings=warnings,
        )

    def _passing(self, view: StoreView, record: CollectionRecord, where: Filter) -> Ints:
        """Rows that pass a filter, ascending."""
        key = (record.number, record.revision, repr(where))
        with self._lock:
            rows = self._filtered.pop(key, None)
        if rows is None:
            rows = view.document_rows(record, where).parts
        with self._lock:
            self._filtered[key] = rows
            for old in list(self._filtered)[:-_FILTER_CACHE_SIZE]:
                del self._filtered[old]
        return rows


@dataclass(slots=True)
class _CandidateFinder:
    search: PreparedSearch
    allowed_rows: Ints | None = None
    long_documents: DocumentRows | None = None
    revisions: set[int] = field(default_factory=set)  # of the collection at which the indexes were searched
    exhaustive: bool = True  # whether all searches compared every allowed document
    index_kind: str = "lexical"

    def by_facets(self, live: LiveIndex) -> list[Ints]:
        """Candidates of each query, ascending."""
        num_candidates, queries = self.search.num_candidates, self.search.facets
        candidates = self._facet_rows(live, queries, num_candidates, self.allowed_rows)
        if self.long_documents is None:
            return candidates
        rows = live.rows() if self.allowed_rows is None else self.allowed_rows

        def spread(found: Ints, query_JD: Floats) -> Ints:
            return self._spread(found, rows, lambda num, some: self._facet_rows(live, query_JD[None], num, some)[0])

        return [spread(found, query_JD) for found, query_JD in zip(candidates, queries, strict=True)]

    def _facet_rows(
        self, live: LiveIndex, query_QJD: Floats, num_candidates: int, allowed_rows: Ints | None
    ) -> list[Ints]:
        if self.search.any_suffices and query_QJD.shape[1] > 1:
            # The best documents by any facet are among the best by each facet alone.
            found = []
            for query_JD in query_QJD:
                used_J = query_JD.any(axis=1)
                facets_J1D = (query_JD[used_J] if used_J.any() else query_JD[:1])[:, None]
                by_facet = self._facet_rows(live, facets_J1D, num_candidates, allowed_rows)
                found.append(np.unique(np.concatenate(by_facet)))
            return found
        if self.search.mode == "hybrid":
            num_candidates *= _MORE_CANDIDATES
        result = live.search(query_QJD, num_candidates, allowed_rows=allowed_rows, exhaustive=self.search.request.exact)
        self.revisions.add(result.revision)
        self.exhaustive &= result.candidates.exhaustive
        self.index_kind = result.kind
        return [np.sort(rows[rows >= 0]) for rows in result.candidates.rows]

    def named(self, lexical: LexicalIndex, view: StoreView, record: CollectionRecord, query: str) -> dict[str, Ints]:
        """The parts that have the query, or an identifier in it, as a name; by name."""
        found = {}
        for name in names_in(query):
            rows = lexical.having_all(hash_terms([name_term(name)]))
            if self.allowed_rows is not None:
                rows = np.intersect1d(rows, self.allowed_rows)
            parts = view.passages(rows) if 0 < len(rows) <= _MAX_NAMED else {}
            searched = {row: part.searched(record.search_fields) for row, part in parts.items()}
            named = [row for row, part in parts.items() if name in names_of(part.id, searched[row])]
            if named:  # not another term of the same hash
                found[name] = np.array(named, dtype=np.int64)
        return found

    def by_words(self, lexical: LexicalIndex, terms: QueryTerms, also: Ints) -> LexicalScores:
        """Word scores of the best documents by words, of the candidates by facets, and of those with a phrase."""
        num_candidates = self.search.num_candidates
        for phrase in terms.phrases:
            with_words = lexical.having_all(hash_terms(phrase))
            if self.allowed_rows is not None:
                with_words = np.intersect1d(with_words, self.allowed_rows)
            also = np.union1d(also, with_words[-_MAX_PHRASE_DOCUMENTS:])
        hashes = hash_terms([term for term, _ in terms.words])
        if self.long_documents is not None:

            def find(num: int, allowed_rows: Ints | None) -> Ints:
                found = lexical.search(hashes, num, allowed_rows=allowed_rows)
                self.revisions.add(found.revision)
                return found.rows

            rows = lexical.rows() if self.allowed_rows is None else self.allowed_rows
            also = np.union1d(also, self._spread(find(num_candidates, self.allowed_rows), rows, find))
        scores = lexical.search(hashes, _MORE_CANDIDATES * num_candidates, also=also, allowed_rows=self.allowed_rows)
        self.revisions.add(scores.revision)
        return scores

    def _spread(self, candidates: Ints, rows: Ints, find: Callable[[int, Ints], Ints]) -> Ints:
        """Adds candidates until they belong to enough documents: parts of a long document must not displace others.

        A search finds the best part of each document that it finds a part of, so the next one excludes these documents.
        ``rows``: those that may be found, ascending. ``find``: the best rows, at least that many, among sorted rows.
        """
        assert self.long_documents is not None
        first_rows_of = self.long_documents.first_rows_of
        num_candidates = num_wanted = self.search.num_candidates
        found, documents = candidates, np.unique(first_rows_of(candidates))
        while len(found) and len(documents) < num_wanted:
            rows = rows[~np.isin(first_rows_of(rows), documents)]
            if not len(rows):
                break
            check_interrupted()
            num_candidates *= 2
            found = find(num_candidates, rows)
            candidates = np.union1d(candidates, found)
            documents = np.union1d(documents, first_rows_of(found))
        return candidates


def add_phrases(
    scores: LexicalScores,
    terms: QueryTerms,
    lexical: LexicalIndex,
    texts_of: Callable[[Ints], Mapping[int, Sequence[str]]],
) -> LexicalScores:
    """Counts each quoted phrase as one more term, as rare as its words together.

    ``texts_of``: texts of the documents at these rows; deleted rows are left out.
    """
    if not terms.phrases:
        return scores
    hashes = [hash_terms(phrase) for phrase in terms.phrases]
    weights = np.array([_PHRASE_WEIGHT * lexical.rarity(phrase) for phrase in hashes], dtype=np.float32)
    has_words = np.stack([np.isin(scores.rows, lexical.having_all(phrase)) for phrase in hashes], axis=1)
    with_phrases, places = scores.scores.copy(), np.flatnonzero(has_words.any(axis=1))
    texts_by_row = texts_of(scores.rows[places])
    for place in places.tolist():
        check_interrupted()
        texts = [_joined(terms_of(text, terms.language)) for text in texts_by_row.get(int(scores.rows[place]), ())]
        side_by_side = [any(_joined(phrase) in text for text in texts) for phrase in terms.phrases]
        with_phrases[place] += weights[has_words[place] & side_by_side].sum()
    upper_bound = scores.upper_bound + float(weights.sum(dtype=np.float64))
    return replace(scores, scores=with_phrases, upper_bound=upper_bound)


def add_names(scores: LexicalScores, terms: QueryTerms, named: Mapping[str, Ints]) -> LexicalScores:
    """Brings the parts that have a name closer to the upper bound, by the share that the name has in the query.

    A part that has the whole query as a name reaches the upper bound, as no other does.
    """
    raised, coverage = scores.scores.copy(), scores.coverage.copy()
    for name, rows in named.items():
        words = set(hash_terms(terms_of(name, terms.language)))
        others = sum(rarity for word, rarity in scores.rarities.items() if word not in words)
        left = others / (sum(scores.rarities.values()) or 1.0)
        is_named = np.isin(scores.rows, rows)
        raised[is_named] = np.float32(scores.upper_bound) - left * (np.float32(scores.upper_bound) - raised[is_named])
        coverage[is_named] = 1.0 - left * (1.0 - coverage[is_named])
    return replace(scores, scores=raised, coverage=coverage)


def _joined(terms: Sequence[str]) -> str:
    return "".join(f" {term} " for term in terms)  # terms contain no white space


def rerank(
    documents: Sequence[Document],
    request: SearchRequest,
    *,
    space: str,
    curve: RelevanceCurve | None,
    reader: OpenReader | None = None,
) -> tuple[RankedText, ...]:
    """The best texts for a query, best first, ties in the order given, as a search in a collection of only these.

    ``documents``: at least one; ids must differ. ``request``: one query. ``space``: of the facets. ``curve`` and
    ``reader``: as for a search. Raises InvalidInputError if the query or a document is invalid.
    """
    num_facets = min(len(document.facet_embeddings) for document in documents)
    dim = documents[0].facet_embeddings.shape[1]
    shape = {"num_facets": num_facets, "dim": dim}
    model = CollectionModel(model="", model_revision="", space=space, **shape, search_fields={}, language="")
    encoded = encode_documents(documents, model)
    search = prepare_search(request, dim=dim, curve=curve, language=encoded.language, reader=reader)
    rows = np.arange(len(documents), dtype=np.int64)
    terms = words = None
    if search.mode != "facets":
        lexical, [terms] = LexicalIndex(), search.terms
        lexical.apply(1, added=rows, removed=rows[:0], terms=encoded.terms)
        words = lexical.search(hash_terms([term for term, _ in terms.words]), len(rows), also=rows)
        words = add_phrases(words, terms, lexical, lambda some: {row: (documents[row].text,) for row in some.tolist()})
    met = meet(search.facets[0], encoded.codes, encoded.starts, any_suffices=search.any_suffices)
    scored = score(rows, met, terms, words, search=search, space=space, num_searched=len(rows))
    digits = len(str(len(rows)))
    best = best_of(scored, {row: (row, f"{row:0{digits}d}") for row in rows.tolist()}, search)
    starts, places = encoded.starts, best.rows.tolist()
    units = unit_rows(decode_units(encoded.codes).astype(np.float32))
    found = [
        FoundText(SearchedText(documents[row].text), units[starts[row] : starts[row + 1]], encoded.spans[row])
        for row in places
    ]
    reasons = explain(search, 0, found, best.met, words)
    ranked = [
        RankedText(**best.numbers_of(place), index=row, answer=why.answer, answer_confidence=None)
        for place, (row, why) in enumerate(zip(places, reasons, strict=True))
    ]
    return tuple(judged(ranked, places, reasons, search))
