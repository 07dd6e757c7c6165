"""The words' side of a search: BM25 of one collection, and quoted phrases."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from facets.documents.lexical_terms import contained_phrases, hash_terms
from facets.documents.ranking import LexicalSide
from facets.documents.views import StoreView
from facets.index.lexical import LexicalIndex
from facets.language.interruption import check_interrupted
from facets.language.terms import QueryTerms

__all__ = ["WordSearch"]

_WIDTH = 2  # so many times the documents wanted are candidates
_MAX_PHRASE_DOCUMENTS = 1000  # documents with all words of a phrase whose texts are looked at, the newest ones
_DOCUMENTS_AT_A_TIME = 16  # of these are in memory
_PHRASE_WEIGHT = 3.0  # a phrase counts more than its words wherever they stand


class WordSearch:
    """Searches one lexical index for the queries of one call.

    Attributes:
        revisions: Of the collection, as the searches saw it.
    """

    def __init__(self, lexical: LexicalIndex, allowed_rows: NDArray[np.int64] | None) -> None:
        self._lexical = lexical
        self._allowed_rows = allowed_rows
        self.revisions: set[int] = set()

    def search(self, terms: QueryTerms, depth: int, also: NDArray[np.int64]) -> LexicalSide:
        """The best documents by words, and the scores of the candidates of the facets; phrases come later."""
        for phrase in terms.phrases:
            having = self._lexical.having_all(hash_terms(phrase))
            if self._allowed_rows is not None:
                having = np.intersect1d(having, self._allowed_rows)
            also = np.union1d(also, having[-_MAX_PHRASE_DOCUMENTS:])
        hashes = hash_terms([term for term, _ in terms.words])
        found = self._lexical.search(hashes, _WIDTH * depth, also=also, allowed_rows=self._allowed_rows)
        self.revisions.add(found.revision)
        return LexicalSide(terms=terms, found=found)

    def add_phrases(self, side: LexicalSide, view: StoreView) -> LexicalSide:
        """A quoted phrase counts as one more term, as rare as its words together."""
        phrases = side.terms.phrases
        if not phrases:
            return side
        hashes = [hash_terms(phrase) for phrase in phrases]
        weights = np.array([_PHRASE_WEIGHT * self._lexical.rarity(one) for one in hashes], dtype=np.float32)
        possible = np.stack([np.isin(side.found.rows, self._lexical.having_all(one)) for one in hashes], axis=1)
        scores, places = side.found.scores.copy(), np.flatnonzero(possible.any(axis=1))
        for first in range(0, len(places), _DOCUMENTS_AT_A_TIME):
            some = places[first : first + _DOCUMENTS_AT_A_TIME]
            documents = view.documents(side.found.rows[some])
            for place in some.tolist():
                check_interrupted()
                document = documents.get(int(side.found.rows[place]))
                if document is not None:
                    scores[place] += weights[possible[place] & contained_phrases(phrases, document.text)].sum()
        most = side.found.most + float(weights.sum(dtype=np.float64))
        return LexicalSide(terms=side.terms, found=replace(side.found, scores=scores, most=most))
