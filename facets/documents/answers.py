"""Lets the answer reader choose which sentence of each hit to show, and say how probably it answers.

The reader takes about 0.1 ms a word piece, so it reads the best hits only, and of a long text the sentences that are
closest to the query, with those around them and the heading above: a question is often repeated above its answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple, Protocol

import numpy as np

from facets.arrays import Floats, Ints
from facets.documents.fields import DEFAULT_SEARCH_FIELDS, SearchedText
from facets.documents.types import Span
from facets.language.sentences import sentences_of

MAX_READ_HITS = 10  # of a query
_MAX_READ_CHARS = 1900  # of all hits of a query together
_MAX_HIT_CHARS = (700, 400, 250)  # of the first hits, and of each other
_MAX_CONSIDERED_CHARS = 20_000  # of a text
_ENOUGH = 0.8  # share of the characters after which no more sentences are added
_MAX_QUESTION_CHARS = _MAX_SENTENCE_CHARS = 400
_MAX_HEADING_CHARS = 160
# Chosen on the held-out texts of `facets_lab.documents.reader_data`.
_LIKELY_BONUS = 0.5  # log-odds for what facets and words would answer
_JOINED = 2.0  # a sentence beside the best one is shown, too, if its log-odds are at most this much lower
_MAX_GAP_CHARS, _MAX_JOINED_CHARS = 2, 300
_TITLES = frozenset((*DEFAULT_SEARCH_FIELDS, "headings"))


class AnswerReader(Protocol):
    """What chooses the answers; implemented by :class:`facets.model.answer_reader.AnswerReader`."""

    def read(self, question: str, texts: Sequence[tuple[str, Sequence[str]]]) -> list[Floats]:
        """Log-odds that each sentence answers, for each heading and its sentences."""

    def answer_confidence(self, log_odds: float) -> float:
        """Calibrated probability that a sentence with these log-odds answers, in [0, 1]."""

    def hit_confidence(self, confidence: float, log_odds: float) -> float:
        """Calibrated probability that a hit answers, in [0, 1], from that without the reader and its best sentence."""


class Candidate(NamedTuple):
    """A sentence of a hit."""

    field: str  # payload field that holds it; empty: the text
    start: int
    end: int
    said: str  # as it is read
    is_heading: bool


@dataclass(frozen=True, slots=True)
class HitText:
    """A hit whose answer is wanted."""

    searched: SearchedText
    spans: Ints  # places of facets in the text, `[N, 2]`
    closeness: Floats  # cosines of these facets with the query, `[N]`
    likely: Span | None  # what facets and words would answer

    def is_likely(self, sentence: Candidate) -> bool:
        """Whether facets and words would answer with this sentence."""
        span = self.likely
        return bool(span and span.field == sentence.field and span.start < sentence.end and sentence.start < span.end)


class ReadAnswer(NamedTuple):
    """The sentence that answers most probably."""

    sentence: Candidate
    log_odds: float


def read_answers(reader: AnswerReader, question: str, hits: Sequence[HitText]) -> list[ReadAnswer | None]:
    """The answer of each of the first hits of a query; None: the hit has no sentence, or was not read."""
    chosen, left = list[list[Candidate]](), _MAX_READ_CHARS
    for hit, max_chars in zip(hits[:MAX_READ_HITS], chain(_MAX_HIT_CHARS, repeat(_MAX_HIT_CHARS[-1])), strict=False):
        if left <= 0:
            break
        chosen.append(_candidates(hit, min(left, max_chars)))
        left -= sum(len(one.said) for one in chosen[-1])
    said = ([one.said[:_MAX_SENTENCE_CHARS] for one in own] for own in chosen)
    texts = [(_heading(hit.searched), own) for hit, own in zip(hits, said, strict=False)]
    answers: list[ReadAnswer | None] = [None] * len(hits)
    for i, log_odds_S in enumerate(reader.read(question[:_MAX_QUESTION_CHARS], texts)):
        log_odds_S[[one.is_heading for one in chosen[i]]] = -np.inf
        if np.isfinite(log_odds_S).any():
            likely_S = np.array([_LIKELY_BONUS * hits[i].is_likely(one) for one in chosen[i]], dtype=np.float32)
            best = int((log_odds_S + likely_S).argmax())
            answers[i] = ReadAnswer(_joined(chosen[i], log_odds_S + likely_S, best), float(log_odds_S.max()))
    return answers


def _joined(candidates: Sequence[Candidate], scores_S: Floats, best: int) -> Candidate:
    """The best sentence, with the one beside it if that answers about as well and both are short."""
    first = candidates[best]
    beside = [i for i in (best - 1, best + 1) if 0 <= i < len(candidates) and scores_S[i] > scores_S[best] - _JOINED]
    for i in sorted(beside, key=lambda i: -scores_S[i]):
        start, end = min(first.start, candidates[i].start), max(first.end, candidates[i].end)
        gap = max(first.start, candidates[i].start) - min(first.end, candidates[i].end)
        if candidates[i].field == first.field and gap <= _MAX_GAP_CHARS and end - start <= _MAX_JOINED_CHARS:
            return first._replace(start=start, end=end)
    return first


def _sentences(field: str, text: str) -> list[Candidate]:
    """Sentences as they are read: rows of tables with the names of their columns, without the header row."""
    found = (one for one in sentences_of(text) if not (one.row and one.row.is_header))
    return [Candidate(field, one.start, one.end, one.said, one.kind == "heading") for one in found]


def _is_title(name: str) -> bool:
    return name.rpartition(".")[2].lower() in _TITLES


def _heading(searched: SearchedText) -> str:
    titles = (field.text for field in searched.fields if _is_title(field.name))
    return " \u00b7 ".join(" ".join(title.split()) for title in titles)[:_MAX_HEADING_CHARS]


def _candidates(hit: HitText, max_chars: int) -> list[Candidate]:
    """Sentences to read, in the order of the text: all, or those closest to the query and what follows them."""
    searched = hit.searched
    found = _sentences("", searched.text[:_MAX_CONSIDERED_CHARS])
    for field in searched.fields:
        if not _is_title(field.name):
            found += _sentences(field.name, field.text[:max_chars])
    lengths = np.array([len(one.said) for one in found])
    if lengths.sum() <= max_chars or not len(found):
        return found
    in_text = [i for i, one in enumerate(found) if not one.field]
    closeness = np.full(len(found), -1.0)
    starts = np.array([found[i].start for i in in_text])
    if len(starts):
        places = np.searchsorted(starts, hit.spans[:, 0], side="right") - 1
        np.maximum.at(closeness, np.maximum(places, 0), hit.closeness)
    above = np.maximum.accumulate([i if one.is_heading else -1 for i, one in enumerate(found)])
    kept, size = set[int](), 0
    for place in np.argsort(-closeness, kind="stable").tolist():
        for near in (place, place + 1, int(above[place]), place - 1):
            if 0 <= near < len(found) and near not in kept and size + lengths[near] <= max_chars:
                kept.add(near)
                size += int(lengths[near])
        if size > _ENOUGH * max_chars:
            break
    return [found[i] for i in sorted(kept)] or found[:1]
