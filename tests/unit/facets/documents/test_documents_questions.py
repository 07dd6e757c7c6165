"""Forty questions over the samples, written once and never tuned to: the right document comes first."""

import json
from pathlib import Path

import numpy as np
import pytest

import facets
from facets.documents import CollectionEngine, Document, EngineConfig, SearchMode

ROOT = Path(__file__).resolve().parents[4]
# First of 40: what was measured less one. The closest pair of facets, as search was before, has 15.
AT_LEAST: dict[SearchMode, int] = {"lexical": 38, "facets": 25, "hybrid": 38}


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def num_first(tmp_path_factory: pytest.TempPathFactory) -> dict[SearchMode, int]:
    documents = lines(ROOT / "samples" / "wikipedia.jsonl")
    questions = lines(ROOT / "tests" / "answers" / "search_questions.jsonl")
    model = facets.load()
    encoded = model.encode([document["text"] for document in documents])
    texts = [question["question"] for question in questions]
    queries = np.asarray(model.encode(texts))
    counts: dict[SearchMode, int] = {}
    with CollectionEngine.open(tmp_path_factory.mktemp("data"), EngineConfig(background=False)) as engine:
        engine.create_collection("docs", model="m", model_revision="1", num_facets=encoded.shape[1], dim=model.dim)
        engine.upsert(
            "docs",
            [
                Document(id=document["id"], text=document["text"], facet_embeddings=array)
                for document, array in zip(documents, encoded, strict=True)
            ],
        )
        for mode in AT_LEAST:
            hits = engine.search("docs", queries, texts=texts, mode=mode, top_k=1).hits
            counts[mode] = sum(found[0].id == asked["id"] for found, asked in zip(hits, questions, strict=True))
    return counts


@pytest.mark.parametrize("mode", AT_LEAST)
def test_right_document_comes_first(num_first: dict[SearchMode, int], mode: SearchMode) -> None:
    assert num_first[mode] >= AT_LEAST[mode]
