"""Column metrics against scikit-learn and by hand, and the whole command on a toy corpus."""

import json
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.papers.systems import ColumnMetrics, Positives, column_metrics
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score
from toy_papers import toy_paper_model, toy_records

from facets.errors import InvalidInputError

NUM_PAPERS = 40


def random_case() -> tuple[np.ndarray, Positives]:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((NUM_PAPERS, 6)).astype(np.float32)
    rows, columns = np.nonzero(rng.random((NUM_PAPERS, 6)) < 0.15)
    return scores, Positives.of(rows.astype(np.int64), columns.astype(np.int64))


def metrics_of(scores: np.ndarray, positives: Positives) -> ColumnMetrics:
    return column_metrics(lambda columns: {"m": scores[:, columns]}, ("m",), positives, num_papers=len(scores))["m"]


def test_metrics_equal_those_of_scikit_learn() -> None:
    scores, positives = random_case()
    metrics = metrics_of(scores, positives)
    for place, column in enumerate(positives.used_columns):
        truth = np.zeros(NUM_PAPERS)
        truth[positives.rows[positives.columns == column]] = 1
        own = scores[:, column]
        assert metrics.values["map"][place] == pytest.approx(average_precision_score(truth, own))
        assert metrics.values["auc"][place] == pytest.approx(roc_auc_score(truth, own))
        assert metrics.values["ndcg"][place] == pytest.approx(ndcg_score([truth], [own]))


def test_a_constant_column_shares_mean_ranks() -> None:
    positives = Positives.of(np.array([0, 3]), np.array([0, 0]))
    metrics = metrics_of(np.zeros((9, 1), np.float32), positives)
    assert metrics.values["auc"][0] == pytest.approx(0.5)
    # Both positives lie at rank 5, and at place 1.5 among the positives.
    assert metrics.values["map"][0] == pytest.approx(1.5 / 5)
    assert metrics.values["recall_50"][0] == 1.0


def test_tied_positives_at_the_top_are_perfect() -> None:
    scores = np.array([[1.0], [1.0], [0.0]], dtype=np.float32)
    positives = Positives.of(np.array([0, 1]), np.array([0, 0]))
    metrics = metrics_of(scores, positives)
    assert metrics.means()["map"] == pytest.approx(1.0)
    assert metrics.means()["auc"] == pytest.approx(1.0)


def test_recall_counts_the_first_fifty() -> None:
    scores = -np.arange(300, dtype=np.float32)[:, None]
    positives = Positives.of(np.array([0, 49, 50, 199, 200]), np.zeros(5, dtype=np.int64))
    means = metrics_of(scores, positives).means()
    assert means["recall_50"] == pytest.approx(2 / 5)
    assert means["recall_200"] == pytest.approx(4 / 5)


def test_columns_without_a_positive_are_left_out() -> None:
    scores, positives = random_case()
    wider = np.concatenate([scores, scores[:, :1]], axis=1)
    metrics = metrics_of(wider, positives)
    assert len(metrics.values["map"]) == len(positives.used_columns)


def test_no_positive_at_all_is_an_error() -> None:
    empty = np.empty(0, dtype=np.int64)
    metrics = metrics_of(np.empty((3, 0), np.float32), Positives.of(empty, empty))
    with pytest.raises(InvalidInputError, match="expected at least one"):
        metrics.means()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    toy_paper_model(folder)
    unseen = [record | {"id": f"new-{n}"} for n, record in enumerate(toy_records()[::2])]
    unseen.append({"id": "new-x", "title": "a zebra", "authors": ["Nobody Known"], "cited_by": []})
    (folder / "dev.jsonl").write_text("".join(json.dumps(r) + "\n" for r in unseen), encoding="utf-8")
    return folder


def test_command_reports_every_method_and_metric(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = folder / "run" / "model"
    assert main(["recommendation", str(folder / "dev.jsonl"), "--model", str(model), "--tune"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 37
    assert report["columns"] == {"authors": 12, "citations": 18}
    methods = report["models"]["toy-papers"]
    assert set(methods) == {"facets", "documents", "facets+documents"}
    for kinds in methods.values():
        assert set(kinds) == {"authors", "citations"}
        for metrics in kinds.values():
            assert set(metrics) == {"map", "auc", "ndcg", "recall_50", "recall_200"}
            assert all(0 <= value <= 1 for value in metrics.values())
    # Tuned on this very file: no worse than either part.
    for kind in ("authors", "citations"):
        parts = [methods[method][kind]["map"] for method in ("facets", "documents")]
        assert methods["facets+documents"][kind]["map"] >= max(parts) - 1e-9


def test_baselines_average_words_of_the_model_and_words_that_only_read(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The shipped baselines know other authors than the toys.
    monkeypatch.setattr("facets_lab.papers.evaluation.BASELINE_MODELS", ())
    model = folder / "run" / "model"
    assert main(["recommendation", str(folder / "dev.jsonl"), "--model", str(model), "--baselines"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert {"words-average", "words-max", "cbow-average", "cbow-max"} <= set(models)
    # Subjects share no word, so words alone find an author's papers.
    assert models["cbow-max"]["documents"]["authors"]["auc"] > 0.6


def test_command_shows_when_nothing_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "unknown.jsonl"
    path.write_text('{"id": "a", "title": "b", "authors": ["Nobody"]}\n', encoding="utf-8")
    assert main(["recommendation", str(path), "--model", str(folder / "run" / "model")]) == 1
    assert "the model knows" in capsys.readouterr().err
