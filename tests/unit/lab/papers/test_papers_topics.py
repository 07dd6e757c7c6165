"""Twenty papers written before any system had answered: of ten the model knows the field, of ten it does not."""

import json
from pathlib import Path

import pytest

from facets.papers.engine import PaperEngine
from facets.papers.records import CandidateKind, Paper, PaperOptions

ROWS = (Path(__file__).resolve().parents[3] / "answers" / "paper_topics.jsonl").read_text().splitlines()
CASES = [json.loads(line) for line in ROWS]
SURE, UNSURE = 0.5, 0.1
AT_LEAST = {CandidateKind.AUTHORS: 18, CandidateKind.CITATIONS: 18}  # of 20


@pytest.fixture(scope="module")
def engine() -> PaperEngine:
    return PaperEngine.load()


@pytest.mark.parametrize("kind", list(CandidateKind))
def test_papers_of_the_field_are_sure_and_others_get_nothing_relevant(engine: PaperEngine, kind: CandidateKind) -> None:
    papers = [Paper(case["title"], case["abstract"]) for case in CASES]
    recommend = engine.recommend_authors if kind is CandidateKind.AUTHORS else engine.recommend_citations
    surest = [ranked[0].confidence or 0.0 for ranked in recommend(papers, PaperOptions(top_k=1))]
    wrong = {
        case["field"]: round(found, 3)
        for case, found in zip(CASES, surest, strict=True)
        if not (found >= SURE if case["is_known"] else found < UNSURE)
    }
    assert len(CASES) - len(wrong) >= AT_LEAST[kind], wrong
