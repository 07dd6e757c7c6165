"""Evaluates search on BEIR folders: models in the server's engine, and the baselines BM25, MiniLM and model2vec.

Shape suffixes: N documents, Q queries, C candidates, D dimensions.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from scipy.stats import zscore

from facets.arrays import Floats, Ints, Vectors
from facets.documents.types import SearchMode
from facets.errors import ConfigError
from facets.language.vectors import unit_rows
from facets.model.passage_model import PassageModel
from facets_lab.documents.beir import DEPTH, METRICS, Ranking, RetrievalData, query_metrics, read_beir, sampled
from facets_lab.documents.collection import SearchedModel, indexed, load_searched
from facets_lab.evaluation.comparison import Embed, MethodMetrics, Report, if_installed, load_models, minilm, model2vec
from facets_lab.evaluation.options import Baselines, Bootstrap, Folders, Models, NumDocuments, Seed
from facets_lab.evaluation.statistics import Metrics, mean_metrics

BASELINE_MODELS = ("facets-en-k1",)
_MODES: tuple[SearchMode, ...] = ("facets", "lexical", "hybrid")
_K1, _B = 0.9, 0.4

Rankings = dict[str, list[Ranking]]  # by method, one ranking for each query
System = Callable[[RetrievalData], Rankings]


def bm25_scores(documents: Sequence[str], queries: Sequence[str]) -> Floats:
    """BM25 by bm25s with English stemming and stop words, ``[Q, N]``; 0 where query and document share no term."""
    import bm25s
    from Stemmer import Stemmer

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    options: dict[str, Any] = {"stopwords": "en", "stemmer": Stemmer("english"), "show_progress": False}
    scores_QN = np.zeros((len(queries), len(documents)), dtype=np.float32)
    terms = bm25s.tokenize(list(documents), **options)
    if any(terms.ids):  # bm25s fails on documents without a single term
        index = bm25s.BM25(k1=_K1, b=_B)
        index.index(terms, show_progress=False)
        for row, asked in enumerate(bm25s.tokenize(list(queries), return_ids=False, **options)):
            if asked:
                scores_QN[row] = index.get_scores(asked)
    return scores_QN


def model_rankings(model: SearchedModel, data: RetrievalData) -> Rankings:
    """Rankings by ``facets``, ``lexical`` and ``hybrid``; for a passage model also by ``vector``, one per text."""
    rankings: Rankings = {}
    if isinstance(model, PassageModel):
        rankings |= vector_rankings(model.embed, data)
    with indexed(model, data.documents) as collection:
        found = collection.search(list(data.queries.values()), _MODES, top_k=DEPTH + 1)
    return rankings | {mode: [[hit.id for hit in hits] for hits in found[mode]] for mode in _MODES}


def vector_scores(embed: Embed, data: RetrievalData) -> Floats:
    """Cosines of queries and documents, ``[Q, N]``; 0 for a blank document."""
    texts = list(data.documents.values())
    queries_QD = unit_rows(embed(list(data.queries.values())))
    visible = [row for row, text in enumerate(texts) if text.strip()]
    units_ND = np.zeros((len(texts), queries_QD.shape[1]), dtype=np.float32)
    units_ND[visible] = unit_rows(embed([texts[row] for row in visible]))
    return queries_QD @ units_ND.T


def vector_rankings(embed: Embed, data: RetrievalData) -> Rankings:
    """Ranks all documents by cosine."""
    keys = list(data.documents)
    scores_QN = vector_scores(embed, data)
    return {"vector": [[keys[row] for row in best_rows(scores_N, DEPTH + 1)] for scores_N in scores_QN]}


def best_rows(scores_N: Vectors, num_rows: int) -> Ints:
    """Rows of the highest scores, best first, ties by row."""
    return np.argsort(-scores_N, kind="stable")[:num_rows]


def _bm25_found(data: RetrievalData) -> Iterator[tuple[Floats, Ints]]:
    """Scores of each query, ``[N]``, and the rows of the best documents that share a term with it."""
    for scores_N in bm25_scores(list(data.documents.values()), list(data.queries.values())):
        rows = best_rows(scores_N, DEPTH + 1)
        yield scores_N, rows[scores_N[rows] > 0]


def bm25_rankings(data: RetrievalData) -> Rankings:
    """Ranks the documents that share a term with the query."""
    keys = list(data.documents)
    return {"lexical": [[keys[row] for row in rows] for _, rows in _bm25_found(data)]}


def fused_rankings(embed: Embed, data: RetrievalData) -> Rankings:
    """Ranks the candidates of vectors and BM25 by the mean of their z-scores over them (Bruch et al. 2023)."""
    keys = list(data.documents)
    rankings: list[Ranking] = []
    for vector_N, (lexical_N, rows) in zip(vector_scores(embed, data), _bm25_found(data), strict=True):
        rows_C = np.union1d(best_rows(vector_N, DEPTH + 1), rows)
        fused_C = sum(np.nan_to_num(zscore(scores_N[rows_C].astype(np.float64))) for scores_N in (vector_N, lexical_N))
        rankings.append([keys[row] for row in rows_C[best_rows(fused_C, DEPTH + 1)]])
    return {"hybrid": rankings}


def baseline_systems() -> Iterator[tuple[str, System]]:
    """Yields the installed baselines."""
    yield "bm25", bm25_rankings
    for embed in if_installed("minilm", minilm):
        yield "minilm", partial(vector_rankings, embed)
        yield "minilm+bm25", partial(fused_rankings, embed)
    for embed in if_installed("model2vec", model2vec):
        yield "model2vec", partial(vector_rankings, embed)


def evaluate_retrieval(
    folders: Folders,
    names_or_paths: Models = None,
    *,
    baselines: Baselines = False,
    num_resamples: Bootstrap = 0,
    num_queries: Annotated[
        int | None, typer.Option("--limit-queries", min=1, metavar="N", help="Sample N queries per folder.")
    ] = None,
    num_documents: NumDocuments = None,
    seed: Seed = 0,
) -> Report:
    """Evaluate search on BEIR folders, in the same engine that the server uses.

    Example: facets-eval retrieval data/retrieval/squad data/retrieval/bioasq --baselines
    """
    sets = [sampled(read_beir(folder), num_queries, num_documents, seed=seed) for folder in folders]
    names = [data.name for data in sets]
    if len(set(names)) < len(names):
        raise ConfigError(f"folders must have different names, got {', '.join(names)}")
    models = load_models(names_or_paths, BASELINE_MODELS if baselines else (), load_searched)
    systems: dict[str, System] = {model.name: partial(model_rankings, model) for model in models}
    systems |= baseline_systems() if baselines else ()
    measured = {
        data.name: {
            name: ranking_metrics(system(data), data, num_resamples=num_resamples) for name, system in systems.items()
        }
        for data in sets
    }
    return {
        "data": [str(folder) for folder in folders],
        "rows": sum(len(data.queries) for data in sets),
        "models": _means(list(measured.values())),
        "folders": measured,
    }


def ranking_metrics(rankings: Rankings, data: RetrievalData, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """Metrics by method, averaged over the queries; a document that is the query itself does not count as found."""
    itself = [key if is_itself(data, key) else None for key in data.queries]
    judgements = [data.judgements[key] for key in data.queries]
    measured = {}
    for method, found in rankings.items():
        others = [[key for key in ranking if key != own] for ranking, own in zip(found, itself, strict=True)]
        measured[method] = mean_metrics(query_metrics(others, judgements), num_resamples=num_resamples)
    return measured


def is_itself(data: RetrievalData, query_id: str) -> bool:
    """Whether the document with the same id as a query is the query itself, as in Quora."""
    return data.documents.get(query_id, "").endswith(data.queries[query_id])


def _means(measured: Sequence[Mapping[str, MethodMetrics]]) -> dict[str, dict[str, Metrics]]:
    def mean(name: str, method: str) -> Metrics:
        return {m: float(np.mean([results[name][method][m] for results in measured])) for m in METRICS}

    return {name: {method: mean(name, method) for method in methods} for name, methods in measured[0].items()}
