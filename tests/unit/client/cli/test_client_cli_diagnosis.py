"""``facets diagnose``."""

import json

import pytest


def test_a_collection_is_described_and_with_questions_judged(facets, tmp_path):
    shown = facets("diagnose", "news").stdout
    assert "4 documents, 5 parts" in shown and "is measured with --queries only" in shown
    (tmp_path / "asked.txt").write_text("who won the cup?\n\nwhere is it warm?\n")
    judged = facets("diagnose", "news", "--queries", "asked.txt").stdout
    assert "finds 90.0%" in judged and "missed: d7" in judged
    found = json.loads(facets("--json", "diagnose", "news", "--queries", "asked.txt").stdout)
    assert found["recall"] == 0.9
    assert json.loads(facets("--json", "diagnose", "news").stdout)["recall"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["news", "--queries", "empty.txt"], "at least one line with text"),
        (["news", "--queries", "missing.txt"], "missing.txt"),
    ],
)
def test_questions_that_cannot_be_read(facets, tmp_path, arguments, says):
    (tmp_path / "empty.txt").write_text("\n \n")
    assert says in facets("diagnose", *arguments, code=2).stderr
