"""Reviewers the model has not seen: the sample, the measures, and the report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from facets_lab.papers.data import read_papers
from facets_lab.papers.reviewers import cold_start, evaluate_reviewers
from toy_papers import write_toy_papers

from facets.errors import InvalidInputError


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
