"""Extractive summaries: the sentences whose facets cover the words of the document best.

Shape suffixes: S sentences, K facets, U distinct words, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from facets import scoring
from facets.errors import InvalidInputError
from facets.tasks.interface import TextModel, check_text
from facets.tasks.selection import Selected, select_sentences
from facets.tasks.text_words import known_rows
from facets.text.tokenizer import Sentence

__all__ = ["Order", "Summary", "SummarySentence", "summarize"]

Order = Literal["original", "selection"]
_ORDERS = ("original", "selection")
_DEFAULT_NUM_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """One sentence of a summary."""

    text: str
    sentence: int  # its place in the document, from 0
    start: int  # first character in the text; for given sentences, in the sentences joined by one space
    end: int  # one past its last character
    selection: int  # when it was picked, from 0
    gain: float  # what it added to the coverage (eq. 3.7), a share of the document in [0, 1]


@dataclass(frozen=True, slots=True)
class Summary:
    """The picked sentences of one document, at least one, in the order asked for."""

    sentences: tuple[SummarySentence, ...]
    num_sentences_in_document: int

    @property
    def text(self) -> str:
        """The sentences joined by one space."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def num_words(self) -> int:
        """Words of the summary, separated by white space."""
        return sum(_num_words(sentence.text) for sentence in self.sentences)


def summarize(
    model: TextModel,
    documents: Sequence[str | Sequence[str]],
    *,
    num_sentences: int | None = None,
    max_words: int | None = None,
    order: Order = "original",
    query: str = "",
) -> list[Summary]:
    """Picks the sentences that cover each document best.

    Args:
        model: The model.
        documents: Each a raw text, or its sentences in order.
        num_sentences: Exactly this many sentences, or all when the document has fewer; 3 when nothing is said.
        max_words: Instead, at most this many words (separated by white space). When no sentence is that short,
            the best one is the summary all the same.
        order: Of the sentences: as in the document, or as they were picked.
        query: What the reader looks for: words of the document count the more the closer they are to it.

    Returns:
        One summary a document, in order.

    Raises:
        InvalidInputError: A document or sentence is blank, or a number, the order or the query is not allowed; the
            field names it.
        TypeError: ``documents`` is one ``str``.

    References:
        Chang 2022, section 3.2.2.4, eq. 3.7.
    """
    if isinstance(documents, str):
        raise TypeError(f"documents must be a sequence, got one str: try summarize(model, [{documents[:20]!r}])")
    _check_options(num_sentences, max_words, order)
    split = [_sentences(model, document, f"documents[{i}]") for i, document in enumerate(documents)]
    texts = [sentence.text for sentences in split for sentence in sentences]
    if query:
        check_text(query, "query")
        texts.append(query)
    facets_SKD = torch.from_numpy(model.encode(texts)) if texts else torch.zeros(0, 1, 1)
    focus = _Focus(model, query, facets_SKD[-1]) if query else None
    summaries = []
    start = 0
    for sentences in split:
        facets = facets_SKD[start : start + len(sentences)]
        start += len(sentences)
        words_UD, weights_U = _document_words(model, sentences, focus)
        if max_words is None:
            costs_S, budget = np.ones(len(sentences), dtype=np.int64), num_sentences or _DEFAULT_NUM_SENTENCES
        else:
            costs_S = np.array([_num_words(sentence.text) for sentence in sentences])
            budget = max_words
        selected = select_sentences(facets, words_UD, weights_U, costs_S=costs_S, budget=budget)
        summaries.append(Summary(_ordered(sentences, selected, order), len(sentences)))
    return summaries


def _check_options(num_sentences: int | None, max_words: int | None, order: str) -> None:
    if num_sentences is not None and max_words is not None:
        raise InvalidInputError(
            f"expected num_sentences or max_words, got both ({num_sentences} and {max_words})", field="max_words"
        )
    for field, value in (("num_sentences", num_sentences), ("max_words", max_words)):
        if value is not None and value < 1:
            raise InvalidInputError(f"{field} must be >= 1, got {value}", field=field)
    if order not in _ORDERS:
        raise InvalidInputError(f"order must be one of {', '.join(_ORDERS)}, got {order!r}", field="order")


def _sentences(model: TextModel, document: str | Sequence[str], field: str) -> list[Sentence]:
    if isinstance(document, str):
        check_text(document, field)
        return model.tokenizer.sentences(document)
    if not document:
        raise InvalidInputError(f"{field} has 0 sentences, expected at least 1", field=field)
    sentences, start = [], 0
    for i, text in enumerate(document):
        check_text(text, f"{field}.sentences[{i}]")
        sentences.append(Sentence(text, start, start + len(text)))
        start += len(text) + 1
    return sentences


def _document_words(model: TextModel, sentences: Sequence[Sentence], focus: "_Focus | None") -> tuple[Tensor, Tensor]:
    """Unit vectors ``[U, D]`` of the distinct known words, and their weights ``[U]``, summing to 1."""
    rows_U, counts_U = _count_words(model, [sentence.text for sentence in sentences])
    words_UD, weights_U = _weighted(model, rows_U, counts_U)
    if focus is not None:
        weights_U = focus.refine(words_UD, weights_U)
    return words_UD, weights_U / weights_U.sum().clamp_min(1e-30)


def _count_words(model: TextModel, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows = [known_rows(model.words.vocabulary, words) for words in model.tokenizer.words(texts)]
    rows_U, counts_U = np.unique(np.concatenate(rows), return_counts=True)
    return rows_U, counts_U


def _weighted(model: TextModel, rows_U: NDArray[np.int64], counts_U: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    probabilities_U = torch.from_numpy(model.words.vocabulary.probabilities[rows_U])
    weights_U = torch.from_numpy(counts_U) * scoring.probability_weights(probabilities_U)
    return torch.from_numpy(model.words.unit_vectors[rows_U]), weights_U.float()


class _Focus:
    """What a query looks for: its words, by weight, and its facets."""

    def __init__(self, model: TextModel, query: str, facets_KD: Tensor) -> None:
        words_QD, weights_Q = _weighted(model, *_count_words(model, [query]))
        self._words_QD = words_QD * (weights_Q / weights_Q.amax()).unsqueeze(1) if len(weights_Q) else words_QD
        self._facets_KD = scoring.unit_facets(facets_KD)

    def refine(self, words_UD: Tensor, weights_U: Tensor) -> Tensor:
        """Weights times the squared closeness of each word to the query, in ``[0, 1]``.

        The query's own words are close by their weight, so that its function words draw little; where nothing of
        the document is close, the weights stay.
        """
        sought_ND = torch.cat([self._words_QD, self._facets_KD])
        closeness_U = (words_UD @ sought_ND.mT).amax(dim=1).clamp(0.0, 1.0) if len(words_UD) else weights_U
        focused_U = weights_U * closeness_U.square()
        return focused_U if float(focused_U.sum()) > 0 else weights_U


def _ordered(sentences: Sequence[Sentence], selected: Sequence[Selected], order: Order) -> tuple[SummarySentence, ...]:
    picked = [
        SummarySentence(
            text=sentences[item.sentence].text,
            sentence=item.sentence,
            start=sentences[item.sentence].start,
            end=sentences[item.sentence].end,
            selection=selection,
            gain=item.gain,
        )
        for selection, item in enumerate(selected)
    ]
    return tuple(sorted(picked, key=lambda item: item.sentence) if order == "original" else picked)


def _num_words(text: str) -> int:
    return len(text.split())
