"""Why a document was found: matching facets, their places in the text, matched words, the answering sentence.

Shape letters: J facets of a query, K facets of a document, D dimensions.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from facets.documents.answer_fields import solutions_of
from facets.documents.answers import MAX_READ_HITS, AnswerReader, Candidate, HitText, read_answers
from facets.documents.codes import hash_terms, read_spans
from facets.documents.fields import FieldText, SearchedText
from facets.documents.types import FacetMatch, Span
from facets.index.lexical import TermCounts
from facets.language.interruption import check_interrupted
from facets.language.markup import STOPS, Hyphens, said
from facets.language.sentences import Sentence, sentences_of
from facets.language.terms import QueryTerms, located_terms
from facets.language.terms import terms as terms_of
from facets.language.vectors import unit_rows

_MAX_ANSWER_CHARS = 300  # a longer sentence is cut
_MAX_TWO_SENTENCES_CHARS = 500
_NEIGHBOUR_SHARE = 3  # a neighbouring sentence that holds a third of a span belongs to the answer
_SENTENCE_ENDS = STOPS + "\"')\u201d\u2019\u300d\u300f\uff09"
_CLAUSE = re.compile(r"[,;:](?=\s)\s*|[\u3001\uff0c\uff1b\uff1a]|\s(?=[(\u2013\u2014])|\n\s*")
_CLOSE_SHARE = 0.65  # facets with this share of the best cosine count as close, too
_MIN_SPAN_WORDS = 3  # a shorter span is a name, or an item of a list of names
_CONTEXT_CHARS = 400  # characters before and after a span that are searched for the ends of its sentences
_NUM_KEPT = 256  # texts whose sentences are cached
_MAX_CELLS = 12  # cells of a row that are shown
_MAX_SEARCHED_CHARS = 100_000  # characters of a text that are searched for the sentence with the words


class _Range(NamedTuple):
    start: int
    end: int


class _Word(NamedTuple):
    hash: int  # of its term
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FoundText:
    """A hit and how it met the query."""

    searched: SearchedText
    facets: NDArray[np.float32]  # `[K, D]`, unit norm
    stored_spans: NDArray[np.uint32] | None  # of these facets, `[K, 2]`; None: not known
    shares: NDArray[np.float32]  # `[J]`, what each facet of the query added to the score
    met: NDArray[np.int64]  # `[J]`, the best facet of the document for each


class Reasons(NamedTuple):
    """Why a hit was found."""

    matches: tuple[FacetMatch, ...]  # of the query's facets, largest contribution first
    answer: Span | None  # the part of the document that answers
    log_odds: float | None = None  # that it answers, by the reader; None: it was not read


def explain(
    query_JD: NDArray[np.float32],
    found: Sequence[FoundText],
    *,
    terms: QueryTerms | None,
    rarities: Mapping[int, float],
    question: str = "",
    reader: AnswerReader | None = None,
) -> list[Reasons]:
    """The reasons for the hits of one query, best hit first.

    ``query_JD``: weights as norms; facets of weight 0 are left out. ``reader``: chooses the answers of the first hits
    for the ``question``; for the others, and without it, see :func:`_answer_of`.
    """
    hashes = hash_terms([term for term, _ in terms.words]) if terms else []
    word_weights = {hash: rarities.get(hash, 0.0) for hash in hashes}
    reasons = []
    for one in found:
        check_interrupted()
        reasons.append(_reasons_of(query_JD, one, terms, word_weights))
    if reader is None:
        return reasons
    query_D = unit_rows(query_JD.sum(axis=0, keepdims=True))[0]
    texts = [_hit_text(one, query_D, why.answer) for one, why in zip(found[:MAX_READ_HITS], reasons, strict=False)]
    for place, read in enumerate(read_answers(reader, question, texts)):
        if read is not None:
            span = _shown_sentence(found[place].searched, read.sentence, terms, word_weights)
            reasons[place] = Reasons(reasons[place].matches, span, read.log_odds)
    return reasons


def _hit_text(found: FoundText, query_D: NDArray[np.float32], likely: Span | None) -> HitText:
    spans_K2 = np.zeros((0, 2), dtype=np.int64) if found.stored_spans is None else read_spans(found.stored_spans)[0]
    in_text = (spans_K2[:, 1] > spans_K2[:, 0]) & (spans_K2[:, 1] <= len(found.searched.text))
    closeness = found.facets[: len(spans_K2)][in_text] @ query_D
    return HitText(found.searched, spans_K2[in_text], closeness, likely)


def _shown_sentence(
    searched: SearchedText, sentence: Candidate, terms: QueryTerms | None, word_weights: Mapping[int, float]
) -> Span:
    """A sentence with its query words, cut if it is too long; if it states a problem, what solves it."""
    text, whole = searched.text_of(sentence.field), _Range(sentence.start, sentence.end)
    span = _shown(text, whole, _words(text, whole, terms), word_weights, middle=sum(whole) // 2)
    span = replace(span, field=sentence.field)
    return _with_row(searched, _solution_of(searched, span, terms, word_weights), terms)


def _reasons_of(
    query_JD: NDArray[np.float32], found: FoundText, terms: QueryTerms | None, word_weights: Mapping[int, float]
) -> Reasons:
    """The reasons by facets and words alone."""
    searched, facets_KD, shares_J = found.searched, found.facets, found.shares
    weights_J = np.linalg.norm(query_JD.astype(np.float64), axis=1)
    positive_J = np.maximum(shares_J.astype(np.float64), 0.0)
    total = float(positive_J.sum()) or 1.0
    cosines_J = np.clip(np.divide(shares_J, weights_J, out=np.zeros_like(weights_J), where=weights_J > 0), -1.0, 1.0)
    spans_K2, in_heading_K = (None, None) if found.stored_spans is None else read_spans(found.stored_spans)
    matches = tuple(
        FacetMatch(
            first_facet=facet,
            second_facet=int(found.met[facet]),
            cosine=float(cosines_J[facet]),
            contribution=float(positive_J[facet]) / total,
            facet=facets_KD[found.met[facet]],
            second_span=None if spans_K2 is None else searched.span(*spans_K2[found.met[facet]].tolist()),
        )
        for facet in np.argsort(-shares_J, kind="stable").tolist()
        if weights_J[facet] > 0
    )
    best = next((match for match in matches if match.second_span and match.contribution > 0), None)
    close: tuple[Span, ...] = ()
    if best is not None and spans_K2 is not None and in_heading_K is not None:
        # The facets of one sentence, which have its span, speak together.
        _, of_K = np.unique(spans_K2, axis=0, return_inverse=True)
        sums = np.zeros_like(facets_KD)
        np.add.at(sums, of_K.ravel(), facets_KD)
        query_D = query_JD[best.first_facet]
        cosines_K = unit_rows(sums)[of_K.ravel()] @ (query_D / np.linalg.norm(query_D))
        close = _close_spans(cosines_K, _CLOSE_SHARE * best.cosine, searched, spans_K2, in_heading_K)
    answer = _answer_of(searched, best.second_span if best else None, terms, word_weights, close_spans=close)
    answer = answer and _solution_of(searched, answer, terms, word_weights)
    return Reasons(matches, answer and _with_row(searched, answer, terms))


def _solution_of(
    searched: SearchedText, answer: Span, terms: QueryTerms | None, word_weights: Mapping[int, float]
) -> Span:
    """What solves the problem that the answer states, in full or its best sentence; else the answer itself."""
    sections = solutions_of(searched, answer.start, answer.end, answer.field)
    if not sections:
        return answer
    field = sections[0].field
    text = searched.text_of(field)
    start, end = sections[0].start, max(section.end for section in sections if section.field == field)
    words = _words(text, _Range(start, end), terms)
    if end - start > _MAX_ANSWER_CHARS:
        found = sentences_of(text[start:end])
        sentences = [_Range(sentence.start + start, sentence.end + start) for sentence in found]
        best = max(sentences, key=lambda sentence: _weight(words, word_weights, sentence))
        start, end = _shortened(text, best, best.start)
    shown = _shown_words(words, word_weights, start, end)
    return Span(start=start, end=end, text=text[start:end], words=shown, field=field, problem=answer.text)


def _with_row(searched: SearchedText, answer: Span, terms: QueryTerms | None) -> Span:
    """The answer with the cells of its row and the names of their columns, if it is in a table with a header row.

    Of a row of many cells, the first is given, those with words of the query in the cell or its column, and the next.
    """
    text = searched.read if searched.continues_table else searched.text
    place = len(text) - len(searched.text) + answer.start
    sentences = () if answer.field else _sentences(text, _Range(place, place + 1))
    row = next((sentence.row for sentence in sentences if sentence.row and sentence.row.names), None)
    if row is None:
        return answer
    hyphens = Hyphens(text)
    cells = [said(text, *cell, hyphens=hyphens) if cell.end > cell.start else "" for cell in row.cells]
    asked = {term for term, _ in terms.words} if terms else set[str]()

    def is_asked(number: int) -> bool:
        words = terms_of(f"{row.names[number]} {cells[number]}", terms.language) if terms else ()
        return not asked.isdisjoint(words)

    shown = list(range(len(cells)))
    if len(cells) > _MAX_CELLS:
        shown = sorted(sorted(shown, key=lambda number: (number > 0, not is_asked(number)))[:_MAX_CELLS])
    return replace(
        answer,
        columns=tuple(row.names[number] for number in shown),
        cells=tuple(cells[number][:_MAX_ANSWER_CHARS] for number in shown),
    )


def _close_spans(
    cosines_K: NDArray[np.float32],
    min_cosine: float,
    searched: SearchedText,
    spans_K2: NDArray[np.int64],
    in_heading_K: NDArray[np.bool_],
) -> tuple[Span, ...]:
    """Spans in the text, not in fields, of the facets with at least this cosine, closest first.

    Spans of headings are left out unless there are no others: the text below says the same.
    """
    places = np.flatnonzero((spans_K2[:, 1] > spans_K2[:, 0]) & (spans_K2[:, 1] <= len(searched.text)))
    if not (cosines_K[places] >= min_cosine).any():
        return ()
    places = places[np.argsort(-cosines_K[places], kind="stable")]
    places = places[in_heading_K[places].all() | ~in_heading_K[places]]
    num_close = max(1, int(np.count_nonzero(cosines_K[places] >= min_cosine)))
    spans = (searched.span(*spans_K2[place].tolist()) for place in places[:num_close].tolist())
    return tuple(span for span in spans if span is not None)


def _answer_of(
    searched: SearchedText,
    span: Span | None,
    terms: QueryTerms | None,
    word_weights: Mapping[int, float],
    *,
    close_spans: tuple[Span, ...] = (),
) -> Span | None:
    """The part of a document that answers a query best: one sentence, or two; None if nothing matches anywhere.

    The candidates are the sentences that overlap the span of the best match, and their neighbours with a close span.
    The one whose words weigh most in the query wins; if they weigh less than half of the query, a neighbour is added.
    A span of one or two words gives way to a longer one. Without spans, the sentence of the text whose words weigh most
    wins. A sentence of query words only, such as a title, is shown only if there is no other. A sentence of more than
    300 characters is cut at clauses. A field is shown only if it holds half of the query or the best match, and the
    text holds none of it.

    ``span``: of the best match. ``terms``: of the query; None: words do not count. ``word_weights``: of each term by
    its hash. ``close_spans``: where the text is almost as close to the query, closest first.
    """
    if searched.fields:
        field = _answering_field(searched, span, terms, word_weights, close_spans)
        if field is not None:
            span_in_field = span if span and span.field == field.name else None
            answer = _answer_in(field.text, span_in_field, terms, word_weights)
            return answer and replace(answer, field=field.name)
    if span is not None and (span.field or close_spans):
        long_spans = (close for close in close_spans if len(close.text.split()) >= _MIN_SPAN_WORDS)
        span = next(long_spans, next(iter(close_spans), None))
    return _answer_in(searched.text, span, terms, word_weights, close_spans)


def _answering_field(
    searched: SearchedText,
    span: Span | None,
    terms: QueryTerms | None,
    word_weights: Mapping[int, float],
    close_spans: tuple[Span, ...],
) -> FieldText | None:
    """The field to show instead of the text; None: show the text."""
    weights = [_weight_in(field.text, terms, word_weights) for field in searched.fields]
    largest, field = max(weights), None
    if largest > 0 and largest >= sum(word_weights.values()) / 2:
        field = searched.fields[weights.index(largest)]
    elif span is not None and span.field and not close_spans:
        field = next(field for field in searched.fields if field.name == span.field)
    return None if field is None or _weight_in(searched.text, terms, word_weights) > 0 else field


def _weight_in(text: str, terms: QueryTerms | None, word_weights: Mapping[int, float]) -> float:
    text_range = _Range(0, min(len(text), _MAX_SEARCHED_CHARS))
    return _weight(_words(text, text_range, terms), word_weights, text_range)


def _answer_in(
    text: str,
    span: Span | None,
    terms: QueryTerms | None,
    word_weights: Mapping[int, float],
    close_spans: tuple[Span, ...] = (),
) -> Span | None:
    """The answer in one text; ``span`` is the span of the best match in it. See :func:`_answer_of`."""
    if span is None and not word_weights:
        return None
    first, last = (span.start, span.end) if span else (0, min(len(text), _MAX_SEARCHED_CHARS))
    context = _CONTEXT_CHARS if span else 0
    in_table = span is not None and any(one.row for one in _sentences(text, _Range(first, last)))
    if in_table:  # few of the rows have facets, so words choose among all
        first, last = 0, len(text)
    window = _Range(max(0, first - context), min(len(text), last + context))
    words = _words(text, window, terms)
    found = _sentences(text, window)
    if in_table:
        found = [one for one in found if one.row]
    sentences = [_Range(one.start, one.end) for one in found if not (one.row and one.row.is_header)]
    candidates = [sentence for sentence in sentences if sentence.end > first and sentence.start < last]
    if span is not None:
        candidates = _with_neighbours(candidates, sentences, close_spans)
    informative = candidates
    if terms is not None and word_weights:
        others = [word for word in words if word.hash not in word_weights]
        stop_words = {word for word in {text[one.start : one.end] for one in others} if terms.is_stop_word(word)}
        other_words = [word for word in others if text[word.start : word.end] not in stop_words]
        informative = _informative(candidates, sentences, other_words)
    # The first cell names the row: "Ann,Bo" answers a question about Ann, "Bo,Ann" does not.
    name_weights = {one.start: _weight(words, word_weights, _Range(*one.row.cells[0])) for one in found if one.row}
    weights = [(_weight(words, word_weights, sentence), sentence) for sentence in informative]
    weight, chosen = max(
        weights,
        key=lambda pair: (pair[0], name_weights.get(pair[1].start, 0.0), span and _overlap(pair[1], span)),
        default=(0.0, None),
    )
    if weight <= 0:
        if span is None or not candidates:
            return span
        chosen = max(candidates, key=lambda sentence: _overlap(sentence, span))
    assert chosen is not None
    if span is not None and weight <= sum(word_weights.values()) / 2:
        chosen = _with_one_neighbour(chosen, candidates, (span, *close_spans), text)
    return _shown(text, chosen, words, word_weights, middle=(first + last) // 2)


def _shown(text: str, sentence: _Range, words: list[_Word], word_weights: Mapping[int, float], *, middle: int) -> Span:
    """A sentence with its query words; a long one is cut around the middle one of these, or around ``middle``."""
    query_words = [word for word in words if word.hash in word_weights and sentence.start <= word.start < sentence.end]
    if query_words:
        middle = sum(query_words[len(query_words) // 2][1:]) // 2
    start, end = _shortened(text, sentence, middle)
    return Span(start=start, end=end, text=text[start:end], words=_shown_words(words, word_weights, start, end))


def _shown_words(
    words: list[_Word], word_weights: Mapping[int, float], start: int, end: int
) -> tuple[tuple[int, int], ...]:
    """Offsets of the query words within a range."""
    shown = list[tuple[int, int]]()
    for word in words:
        if word.hash in word_weights and start <= word.start and word.end <= end:
            before = shown.pop() if shown and word.start < shown[-1][1] else (word.start, word.end)  # pairs overlap
            shown.append((before[0], max(before[1], word.end)))
    return tuple(shown)


def _with_neighbours(candidates: list[_Range], sentences: list[_Range], spans: Sequence[Span]) -> list[_Range]:
    """Adds the sentence before and the sentence after, if one of the spans overlaps it."""
    if not candidates:
        return candidates
    first, last = sentences.index(candidates[0]), sentences.index(candidates[-1])
    neighbours = (*sentences[max(0, first - 1) : first], *sentences[last + 1 : last + 2])
    overlapping = [sentence for sentence in neighbours if any(_overlap(sentence, span) > 0 for span in spans)]
    return sorted([*candidates, *overlapping])


def _overlap(sentence: _Range, span: Span) -> int:
    return min(sentence.end, span.end) - max(sentence.start, span.start)


def _with_one_neighbour(chosen: _Range, candidates: list[_Range], spans: Sequence[Span], text: str) -> _Range:
    """Joins the sentence with the neighbour that has the closest span, if both stand in one paragraph."""
    place = candidates.index(chosen) if chosen in candidates else -2
    neighbours = [sentence for other, sentence in enumerate(candidates) if abs(other - place) == 1]
    for neighbour in sorted(neighbours, key=lambda sentence: _closest_span(sentence, spans)):
        before, after = sorted((chosen, neighbour))
        gap = text[before.end : after.start]
        ends_sentence = text[before.end - 1] in _SENTENCE_ENDS
        if ends_sentence and gap.count("\n") < 2 and after.end - before.start <= _MAX_TWO_SENTENCES_CHARS:
            return _Range(before.start, after.end)
    return chosen


def _closest_span(sentence: _Range, spans: Sequence[Span]) -> int:
    """Index of the closest span of which the sentence holds at least a third; ``len(spans)`` if none."""
    holds = (_overlap(sentence, span) * _NEIGHBOUR_SHARE >= span.end - span.start for span in spans)
    return next((index for index, is_held in enumerate(holds) if is_held), len(spans))


def _shortened(text: str, sentence: _Range, middle: int) -> _Range:
    """The sentence; if it is too long, its clauses around the middle."""
    length = sentence.end - sentence.start
    if length <= _MAX_ANSWER_CHARS * (2 if length <= _MAX_TWO_SENTENCES_CHARS else 1):
        return sentence
    middle = min(max(sentence.start, middle), sentence.end - 1)
    clause_ends = (match.end() for match in _CLAUSE.finditer(text, sentence.start, sentence.end))
    cuts = [sentence.start, *clause_ends, sentence.end]
    low = bisect_right(cuts, middle) - 1
    high = min(low + 1, len(cuts) - 1)
    while high + 1 < len(cuts) and cuts[high + 1] - cuts[low] <= _MAX_ANSWER_CHARS:
        high += 1
    while low > 0 and cuts[high] - cuts[low - 1] <= _MAX_ANSWER_CHARS:
        low -= 1
    start, end = cuts[low], cuts[high]
    if end - start > _MAX_ANSWER_CHARS:  # no clauses: whole words around the middle
        start, end = max(start, middle - _MAX_ANSWER_CHARS // 2), min(end, middle + _MAX_ANSWER_CHARS // 2)
        start = start if start == cuts[low] else text.find(" ", start, middle) + 1 or start
        space = text.rfind(" ", middle, end)
        end = space if space > 0 and end < cuts[high] else end
    return _Range(start, start + len(text[start:end].rstrip()))


def _informative(candidates: list[_Range], sentences: list[_Range], other_words: list[_Word]) -> list[_Range]:
    """Candidates with a word that is not in the query; else the next such sentence; else all candidates."""
    informative = [one for one in sentences if any(one.start <= word.start < one.end for word in other_words)]
    found = [sentence for sentence in informative if sentence in candidates]
    end = candidates[-1].end if candidates else 0
    return found or [sentence for sentence in informative if sentence.start >= end][:1] or candidates


def _weight(words: list[_Word], word_weights: Mapping[int, float], sentence: _Range) -> float:
    """Total weight of the distinct query words in a sentence."""
    hashes = {word.hash for word in words if sentence.start <= word.start < sentence.end}
    return sum(word_weights.get(hash, 0.0) for hash in hashes)


def _words(text: str, window: _Range, terms: QueryTerms | None) -> list[_Word]:
    """Words of a text in the language of a query; none without a query."""
    located = located_terms(text, *window, language=terms.language) if terms else []
    distinct = list({term for term, _, _ in located})
    hashes = dict(zip(distinct, hash_terms(distinct), strict=True))
    return [_Word(hashes[term], start, end) for term, start, end in located]


def _sentences(text: str, window: _Range) -> list[Sentence]:
    """Sentences of a text that overlap a window; rows of tables know their header row."""
    if len(text) <= _MAX_SEARCHED_CHARS:
        return [one for one in _all_sentences(text) if one.end > window.start and one.start < window.end]
    found = sentences_of(text[slice(*window)])
    return [one._replace(start=one.start + window.start, end=one.end + window.start, row=None) for one in found]


_all_sentences = lru_cache(maxsize=_NUM_KEPT)(sentences_of)


def matched_words(query: QueryTerms, document_terms: TermCounts) -> tuple[str, ...]:
    """Words of the query that a document has, in any form, each once."""
    hashes = hash_terms([term for term, _ in query.words])
    found = set(document_terms.hashes.tolist())
    return tuple(dict.fromkeys(word for (_, word), hash in zip(query.words, hashes, strict=True) if hash in found))
