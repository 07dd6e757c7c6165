"""Retrieval on folders in BEIR's layout: metrics of every system on every folder, and their means."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from facets.errors import ConfigError
from facets_lab.documents.baselines import FUSION_PREFIX, baseline_systems
from facets_lab.documents.beir import (
    METRICS,
    RetrievalData,
    limit_documents,
    limit_queries,
    query_metrics,
    read_beir,
)
from facets_lab.documents.systems import CollectionSystem, Ranked, RetrievalSystem, load_searched
from facets_lab.evaluation.comparison import load_systems, measure_systems
from facets_lab.evaluation.statistics import Metrics, with_intervals

BASELINE_MODELS = ("facets-en-k1",)

Results = dict[str, dict[str, Metrics]]
"""By system and method."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalRun:
    """What is asked for.

    Attributes:
        folders: One or more, of different names.
        models: Names or paths; the default model when there is none.
        baselines: Whether with what people use today.
        num_queries: Only so many queries of a folder, drawn with ``seed``; None: all.
        num_documents: Only so many of its documents, those that are judged for these queries among them; None: all.
        num_facets: Facets of a document in ``sentence-kmeans``.
        cache: Folder where embeddings of the baselines are kept; None: for this run only.
        seed: Of the drawing and the clustering.
        num_resamples: Of the queries, for intervals in each folder; 0: none.
        title_field: Whether each model is also measured with titles as a field of the payload, as ``NAME+title``.
    """

    folders: Sequence[Path]
    models: Sequence[str] = ()
    baselines: bool = False
    num_queries: int | None = None
    num_documents: int | None = None
    num_facets: int = 8
    cache: Path | None = None
    seed: int = 0
    num_resamples: int = 0
    title_field: bool = False


def run_retrieval(run: RetrievalRun) -> dict[str, object]:
    """The report: ``data``, ``rows`` (queries of all folders), ``models`` (means over the folders), ``folders``.

    ``vectors`` says how many of them a document each method keeps, as means over the folders. With baselines there is
    also ``fusions``: ways to fuse vectors with BM25 by system, best first, as means over the folders.

    Raises:
        ConfigError: A file cannot be read; two folders or two systems have one name.
        InvalidInputError: A folder is not in BEIR's layout; the message names file and line.
        NotFoundError: A model that was asked for does not exist.
    """
    sets = [_read(folder, run) for folder in run.folders]
    names = [data.name for data in sets]
    if len(set(names)) < len(names):
        raise ConfigError(f"folders must have different names, got {', '.join(names)}")
    with ExitStack() as stack:
        cache = run.cache or Path(stack.enter_context(TemporaryDirectory(prefix="facets-eval-cache-")))
        measured, num_vectors = _measure(_systems(run, cache), sets, run.num_resamples)
    means = _means(list(measured.values()))
    report: dict[str, object] = {
        "data": [str(folder) for folder in run.folders],
        "rows": sum(len(data.queries) for data in sets),
        "models": _part(means, fusions=False),
        "folders": {name: _part(results, fusions=False) for name, results in measured.items()},
        "vectors": num_vectors,
    }
    fusions = _part(means, fusions=True)
    return {**report, "fusions": {name: _sorted(ways) for name, ways in fusions.items()}} if fusions else report


def _read(folder: Path, run: RetrievalRun) -> RetrievalData:
    asked = limit_queries(read_beir(folder), run.num_queries, seed=run.seed)
    return limit_documents(asked, run.num_documents, seed=run.seed)


def evaluate_retrieval(system: RetrievalSystem, data: RetrievalData, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """Means over the queries by method, see ``query_metrics``; with resamples also their intervals."""
    return _metrics(system.rank(data), data, num_resamples)


def _measure(
    systems: Sequence[RetrievalSystem], sets: Sequence[RetrievalData], num_resamples: int
) -> tuple[dict[str, dict[str, Mapping[str, Metrics]]], dict[str, dict[str, float]]]:
    """Metrics by folder, system and method; vectors a document by system and method."""
    num_vectors: dict[str, list[Mapping[str, float]]] = {system.name: [] for system in systems}

    def evaluate(system: RetrievalSystem, data: RetrievalData, /, *, num_resamples: int) -> dict[str, Metrics]:
        ranked = system.rank(data)
        num_vectors[system.name].append(ranked.num_vectors)
        return _metrics(ranked, data, num_resamples)

    measured = {data.name: measure_systems(systems, data, evaluate, num_resamples=num_resamples) for data in sets}
    means = {
        name: {method: float(np.mean([of_set[method] for of_set in sets])) for method in sets[0]}
        for name, sets in num_vectors.items()
    }
    return measured, means


def _metrics(ranked: Ranked, data: RetrievalData, num_resamples: int) -> dict[str, Metrics]:
    judgements = [data.judgements[query] for query in data.query_ids]
    itself = _own_documents(data)
    report: dict[str, Metrics] = {}
    for method, rankings in ranked.rankings.items():
        values = query_metrics(
            [[key for key in ranking if key != own] for ranking, own in zip(rankings, itself, strict=True)], judgements
        )
        columns = [values[name] for name in METRICS]
        report[method] = with_intervals(_column_means, *columns, num_resamples=num_resamples)
    return report


def _systems(run: RetrievalRun, cache: Path) -> list[RetrievalSystem]:
    baselines = BASELINE_MODELS if run.baselines else ()
    models = load_systems(run.models, baselines, load_searched)
    variants = (False, True) if run.title_field else (False,)
    systems: list[RetrievalSystem] = [
        CollectionSystem(model, title_field=title_field) for model in models for title_field in variants
    ]
    if run.baselines:
        systems += baseline_systems(cache, num_facets=run.num_facets, seed=run.seed)
    return systems


def _own_documents(data: RetrievalData) -> list[str | None]:
    """For each query the document that is the query itself: found at once, it would say nothing."""
    texts = dict(zip(data.document_ids, data.documents, strict=True))
    return [
        query if texts.get(query, "").endswith(text) else None
        for query, text in zip(data.query_ids, data.queries, strict=True)
    ]


def _column_means(*columns: NDArray[np.float64]) -> Metrics:
    return {name: float(column.mean()) for name, column in zip(METRICS, columns, strict=True)}


def _means(measured: Sequence[Mapping[str, Mapping[str, Metrics]]]) -> Results:
    """Means over the folders, without intervals."""
    return {
        name: {
            method: {
                metric: float(np.mean([results[name][method][metric] for results in measured])) for metric in METRICS
            }
            for method in methods
        }
        for name, methods in measured[0].items()
    }


def _part(results: Mapping[str, Mapping[str, Metrics]], *, fusions: bool) -> Results:
    """Either the methods or the fusions; systems without any are left out."""
    parts = {
        name: {
            method.removeprefix(FUSION_PREFIX): metrics
            for method, metrics in methods.items()
            if method.startswith(FUSION_PREFIX) == fusions
        }
        for name, methods in results.items()
    }
    return {name: methods for name, methods in parts.items() if methods}


def _sorted(ways: Mapping[str, Metrics]) -> dict[str, Metrics]:
    return dict(sorted(ways.items(), key=lambda item: -(item[1][METRICS[0]] or 0.0)))
