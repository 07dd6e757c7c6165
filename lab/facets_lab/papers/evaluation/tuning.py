"""Tuning of mixtures of facets and documents, stored with the model (development data only)."""

import copy
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.papers.engine import PaperEngine
from facets.papers.inputs import CandidateKind
from facets.papers.model import PaperModel
from facets.papers.tables import change_settings
from facets_lab.papers.evaluation.systems import (
    DOCUMENT_MODES,
    PaperData,
    PaperSystem,
    document_system,
    tune_weights,
)

__all__ = ["EncodedTexts", "store_best_mixture", "store_other_weights"]

logger = logging.getLogger(__name__)

SHARES = (0.3, 0.45, 0.6, 0.75)


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Both halves of documents: typed word rows and sentence vectors ``[N, P]``."""

    rows: Sequence[NDArray[np.uint16]]
    sentences: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Mixture:
    """A share of the sentences with the best weights and modes for it, and their precision, summed over kinds."""

    precision: float
    model: PaperModel
    weights: Mapping[str, float]
    modes: Mapping[str, str]


def store_best_mixture(
    folder: Path, model: PaperModel, facets: PaperSystem, *, texts: EncodedTexts, data: PaperData
) -> None:
    """Stores the best share of sentences, and the best weight and way of document similarity, of a model."""
    best = max(
        (_best_mixture(variant, facets, texts=texts, data=data) for variant in _with_shares(model)),
        key=lambda mixture: mixture.precision,
    )
    sentences = best.model.settings.sentences
    logger.warning("%s: weights of facets %s, %s, %s", model.name, best.weights, best.modes, sentences or "words alone")
    changes = {"facet_weights": best.weights, "document_modes": best.modes}
    change_settings(folder, changes | ({"sentences": asdict(sentences)} if sentences else {}))


def _with_shares(model: PaperModel) -> Iterator[PaperModel]:
    """The model with each share of the sentences; itself where it has none."""
    sentences = model.settings.sentences
    if sentences is None:
        yield model
        return
    for share in SHARES:
        variant = copy.copy(model)
        variant.settings = replace(model.settings, sentences=replace(sentences, share=share))
        yield variant


def _best_mixture(model: PaperModel, facets: PaperSystem, *, texts: EncodedTexts, data: PaperData) -> _Mixture:
    state = PaperEngine(model, min_indexed=len(model.papers.ids) + 1).state  # nothing is searched
    documents = model.document_vectors(texts.rows, texts.sentences)
    found = {
        mode: tune_weights(facets, document_system("", documents, state.tables, bank=state.bank, mode=mode), data)
        for mode in DOCUMENT_MODES
    }
    weights, modes, precision = {}, {}, 0.0
    for kind in map(str, CandidateKind):
        best, modes[kind] = max((found[mode][kind][1], mode) for mode in DOCUMENT_MODES)
        weights[kind] = found[modes[kind]][kind][0]
        precision += best
    return _Mixture(precision, model, weights, modes)


def store_other_weights(folder: Path, other_weights: Mapping[str, Mapping[str, float]]) -> None:
    """Stores weights of mixtures with documents that are not the model's own."""
    values = json.loads((folder / "recommendation.json").read_text(encoding="utf-8"))
    change_settings(folder, {"other_weights": {**values.get("other_weights", {}), **other_weights}})
