"""What ``facets-eval recommendation`` runs: models, baselines, and the tuning of their mixtures."""

import copy
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.model.loading import TASKS, load
from facets.model.shipped import find_model
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind
from facets.papers.trained import change_settings
from facets_lab.evaluation.comparison import load_systems
from facets_lab.papers.data import read_papers
from facets_lab.papers.systems import (
    DOCUMENT_MODES,
    SENTENCE_ENCODERS,
    PaperData,
    PaperSystem,
    bm25_systems,
    cbow_systems,
    document_system,
    evaluate_system,
    facet_system,
    make_data,
    mixed_system,
    sample_data,
    sentence_systems,
    tune_weights,
    words_systems,
)

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
    state = PaperEngine(model).state
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


BASELINE_MODELS = ("facets-papers-en-k1", "facets-papers-en-k1-no-auto")


@dataclass(frozen=True, kw_only=True, slots=True)
class PaperRun:
    """What is asked for.

    Attributes:
        file: Papers to recommend for.
        models: Names or paths; empty: the shipped model.
        baselines: Also the baselines of table 3.8 and sentence vectors.
        train: The papers of the training, with texts, for sentence vectors; None: they are left out.
        embeddings: Folder where sentence vectors are kept from run to run; None: nowhere.
        sample: Evaluate a seeded sample of so many authors and citing papers; None: all. Then the papers of
            these alone are encoded as sentences, and with baselines they are compared with fewer papers.
        tune: Store the best mixtures on this file in the model folders first (development data only).
    """

    file: Path
    models: Sequence[str] = ()
    baselines: bool = False
    train: Path | None = None
    embeddings: Path | None = None
    sample: int | None = None
    tune: bool = False


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model with its engine and its folder, which tuning writes to."""

    model: PaperModel
    engine: PaperEngine
    folder: Path

    @property
    def name(self) -> str:
        return self.model.name


def run_papers(run: PaperRun) -> dict[str, object]:
    """The report: ``{"data", "rows", "columns", "models"}``.

    Raises:
        ConfigError: A file cannot be read, or two models have one name.
        InvalidInputError: Nothing in the file is known to the models.
    """
    models = load_systems(run.models, BASELINE_MODELS if run.baselines else (), _load)
    papers = read_papers(run.file)
    known = {
        kind: set.intersection(*(set(model.engine.state.tables[kind].ids) for model in models))
        for kind in CandidateKind
    }
    data = make_data(papers, known)
    if run.sample is not None:
        data = sample_data(data, run.sample, fewer_papers=run.baselines)
    results: dict[str, object] = {}
    for system in _systems(run, models, data):
        logger.info("evaluating %s", system.name)
        results[system.name] = evaluate_system(system, data)
    columns = {str(kind): len(data.positives[kind].used_columns) for kind in CandidateKind}
    return {"data": str(run.file), "rows": len(papers), "columns": columns, "models": results}


def _load(name_or_path: str | None) -> _Loaded:
    folder = find_model(TASKS["papers"].default if name_or_path is None else name_or_path)
    model = load(folder, PaperModel)
    return _Loaded(model, PaperEngine(model), folder)


def _systems(run: PaperRun, models: Sequence[_Loaded], data: PaperData) -> Iterator[PaperSystem]:
    titles, abstracts = [paper.title for paper in data.papers], [paper.abstract for paper in data.papers]
    facets = {}
    for loaded in models:
        model = loaded.model
        texts = EncodedTexts(model.paper_rows(titles, abstracts), model.sentence_vectors(titles, abstracts))
        facets[model.name] = _own_system(loaded, texts)
        if run.tune:
            store_best_mixture(loaded.folder, model, facets[model.name], texts=texts, data=data)
            facets[model.name] = _own_system(_load(str(loaded.folder)), texts)
        yield facets[model.name]
    if not run.baselines:
        return
    first = models[0]
    yield from cbow_systems(first.engine, data)
    for documents in _other_documents(run, first, data):
        yield documents
        weights = first.model.settings.other_weights.get(documents.name)
        if run.tune:
            weights = {kind: best[0] for kind, best in tune_weights(facets[first.name], documents, data).items()}
            store_other_weights(first.folder, {documents.name: weights})
        if weights is not None:
            yield mixed_system(f"{first.name}+{documents.name}", facets[first.name], documents, weights)


def _own_system(loaded: _Loaded, texts: EncodedTexts) -> PaperSystem:
    encoded = loaded.model.encode_papers(texts.rows, texts.sentences)
    return facet_system(loaded.name, loaded.engine, encoded)


def _other_documents(run: PaperRun, first: _Loaded, data: PaperData) -> Iterator[PaperSystem]:
    """Document similarities by words alone, by BM25 and by sentence vectors alone."""
    yield from words_systems(first.model, first.engine, data)
    yield from bm25_systems(first.model, first.engine, data)
    for name in SENTENCE_ENCODERS:
        yield from sentence_systems(first.engine, data, name, train=run.train, embeddings=run.embeddings)
