"""MTEB itself measures a model of passages, on tasks that are made here: nothing is downloaded."""

import json
from typing import Any

import pytest
from integration.server_process import ROOT

mteb = pytest.importorskip("mteb")
from datasets import Dataset, DatasetDict  # noqa: E402
from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: E402
from mteb.abstasks.sts import AbsTaskSTS  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402
from sentence_transformers import MultiVectorEncoder, SentenceTransformer  # noqa: E402

from facets.model.multi_vector import PassageFacetsModule, PassageVectorModule  # noqa: E402

MODEL = ROOT / "models" / "facets-passages-small-en"
QUESTIONS = {
    "bald-eagle": "Which bird is the national symbol of the United States?",
    "cheetah": "What is the fastest animal on land?",
    "bee": "Which insects make honey and wax?",
}
PAIRS = [
    ("A dog is barking.", "A puppy makes noise.", 4.0),
    ("A man plays the guitar.", "The stock market fell.", 0.0),
    ("She cooks dinner.", "A woman is preparing a meal.", 5.0),
]


def about(name: str, kind: str, main_score: str) -> TaskMetadata:
    return TaskMetadata(
        name=name,
        type=kind,
        main_score=main_score,
        description="Made by a test.",
        reference=None,
        dataset={"path": "local", "revision": "1"},
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        date=("2020-01-01", "2020-01-01"),
        domains=[],
        task_subtypes=[],
        license="apache-2.0",
        annotations_creators="derived",
        dialect=[],
        sample_creation="found",
        bibtex_citation="",
    )


class Questions(AbsTaskRetrieval):
    metadata = about("LocalQuestions", "Retrieval", "ndcg_at_10")

    def load_data(self, num_proc: int | None = None, **_: Any) -> None:
        lines = (ROOT / "samples" / "wikipedia.jsonl").read_text(encoding="utf-8").splitlines()[:24]
        records = [json.loads(line) for line in lines]
        corpus = [{"id": record["id"], "text": record["text"], "title": record["title"]} for record in records]
        queries = [{"id": f"q-{name}", "text": question} for name, question in QUESTIONS.items()]
        split = {
            "corpus": Dataset.from_list(corpus),
            "queries": Dataset.from_list(queries),
            "relevant_docs": {f"q-{name}": {name: 1} for name in QUESTIONS},
            "top_ranked": None,
        }
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True


class Pairs(AbsTaskSTS):
    metadata = about("LocalPairs", "STS", "cosine_spearman")
    min_score, max_score = 0, 5

    def load_data(self, num_proc: int | None = None, **_: Any) -> None:
        rows = [{"sentence1": first, "sentence2": second, "score": score} for first, second, score in PAIRS]
        self.dataset = DatasetDict({"test": Dataset.from_list(rows)})
        self.data_loaded = True


def test_retrieval_finds_the_right_articles_by_facets() -> None:
    encoder = MultiVectorEncoder(modules=[PassageFacetsModule(MODEL)], device="cpu")
    result = mteb.evaluate(encoder, Questions(), cache=None, show_progress_bar=False)
    assert result.task_results[0].scores["test"][0]["ndcg_at_10"] == pytest.approx(1.0)


def test_similarity_is_measured_by_the_vector_of_the_text() -> None:
    encoder = SentenceTransformer(modules=[PassageVectorModule(MODEL)], device="cpu")
    result = mteb.evaluate(encoder, Pairs(), cache=None, show_progress_bar=False)
    assert result.task_results[0].scores["test"][0]["cosine_spearman"] > 0.4
