"""The baselines of the paper's tables and today's peers, as far as they are installed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from facets.model.contract import TextModel
from facets.texts.coverage import PAPER_COVERAGE, CoverageConfig
from facets_lab.evaluation.embedders import Embed, minilm, model2vec
from facets_lab.evaluation.systems import if_installed
from facets_lab.texts.evaluation.pair_systems import EmbeddingPairs
from facets_lab.texts.evaluation.summarizers import (
    AverageEncoder,
    CoverageSummarizer,
    RankingSummarizer,
    Summarizer,
    by_centroid,
    by_graph,
    by_place,
    by_seed,
)

__all__ = ["BASELINE_MODELS", "embedding_baselines", "summarization_baselines"]

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
