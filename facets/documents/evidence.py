"""Why a document was found: matching facets, their places in the text, matched words, the answering sentence.

Shape letters: J facets of a query, K facets of a document, D dimensions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.documents.answers import MAX_READ_HITS, QueryWords, Sentences, read_answers, sentences_in
from facets.documents.codes import hash_terms
from facets.documents.fields import SearchedText
from facets.documents.request import PreparedSearch
from facets.documents.types import FacetMatch, Span
from facets.index.lexical import TermCounts
from facets.language.interruption import check_interrupted
from facets.language.terms import QueryTerms


@dataclass(frozen=True, slots=True)
class FoundText:
    """A hit and how it met the query."""

    searched: SearchedText
    facets: NDArray[np.float32]  # `[K, D]`, unit norm
    spans: NDArray[np.int64] | None  # of these facets, `[K, 2]`; None: not known
    shares: NDArray[np.float32]  # `[J]`, what each facet of the query added to the score
    met: NDArray[np.int64]  # `[J]`, the best facet of the document for each


class Reasons(NamedTuple):
    """Why a hit was found."""

    matches: tuple[FacetMatch, ...]  # of the query's facets, largest contribution first
    answer: Span | None  # the part of the document that answers
    log_odds: float | None = None  # that it answers, by the reader; None: it was not read


def explain(
    search: PreparedSearch, query: int, found: Sequence[FoundText], rarities: Mapping[int, float]
) -> list[Reasons]:
    """The reasons for the hits of one query, best hit first; facets of weight 0 are left out.

    ``query``: its index in the search. ``rarities``: of its terms by their hash.
    """
    query_JD, terms = search.facets[query], search.terms[query] if search.terms else None
    query_terms = [term for term, _ in terms.words] if terms else []
    weights = {term: rarities.get(hash, 0.0) for term, hash in zip(query_terms, hash_terms(query_terms), strict=True)}
    words = QueryWords(terms.language if terms else "", weights)
    reasons, texts = list[Reasons](), list[Sentences]()
    for one in found:
        check_interrupted()
        matches = _matches(query_JD, one)
        texts.append(_sentences(query_JD, one, words))
        reasons.append(Reasons(matches, texts[-1].answer(words)))
    if search.reader is not None and search.request.texts:
        question = search.request.texts[query]
        for place, answer in enumerate(read_answers(search.reader, question, texts[:MAX_READ_HITS], words)):
            if answer is not None:
                reasons[place] = Reasons(reasons[place].matches, *answer)
    return reasons


def _sentences(query_JD: NDArray[np.float32], found: FoundText, words: QueryWords) -> Sentences:
    """Sentences of a hit, scored by the facet of the query that contributed most."""
    spans_K2 = np.zeros((0, 2), dtype=np.int64) if found.spans is None else found.spans
    query_D = query_JD[int(found.shares.argmax())] if len(query_JD) else np.zeros(found.facets.shape[1], np.float32)
    return sentences_in(found.searched, found.facets[: len(spans_K2)], spans_K2, query_D, words)


def _matches(query_JD: NDArray[np.float32], found: FoundText) -> tuple[FacetMatch, ...]:
    shares_J = found.shares
    weights_J = np.linalg.norm(query_JD.astype(np.float64), axis=1)
    positive_J = np.maximum(shares_J.astype(np.float64), 0.0)
    total = float(positive_J.sum()) or 1.0
    cosines_J = np.clip(np.divide(shares_J, weights_J, out=np.zeros_like(weights_J), where=weights_J > 0), -1.0, 1.0)
    return tuple(
        FacetMatch(
            first_facet=facet,
            second_facet=int(found.met[facet]),
            cosine=float(cosines_J[facet]),
            contribution=float(positive_J[facet]) / total,
            facet=found.facets[found.met[facet]],
            second_span=None if found.spans is None else found.searched.span(*found.spans[found.met[facet]].tolist()),
        )
        for facet in np.argsort(-shares_J, kind="stable").tolist()
        if weights_J[facet] > 0
    )


def matched_words(query: QueryTerms, document_terms: TermCounts) -> tuple[str, ...]:
    """Words of the query that a document has, in any form, each once."""
    hashes = hash_terms([term for term, _ in query.words])
    found = set(document_terms.hashes.tolist())
    return tuple(dict.fromkeys(word for (_, word), hash in zip(query.words, hashes, strict=True) if hash in found))
