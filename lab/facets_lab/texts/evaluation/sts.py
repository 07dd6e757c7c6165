"""Semantic textual similarity: correlation of scores with people's (Chang 2022, table 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from facets.errors import InvalidInputError
from facets_lab.evaluation.files import fields_of, number_of, read_lines
from facets_lab.evaluation.intervals import Metrics, with_intervals
from facets_lab.texts.evaluation.pair_systems import PairSystem

__all__ = ["ScoredPairs", "correlations", "evaluate_sts", "read_sts"]


@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Pairs of sentences with the similarity people gave them."""

    gold: NDArray[np.float64]  # [P]
    pairs: tuple[tuple[str, str], ...]


def read_sts(path: Path) -> ScoredPairs:
    """Reads ``score<TAB>sentence<TAB>sentence`` lines.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line has another form, or there is none; the message names file and line.
    """
    gold: list[float] = []
    pairs: list[tuple[str, str]] = []
    for place, line in read_lines(path):
        score, first, second = fields_of(line, ("score", "first sentence", "second sentence"), place)
        gold.append(number_of(score, place, what="score"))
        pairs.append((first, second))
    if not pairs:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return ScoredPairs(np.array(gold), tuple(pairs))


def evaluate_sts(system: PairSystem, data: ScoredPairs, *, num_resamples: int = 0) -> dict[str, Metrics]:
    """``correlations`` of every method of a system with people's scores, with intervals when there are resamples.

    Raises:
        ConfigError: The model lacks what ``sif`` removes, or the package for ``wmd`` is missing.
    """
    return {
        method: with_intervals(correlations, scores_P, data.gold, num_resamples=num_resamples)
        for method, scores_P in system.scores(data.pairs)
    }


def correlations(scores_P: NDArray[np.floating], gold_P: NDArray[np.float64]) -> Metrics:
    """Pearson's and Spearman's correlation.

    Args:
        scores_P: Scores of a method, ``[P]``.
        gold_P: People's scores, ``[P]``.

    Returns:
        ``pearson``, ``spearman`` over all pairs; ``pearson_low``, ``spearman_low`` over the pairs whose gold score
        is below the median. In ``[-1, 1]``; None where fewer than two pairs or equal scores leave it undefined.

    References:
        Chang 2022, section 3.2.2.3 (STSB Low).
    """
    low_P = gold_P < np.median(gold_P)
    return {
        "pearson": _correlation(pearsonr, scores_P, gold_P),
        "spearman": _correlation(spearmanr, scores_P, gold_P),
        "pearson_low": _correlation(pearsonr, scores_P[low_P], gold_P[low_P]),
        "spearman_low": _correlation(spearmanr, scores_P[low_P], gold_P[low_P]),
    }


def _correlation(
    statistic: Callable[..., tuple[float, float]], scores: NDArray[np.floating], gold: NDArray[np.float64]
) -> float | None:
    if len(scores) < 2 or np.ptp(scores) == 0 or np.ptp(gold) == 0:
        return None
    return float(statistic(scores.astype(np.float64), gold)[0])
