"""Why a document was found: the facets that met, where in the text they come from, and the words that matched.

Shape letters: J facets of a query, K facets of a document, D dimensions.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import hash_terms
from facets.documents.types import FacetMatch, Span
from facets.index.lexical import TermCounts
from facets.language.sentences import Sentence
from facets.language.terms import QueryTerms, is_stop_word, located_terms
from facets.language.tokenizer import Tokenizer

__all__ = ["answer_of", "matched_words", "matches_of"]

_AROUND = 400  # characters around a span in which its sentences begin and end
_LONGEST_SEARCH = 100_000  # characters of a text that are looked through for the sentence with the words


def matches_of(
    weights_J: NDArray[np.float64],
    *,
    shares_J: NDArray[np.float32],
    document_facets_J: NDArray[np.int64],
    facets_KD: NDArray[np.float32],
    text: str,
    spans_K2: NDArray[np.integer] | None,
) -> tuple[FacetMatch, ...]:
    """How each facet of the query was answered, the largest contribution first; those of weight 0 are left out.

    Args:
        weights_J: Of the query's facets.
        shares_J: What each added to the score.
        document_facets_J: Which facet of the document it met.
        facets_KD: Unit-norm facets of the document.
        text: Of the document.
        spans_K2: Where in it each of these comes from; None: nobody said.
    """
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
            span=_span(text, spans_K2, int(document_facets_J[facet])),
        )
        for facet in np.argsort(-shares_J, kind="stable").tolist()
        if weights_J[facet] > 0
    )


def _span(text: str, spans_K2: NDArray[np.integer] | None, facet: int) -> Span | None:
    start, end = (0, 0) if spans_K2 is None else spans_K2[facet].tolist()
    return Span(start=start, end=end, text=text[start:end]) if end > start else None


def answer_of(
    text: str, matches: tuple[FacetMatch, ...], terms: QueryTerms | None, rarities: Mapping[int, float]
) -> Span | None:
    """The part of a text that answers a query best.

    The span of the facet that contributes most; where words of the query stand in it, the one of its sentences whose
    words weigh most. Without a span, the sentence of the text whose words weigh most. A sentence that says nothing but
    words of the query, such as a title, is shown only where there is no other: the one behind it is asked, too.

    Args:
        text: Of the document.
        matches: The largest contribution first.
        terms: Of the query; None: no words count.
        rarities: Weight of each term of the query, by hash.

    Returns:
        The part and the words of the query in it; None where neither facets nor words say anything.
    """
    best = next((match.span for match in matches if match.span is not None and match.contribution > 0), None)
    wanted = set(hash_terms([term for term, _ in terms.words])) if terms else set()
    if not wanted:
        return best
    start, end = (best.start, best.end) if best else (0, min(len(text), _LONGEST_SEARCH))
    around = _AROUND if best else 0
    window = (max(0, start - around), min(len(text), end + around))
    words = _words(text, window)
    asked = [word for word in words if word[0] in wanted]
    others = [word for word in words if word[0] not in wanted]
    sentence = _heaviest(_answering(text, window, (start, end), others), asked, rarities)
    if sentence is None and best is None:
        return None
    start, end = sentence or (start, end)
    held = tuple((first, last) for _, first, last in asked if first >= start and last <= end)
    return Span(start=start, end=end, text=text[start:end], words=held)


def _words(text: str, window: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Hash, start and end of each word of a part of the text."""
    found = located_terms(text, *window)
    hashes = hash_terms([term for term, _, _ in found])
    return [(hash, first, last) for hash, (_, first, last) in zip(hashes, found, strict=True)]


def _answering(
    text: str, window: tuple[int, int], place: tuple[int, int], others: list[tuple[int, int, int]]
) -> list[tuple[int, int]]:
    """Sentences of a place that hold a word which is not asked for; else the next one that does; else all of the place.

    Args:
        text: Of the document.
        window: Part of the text whose sentences are looked at.
        place: Part of that window.
        others: Words of the window that the query does not have.
    """
    sentences = [(one.start + window[0], one.end + window[0]) for one in _sentences(text[window[0] : window[1]])]
    within = [(start, end) for start, end in sentences if end > place[0] and start < place[1]]
    says = [first for _, first, last in others if not is_stop_word(text[first:last].lower())]
    telling = [(start, end) for start, end in sentences if any(start <= first < end for first in says)]
    behind = within[-1][1] if within else 0
    found = [sentence for sentence in telling if sentence in within]
    return found or [sentence for sentence in telling if sentence[0] >= behind][:1] or within


def _heaviest(
    sentences: list[tuple[int, int]], asked: list[tuple[int, int, int]], rarities: Mapping[int, float]
) -> tuple[int, int] | None:
    """The sentence whose words that are asked for weigh most, each different one once; None: none weighs anything."""
    weights = [
        sum(rarities.get(hash, 0.0) for hash in {hash for hash, first, last in asked if start <= first < end})
        for start, end in sentences
    ]
    heaviest = max(weights, default=0.0)
    return sentences[weights.index(heaviest)] if heaviest > 0 else None


def _sentences(text: str) -> list[Sentence]:
    return _tokenizer().sentences(text)


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer()


def matched_words(query: QueryTerms, held: TermCounts) -> tuple[str, ...]:
    """Words of the query that a document has, in any form, each once."""
    hashes = hash_terms([term for term, _ in query.words])
    there = set(held.hashes.tolist())
    return tuple(dict.fromkeys(word for (_, word), hash in zip(query.words, hashes, strict=True) if hash in there))
