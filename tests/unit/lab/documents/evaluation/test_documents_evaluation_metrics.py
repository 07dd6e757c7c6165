"""Metrics of rankings against the definitions written out."""

import math
from collections.abc import Mapping, Sequence

import pytest
from facets_lab.documents.evaluation.metrics import METRICS, query_metrics
from hypothesis import given
from hypothesis import strategies as st

IDS = [f"d{number}" for number in range(130)]


def slow_metrics(ranking: Sequence[str], grades: Mapping[str, int]) -> dict[str, float]:
    """The definitions, word by word."""
    relevant = {key for key, grade in grades.items() if grade > 0}
    gain = sum(max(grades.get(key, 0), 0) / math.log2(rank + 1) for rank, key in enumerate(ranking[:10], start=1))
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    ideal_gain = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal[:10], start=1))
    first = [rank for rank, key in enumerate(ranking[:10], start=1) if key in relevant]
    return {
        "ndcg_10": gain / ideal_gain,
        "recall_100": len(relevant & set(ranking[:100])) / len(relevant),
        "mrr_10": 1 / first[0] if first else 0.0,
    }


judged = st.dictionaries(st.sampled_from(IDS), st.integers(-1, 3), min_size=1, max_size=30).filter(
    lambda grades: max(grades.values()) > 0
)


@given(st.lists(st.tuples(st.permutations(IDS), st.integers(0, 130), judged), min_size=1, max_size=3))
def test_metrics_equal_their_definitions(cases: list[tuple[list[str], int, dict[str, int]]]) -> None:
    rankings = [ranking[:length] for ranking, length, _ in cases]
    values = query_metrics(rankings, [grades for *_, grades in cases])
    assert tuple(values) == METRICS
    for row, (ranking, (*_, grades)) in enumerate(zip(rankings, cases, strict=True)):
        assert {name: values[name][row] for name in METRICS} == pytest.approx(slow_metrics(ranking, grades))


def test_the_order_of_the_ranking_counts_and_not_that_of_ids() -> None:
    first, last = query_metrics([["b", "a"], ["a", "b"]], [{"b": 1}, {"b": 1}])["mrr_10"]
    assert (first, last) == (1.0, 0.5)


def test_an_empty_ranking_is_worth_nothing() -> None:
    values = query_metrics([[], ["a"]], [{"a": 1}, {"a": 1}])
    assert {name: list(values[name]) for name in METRICS} == {name: [0.0, 1.0] for name in METRICS}
