"""What ``facets-eval recommendation`` runs: models, baselines, and the tuning of their mixtures."""

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError, InvalidInputError, NotFoundError
from facets.evaluation.embedders import minilm
from facets.model.loading import TASKS, find_model
from facets.papers.candidates import CandidateTable, PaperBank, build_table
from facets.papers.engine import PaperEngine
from facets.papers.evaluation.recommendation import (
    DOCUMENT_MODES,
    RecommendationData,
    RecommendationSystem,
    document_system,
    evaluate_recommendation,
    facet_system,
    make_data,
    mixed_system,
    sample_data,
    tune_weights,
)
from facets.papers.inputs import CandidateKind, Paper
from facets.papers.records import read_papers
from facets.storage import write_atomically
from facets.words.singular import rarity_weights, singular_word_vectors, word_counts
from facets.words.vectors import unit_rows

__all__ = ["RecommendationRun", "run_recommendation"]

logger = logging.getLogger(__name__)

_BASELINE_MODELS = ("facets-papers-en-k1", "facets-papers-en-k1-no-auto")
_ENCODED_AT_A_TIME = 2048


@dataclass(frozen=True, kw_only=True, slots=True)
class RecommendationRun:
    """What is asked for.

    Attributes:
        file: Papers to recommend for.
        models: Names or paths; empty: the shipped model.
        baselines: Also the baselines of table 3.8 and MiniLM.
        train: The papers of the training, with texts, for MiniLM; None: MiniLM is left out.
        embeddings: Folder where MiniLM's embeddings are kept from run to run; None: nowhere.
        sample: Evaluate a seeded sample of so many authors and citing papers; None: all. Then MiniLM needs to encode
            the papers of these alone.
        tune: Store the best mixtures on this file in the model folders first (development data only).
    """

    file: Path
    models: Sequence[str] = ()
    baselines: bool = False
    train: Path | None = None
    embeddings: Path | None = None
    sample: int | None = None
    tune: bool = False


def run_recommendation(run: RecommendationRun) -> dict[str, object]:
    """The report: ``{"data", "rows", "columns", "models"}``.

    Raises:
        ConfigError: A file cannot be read, or two models have one name.
        InvalidInputError: Nothing in the file is known to the models.
    """
    engines = _engines(run)
    papers = read_papers(run.file)
    known = {
        kind: set.intersection(*(set(r.state.tables[kind].ids) for r, _ in engines.values())) for kind in CandidateKind
    }
    data = make_data(papers, known)
    if run.sample is not None:
        data = sample_data(data, run.sample)
    results: dict[str, object] = {}
    for system in _systems(run, engines, data):
        logger.info("evaluating %s", system.name)
        results[system.name] = evaluate_recommendation(system, data)
    columns = {str(kind): len(data.positives[kind].used_columns) for kind in CandidateKind}
    return {"data": str(run.file), "rows": len(papers), "columns": columns, "models": results}


def _engines(run: RecommendationRun) -> dict[str, tuple[PaperEngine, Path]]:
    """Engines and their folders by name."""
    engines: dict[str, tuple[PaperEngine, Path]] = {}
    for asked in run.models or [TASKS["papers"].default]:
        folder = find_model(asked)
        engine = PaperEngine.load(folder)
        if engine.model.name in engines:
            raise ConfigError(f"models must have distinct names, got {engine.model.name!r} twice")
        engines[engine.model.name] = (engine, folder)
    for name in _BASELINE_MODELS if run.baselines else ():
        if name in engines:
            continue
        try:
            folder = find_model(name)
        except NotFoundError as error:
            logger.warning("the baseline %s is left out: %s", name, error)
            continue
        engines[name] = (PaperEngine.load(folder), folder)
    return engines


def _systems(
    run: RecommendationRun, engines: Mapping[str, tuple[PaperEngine, Path]], data: RecommendationData
) -> Iterator[RecommendationSystem]:
    facets, documents = {}, {}
    for name, (engine, folder) in engines.items():
        encoded = engine.encode(data.papers)
        documents[name] = encoded.averages
        facets[name] = facet_system(name, engine, encoded)
        if run.tune:
            _tune(folder, engine, facets[name], encoded.averages, data)
            facets[name] = facet_system(name, PaperEngine.load(folder), encoded)
        yield facets[name]
    if not run.baselines:
        return
    first_name, (first, first_folder) = next(iter(engines.items()))
    tables, bank = first.state.tables, first.state.bank
    for mode in DOCUMENT_MODES:
        yield document_system(f"words-{mode}", documents[first_name], tables, bank, mode)
    yield from _cbow_systems(first, data)
    for mode, system in _minilm_systems(run, first, data).items():
        yield system
        weights = first.model.settings.other_weights.get(f"minilm-{mode}")
        if run.tune:
            weights = {kind: best[0] for kind, best in tune_weights(facets[first_name], system, data).items()}
            _store(first_folder, {f"minilm-{mode}": weights})
        if weights is not None:
            yield mixed_system(f"{first_name}+minilm-{mode}", facets[first_name], system, weights)


def _tune(
    folder: Path,
    engine: PaperEngine,
    facets: RecommendationSystem,
    averages: NDArray[np.float32],
    data: RecommendationData,
) -> None:
    """Stores the best weight and way of document similarity of a model."""
    state = engine.state
    found = {
        mode: tune_weights(facets, document_system("", averages, state.tables, state.bank, mode), data)
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


def _store(folder: Path, other_weights: Mapping[str, Mapping[str, float]]) -> None:
    path = folder / "recommendation.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["other_weights"] = {**values.get("other_weights", {}), **other_weights}
    _replace(path, values)


def _replace(path: Path, values: Mapping[str, object]) -> None:
    with write_atomically(path, durable=False) as part:
        part.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _cbow_systems(engine: PaperEngine, data: RecommendationData) -> Iterator[RecommendationSystem]:
    """CBOW Avg and Max of table 3.8: averages (eq. B.4) of word vectors that saw the papers' texts and nothing else."""
    model, state = engine.model, engine.state
    papers, vocabulary = model.papers, model.words.vocabulary
    counts = word_counts(papers.rows, papers.offsets, len(vocabulary))
    vectors_VW = singular_word_vectors(counts, min(model.words.dim, min(counts.shape) - 1))
    vectors_VW *= rarity_weights(vocabulary.probabilities)[:, None]
    # The training's papers come first in the bank; papers that were added later have no texts here.
    known = np.zeros((len(state.bank.ids), vectors_VW.shape[1]), dtype=np.float32)
    known[: counts.shape[0]] = unit_rows(np.asarray(counts @ vectors_VW))
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    rows = model.paper_rows([paper.title for paper in data.papers], [paper.abstract for paper in data.papers])
    offsets = np.cumsum([0, *map(len, rows)])
    unseen = unit_rows(np.asarray(word_counts(np.concatenate(rows), offsets, len(vocabulary)) @ vectors_VW))
    for mode in DOCUMENT_MODES:
        yield document_system(f"cbow-{mode}", unseen, tables, bank, mode)


def _minilm_systems(
    run: RecommendationRun, engine: PaperEngine, data: RecommendationData
) -> dict[str, RecommendationSystem]:
    if run.train is None:
        logger.warning("the baselines minilm are left out: they need the texts of the training papers (--train FILE)")
        return {}
    state = engine.state
    texts = {paper.id: _text(paper) for paper in read_papers(run.train)}
    needed = _papers_of(state.tables, data)
    missing = [state.bank.ids[row] for row in needed if state.bank.ids[row] not in texts]
    if missing:
        raise InvalidInputError(f"{run.train} must hold the papers of the model, {missing[0]!r} is missing")
    try:
        part = _embeddings([texts[state.bank.ids[row]] for row in needed], run.embeddings)
        unseen = _embeddings([_text(paper) for paper in data.papers], run.embeddings)
    except ImportError as error:
        logger.warning("the baselines minilm are left out: %s", error)
        return {}
    known = np.zeros((len(state.bank.ids), part.shape[1]), dtype=np.float32)
    known[needed] = part
    bank = PaperBank(state.bank.ids, state.bank.titles, state.bank.years, known)
    tables = {kind: _with_embeddings(table, bank) for kind, table in state.tables.items()}
    return {mode: document_system(f"minilm-{mode}", unseen, tables, bank, mode) for mode in DOCUMENT_MODES}


def _papers_of(tables: Mapping[CandidateKind, CandidateTable], data: RecommendationData) -> NDArray[np.int64]:
    """Rows of all papers of the candidates that are evaluated, ascending."""
    rows = [tables[kind].papers_of(tables[kind].row_of_id[key]) for kind in CandidateKind for key in data.ids[kind]]
    return np.unique(np.concatenate(rows))


def _with_embeddings(table: CandidateTable, bank: PaperBank) -> CandidateTable:
    columns = np.repeat(np.arange(len(table)), np.diff(table.starts))
    return build_table(table.ids, table.names, table.vectors, np.stack([table.papers, columns], axis=1), bank)


def _embeddings(texts: Sequence[str], folder: Path | None) -> NDArray[np.float32]:
    """Unit MiniLM embeddings of texts, kept in a folder under a digest of the texts."""
    digest = hashlib.sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = None if folder is None else folder / f"minilm-{digest}.npy"
    if path is not None and path.exists():
        return unit_rows(np.load(path).astype(np.float32))
    embed = minilm()
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    result = np.empty((len(texts), 0), dtype=np.float32)
    for first in range(0, len(order), _ENCODED_AT_A_TIME):
        chosen = order[first : first + _ENCODED_AT_A_TIME]
        part = embed([texts[place] for place in chosen])
        if not result.shape[1]:
            result = np.empty((len(texts), part.shape[1]), dtype=np.float32)
        result[chosen] = part
        logger.info("minilm: %d of %d texts", first + len(chosen), len(order))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, result.astype(np.float16))
    return unit_rows(result)


def _text(paper: Paper) -> str:
    return f"{paper.title}. {paper.abstract}".strip()
