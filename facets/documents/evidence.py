"""Why a document was found: the facets that met, where in the text they come from, and the words that matched.

Shape letters: J facets of a query, K facets of a document, D dimensions.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.documents.codes import hash_terms, read_spans
from facets.documents.fields import FieldText, SearchedText
from facets.documents.types import FacetMatch, Span
from facets.index.lexical import TermCounts
from facets.language.sentences import Sentence
from facets.language.terms import QueryTerms, is_stop_word, located_terms
from facets.language.tokenizer import Tokenizer

_LONGEST_ANSWER = 300  # characters of a sentence that is shown whole
_MOST_OF_TWO_CHARS = 500  # of two sentences together
_SHARE_OF_SPAN = 3  # a neighbour that holds a third of the span belongs to the answer
_STOPS = ".!?\u2026\u3002\"')\u201d\u2019"
_CLAUSE = re.compile(r"[,;:](?=\s)\s*|\s(?=[(\u2013\u2014])|\n\s*")
_AS_CLOSE = 0.65  # of the best cosine: what the text says is shown before a field, what stands beside comes along
_TELLING_WORDS = 3  # a span of fewer is a name, or an item of a list of names
_AROUND = 400  # characters around a span in which its sentences begin and end
_LONGEST_SEARCH = 100_000  # characters of a text that are looked through for the sentence with the words


@dataclass(frozen=True, slots=True)
class HeldFacets:
    """What a document says, and where.

    Attributes:
        said: Its text and fields.
        facets: Unit norm, ``[K, D]``.
        noted: Where in text and fields each of these comes from, as stored, ``[K, 2]``; None: nobody said.
    """

    said: SearchedText
    facets: NDArray[np.float32]
    noted: NDArray[np.uint32] | None


def reasons_of(
    query_JD: NDArray[np.float32],
    met: tuple[NDArray[np.float32], NDArray[np.int64]],
    held: HeldFacets,
    *,
    terms: QueryTerms | None,
    rarities: Mapping[int, float],
) -> tuple[tuple[FacetMatch, ...], Span | None]:
    """How each facet of the query was answered, the largest contribution first, and the part that answers.

    Args:
        query_JD: Facets of the query, each with its weight as norm; those of weight 0 are left out.
        met: What each added to the score, ``[J]``, and which facet of the document it met, ``[J]``.
        held: The document.
        terms: As for :func:`answer_of`.
        rarities: As for :func:`answer_of`.
    """
    shares_J, met_J = met[0], met[1].tolist()
    weights_J = np.linalg.norm(query_JD.astype(np.float64), axis=1)
    positive_J = np.maximum(shares_J.astype(np.float64), 0.0)
    total = float(positive_J.sum()) or 1.0
    cosines_J = np.clip(np.divide(shares_J, weights_J, out=np.zeros_like(weights_J), where=weights_J > 0), -1.0, 1.0)
    spans_K2, of_heading_K = (None, None) if held.noted is None else read_spans(held.noted)
    matches = tuple(
        FacetMatch(
            first_facet=facet,
            second_facet=met_J[facet],
            cosine=float(cosines_J[facet]),
            contribution=float(positive_J[facet]) / total,
            facet=held.facets[met_J[facet]],
            second_span=None if spans_K2 is None else held.said.span(*spans_K2[met_J[facet]].tolist()),
        )
        for facet in np.argsort(-shares_J, kind="stable").tolist()
        if weights_J[facet] > 0
    )
    near: tuple[Span, ...] = ()
    best = next((match for match in matches if match.second_span and match.contribution > 0), None)
    if best is not None and spans_K2 is not None and of_heading_K is not None:
        cosines_K = held.facets @ (query_JD[best.first_facet] / np.linalg.norm(query_JD[best.first_facet]))
        near = _met_in_text(cosines_K, _AS_CLOSE * best.cosine, held.said, spans_K2, of_heading_K)
    return matches, answer_of(held.said, matches, terms, rarities, in_text=near)


def _met_in_text(
    cosines_K: NDArray[np.float32],
    least: float,
    said: SearchedText,
    spans_K2: NDArray[np.int64],
    of_heading_K: NDArray[np.bool_],
) -> tuple[Span, ...]:
    """Spans of the facets of the text, no fields, that are close enough to what is asked, closest first.

    None where no facet is. Those of headings are left out where anything else is said: what they say is in what stands
    under them.
    """
    places = np.flatnonzero(said.in_text(spans_K2))
    if not (cosines_K[places] >= least).any():
        return ()
    places = places[np.argsort(-cosines_K[places], kind="stable")]
    places = places[of_heading_K[places].all() | ~of_heading_K[places]]
    num_close = max(1, int(np.count_nonzero(cosines_K[places] >= least)))
    spans = (said.span(*spans_K2[place].tolist()) for place in places[:num_close].tolist())
    return tuple(span for span in spans if span is not None)


def answer_of(
    said: SearchedText,
    matches: tuple[FacetMatch, ...],
    terms: QueryTerms | None,
    rarities: Mapping[int, float],
    *,
    in_text: tuple[Span, ...] = (),
) -> Span | None:
    """The part of a document that answers a query best: one whole sentence, or two where one alone says too little.

    Of the sentences that the span of the facet that contributes most lies in, and of those beside them that meet it
    about as closely, the one whose words weigh most in the query; where they weigh less than half of it, another one of
    these comes along. A span of a word or two gives way to a longer one. Without a span, the sentence of the text whose
    words weigh most. A sentence that says nothing but words of the query, such as a title, is shown only where there is
    no other: the one behind it is asked, too. A sentence of more than 300 characters is cut where a clause begins or
    ends. For the same reason the text goes before fields: these are shown where half of the query, or the facet that
    contributes most, is met there and nothing of it in the text.

    Args:
        said: Text and fields of the document.
        matches: The largest contribution first.
        terms: Of the query; None: no words count.
        rarities: Weight of each term of the query, by hash.
        in_text: Where the text meets about as closely what is asked, closest first.

    Returns:
        The part and the words of the query in it; None where neither facets nor words say anything.
    """
    span = next((match.second_span for match in matches if match.second_span and match.contribution > 0), None)
    wanted = set(hash_terms([term for term, _ in terms.words])) if terms else set()
    if said.fields:
        field = _met_field(said, span, wanted, rarities, in_text)
        if field is not None:
            found = _answer_in(field.text, span if span and span.field == field.name else None, wanted, rarities)
            return found and replace(found, field=field.name)
    if span is not None and (span.field or in_text):
        span = next((one for one in in_text if len(one.text.split()) >= _TELLING_WORDS), next(iter(in_text), None))
    return _answer_in(said.text, span, wanted, rarities, beside=in_text)


def _met_field(
    said: SearchedText, span: Span | None, wanted: set[int], rarities: Mapping[int, float], in_text: tuple[Span, ...]
) -> FieldText | None:
    """The field that is shown for a document; None: its text."""
    held = [_held_weight(one.text, wanted, rarities) for one in said.fields]
    most = max(held)
    if said.text.strip() and (wanted or in_text) and _held_weight(said.text, wanted, rarities) > 0:
        return None
    if most > 0 and most >= sum(rarities.get(hash, 0.0) for hash in wanted) / 2:
        return said.fields[held.index(most)]
    if span is not None and span.field and not in_text:
        return next(one for one in said.fields if one.name == span.field)
    return None


def _held_weight(text: str, wanted: set[int], rarities: Mapping[int, float]) -> float:
    """What the words of the query weigh that a text holds, each once."""
    if not wanted:
        return 0.0
    held = wanted.intersection(hash for hash, _, _ in _words(text, (0, min(len(text), _LONGEST_SEARCH))))
    return sum(rarities.get(hash, 0.0) for hash in held)


def _answer_in(
    text: str,
    span: Span | None,
    wanted: set[int],
    rarities: Mapping[int, float],
    *,
    beside: tuple[Span, ...] = (),
) -> Span | None:
    """See :func:`answer_of`: of one text, with the span in it that met, and further ones that did."""
    if span is None and not wanted:
        return None
    first, last = (span.start, span.end) if span else (0, min(len(text), _LONGEST_SEARCH))
    around = _AROUND if span else 0
    window = (max(0, first - around), min(len(text), last + around))
    words = _words(text, window) if wanted else []
    asked = [word for word in words if word[0] in wanted]
    sentences = [_Part(one.start + window[0], one.end + window[0]) for one in _sentences(text[slice(*window)])]
    within = [part for part in sentences if part.end > first and part.start < last]
    if span is not None:
        within = _with_neighbours(within, sentences, beside)
    telling = _telling(within, sentences, [word for word in words if word[0] not in wanted], text) if wanted else within
    weights = [(_weight(asked, rarities, part), part) for part in telling]
    weight, chosen = max(weights, key=lambda one: (one[0], span and _overlap(one[1], span)), default=(0.0, None))
    if weight <= 0:
        if span is None or not within:
            return span
        chosen = max(within, key=lambda part: _overlap(part, span))
    assert chosen is not None
    if span is not None and weight <= sum(rarities.get(hash, 0.0) for hash in wanted) / 2:
        chosen = _joined(chosen, within, (span, *beside), text)
    focus = [place[1:] for place in asked if chosen.start <= place[1] < chosen.end]
    start, end = _shortened(text, chosen, focus or [(first, last)])
    held = tuple((begin, stop) for _, begin, stop in asked if begin >= start and stop <= end)
    return Span(start=start, end=end, text=text[start:end], words=held)


class _Part(NamedTuple):
    """A part of a text, from its first character to the one behind its last."""

    start: int
    end: int


def _with_neighbours(within: list[_Part], sentences: list[_Part], met: tuple[Span, ...]) -> list[_Part]:
    """Sentences with the one before and the one behind them, where a facet met in these, too."""
    if not within:
        return within
    first, last = sentences.index(within[0]), sentences.index(within[-1])
    before, behind = sentences[max(0, first - 1) : first], sentences[last + 1 : last + 2]
    near = [part for part in (*before, *behind) if any(_overlap(part, span) > 0 for span in met)]
    return sorted([*within, *near])


def _overlap(part: _Part, span: Span) -> int:
    return min(part.end, span.end) - max(part.start, span.start)


def _joined(chosen: _Part, within: list[_Part], met: tuple[Span, ...], text: str) -> _Part:
    """The sentence with the neighbour in which a facet met most closely, where they stand in one paragraph."""
    place = within.index(chosen) if chosen in within else -2
    beside = [part for other, part in enumerate(within) if abs(other - place) == 1]
    for part in sorted(beside, key=lambda part: _first_met(part, met)):
        before, behind = sorted((chosen, part))
        gap = text[before.end : behind.start]
        is_sentence = text[before.end - 1] in _STOPS
        if is_sentence and gap.count("\n") < 2 and behind.end - before.start <= _MOST_OF_TWO_CHARS:
            return _Part(before.start, behind.end)
    return chosen


def _first_met(part: _Part, met: tuple[Span, ...]) -> int:
    """Place of the first span, closest first, of which a third lies in a part."""
    wide = (_overlap(part, span) * _SHARE_OF_SPAN >= span.end - span.start for span in met)
    return next((place for place, is_met in enumerate(wide) if is_met), len(met))


def _shortened(text: str, part: _Part, focus: list[tuple[int, int]]) -> _Part:
    """The part, or where it is too long the clauses of it about the middle of what matters."""
    if part.end - part.start <= _LONGEST_ANSWER * (2 if part.end - part.start <= _MOST_OF_TWO_CHARS else 1):
        return part
    middle = min(max(part.start, sum(focus[len(focus) // 2]) // 2), part.end - 1)
    cuts = [part.start, *(found.end() for found in _CLAUSE.finditer(text, part.start, part.end)), part.end]
    place = bisect_right(cuts, middle) - 1
    low, high = place, min(place + 1, len(cuts) - 1)
    while high + 1 < len(cuts) and cuts[high + 1] - cuts[low] <= _LONGEST_ANSWER:
        high += 1
    while low > 0 and cuts[high] - cuts[low - 1] <= _LONGEST_ANSWER:
        low -= 1
    start, end = cuts[low], cuts[high]
    if end - start > _LONGEST_ANSWER:  # without clauses: whole words about the middle
        start, end = max(start, middle - _LONGEST_ANSWER // 2), min(end, middle + _LONGEST_ANSWER // 2)
        start = start if start == cuts[low] else text.find(" ", start, middle) + 1 or start
        end = end if end == cuts[high] else max(text.rfind(" ", middle, end), middle + 1)
    return _Part(start, start + len(text[start:end].rstrip()))


def _telling(within: list[_Part], sentences: list[_Part], others: list[tuple[int, int, int]], text: str) -> list[_Part]:
    """Sentences that hold a word that is not asked for; where none within does, the next one that does; else all."""
    says = [first for _, first, last in others if not is_stop_word(text[first:last].lower())]
    telling = [part for part in sentences if any(part.start <= first < part.end for first in says)]
    found = [part for part in telling if part in within]
    behind = within[-1].end if within else 0
    return found or [part for part in telling if part.start >= behind][:1] or within


def _weight(places: list[tuple[int, int, int]], rarities: Mapping[int, float], part: _Part) -> float:
    """Each different word once."""
    return sum(
        rarities.get(hash, 0.0) for hash in {hash for hash, first, _ in places if part.start <= first < part.end}
    )


def _words(text: str, window: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Hash, start and end of each word of a part of the text."""
    found = located_terms(text, *window)
    hashes = hash_terms([term for term, _, _ in found])
    return [(hash, first, last) for hash, (_, first, last) in zip(hashes, found, strict=True)]


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
