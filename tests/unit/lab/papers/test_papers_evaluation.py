"""Column metrics against scikit-learn and by hand, and ``facets-eval recommendation`` on a toy corpus."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.papers.evaluation import SHARES, Positives, column_metrics
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score
from toy_papers import toy_records


def make_positives(rows: list[int], columns: list[int]) -> Positives:
    return Positives.from_pairs(np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64))


def test_metrics_equal_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((40, 7)).astype(np.float32)
    positives = make_positives(*np.nonzero(rng.random((40, 6)) < 0.15))  # type: ignore[arg-type]
    metrics = column_metrics(scores, positives)
    used = np.unique(positives.columns)
    assert len(metrics["map"]) == len(used)  # columns without a positive are left out
    for row, column in enumerate(used):
        truth = np.zeros(40)
        truth[positives.rows[positives.columns == column]] = 1
        assert metrics["map"][row] == pytest.approx(average_precision_score(truth, scores[:, column]))
        assert metrics["auc"][row] == pytest.approx(roc_auc_score(truth, scores[:, column]))
        assert metrics["ndcg"][row] == pytest.approx(ndcg_score([truth], [scores[:, column]]))


def test_equal_scores_share_mean_ranks() -> None:
    constant = column_metrics(np.zeros((9, 1), np.float32), make_positives([0, 3], [0, 0]))
    assert constant["auc"][0] == pytest.approx(0.5)
    assert constant["map"][0] == pytest.approx(1.5 / 5)  # rank 5, and place 1.5 among the positives
    tied = column_metrics(np.array([[1.0], [1.0], [0.0]], np.float32), make_positives([0, 1], [0, 0]))
    assert tied["map"][0] == tied["auc"][0] == pytest.approx(1.0)


def test_recall_counts_the_first_fifty_and_two_hundred() -> None:
    scores = -np.arange(300, dtype=np.float32)[:, None]
    metrics = column_metrics(scores, make_positives([0, 49, 50, 199, 200], [0] * 5))
    assert (metrics["recall_50"][0], metrics["recall_200"][0]) == (pytest.approx(2 / 5), pytest.approx(4 / 5))


@pytest.fixture
def work(folder: Path, tmp_path: Path) -> Path:
    """A copy of the toy model, which tuning changes, and unseen papers."""
    shutil.copytree(folder, tmp_path / "model")
    unseen = [record | {"id": f"new-{n}"} for n, record in enumerate(toy_records()[::2])]
    unseen.append({"id": "new-x", "title": "a zebra", "authors": ["Nobody Known"], "cited_by": []})
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(r) + "\n" for r in unseen), encoding="utf-8")
    return tmp_path


def test_command_reports_every_method_and_metric(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommendation", str(work / "dev.jsonl"), "--model", str(work / "model"), "--tune"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 37 and report["columns"] == {"authors": 12, "citations": 18}
    methods = report["models"]["toy-papers"]
    assert set(methods) == {"facets", "documents", "facets+documents"}
    for kind in ("authors", "citations"):
        assert set(methods["facets"][kind]) == {"map", "auc", "ndcg", "recall_50", "recall_200"}
        # Tuned on this very file: no worse than either part.
        parts = [methods[method][kind]["map"] for method in ("facets", "documents")]
        assert methods["facets+documents"][kind]["map"] >= max(parts) - 1e-9


def test_baselines_average_words_that_have_only_read_the_papers(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facets_lab.papers.evaluation.BASELINE_MODELS", ())
    monkeypatch.setattr("facets_lab.papers.evaluation.minilm", lambda: lambda texts: np.eye(len(texts), 8) + 0.1)
    train = str(work / "train.jsonl")
    Path(train).write_text("".join(json.dumps(record) + "\n" for record in toy_records()), encoding="utf-8")
    options = ["--model", str(work / "model"), "--baselines", "--train", train, "--sample", "8"]
    assert main(["recommendation", str(work / "dev.jsonl"), *options]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert set(models) == {"toy-papers", "cbow-average", "cbow-max", "minilm-average", "minilm-max"}
    # Subjects share no word, so words alone find an author's papers.
    assert models["cbow-max"]["documents"]["authors"]["auc"] > 0.6


def test_command_says_when_nothing_is_known(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = work / "unknown.jsonl"
    path.write_text('{"id": "a", "title": "b", "authors": ["Nobody"]}\n', encoding="utf-8")
    assert main(["recommendation", str(path), "--model", str(work / "model")]) == 1
    assert "the model knows" in capsys.readouterr().err


def test_tuning_finds_a_share_for_the_sentences(with_sentences: Path, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(with_sentences.parent, tmp_path / "copy")
    model, data = tmp_path / "copy" / "papers", folder.parents[1] / "papers.jsonl"
    assert main(["recommendation", str(data), "--model", str(model), "--tune"]) == 0
    values = json.loads((model / "recommendation.json").read_text())
    assert values["sentences"]["share"] in SHARES and values["sentences"]["encoder"] == "../passages"
