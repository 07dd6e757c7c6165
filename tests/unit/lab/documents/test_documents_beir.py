"""BEIR folders, files of pairs, docstrings, and metrics of rankings."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from facets_lab.documents.beir import METRICS, query_metrics, read_beir, read_pairs
from hypothesis import given
from hypothesis import strategies as st
from toy_retrieval import JUDGEMENTS, write_beir, write_lines

from facets.errors import InvalidInputError


@pytest.mark.parametrize("header", [True, False])
def test_read_beir_with_and_without_header(tmp_path: Path, header: bool) -> None:
    data = read_beir(write_beir(tmp_path / "toy", header=header))
    assert data.name == "toy"
    assert data.documents == {
        "dog": "Dogs\nA dog plays the guitar. The man plays music.",
        "lift": "The man lifting weights. A garage.",
        "song": "Songs\nMusic music music.",
        "blank": "",
    }
    assert data.queries == {"q1": "the dog plays guitar", "q2": "lifting weights"}  # q3 has no relevant document
    assert data.judgements == JUDGEMENTS


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("corpus.jsonl", '{"_id": "x", "text": ', "JSON"),
        ("queries.jsonl", '["x"]', "JSON object"),
        ("corpus.jsonl", '{"text": "x"}', "_id"),
        ("corpus.jsonl", '{"_id": "x"}', "text"),
        ("queries.jsonl", '{"_id": "x", "text": " "}', "text must not be blank"),
        ("corpus.jsonl", '{"_id": "dog", "text": "x"}', "'dog' again"),
        ("qrels/test.tsv", "q1\tlift\tyes", "yes"),
        ("qrels/test.tsv", "q1\tlift\t0.5", "0.5"),
        ("qrels/test.tsv", "q9\tlift\t1", "query.*'q9'"),
        ("qrels/test.tsv", "q1\tnone\t1", "document.*'none'"),
    ],
)
def test_bad_lines_are_named_by_file_and_line(tmp_path: Path, name: str, line: str, message: str) -> None:
    path = write_beir(tmp_path) / name
    lines = [*path.read_text(encoding="utf-8").splitlines(), line]
    write_lines(path, lines)
    with pytest.raises(InvalidInputError, match=rf"{path}, line {len(lines)}: .*{message}"):
        read_beir(tmp_path)


def test_read_pairs_makes_distinct_documents_and_queries(tmp_path: Path) -> None:
    pairs = [("leaking tap", "The tap drips."), ("dripping tap", "The tap drips."), ("leaking tap", "A new washer.")]
    lines = [json.dumps({"query": query, "positive": text, "source": "ignored"}) for query, text in pairs]
    data = read_pairs(write_lines(tmp_path / "notes.v1.jsonl", lines))
    assert data.name == "notes"
    assert data.documents == {"d0": "The tap drips.", "d1": "A new washer."}
    assert data.queries == {"q0": "leaking tap", "q1": "dripping tap"}
    assert data.judgements == {"q0": {"d0": 1, "d1": 1}, "q1": {"d0": 1}}
    with pytest.raises(InvalidInputError, match=r"line 1: .*string as query"):
        read_pairs(write_lines(tmp_path / "bad.jsonl", ['{"query": 7, "positive": "x"}']))
    with pytest.raises(InvalidInputError, match="at least one line"):
        read_pairs(write_lines(tmp_path / "empty.jsonl", []))


IDS = [f"d{number}" for number in range(130)]


def slow_metrics(ranking: Sequence[str], grades: Mapping[str, int]) -> dict[str, float]:
    relevant = {key for key, grade in grades.items() if grade > 0}
    gain = sum(max(grades.get(key, 0), 0) / math.log2(rank + 1) for rank, key in enumerate(ranking[:10], start=1))
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    ideal_gain = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal[:10], start=1))
    first = [rank for rank, key in enumerate(ranking[:10], start=1) if key in relevant]
    return {
        "ndcg_10": gain / ideal_gain,
        "recall_100": len(relevant & set(ranking[:100])) / len(relevant),
        "mrr_10": 1 / first[0] if first else 0.0,
    }


judged = st.dictionaries(st.sampled_from(IDS), st.integers(-1, 3), min_size=1, max_size=30).filter(
    lambda grades: max(grades.values()) > 0
)


rankings_of_all = st.integers(0, 999).map(lambda seed: random.Random(seed).sample(IDS, len(IDS)))


@given(st.lists(st.tuples(rankings_of_all, st.integers(0, 130), judged), min_size=1, max_size=3))
def test_metrics_equal_their_definitions(cases: list[tuple[list[str], int, dict[str, int]]]) -> None:
    rankings = [ranking[:length] for ranking, length, _ in cases]
    values = query_metrics(rankings, [grades for *_, grades in cases])
    assert tuple(values) == METRICS
    for row, (ranking, (*_, grades)) in enumerate(zip(rankings, cases, strict=True)):
        expected = slow_metrics(ranking, grades)
        assert {name: values[name][row] for name in METRICS} == pytest.approx(expected, abs=1e-6)
