"""Metrics of rankings, by trec_eval."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEPTH", "METRICS", "Ranking", "query_metrics"]

DEPTH = 100
"""Documents of a ranking that are looked at."""
_FIRST = 10
METRICS = ("ndcg_10", "recall_100", "mrr_10")

Ranking = Sequence[str]
"""Ids of documents, best first, each once."""


def query_metrics(
    rankings: Sequence[Ranking], judgements: Sequence[Mapping[str, int]]
) -> dict[str, NDArray[np.float64]]:
    """Metrics of each query, ``[Q]`` by name, in ``[0, 1]``.

    ``ndcg_10``: gains are the grades, discounts the logarithm of the rank plus one. ``recall_100``: the share of the
    relevant documents among the first 100. ``mrr_10``: one over the rank of the first relevant document, 0 when none
    is among the first 10.

    Args:
        rankings: One for each query; may be empty or longer than 100.
        judgements: In the same places, ids of documents -> grade; above 0 is relevant, and at least one is.

    Raises:
        ImportError: pytrec_eval is not installed.

    Example:
        >>> values = query_metrics([["a", "b"]], [{"b": 1, "c": 1}])
        >>> {name: round(float(value[0]), 2) for name, value in values.items()}
        {'ndcg_10': 0.39, 'recall_100': 0.5, 'mrr_10': 0.5}

    References:
        Jarvelin and Kekalainen 2002; the measures ndcg_cut_10, recall_100 and recip_rank of trec_eval.
    """
    from pytrec_eval import RelevanceEvaluator

    grades = {
        str(row): {key: max(grade, 0) for key, grade in of_query.items()} for row, of_query in enumerate(judgements)
    }
    runs = {str(row): _run(ranking[:DEPTH]) for row, ranking in enumerate(rankings) if ranking}
    tops = {str(row): _run(ranking[:_FIRST]) for row, ranking in enumerate(rankings) if ranking}
    measured = RelevanceEvaluator(grades, {"ndcg_cut.10", "recall.100"}).evaluate(runs)
    first = RelevanceEvaluator(grades, {"recip_rank"}).evaluate(tops)
    values = [
        (measured[row]["ndcg_cut_10"], measured[row]["recall_100"], first[row]["recip_rank"])
        if row in measured
        else (0.0, 0.0, 0.0)
        for row in map(str, range(len(rankings)))
    ]
    return dict(zip(METRICS, np.array(values, dtype=np.float64).reshape(-1, len(METRICS)).T, strict=True))


def _run(ranking: Ranking) -> dict[str, float]:
    """Falling scores: trec_eval sorts by score and would break ties by id."""
    return {key: float(len(ranking) - place) for place, key in enumerate(ranking)}
