"""What picks sentences of documents, behind one interface: facet models and the baselines of table 3.3.

Shape suffixes: B texts, S sentences, L words of a sentence, U distinct words of a document, D dimensions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from facets import scoring
from facets.evaluation.embedders import Embed
from facets.extras import require_extra
from facets.tasks.interface import TextModel
from facets.tasks.summarization import summarize
from facets.tasks.text_words import TextWords
from facets.text.tokenizer import Tokenizer
from facets.words.vectors import WordVectors, unit_rows

__all__ = [
    "AverageModel",
    "Budget",
    "CoverageSummarizer",
    "Ranking",
    "RankingSummarizer",
    "Summarizer",
    "WordSummarizer",
    "by_centroid",
    "by_graph",
    "by_place",
    "by_seed",
]

Document = Sequence[str]  # its sentences, none of them blank, at least one
Ranking = Callable[[Document], Sequence[int]]  # all its sentences, best first

# Sentences encoded together; documents are never cut.
_SENTENCES_AT_A_TIME = 4096


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a summary may be: a number of sentences (3 when nothing is said) or of words."""

    num_sentences: int | None = None
    max_words: int | None = None

    def costs(self, document: Document) -> NDArray[np.int64]:
        """``[S]``: what each sentence takes of ``limit``."""
        if self.max_words is None:
            return np.ones(len(document), dtype=np.int64)
        return np.array([len(sentence.split()) for sentence in document])

    @property
    def limit(self) -> int:
        """Most the sentences of a summary may cost together, >= 1."""
        return self.max_words or self.num_sentences or 3

    def fill(self, document: Document, ranked: Sequence[int]) -> str:
        """Sentences in the order of a ranking, each that still fits; when none fits, the best one all the same."""
        costs_S, left = self.costs(document), self.limit
        chosen = []
        for sentence in ranked:
            if costs_S[sentence] <= left:
                chosen.append(sentence)
                left -= int(costs_S[sentence])
        return _text(document, chosen or ranked[:1])


class Summarizer(Protocol):
    """Makes summaries by one method."""

    @property
    def name(self) -> str:
        """Its key in the report."""
        ...

    @property
    def method(self) -> str:
        """``coverage`` (greedy, eq. 3.7) or ``ranking``."""
        ...

    def summaries(self, documents: Sequence[Document], budget: Budget) -> list[str]:
        """One summary a document: its sentences in their order, joined by one space; never empty."""
        ...


@dataclass(frozen=True, slots=True)
class CoverageSummarizer:
    """Facets that cover the words of the document (``facets.tasks.summarize``)."""

    name: str
    model: TextModel
    method: str = "coverage"

    def summaries(self, documents: Sequence[Document], budget: Budget) -> list[str]:
        """See ``Summarizer``."""
        result: list[str] = []
        for start, stop in _blocks([len(sentences) for sentences in documents]):
            block = summarize(
                self.model, documents[start:stop], num_sentences=budget.num_sentences, max_words=budget.max_words
            )
            result += [summary.text for summary in block]
        return result


class AverageModel:
    """The words of another model, with one facet a text: the average of its word vectors (Sent Emb of table 3.3)."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    @property
    def num_facets(self) -> int:
        """1."""
        return 1

    @property
    def max_tokens(self) -> int:
        """As the other model."""
        return self._model.max_tokens

    @property
    def words(self) -> WordVectors:
        """Of the other model."""
        return self._model.words

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the other model."""
        return self._model.tokenizer

    @property
    def common_components(self) -> Mapping[str, NDArray[np.float32]]:
        """None."""
        return {}

    @property
    def calibration_curves(self) -> Mapping[str, NDArray[np.float64]]:
        """None."""
        return {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``[B, 1, D]``; zero for a text without a known word."""
        words = TextWords(self._model, texts)
        return words.average(words.uniform_TL).unsqueeze(1).numpy()


@dataclass(frozen=True, slots=True)
class WordSummarizer:
    """Every word of a sentence is a facet of it; gains are divided by the number of words (W Emb of table 3.3)."""

    name: str
    model: TextModel
    method: str = "coverage"

    def summaries(self, documents: Sequence[Document], budget: Budget) -> list[str]:
        """See ``Summarizer``."""
        return [self._summary(document, budget) for document in documents]

    def _summary(self, document: Document, budget: Budget) -> str:
        words = TextWords(self.model, document)
        rows_U, places, counts_U = torch.unique(words.rows_TL[words.mask_TL], return_inverse=True, return_counts=True)
        lengths_S = words.mask_TL.sum(dim=1)
        vectors_UD = words.vectors(rows_U)
        cosines_UU = (vectors_UD @ vectors_UD.mT).clamp(0.0, 1.0)
        coverage_SU = torch.zeros(len(document), len(rows_U))
        for sentence, places_L in enumerate(places.split(lengths_S.tolist())):
            if len(places_L):
                coverage_SU[sentence] = cosines_UU[places_L].amax(dim=0)
        weights_U = counts_U * scoring.probability_weights(words.probabilities(rows_U))
        costs_S, left = torch.from_numpy(budget.costs(document)), budget.limit
        is_open_S = costs_S <= left
        if not is_open_S.any():
            is_open_S, left = torch.ones_like(is_open_S), 0
        best_U = torch.zeros(len(rows_U))
        chosen: list[int] = []
        while is_open_S.any():
            gains_S = scoring.coverage_gain(coverage_SU, best_U, weights_U) / lengths_S.clamp_min(1)
            sentence = int(gains_S.masked_fill(~is_open_S, -1.0).argmax())
            chosen.append(sentence)
            best_U = torch.maximum(best_U, coverage_SU[sentence])
            left -= int(costs_S[sentence])
            is_open_S[sentence] = False
            is_open_S &= costs_S <= left
        return _text(document, chosen)


@dataclass(frozen=True, slots=True)
class RankingSummarizer:
    """The best sentences of a ranking."""

    name: str
    rank: Ranking
    method: str = "ranking"

    def summaries(self, documents: Sequence[Document], budget: Budget) -> list[str]:
        """See ``Summarizer``."""
        return [budget.fill(document, self.rank(document)) for document in documents]


def by_place(document: Document) -> Sequence[int]:
    """The first sentence is the best."""
    return range(len(document))


def by_seed(seed: int) -> Ranking:
    """At random, the same for every run over the same documents."""
    generator = np.random.default_rng(seed)
    return lambda document: generator.permutation(len(document)).tolist()


def by_centroid(embed: Embed) -> Ranking:
    """The sentence closest to the mean embedding of the document is the best."""

    def rank(document: Document) -> Sequence[int]:
        units_SD = unit_rows(embed(document))
        return np.argsort(-(units_SD @ units_SD.mean(axis=0)), kind="stable").tolist()

    return rank


def by_graph(algorithm: str, tokenizer: Tokenizer, stop_words: Sequence[str]) -> Ranking:
    """``textrank`` or ``lexrank`` of sumy, with English stemming and stop words.

    Raises:
        ImportError: sumy is not installed.

    References:
        Mihalcea and Tarau 2004; Erkan and Radev 2004.
    """
    require_extra("train", "sumy")
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer
    from sumy.summarizers.lex_rank import LexRankSummarizer
    from sumy.summarizers.text_rank import TextRankSummarizer

    ranker: Any = {"textrank": TextRankSummarizer, "lexrank": LexRankSummarizer}[algorithm](Stemmer("english"))
    ranker.stop_words = stop_words
    words = _SumyWords(tokenizer)

    def rank(document: Document) -> Sequence[int]:
        ranked: list[int] = []

        def keep_ranks(infos: Sequence[Any]) -> Sequence[Any]:
            ranked.extend(info.order for info in infos)
            return infos

        # Without weights to compare, as between two sentences, sumy divides zeros: then the order stays.
        with np.errstate(invalid="ignore", divide="ignore"):
            ranker(ObjectDocumentModel([Paragraph(Sentence(text, words) for text in document)]), keep_ranks)
        return ranked

    return rank


class _SumyWords:
    """Our word splitting in the form sumy asks for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def to_words(self, sentence: str) -> tuple[str, ...]:
        """Words of a sentence, without punctuation."""
        return tuple(word for word in self._tokenizer.words([sentence])[0] if any(map(str.isalnum, word)))


def _text(document: Document, chosen: Sequence[int]) -> str:
    return " ".join(document[sentence] for sentence in sorted(chosen))


def _blocks(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive documents with about ``_SENTENCES_AT_A_TIME`` sentences together."""
    start, total = 0, 0
    for position, size in enumerate(sizes):
        total += size
        if total >= _SENTENCES_AT_A_TIME or position == len(sizes) - 1:
            yield start, position + 1
            start, total = position + 1, 0
