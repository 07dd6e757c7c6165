"""Lets the answer reader choose which sentence of each hit to show, and say how probably it answers.

The reader costs about 0.07 ms a token, so it reads the best hits only, and of a long text the sentences that are
closest to the query with the sentences after them: a question is often repeated above its answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from facets.arrays import Floats, Ints
from facets.documents.fields import DEFAULT_SEARCH_FIELDS, SearchedText
from facets.language.sentences import sentences_of

MAX_READ_HITS = 10  # of a query
_MAX_READ_CHARS = (900, 600, 450)  # of the text of the first hits, and of all others
_MAX_CONSIDERED_CHARS = 20_000  # of a text
_MAX_HEADING_CHARS = 160
_TITLES = frozenset((*DEFAULT_SEARCH_FIELDS, "headings"))


class AnswerReader(Protocol):
    """What chooses the answers; implemented by :class:`facets.model.AnswerReader`."""

    def read(self, question: str, texts: Sequence[tuple[str, Sequence[str]]]) -> list[Floats]:
        """Log-odds that each sentence answers, for each heading and its sentences."""

    def confidence(self, log_odds: float) -> float:
        """Calibrated probability that a sentence with these log-odds answers, in [0, 1]."""


class Candidate(NamedTuple):
    """A sentence of a hit."""

    field: str  # payload field that holds it; empty: the text
    start: int
    end: int
    said: str  # as it is read


@dataclass(frozen=True, slots=True)
class HitText:
    """A hit whose answer is wanted."""

    searched: SearchedText
    spans: Ints  # places of facets in the text, `[N, 2]`
    closeness: Floats  # cosines of these facets with the query, `[N]`


class ReadAnswer(NamedTuple):
    """The sentence that answers most probably."""

    sentence: Candidate
    confidence: float


def read_answers(reader: AnswerReader, question: str, hits: Sequence[HitText]) -> list[ReadAnswer | None]:
    """The answer of each of the first hits of a query; None: the hit has no sentence, or was not read."""
    chosen = [_candidates(hit, _MAX_READ_CHARS[min(i, 2)]) for i, hit in enumerate(hits[:MAX_READ_HITS])]
    texts = [(_heading(hit.searched), [one.said for one in own]) for hit, own in zip(hits, chosen, strict=False)]
    answers: list[ReadAnswer | None] = [None] * len(hits)
    for i, log_odds_S in enumerate(reader.read(question, texts)):
        if len(log_odds_S) and np.isfinite(log_odds_S).any():
            best = int(log_odds_S.argmax())
            answers[i] = ReadAnswer(chosen[i][best], reader.confidence(float(log_odds_S[best])))
    return answers


def _sentences(field: str, text: str) -> list[Candidate]:
    """Sentences as they are read: rows of tables with the names of their columns, without the header row."""
    found = (one for one in sentences_of(text) if not (one.row and one.row.is_header))
    return [Candidate(field, one.start, one.end, one.said) for one in found]


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
    kept, size = set[int](), 0
    for place in np.argsort(-closeness, kind="stable").tolist():
        for near in (place, place + 1, place - 1):
            if 0 <= near < len(found) and near not in kept and size + lengths[near] <= max_chars:
                kept.add(near)
                size += int(lengths[near])
        if size > 0.8 * max_chars:
            break
    return [found[i] for i in sorted(kept)] or found[:1]
