"""What the tables of texts compare: facet models, the baselines of the paper, today's peers."""

import logging
from collections.abc import Callable, Iterator, Sequence

from facets.errors import InvalidInputError
from facets.extras import missing_modules
from facets.model.contract import TextModel
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, load
from facets.model.passage_model import PassageModel
from facets.texts.coverage import CoverageConfig
from facets.texts.similarity_methods import SimilarityMethod
from facets_lab.evaluation.systems import load_systems
from facets_lab.texts.evaluation.baselines import BASELINE_MODELS, embedding_baselines, summarization_baselines
from facets_lab.texts.evaluation.pair_systems import PAIR_METHODS, FacetPairs, PairSystem, method_of
from facets_lab.texts.evaluation.summarizers import CoverageSummarizer, Summarizer

__all__ = ["available_methods", "load_text_model", "phrase_systems", "sts_systems", "summarizers"]

logger = logging.getLogger(__name__)

_PHRASE_METHODS = (str(SimilarityMethod.CODEBOOK), str(SimilarityMethod.ENCODER))


def sts_systems(
    names_or_paths: Sequence[str], baselines: bool, *, methods: Sequence[str] = (), skip_wmd: bool = False
) -> Iterator[PairSystem]:
    """Facet models with the methods asked for, or all that they allow; embedders."""
    return _pair_systems(
        names_or_paths, baselines, lambda model: tuple(methods) or available_methods(model, skip_wmd=skip_wmd)
    )


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
