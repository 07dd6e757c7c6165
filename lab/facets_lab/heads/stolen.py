"""Words that no context makes most likely: rows inside the convex hull of the others (Demeter et al. 2020).

The paper approximates which words are interior; here linear programs prove it. Shape suffixes: N rows, D
dimensions, P candidate rows.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.optimize import linprog

from facets_lab.evaluation.comparison import Report
from facets_lab.evaluation.options import Corpus, Seeds, Steps, Threads, WorkDir
from facets_lab.evaluation.statistics import repeat_seeds
from facets_lab.heads.language_models import NumTokens, NumWords, WordCorpus, read_corpus, train_language_model
from facets_lab.heads.networks import Heads, NetworkTrainingConfig, experiment_config

_BLOCK = 512  # rows compared with all others at a time
_CORRECTIONS = 20
_SAFE_MARGIN = 1e-9  # of products, relative to the length of the query
_CLOSE = 1e-7  # a row this close to the hull counts as inside, relative to the longest row
_FIRST, _MORE = 64, 64  # other rows in the first linear program, and those that a round adds
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def stolen(
    files: Corpus,
    work_dir: WorkDir,
    head: Heads = None,
    dim: Annotated[list[int] | None, typer.Option(min=2, help="Dimensions of the model; repeatable.")] = None,
    seeds: Seeds = 1,
    steps: Steps = 1_000,
    num_tokens: NumTokens = 1_500_000,
    num_words: NumWords = 10_000,
    threads: Threads = 0,
) -> Report:
    """Find words that are never most likely, by dimension (Demeter et al. 2020).

    Example: python -m facets_lab.heads stolen shard-00.txt.xz --dim 8 --dim 32 --work-dir runs/stolen
    """
    config = experiment_config("stolen", max_length=64, batch_size=32, steps=steps, threads=threads)
    corpus = read_corpus(files, num_tokens=num_tokens, num_words=num_words, length=config.max_length)
    sizes = {f"{name}-{size}": (name, size) for name in head or ["softmax"] for size in dim or [8, 16, 32, 64]}

    def measure(name: str, seed: int) -> Mapping[str, float]:
        run = config.replaced(head=sizes[name][0], dim=sizes[name][1], seed=seed)
        return measure_stolen(corpus, run, work_dir / f"{name}-{seed}")

    return {"words": corpus.num_words, "layers": repeat_seeds(list(sizes), seeds, measure)}


def measure_stolen(corpus: WordCorpus, config: NetworkTrainingConfig, folder: Path) -> dict[str, float]:
    """Number of ``interior`` words and held-out ``perplexity`` of a model that is trained in ``folder``, or loaded."""
    trainer, perplexity, _ = train_language_model(corpus, config, folder)
    num_interior = interior(trainer.network.words.weight[1:].detach().cpu().numpy()).sum()
    return {"interior": float(num_interior), "perplexity": perplexity}


def interior(rows_ND: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether a linear program proves that a row lies in the hull of the others, ``[N]``."""
    rows = rows_ND.astype(np.float64) - rows_ND.mean(axis=0, dtype=np.float64)
    rows /= np.linalg.norm(rows, axis=1).max() or 1.0
    result = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        for row in _never_first(rows, np.arange(start, min(start + _BLOCK, len(rows)))).tolist():
            result[row] = _is_inside(rows, row)
    return result


def _never_first(rows_ND: NDArray[np.float64], places_P: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that rank first neither for themselves as the query nor for a perceptron's corrections of it."""
    queries_PD = rows_ND[places_P]
    for _ in range(1 + _CORRECTIONS):
        scores_PN = queries_PD @ rows_ND.T
        own_P = scores_PN[np.arange(len(places_P)), places_P].copy()
        scores_PN[np.arange(len(places_P)), places_P] = -np.inf
        best_P = scores_PN.argmax(axis=1)
        is_behind_P = own_P - scores_PN.max(axis=1) <= _SAFE_MARGIN * np.linalg.norm(queries_PD, axis=1)
        places_P, best_P = places_P[is_behind_P], best_P[is_behind_P]
        queries_PD = queries_PD[is_behind_P] + rows_ND[places_P] - rows_ND[best_P]
        if not len(places_P):
            break
    return places_P


def _is_inside(rows_ND: NDArray[np.float64], row: int) -> bool:
    """Solves linear programs over some of the other rows; each round adds the rows that its query does not beat."""
    differences = rows_ND[row] - np.delete(rows_ND, row, axis=0)
    dim = differences.shape[1]
    active = np.argsort((differences**2).sum(axis=1))[: _FIRST + dim // 4]
    while True:
        # Maximizes the smallest lead of a query in the unit cube: 0 exactly if the row is in the hull.
        solved = linprog(
            np.append(np.zeros(dim), -1.0),
            A_ub=np.concatenate([-differences[active], np.ones((len(active), 1))], axis=1),
            b_ub=np.zeros(len(active)),
            bounds=[(-1.0, 1.0)] * dim + [(0.0, None)],
            options=_TOLERANCES,
        )
        if solved.x is None:
            return False
        query, lead = solved.x[:-1], solved.x[-1]
        if lead <= _CLOSE:
            return True
        leads = differences @ query
        worst = np.argsort(leads)[:_MORE]
        more = np.union1d(active, worst[leads[worst] < lead])
        if len(more) == len(active) or leads.min() > _SAFE_MARGIN * np.linalg.norm(query):
            return False
        active = more
