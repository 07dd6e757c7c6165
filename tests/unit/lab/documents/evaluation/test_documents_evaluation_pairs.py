"""Files of pairs: what is read, and errors that name file and line."""

import json
from pathlib import Path

import pytest
from facets_lab.documents.evaluation.pairs import read_pairs
from toy_retrieval import write_lines

from facets.errors import ConfigError, InvalidInputError


def test_texts_are_documents_and_those_of_a_query_answer_it(tmp_path: Path) -> None:
    pairs = [("leaking tap", "The tap drips."), ("dripping tap", "The tap drips."), ("leaking tap", "A new washer.")]
    lines = [json.dumps({"query": query, "positive": text, "source": "ignored"}) for query, text in pairs]
    data = read_pairs(write_lines(tmp_path / "notes.v1.jsonl", lines))
    assert data.name == "notes"
    assert dict(zip(data.document_ids, data.documents, strict=True)) == {"d0": "The tap drips.", "d1": "A new washer."}
    assert dict(zip(data.query_ids, data.queries, strict=True)) == {"q0": "leaking tap", "q1": "dripping tap"}
    assert data.judgements == {"q0": {"d0": 1, "d1": 1}, "q1": {"d0": 1}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": "a tap"}', "line 2: expected a string as positive, got none"),
        ('{"query": 7, "positive": "seven"}', "line 2: expected a string as query, got int"),
        ('{"query": " ", "positive": "seven"}', "line 2: expected a query with words, got a blank one"),
        ("[]", "line 2: expected a JSON object, got list"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = write_lines(tmp_path / "pairs.jsonl", ['{"query": "a", "positive": "b"}', line])
    with pytest.raises(InvalidInputError, match=message):
        read_pairs(path)


def test_an_empty_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="at least one line"):
        read_pairs(write_lines(tmp_path / "pairs.jsonl", []))
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere\.jsonl"):
        read_pairs(tmp_path / "nowhere.jsonl")
