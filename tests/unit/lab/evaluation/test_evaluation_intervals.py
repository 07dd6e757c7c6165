"""Bootstrap intervals: reproducible, around the figure, None where nothing is defined."""

import numpy as np
import pytest
from facets_lab.evaluation.intervals import with_intervals


def test_without_resamples_only_the_metrics_of_all_rows() -> None:
    assert with_intervals(lambda x: {"n": float(len(x)), "last": float(x[-1])}, np.arange(5)) == {"n": 5.0, "last": 4.0}


def test_interval_of_a_mean_is_the_normal_one() -> None:
    values = np.random.default_rng(3).normal(2.0, 1.0, size=400)
    result = with_intervals(lambda x: {"mean": float(x.mean())}, values, num_resamples=2000)
    error = values.std() / np.sqrt(400)
    assert list(result) == ["mean", "mean_ci95_from", "mean_ci95_to"]
    assert result["mean_ci95_from"] == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert result["mean_ci95_to"] == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_same_resamples_for_every_call() -> None:
    seen: list[list[int]] = []

    def record(rows: np.ndarray) -> dict[str, float | None]:
        seen.append(rows.tolist())
        return {"x": 0.0}

    with_intervals(record, np.arange(6), num_resamples=4)
    with_intervals(record, np.arange(6), num_resamples=4)
    assert seen[:5] == seen[5:] and seen[1] != seen[2]


def test_a_single_row_has_an_interval_of_no_width() -> None:
    result = with_intervals(lambda x: {"x": float(x[0])}, np.array([3.0]), num_resamples=5)
    assert result == {"x": 3.0, "x_ci95_from": 3.0, "x_ci95_to": 3.0}


def test_undefined_resamples_are_left_out() -> None:
    nothing = with_intervals(lambda x: {"x": None}, np.arange(3), num_resamples=5)
    assert nothing == {"x": None, "x_ci95_from": None, "x_ci95_to": None}
    sometimes = with_intervals(lambda x: {"x": 1.0 if 0 in x else None}, np.arange(3), num_resamples=50)
    assert sometimes == {"x": 1.0, "x_ci95_from": 1.0, "x_ci95_to": 1.0}


def test_columns_are_resampled_together() -> None:
    column = np.arange(50)

    def metrics(first: np.ndarray, second: np.ndarray) -> dict[str, float | None]:
        return {"equal": float((first == second / 2).all())}

    assert set(with_intervals(metrics, column, 2 * column, num_resamples=10).values()) == {1.0}
