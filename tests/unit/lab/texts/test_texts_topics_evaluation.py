"""Topics of twenty plain prompts, and the fit of their likelihood."""

import json

import pytest
from source_tree import ROOT

from facets.model import FacetModel, load
from facets.texts.topics import suggest_topics


@pytest.fixture(scope="module")
def model() -> FacetModel:
    return load("facets-en", FacetModel)


def test_most_prompts_get_a_word_that_a_person_expects(model: FacetModel) -> None:
    lines = (ROOT / "tests/answers/topic_prompts.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    suggested = suggest_topics(model, [case["text"] for case in cases])
    met = [
        bool({word.word for topic in topics.topics for word in topic.words} & set(case["expected"]))
        for case, topics in zip(cases, suggested, strict=True)
    ]
    assert sum(met) >= 16  # of 20; what was measured, less one
    assert all(0 <= topic.likelihood <= 1 for topics in suggested for topic in topics.topics)
