"""What picks sentences of documents, behind one interface: facet models and the baselines of table 3.3.

Shape suffixes: B texts, S sentences, D dimensions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from facets.language.tokenizer import Tokenizer
from facets.language.vectors import unit_rows
from facets.model.contract import TextEncoder, TextModel
from facets.texts.coverage import CoverageConfig
from facets.texts.summarization import summarize
from facets.texts.words import TextWords
from facets_lab.evaluation.embedders import Embed

__all__ = [
    "AverageEncoder",
    "Budget",
    "CoverageSummarizer",
    "Ranking",
    "RankingSummarizer",
    "Summarizer",
    "by_centroid",
    "by_graph",
    "by_place",
    "by_seed",
]

Document = Sequence[str]  # its sentences, none of them blank, at least one
Ranking = Callable[[Document], Sequence[int]]  # all its sentences, best first


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
    """Sentences that cover the words of the document (``facets.texts.summarize``)."""

    name: str
    model: TextModel
    coverage: CoverageConfig | None
    encoder: TextEncoder | None = None
    method: str = "coverage"

    def summaries(self, documents: Sequence[Document], budget: Budget) -> list[str]:
        """See ``Summarizer``."""
        summaries = summarize(
            self.model,
            documents,
            num_sentences=budget.num_sentences,
            max_words=budget.max_words,
            coverage=self.coverage,
            encoder=self.encoder,
        )
        return [summary.text for summary in summaries]


class AverageEncoder:
    """The average word vector of a text as its one facet (Sent Emb of table 3.3)."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``[B, 1, D]``; zero for a text without a known word."""
        return self.embed(texts)[:, None]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``[B, D]``, the same averages."""
        words = TextWords(self._model, texts)
        return words.average(words.uniform_TL).numpy()


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
