"""The baselines of the paper's tables and today's peers, as far as they are installed."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from facets.errors import ConfigError, NotFoundError
from facets.evaluation.embedders import Embed, minilm, model2vec
from facets.model.facet_model import FacetModel
from facets.model.loading import load
from facets.texts.coverage import PAPER_COVERAGE, CoverageConfig
from facets.texts.evaluation.pair_systems import EmbeddingPairs
from facets.texts.evaluation.summarizers import (
    AverageEncoder,
    CoverageSummarizer,
    RankingSummarizer,
    Summarizer,
    by_centroid,
    by_graph,
    by_place,
    by_seed,
)

__all__ = ["baseline_models", "embedding_baselines", "load_models", "summarization_baselines"]

logger = logging.getLogger(__name__)

_MODELS = ("facets-en-k1", "facets-en-kmeans")
_EMBEDDERS: dict[str, Callable[[], Embed]] = {"minilm": minilm, "model2vec": model2vec}
_SEED = 0
_T = TypeVar("_T")


def load_models(names_or_paths: Sequence[str | None]) -> dict[str, FacetModel]:
    """Models by name, in the given order; None is the default one.

    Raises:
        ConfigError: Two have the same name.
        NotFoundError: One does not exist.
        CheckpointError: One is damaged.
    """
    models: dict[str, FacetModel] = {}
    for name_or_path in names_or_paths:
        model = load(name_or_path, FacetModel)
        if model.name in models:
            raise ConfigError(f"models must have distinct names, got {model.name!r} twice")
        models[model.name] = model
    return models


def baseline_models(present: Sequence[str]) -> dict[str, FacetModel]:
    """The shipped single-facet and k-means models by name, less those present; a missing one is left out, told once."""
    models = {}
    for name in _MODELS:
        if name in present:
            continue
        try:
            models[name] = load(name, FacetModel)
        except NotFoundError as error:
            logger.warning("the baseline %s is left out: %s", name, error)
    return models


def embedding_baselines() -> Iterator[EmbeddingPairs]:
    """Cosines of MiniLM and of a static model2vec model; what is not installed is left out, and told."""
    for name in _EMBEDDERS:
        embed = _installed(name, _EMBEDDERS[name])
        if embed is not None:
            yield EmbeddingPairs(name, embed)


def summarization_baselines(model: FacetModel, coverage: CoverageConfig) -> Iterator[Summarizer]:
    """Rankings and single-vector coverage; what is not installed is left out, and told.

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
    embed = _installed("minilm-centroid", minilm)
    if embed is not None:
        yield RankingSummarizer("minilm-centroid", by_centroid(embed))
    vocabulary = model.words.vocabulary
    stop_words = [word for word, is_stop in zip(vocabulary.words, vocabulary.is_stop[:-1], strict=True) if is_stop]
    for name in ("textrank", "lexrank"):
        rank = _installed(name, partial(by_graph, name, model.tokenizer, stop_words))
        if rank is not None:
            yield RankingSummarizer(name, rank)


def _installed(name: str, make: Callable[[], _T]) -> _T | None:
    try:
        return make()
    except ImportError as error:
        logger.warning("the baseline %s is left out: %s", name, error)
        return None
