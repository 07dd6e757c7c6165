"""Forty questions over the samples, written once and never tuned to: the right document comes first."""

import json
from functools import cache
from pathlib import Path

import pytest
from facets_lab.documents.beir import RetrievalData
from facets_lab.documents.systems import indexed, load_searched

from facets.documents import SearchMode

ROOT = Path(__file__).resolve().parents[4]
MODES: tuple[SearchMode, ...] = ("facets", "lexical", "hybrid")
# First of 40: what was measured less one. The closest pair of word facets, as search once was, has 15.
AT_LEAST: dict[str, dict[SearchMode, int]] = {
    "facets-en": {"lexical": 38, "facets": 25, "hybrid": 38},
    "facets-passages-small-en": {"lexical": 38, "facets": 38, "hybrid": 39},
    # Facets: 39 until they read sentence by sentence, which lost three first places here and won elsewhere.
    "facets-passages-en": {"lexical": 38, "facets": 35, "hybrid": 39},
}


def lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def num_first(name: str) -> dict[SearchMode, int]:
    documents = lines(ROOT / "samples" / "wikipedia.jsonl")
    questions = lines(ROOT / "tests" / "answers" / "search_questions.jsonl")
    data = RetrievalData(
        name="samples",
        document_ids=tuple(document["id"] for document in documents),
        documents=tuple(document["text"] for document in documents),
        query_ids=(),
        queries=(),
        judgements={},
    )
    with indexed(load_searched(name), data) as collection:
        found = collection.search([asked["question"] for asked in questions], MODES, top_k=1)
    return {
        mode: sum(bool(hits) and hits[0].id == asked["id"] for hits, asked in zip(found[mode], questions, strict=True))
        for mode in MODES
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", AT_LEAST)
def test_right_document_comes_first(name: str, mode: SearchMode) -> None:
    assert num_first(name)[mode] >= AT_LEAST[name][mode]
