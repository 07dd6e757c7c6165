"""Tuning of mixtures of facets and documents, stored with the model (development data only)."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.papers.engine import PaperEngine
from facets.papers.evaluation.systems import (
    DOCUMENT_MODES,
    PaperData,
    PaperSystem,
    document_system,
    tune_weights,
)
from facets.papers.inputs import CandidateKind
from facets.storage import write_atomically

__all__ = ["store_best_mixture", "store_other_weights"]

logger = logging.getLogger(__name__)


def store_best_mixture(
    folder: Path,
    engine: PaperEngine,
    facets: PaperSystem,
    *,
    averages: NDArray[np.float32],
    data: PaperData,
) -> None:
    """Stores the best weight and way of document similarity of a model."""
    state = engine.state
    found = {
        mode: tune_weights(facets, document_system("", averages, state.tables, bank=state.bank, mode=mode), data)
        for mode in DOCUMENT_MODES
    }
    weights, modes = {}, {}
    for kind in map(str, CandidateKind):
        modes[kind] = max((found[mode][kind][1], mode) for mode in DOCUMENT_MODES)[1]
        weights[kind] = found[modes[kind]][kind][0]
    logger.warning("%s: best weights of the facets %s, documents %s", engine.model.name, weights, modes)
    path = folder / "recommendation.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    _replace(path, values | {"facet_weights": weights, "document_modes": modes})


def store_other_weights(folder: Path, other_weights: Mapping[str, Mapping[str, float]]) -> None:
    """Stores weights of mixtures with documents that are not the model's own."""
    path = folder / "recommendation.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["other_weights"] = {**values.get("other_weights", {}), **other_weights}
    _replace(path, values)


def _replace(path: Path, values: Mapping[str, object]) -> None:
    with write_atomically(path, durable=False) as part:
        part.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
