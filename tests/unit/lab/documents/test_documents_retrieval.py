"""``facets-eval retrieval``: models through the engine, baselines, the report."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from facets_lab.documents import retrieval
from facets_lab.documents.beir import METRICS, RetrievalData, read_beir
from facets_lab.documents.retrieval import bm25_scores, fused_rankings, model_rankings, vector_scores
from facets_lab.evaluation.__main__ import main
from references import reference_search
from scipy.stats import zscore
from toy_retrieval import write_beir
from toys import toy_model, toy_passage_model

from facets.documents.queries import weighted_queries


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    toy_model().save(tmp_path / "toy-model")
    return tmp_path / "toy-model"


@pytest.fixture
def data(tmp_path: Path) -> RetrievalData:
    return read_beir(write_beir(tmp_path / "toy"))


def letters(texts: Sequence[str]) -> np.ndarray:
    return np.array([[text.count(letter) for letter in "adegilmnopstuy"] for text in texts], dtype=np.float32)


def test_models_rank_like_an_exact_comparison(data: RetrievalData) -> None:
    model, passages = toy_model(), toy_passage_model()
    visible = {key: text for key, text in data.documents.items() if text}
    queries, texts = list(data.queries.values()), list(visible.values())
    encoded, encoded_queries = passages.encode_passages(texts), passages.encode_queries(queries)
    weighted = weighted_queries(encoded_queries.facets, passages.dim, weights=encoded_queries.weights)
    expected = {
        ("toy", "facets"): reference_search(weighted_queries(model.encode(queries), model.dim), model.encode(texts)),
        ("passages", "facets"): reference_search(weighted, encoded.facets),
        ("passages", "vector"): passages.embed(queries) @ passages.embed(texts).T,
    }
    found = {"toy": model_rankings(model, data), "passages": model_rankings(passages, data)}
    assert list(found["toy"]) == ["facets", "lexical", "hybrid"]
    assert list(found["passages"]) == ["vector", "facets", "lexical", "hybrid"]
    for (name, method), scores in expected.items():
        for row, ranking in enumerate(found[name][method]):
            best = [list(visible)[column] for column in np.argsort(-scores[row])]
            assert [key for key in ranking if key != "blank"] == best
    assert [list(ranking) for ranking in found["toy"]["lexical"]] == [["dog"], ["lift"]]


def test_fusion_ranks_candidates_of_both_by_the_sum_of_z_scores(data: RetrievalData) -> None:
    vectors = vector_scores(letters, data)
    lexical = bm25_scores(list(data.documents.values()), list(data.queries.values()))
    for row, ranking in enumerate(fused_rankings(letters, data)["hybrid"]):
        fused = zscore(vectors[row].astype(float)) + zscore(lexical[row].astype(float))
        assert ranking == [list(data.documents)[column] for column in np.argsort(-fused, kind="stable")]


def test_report_has_folders_means_and_baselines(
    tmp_path: Path,
    model_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def not_installed() -> None:
        raise ImportError("package not installed")

    monkeypatch.setattr(retrieval, "minilm", lambda: letters)
    monkeypatch.setattr(retrieval, "model2vec", not_installed)
    monkeypatch.setattr(retrieval, "BASELINE_MODELS", ())
    first, second = write_beir(tmp_path / "first"), write_beir(tmp_path / "second", judgements={"q2": {"dog": 1}})
    assert (
        main(["retrieval", str(first), str(second), "--model", str(model_folder), "--baselines", "--bootstrap", "5"])
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"data", "rows", "models", "folders"} and report["rows"] == 3
    for models in (report["models"], *report["folders"].values()):
        assert {name: list(methods) for name, methods in models.items()} == {
            "toy": ["facets", "lexical", "hybrid"],
            "bm25": ["lexical"],
            "minilm": ["vector"],
            "minilm+bm25": ["hybrid"],
        }
    for metric in METRICS:
        values = [report["folders"][name]["toy"]["facets"][metric] for name in ("first", "second")]
        assert report["models"]["toy"]["facets"][metric] == pytest.approx(sum(values) / 2)
    assert report["folders"]["first"]["bm25"]["lexical"]["mrr_10"] == 1.0
    assert "model2vec is left out" in caplog.text
    assert "ndcg_10_ci95_from" in report["folders"]["first"]["toy"]["facets"]
