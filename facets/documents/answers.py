"""Chooses the answer in a hit: the sentence that the answer reader prefers, or that is closest to the query.

The reader takes about 0.1 ms a word piece, so it reads the best hits only, and of a long text the sentences that are
closest to the query, with those around them and the heading above: a question is often repeated above its answer.

A record (a ticket, an FAQ entry, a form) labels what states the problem and what solves it, in the text ("Problem: ...
Resolution: ...", "Q: ... A: ...", "## Fix") or by payload fields: then the answer is the solution.

Shape letters: S sentences of a hit, K facets of it, D dimensions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, repeat
from typing import Literal, NamedTuple

import numpy as np

from facets.arrays import Floats, Ints, Vectors
from facets.documents.fields import DEFAULT_SEARCH_FIELDS, SearchedText
from facets.documents.types import Span
from facets.language.markup import Hyphens, said
from facets.language.sentences import sentences_of
from facets.language.tables import Row
from facets.language.terms import located_terms
from facets.model.answer_reader import AnswerReader

MAX_READ_HITS = 5  # of a query
_MAX_READ_CHARS = 1200  # of all hits of a query together
_MAX_HIT_CHARS = (700, 400, 250)  # of the first hits, and of each other
_MAX_CONSIDERED_CHARS = 100_000  # of a text
_NUM_KEPT = 256  # texts whose sentences are cached
_ENOUGH = 0.8  # share of the characters after which no more sentences are added
_MAX_QUESTION_CHARS = _MAX_SENTENCE_CHARS = 400
_MAX_HEADING_CHARS = 160
_TITLES = frozenset((*DEFAULT_SEARCH_FIELDS, "headings"))
# Chosen on the files of `tests/answers/file_questions.jsonl`, and on the held-out texts of
# `facets_lab.documents.reader_data`.
_WORDS_WEIGHT = 0.3  # of all words of the query, where the closest facet counts 1
_TITLE_WEIGHT = 0.3  # of headings and titles: the text below says the same
_JOINED_SHARE = 0.6  # a sentence beside the best one is shown, too, if its score is at least this share
_FACET_SHARE = 1 / 3  # of the span of a facet that a sentence must hold
_LIKELY_BONUS = 0.5  # log-odds for what facets and words would answer
_JOINED_LOG_ODDS = 2.0  # a sentence beside the best one is shown, too, if its log-odds are at most this much lower
_MAX_GAP_CHARS, _MAX_JOINED_CHARS = 2, 300
_MAX_ANSWER_CHARS = 500  # of a longer sentence, part of this length is shown
_MAX_CELLS, _MAX_CELL_CHARS = 12, 300  # of a row that are shown

Role = Literal["problem", "solution", ""]

# Words of labels in English, German, French and Spanish.
_PROBLEM = frozenset(
    "subject title question problem issue symptom symptoms complaint fault error defect failure description"
    " frage fehler st\u00f6rung beschwerde beschreibung betreff probl\u00e8me panne objet"
    " pregunta problema s\u00edntoma incidencia asunto".split()
)
_SOLUTION = frozenset(
    "answer resolution solution fix workaround remedy response cause"
    " antwort l\u00f6sung abhilfe ursache r\u00e9ponse soluci\u00f3n respuesta causa".split()
)
_MARKS = r"[ \t>|#*_-]*+"
_WORDS = r"[^\W\d_][\w'-]{0,30}(?: [\w'-]{1,30}){0,2}"
# "Resolution: text", "**Fix**", "## Problem", "Q1. text", "| Answer | text |"; a label alone on its line, too.
_LABEL = re.compile(
    rf"^(?P<marks>{_MARKS})(?:(?P<letter>[QA])[ ]?\d{{0,3}}[.:)]"
    rf"|(?P<words>{_WORDS})[ ]*+(?P<end>[*_]*+(?:[:\uff1a|\t]|[ \t]*+$)))[ \t*_]*+(?=\s|$|(?<=[\s*_]))",
    re.MULTILINE,
)
_BLANK = " \t\r\n|*_"
_FEWEST_WORDS = 4  # of prose: fewer are a fact, such as a name or a date
_MAX_PROBLEM_CHARS = 1_000  # a longer text without labels holds more than a problem
_MAX_RECORD_CHARS = 100_000  # characters of a text that are searched for labels


@dataclass(frozen=True, slots=True)
class QueryWords:
    """Words of a query."""

    language: str
    weights: Mapping[str, float]  # of each term

    def located(self, text: str, start: int, end: int) -> list[tuple[str, int, int]]:
        """Those in a range of a text: terms, and offsets of their words."""
        found = located_terms(text, start, end, language=self.language) if self.weights else []
        return [one for one in found if one[0] in self.weights]

    def share(self, text: str, start: int, end: int) -> float:
        """Share of the words, by weight, that a range of a text has."""
        found = {term for term, _, _ in self.located(text, start, end)}
        return sum(self.weights[term] for term in found) / (sum(self.weights.values()) or 1.0)


class Sentence(NamedTuple):
    """A sentence that may answer."""

    field: str  # that holds it; empty: the text
    start: int  # offset of its first character
    end: int  # offset after its last one
    place: int  # of the text that holds it among kept spans, see `SearchedText`
    said: str  # as it is read: rows of tables with the names of their columns
    is_title: bool  # a heading, or the text of a title field
    row: Row | None  # of a table with a header row


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences of a hit and how well they answer by facets and words."""

    searched: SearchedText
    sentences: Sequence[Sentence]
    scores: Floats  # `[S]`, 0 or more

    def answer(self, words: QueryWords) -> Span | None:
        """The best sentence by facets and words; None if no sentence has a facet or a word of the query."""
        if not self.scores.any():
            return None
        return self._shown(self.scores, _JOINED_SHARE * self.scores.max(), words)

    def read_answer(self, places: Sequence[int], log_odds: Floats, words: QueryWords) -> tuple[Span, float] | None:
        """The answer of a reader that has read the sentences at these indices, and its log-odds; None without one."""
        scores = np.full(len(self.sentences), -np.inf, dtype=np.float32)
        scores[places] = np.where([self.sentences[place].is_title for place in places], -np.inf, log_odds)
        if not np.isfinite(scores).any():
            return None
        highest = float(scores.max())
        scores[self.scores.argmax()] += _LIKELY_BONUS * bool(self.scores.any())
        return self._shown(scores, scores.max() - _JOINED_LOG_ODDS, words), highest

    def to_read(self, max_chars: int) -> list[int]:
        """Indices of the sentences to read, in order: all, or those closest to the query and what is around them.

        None of a text that only asks: it cannot answer, but may be the question that is searched for.
        """
        read = [i for i, one in enumerate(self.sentences) if not _is_title(one.field)]
        if all(self.sentences[i].said.endswith("?") for i in read):
            return []
        lengths = {i: len(self.sentences[i].said) for i in read}
        if sum(lengths.values()) <= max_chars:
            return read
        above = np.maximum.accumulate([i if one.is_title else -1 for i, one in enumerate(self.sentences)])
        kept, size = set[int](), 0
        for place in sorted(read, key=lambda i: -self.scores[i]):
            for near in (place, place + 1, int(above[place]), place - 1):
                if near in lengths and near not in kept and size + lengths[near] <= max_chars:
                    kept.add(near)
                    size += lengths[near]
            if size > _ENOUGH * max_chars:
                break
        return sorted(kept) or read[:1]

    def _shown(self, scores_S: Floats, least_joined: float, words: QueryWords) -> Span:
        """The best sentence, or what solves the problem that it states, with its query words and its row."""
        best = self.sentences[int(scores_S.argmax())]
        problem = self._span(*self._with_neighbour(scores_S, least_joined), words)
        sections = solutions_of(self.searched, problem.start, problem.end, best.field)
        if not sections:
            return self._with_row(problem, best, words)
        field = sections[0].field
        start, end = sections[0].start, max(section.end for section in sections if section.field == field)
        if end - start > _MAX_JOINED_CHARS:
            inside = [i for i, one in enumerate(self.sentences) if one.field == field and start < one.end <= end]
            best = self.sentences[max(inside, key=lambda i: scores_S[i])]
            start, end = max(start, best.start), best.end
        return replace(self._span(field, start, end, words), problem=problem.text)

    def _with_neighbour(self, scores_S: Floats, least: float) -> tuple[str, int, int]:
        """The best sentence, with the one beside it if that answers about as well and both are short."""
        best = int(scores_S.argmax())
        first = self.sentences[best]
        beside = [i for i in (best - 1, best + 1) if 0 <= i < len(scores_S) and scores_S[i] > least]
        for other in (self.sentences[i] for i in sorted(beside, key=lambda i: -scores_S[i])):
            start, end = min(first.start, other.start), max(first.end, other.end)
            gap = max(first.start, other.start) - min(first.end, other.end)
            is_near = other.field == first.field and gap <= _MAX_GAP_CHARS and end - start <= _MAX_JOINED_CHARS
            if is_near and not (first.row or other.row):
                return first.field, start, end
        return first.field, first.start, first.end

    def _span(self, field: str, start: int, end: int, words: QueryWords) -> Span:
        """A range with its query words; a long one is cut around the middle one of these."""
        text = self.searched.text_of(field)
        if end - start > _MAX_ANSWER_CHARS:
            located = words.located(text, start, end) or [("", start, end)]
            middle = sum(located[len(located) // 2][1:]) // 2
            low, high = max(start, middle - _MAX_ANSWER_CHARS // 2), min(end, middle + _MAX_ANSWER_CHARS // 2)
            start = low if low == start else text.find(" ", low, middle) + 1 or low
            end = high if high == end or " " not in text[middle:high] else text.rindex(" ", middle, high)
        shown = list[tuple[int, int]]()
        for _, first, last in words.located(text, start, end):
            before = shown.pop() if shown and first < shown[-1][1] else (first, last)  # pairs of characters overlap
            shown.append((before[0], max(before[1], last)))
        return Span(start=start, end=end, text=text[start:end], words=tuple(shown), field=field)

    def _with_row(self, answer: Span, best: Sentence, words: QueryWords) -> Span:
        """The answer with the cells of its row and the names of their columns, if it is in a table with a header row.

        Of a row of many cells, the first is given, those with words of the query in the cell or its column, and the
        next.
        """
        row = best.row
        if row is None:
            return answer
        text = _source(self.searched, best.field)
        hyphens = Hyphens(text)
        cells = [said(text, *cell, hyphens=hyphens) if cell.end > cell.start else "" for cell in row.cells]
        shown = list(range(len(cells)))
        if len(cells) > _MAX_CELLS:
            pairs = [f"{name} {cell}" for name, cell in zip(row.names, cells, strict=True)]
            is_asked = [bool(words.located(pair, 0, len(pair))) for pair in pairs]
            shown = sorted(sorted(shown, key=lambda number: (number > 0, not is_asked[number]))[:_MAX_CELLS])
        return replace(
            answer,
            columns=tuple(row.names[number] for number in shown),
            cells=tuple(cells[number][:_MAX_CELL_CHARS] for number in shown),
        )


def sentences_in(
    searched: SearchedText, facets_KD: Floats, spans_K2: Ints, query_D: Vectors, words: QueryWords
) -> Sentences:
    """The sentences of a text and its fields, scored by the closest facet that each holds, and by its query words.

    ``facets_KD``: unit norm. ``spans_K2``: kept spans of these; empty: not known. ``query_D``: any norm.
    """
    sentences = _all_sentences(searched)
    scores_S = np.zeros(len(sentences), dtype=np.float32)
    if len(spans_K2) and sentences:
        starts_S1, ends_S1 = np.array([[one.place + one.start, one.place + one.end] for one in sentences]).T[..., None]
        starts_K, ends_K = spans_K2.T
        shared_SK = np.minimum(ends_S1, ends_K) - np.maximum(starts_S1, starts_K)
        is_held_SK = (ends_K > starts_K) & (shared_SK >= _FACET_SHARE * (ends_K - starts_K))
        scores_S = np.where(is_held_SK, facets_KD @ query_D, 0.0).max(axis=1, initial=0.0)
        scores_S /= scores_S.max() or 1.0
    texts = {field.name: field.text for field in searched.fields} | {"": searched.text}
    scores_S += _WORDS_WEIGHT * np.array([words.share(texts[one.field], one.start, one.end) for one in sentences])
    scores_S[[one.is_title for one in sentences]] *= _TITLE_WEIGHT
    return Sentences(searched, sentences, scores_S.astype(np.float32))


def _all_sentences(searched: SearchedText) -> list[Sentence]:
    """The sentences of a text and its fields, without header rows of tables."""
    sentences, place = list[Sentence](), 0
    for field, text in (("", searched.text), *((field.name, field.text) for field in searched.fields)):
        source = _source(searched, field)
        before = len(source) - len(text)
        for one in _sentences_of(source[:_MAX_CONSIDERED_CHARS]):
            if one.start >= before and not (one.row and one.row.is_header):
                is_title = one.kind == "heading" or _is_title(field)
                row = one.row if one.row and one.row.names else None
                sentences.append(Sentence(field, one.start - before, one.end - before, place, one.said, is_title, row))
        place += len(text) + 1
    return sentences


_sentences_of = lru_cache(maxsize=_NUM_KEPT)(sentences_of)


def _source(searched: SearchedText, field: str) -> str:
    """The text that holds a field, or the searched text, with the header row of a table that continues in it."""
    return searched.read if not field and searched.continues_table else searched.text_of(field)


def _is_title(field: str) -> bool:
    return field.rpartition(".")[2].lower() in _TITLES


def _heading(searched: SearchedText) -> str:
    titles = (field.text for field in searched.fields if _is_title(field.name))
    return " \u00b7 ".join(" ".join(title.split()) for title in titles)[:_MAX_HEADING_CHARS]


def read_answers(
    reader: AnswerReader, question: str, hits: Sequence[Sentences], words: QueryWords
) -> list[tuple[Span, float] | None]:
    """The answer in each of the first hits of a query, and its log-odds; None: it has no sentence, or was not read."""
    chosen, left = list[list[int]](), _MAX_READ_CHARS
    for hit, max_chars in zip(hits[:MAX_READ_HITS], chain(_MAX_HIT_CHARS, repeat(_MAX_HIT_CHARS[-1])), strict=False):
        if left <= 0:
            break
        chosen.append(hit.to_read(min(left, max_chars)))
        left -= sum(len(hit.sentences[i].said) for i in chosen[-1])
    texts = [
        (_heading(hit.searched), [hit.sentences[i].said[:_MAX_SENTENCE_CHARS] for i in own])
        for hit, own in zip(hits, chosen, strict=False)
    ]
    read = reader.read(question[:_MAX_QUESTION_CHARS], texts)
    return [hit.read_answer(own, log_odds, words) for hit, own, log_odds in zip(hits, chosen, read, strict=False)]


class Section(NamedTuple):
    """A labelled part of a record."""

    role: Role  # empty: another label, such as "Status:"
    label: str  # in lower case; empty for text before the first label
    label_start: int  # offset of the label
    start: int  # offset of the content, after the label
    end: int  # offset after the content
    field: str = ""  # payload field that holds it; empty: the text


def role_of(label: str) -> Role:
    """What a label or the name of a field announces.

    Example:
        >>> role_of("Resolution notes"), role_of("ticket.problem"), role_of("Status")
        ('solution', 'problem', '')
    """
    words = set(re.findall(r"[^\W\d_]+", label.lower()))
    return "solution" if words & _SOLUTION else "problem" if words & _PROBLEM else ""


def sections_of(text: str) -> list[Section]:
    r"""The labelled parts of a text, in order; empty if no label announces a solution.

    Prose before the first solution is a problem, whatever its label.

    Example:
        >>> text = "Problem: It is dark.\nResolution: Turn it on.\nStatus: closed"
        >>> [(section.role, text[section.start : section.end]) for section in sections_of(text)]
        [('problem', 'It is dark.'), ('solution', 'Turn it on.'), ('', 'closed')]
    """
    found = [Section("", "", 0, 0, 0)]
    for match in _LABEL.finditer(text, 0, min(len(text), _MAX_RECORD_CHARS)):
        label = match["words"] or {"Q": "question", "A": "answer"}[match["letter"]]
        role = role_of(label)
        if role or any(mark in match[0] for mark in (":", "\uff1a", "#", "**")):
            found[-1] = found[-1]._replace(end=match.start())
            found.append(Section(role, label.lower(), match.start(), match.end(), len(text)))
    first_solution = next((number for number, section in enumerate(found) if section.role == "solution"), None)
    if first_solution is None:
        return []
    sections = []
    for number, section in enumerate(found):
        content = text[section.start : section.end]
        start = section.start + len(content) - len(content.lstrip(_BLANK))
        if content := content.strip(_BLANK):
            is_problem = number < first_solution and len(content.split()) >= _FEWEST_WORDS
            role = section.role or ("problem" if is_problem else "")
            sections.append(section._replace(role=role, start=start, end=start + len(content)))
    return sections


def solutions_of(searched: SearchedText, start: int, end: int, field: str = "") -> list[Section]:
    """The sections that solve the problem which ``[start, end)`` of the text, or of a field, states; usually one.

    Empty if the range does not state a problem, or nothing solves it.
    """
    fields = [one for one in searched.fields if role_of(one.name) == "solution"]
    in_fields = [Section("solution", one.name, 0, 0, len(one.text), one.name) for one in fields]
    if field:
        return in_fields if role_of(field) == "problem" else []
    sections = sections_of(searched.text)
    if not sections:  # without labels, a short text is the problem if a field holds the solution
        return in_fields if len(searched.text) <= _MAX_PROBLEM_CHARS else []
    place = next((i for i, one in enumerate(sections) if one.label_start < end and start < one.end), -1)
    if place < 0 or sections[place].role != "problem":
        return []
    solutions: list[Section] = []
    for section in sections[place + 1 :]:
        if section.role == "problem" and (solutions or section.label == sections[place].label):
            break
        solutions += [section] if section.role == "solution" else []
    return solutions
