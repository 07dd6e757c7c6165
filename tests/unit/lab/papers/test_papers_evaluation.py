"""Column metrics against scikit-learn and by hand, and ``facets-eval recommendation`` on a toy corpus."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pytest
from facets_lab.evaluation.__main__ import main
from facets_lab.papers.data import read_papers
from facets_lab.papers.evaluation import SHARES, cold_start, column_metrics, evaluate_reviewers
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score
from toy_papers import toy_records, write_toy_papers

from facets.errors import InvalidInputError
from facets.model.loading import load
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import CandidateKind, Paper, PaperOptions


def test_metrics_equal_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((40, 7)).astype(np.float32)
    is_positive = rng.random((40, 7)) < 0.15
    metrics = column_metrics(scores, [np.flatnonzero(column).tolist() for column in is_positive.T])
    for column, truth in enumerate(is_positive.T):
        assert metrics["map"][column] == pytest.approx(average_precision_score(truth, scores[:, column]))
        assert metrics["auc"][column] == pytest.approx(roc_auc_score(truth, scores[:, column]))
        assert metrics["ndcg"][column] == pytest.approx(ndcg_score([truth], [scores[:, column]]))


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


def letter_counts(texts: Sequence[str]) -> np.ndarray:
    return np.array([[text.count(letter) for letter in ascii_lowercase] for text in texts], dtype=np.float32)


def test_baseline_compares_the_texts_of_papers(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facets_lab.papers.evaluation.minilm", lambda: letter_counts)
    train = str(work / "train.jsonl")
    Path(train).write_text("".join(json.dumps(record) + "\n" for record in toy_records()), encoding="utf-8")
    options = ["--model", str(work / "model"), "--baselines", "--train", train]
    assert main(["recommendation", str(work / "dev.jsonl"), *options]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert set(models) == {"toy-papers", "minilm"}
    assert models["minilm"]["documents"]["authors"]["auc"] > 0.6  # the papers asked about are among the author's own


def test_tuning_finds_a_share_for_the_sentences(with_sentences: Path, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(with_sentences.parent, tmp_path / "copy")
    model, data = tmp_path / "copy" / "papers", folder.parents[1] / "papers.jsonl"
    assert main(["recommendation", str(data), "--model", str(model), "--tune"]) == 0
    values = json.loads((model / "recommendation.json").read_text())
    assert values["sentences"]["share"] in SHARES and values["sentences"]["encoder"] == "../passages"


ROWS = (Path(__file__).resolve().parents[3] / "answers" / "paper_topics.jsonl").read_text().splitlines()
CASES = [json.loads(line) for line in ROWS]
SURE, UNSURE = 0.5, 0.1
AT_LEAST = {CandidateKind.AUTHORS: 18, CandidateKind.CITATIONS: 18}  # of 20


@pytest.fixture(scope="module")
def engine() -> PaperEngine:
    return PaperEngine(load(None, PaperModel))


@pytest.mark.parametrize("kind", list(CandidateKind))
def test_papers_of_the_field_are_sure_and_others_get_nothing_relevant(engine: PaperEngine, kind: CandidateKind) -> None:
    papers = [Paper(case["title"], case["abstract"]) for case in CASES]
    surest = [ranked[0].confidence or 0.0 for ranked in engine.recommend(kind, papers, PaperOptions(top_k=1))]
    wrong = {
        case["field"]: round(found, 3)
        for case, found in zip(CASES, surest, strict=True)
        if not (found >= SURE if case["is_known"] else found < UNSURE)
    }
    assert len(CASES) - len(wrong) >= AT_LEAST[kind], wrong


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_papers(tmp_path_factory.mktemp("reviewers") / "papers.jsonl")


def test_held_out_papers_are_given_to_no_reviewer(data: Path) -> None:
    papers = [replace(paper, abstract="abstract") for paper in read_papers(data)]
    sample = cold_start(papers, min_papers=5, num_reviewers=8)
    held_out = {paper.title for paper in sample.held_out}
    assert 0 < len(sample.reviewers) <= 8 and len(held_out) == len(sample.held_out)
    assert not held_out & {paper.title for reviewer in sample.reviewers for paper in reviewer.papers}
    authors = {paper.title: {author.key for author in paper.authors} for paper in papers}
    for paper, row in zip(sample.held_out, sample.wrote, strict=True):
        assert row.any()
        assert row.tolist() == [reviewer.author.name in authors[paper.title] for reviewer in sample.reviewers]
    with pytest.raises(InvalidInputError, match="expected authors of 500 papers"):
        cold_start(papers, min_papers=500, num_reviewers=8)


def test_reviewers_are_ranked_by_their_papers(data: Path, with_additions: Path) -> None:
    report = evaluate_reviewers(data, [str(with_additions)], min_papers=3, num_reviewers=12)
    methods = report["models"]["toy-papers"]
    assert set(methods) == {"as_trained", "facets", "documents", "recommended", "similarity", "passages", "bm25"}
    assert all(methods[name]["papers"]["map"] > 0.2 for name in ("recommended", "bm25"))
    assert json.loads(json.dumps(methods)) == methods
