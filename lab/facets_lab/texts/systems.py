"""What the tables of texts compare: facet models, the baselines of the paper, today's peers.

Shape suffixes: P pairs, T distinct texts, B texts, S sentences, D dimensions, H hidden width.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from facets.errors import InvalidInputError
from facets.extras import missing_modules
from facets.language.tokenizer import Tokenizer
from facets.language.vectors import unit_rows
from facets.model.contract import TextEncoder, TextModel
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, load
from facets.model.passage_model import PassageModel
from facets.texts.coverage import PAPER_COVERAGE, CoverageConfig
from facets.texts.similarity import PairScorer
from facets.texts.similarity_methods import WORD_METHODS, SimilarityMethod, method_named
from facets.texts.summarization import summarize
from facets.texts.words import TextWords
from facets_lab.evaluation.comparison import Embed, if_installed, load_systems, minilm, model2vec

ATTENTION_SUFFIX = "+attention"
PAIR_METHODS = (
    *SimilarityMethod,
    *(f"{method}{ATTENTION_SUFFIX}" for method in SimilarityMethod if method in WORD_METHODS),
)

Pairs = Sequence[tuple[str, str]]


def method_of(name: str) -> SimilarityMethod:
    """The method behind a name of ``PAIR_METHODS``."""
    return method_named(name.removesuffix(ATTENTION_SUFFIX))


class PairSystem(Protocol):
    """Scores pairs of texts by one or more methods."""

    @property
    def name(self) -> str:
        """Its key in the report."""
        ...

    def scores(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Each method with its scores ``[P]``, finite; higher is more alike."""
        ...

    def labels(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.str_]]]:
        """Each method that tells what the first text says of the second, with its labels ``[P]``."""
        ...


@dataclass(frozen=True, slots=True)
class FacetPairs:
    """A facet model: methods of ``PAIR_METHODS``."""

    name: str
    model: TextModel
    methods: tuple[str, ...]

    def scores(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """See ``PairSystem``.

        Raises:
            ConfigError: The model lacks what ``sif`` removes, or the package for ``wmd`` is missing.
        """
        scorer = PairScorer(self.model, pairs)
        for name in self.methods:
            yield str(name), scorer.scores(method_of(name), attention=name.endswith(ATTENTION_SUFFIX))

    def labels(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.str_]]]:
        """See ``PairSystem``."""
        if SimilarityMethod.ALIGNMENT in self.methods:
            comparisons = PairScorer(self.model, pairs).comparisons(SimilarityMethod.ALIGNMENT)
            yield str(SimilarityMethod.ALIGNMENT), np.array([comparison.label for comparison in comparisons])


@dataclass(frozen=True, slots=True)
class EmbeddingPairs:
    """A sentence embedder: the cosine of two embeddings, in ``[-1, 1]``."""

    name: str
    embed: Callable[[Sequence[str]], NDArray[np.float32]]  # texts -> [T, D]

    def scores(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """See ``PairSystem``."""
        yield "cosine", _cosines(self.embed, pairs)

    def labels(self, pairs: Pairs) -> Iterator[tuple[str, NDArray[np.str_]]]:
        """None: see ``PairSystem``."""
        return iter(())


def _cosines(embed: Callable[[Sequence[str]], NDArray[np.float32]], pairs: Pairs) -> NDArray[np.float32]:
    """``[P]`` cosines in ``[-1, 1]``, 0 where an embedding is zero; every distinct text is embedded once."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    units_TD = unit_rows(embed(list(rows)))
    first_P, second_P = (np.array([rows[pair[side]] for pair in pairs]) for side in (0, 1))
    return np.einsum("pd,pd->p", units_TD[first_P], units_TD[second_P])


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
            prose_only=self.coverage is None,
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


BASELINE_MODELS = ("facets-en-k1", "facets-en-kmeans")
EMBEDDERS: dict[str, Callable[[], Embed]] = {"minilm": minilm, "model2vec": model2vec}
_SEED = 0


def embedding_baselines() -> Iterator[EmbeddingPairs]:
    """Cosines of MiniLM and of a static model2vec model; what is not installed is left out, with a warning."""
    for name in EMBEDDERS:
        yield from (EmbeddingPairs(name, embed) for embed in if_installed(name, EMBEDDERS[name]))


def summarization_baselines(model: TextModel, coverage: CoverageConfig) -> Iterator[Summarizer]:
    """Rankings and single-vector coverage; what is not installed is left out, with a warning.

    Args:
        model: Its word vectors serve ``sentence-average`` and ``words``.
        coverage: Their settings, as for the facet models; words are then the only thing that counts for ``words``,
            and in the paper's form their gains are divided by the number of words, as there.
    """
    yield RankingSummarizer("random", by_seed(_SEED))
    yield RankingSummarizer("first", by_place)
    yield CoverageSummarizer("sentence-average", model, coverage, AverageEncoder(model))
    length_power = 1.0 if coverage == PAPER_COVERAGE else coverage.length_power
    yield CoverageSummarizer("words", model, replace(coverage, word_share=1.0, length_power=length_power))
    for embed in if_installed("minilm-centroid", minilm):
        yield RankingSummarizer("minilm-centroid", by_centroid(embed))
    vocabulary = model.words.vocabulary
    stop_words = [word for word, is_stop in zip(vocabulary.words, vocabulary.is_stop[:-1], strict=True) if is_stop]
    for name in ("textrank", "lexrank"):
        for rank in if_installed(name, partial(by_graph, name, model.tokenizer, stop_words)):
            yield RankingSummarizer(name, rank)


logger = logging.getLogger(__name__)

_PHRASE_METHODS = (str(SimilarityMethod.CODEBOOK), str(SimilarityMethod.ENCODER))


def sts_systems(
    names_or_paths: Sequence[str], baselines: bool, *, methods: Sequence[str] = (), skip_wmd: bool = False
) -> Iterator[PairSystem]:
    """Facet models with the methods asked for, or all that they allow; embedders."""
    return _pair_systems(
        names_or_paths, baselines, lambda model: tuple(methods) or available_methods(model, skip_wmd=skip_wmd)
    )


def opposed_pair_systems(names_or_paths: Sequence[str], baselines: bool) -> Iterator[PairSystem]:
    """Models by what they read and by their vectors; MiniLM, and the share of common words."""
    for model in _models(names_or_paths, baselines=False):
        yield FacetPairs(model.name, model, (str(SimilarityMethod.ALIGNMENT), str(SimilarityMethod.ENCODER)))
    if baselines:
        yield from (EmbeddingPairs("minilm", embed) for embed in if_installed("minilm", minilm))
        yield EmbeddingPairs("common words", bags_of_words)


def bags_of_words(texts: Sequence[str]) -> NDArray[np.float32]:
    """Which words a text has, by white space and in lower case, ``[T, W]``."""
    sets = [set(text.lower().split()) for text in texts]
    words = sorted(set().union(*sets))
    return np.array([[word in own for word in words] for own in sets], dtype=np.float32)


def phrase_systems(names_or_paths: Sequence[str], baselines: bool) -> Iterator[PairSystem]:
    """Facet models, embedders, and the words of the first model without its network (GloVe Avg of table 3.4)."""
    systems = list(_pair_systems(names_or_paths, baselines, lambda model: _PHRASE_METHODS))
    yield from systems
    if baselines:
        first = next(system for system in systems if isinstance(system, FacetPairs))
        yield FacetPairs("words", first.model, (str(SimilarityMethod.AVERAGE),))


def summarizers(
    names_or_paths: Sequence[str], baselines: bool, *, coverage: CoverageConfig | None
) -> Iterator[Summarizer]:
    """Facet models, by ``coverage`` or by what ``summarize`` does by default; rankings and single-vector coverage."""
    models = _models(names_or_paths, baselines)
    yield from (CoverageSummarizer(model.name, model, coverage) for model in models)
    if baselines:
        yield from summarization_baselines(models[0], coverage or CoverageConfig())


def available_methods(model: TextModel, *, skip_wmd: bool = False) -> tuple[str, ...]:
    """The methods that the model and the installed packages allow; the others are left out, with a warning."""
    kept = {name: method_of(name).row for name in PAIR_METHODS}
    if skip_wmd:
        kept = {name: row for name, row in kept.items() if row.extra is None}
    missing = {row.extra for row in kept.values() if row.extra is not None and missing_modules(row.extra[1])}
    for extra, _ in sorted(missing):
        logger.warning("the extra %r is not installed: the methods that need it are left out", extra)
    kept = {name: row for name, row in kept.items() if row.extra not in missing}
    if not model.common_components:
        logger.warning("%s stores no common components: sif is left out", model.name)
        kept = {name: row for name, row in kept.items() if not row.needs_common_component}
    return tuple(map(str, kept))


def _pair_systems(
    names_or_paths: Sequence[str], baselines: bool, methods_of: Callable[[TextModel], tuple[str, ...]]
) -> Iterator[PairSystem]:
    for model in _models(names_or_paths, baselines):
        yield FacetPairs(model.name, model, methods_of(model))
    if baselines:
        yield from embedding_baselines()


def load_text_model(name_or_path: str | None) -> TextModel:
    """A model of sentences or of passages; the default one of sentences where none is named.

    Raises:
        NotFoundError: There is no such model.
        CheckpointError: The folder is damaged.
        InvalidInputError: It is for another task.
    """
    model = load(DEFAULT_MODEL if name_or_path is None else name_or_path)
    if not isinstance(model, FacetModel | PassageModel):
        raise InvalidInputError(f"{name_or_path}: expected a model for sentences or passages, got one for {model.task}")
    return model


def _models(names_or_paths: Sequence[str], baselines: bool) -> list[TextModel]:
    return load_systems(names_or_paths, BASELINE_MODELS if baselines else (), load_text_model)
