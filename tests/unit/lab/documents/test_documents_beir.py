import gzip
import json
import lzma
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from facets_lab.documents.beir import METRICS, limit_documents, limit_queries, query_metrics, read_beir, read_pairs
from hypothesis import given
from hypothesis import strategies as st
from toy_retrieval import JUDGEMENTS, write_beir, write_lines

from facets.errors import ConfigError, InvalidInputError


@pytest.mark.parametrize("header", [True, False])
def test_a_folder_is_read_with_and_without_names_of_columns(tmp_path: Path, header: bool) -> None:
    data = read_beir(write_beir(tmp_path / "toy", header=header))
    assert data.name == "toy"
    assert data.document_ids == ("dog", "lift", "song", "blank")
    assert data.documents[0] == "Dogs\nA dog plays the guitar. The man plays music."
    assert data.documents[1:] == ("The man lifting weights. A garage.", "Songs\nMusic music music.", "")
    assert data.query_ids == ("q1", "q2"), "a query without a relevant document is left out"
    assert data.queries == ("the dog plays guitar", "lifting weights")
    assert data.judgements == JUDGEMENTS


def test_packed_files_are_read(tmp_path: Path) -> None:
    plain = read_beir(write_beir(tmp_path / "toy"))
    for name, pack, suffix in (
        ("corpus.jsonl", lzma.compress, ".xz"),
        ("queries.jsonl", gzip.compress, ".gz"),
        ("qrels/test.tsv", lzma.compress, ".xz"),
    ):
        path = tmp_path / "toy" / name
        path.with_name(path.name + suffix).write_bytes(pack(path.read_bytes()))
        path.unlink()
    assert read_beir(tmp_path / "toy") == plain


def test_numbers_as_ids_are_read_as_the_judgements_write_them(tmp_path: Path) -> None:
    write_beir(tmp_path)
    write_lines(tmp_path / "corpus.jsonl", ['{"_id": 7, "text": "seven"}'])
    write_lines(tmp_path / "queries.jsonl", ['{"_id": "1", "text": "seven"}'])
    write_lines(tmp_path / "qrels" / "test.tsv", ["1\t7\t1"])
    assert read_beir(tmp_path).judgements == {"1": {"7": 1}}


def test_a_document_without_a_visible_character_is_read_as_an_empty_one(tmp_path: Path) -> None:
    write_beir(tmp_path, documents={"dog": ("\u200b", "A dog."), "song": ("", "\u200b\u0301\n")})
    write_lines(tmp_path / "qrels" / "test.tsv", ["q1\tdog\t1"])
    assert read_beir(tmp_path).documents == ("A dog.", "")


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (write_beir(tmp_path) / name).unlink()
    with pytest.raises(InvalidInputError, match=rf"{tmp_path}.*{name}"):
        read_beir(tmp_path)


def test_a_file_that_is_there_twice_is_named(tmp_path: Path) -> None:
    path = write_beir(tmp_path) / "corpus.jsonl"
    path.with_name("corpus.jsonl.xz").write_bytes(lzma.compress(path.read_bytes()))
    with pytest.raises(InvalidInputError, match=r"corpus\.jsonl and corpus\.jsonl\.xz"):
        read_beir(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="nowhere"):
        read_beir(tmp_path / "nowhere")


BAD_LINES = {
    "not JSON": ("corpus.jsonl", '{"_id": "x", "text": ', "JSON"),
    "no object": ("queries.jsonl", '["x"]', "JSON object"),
    "no id": ("corpus.jsonl", '{"text": "x"}', "_id"),
    "id of another kind": ("queries.jsonl", '{"_id": ["x"], "text": "x"}', "_id"),
    "empty id": ("corpus.jsonl", '{"_id": "", "text": "x"}', "_id"),
    "id too long": ("corpus.jsonl", f'{{"_id": "{"x" * 600}", "text": "x"}}', "_id"),
    "no text": ("corpus.jsonl", '{"_id": "x"}', "text"),
    "text of another kind": ("corpus.jsonl", '{"_id": "x", "text": 5}', "text"),
    "text too long": ("corpus.jsonl", f'{{"_id": "x", "text": "{"x" * 2**20}y"}}', "limit"),
    "title of another kind": ("corpus.jsonl", '{"_id": "x", "title": [], "text": "x"}', "title"),
    "blank query": ("queries.jsonl", '{"_id": "x", "text": "  "}', "text"),
    "query without a visible character": (
        "queries.jsonl",
        '{"_id": "x", "text": "\\u200b \\u0000"}',
        "text with words",
    ),
    "query too long": ("queries.jsonl", f'{{"_id": "x", "text": "{"x" * 2**20}y"}}', "text.*limit"),
    "document twice": ("corpus.jsonl", '{"_id": "dog", "text": "x"}', "'dog'.*line 1"),
    "query twice": ("queries.jsonl", '{"_id": "q2", "text": "x"}', "'q2'.*line 2"),
    "two fields": ("qrels/test.tsv", "q1\tlift", "fields"),
    "grade of another kind": ("qrels/test.tsv", "q1\tlift\tyes", "yes"),
    "grade between two": ("qrels/test.tsv", "q1\tlift\t0.5", "0.5"),
    "grade out of bounds": ("qrels/test.tsv", "q1\tlift\t1e300", "10000.*1e300"),
    "grade far below": ("qrels/test.tsv", "q1\tlift\t-1e300", "10000.*-1e300"),
    "unknown query": ("qrels/test.tsv", "q9\tlift\t1", "query.*'q9'"),
    "unknown document": ("qrels/test.tsv", "q1\tnone\t1", "document.*'none'"),
    "pair twice": ("qrels/test.tsv", "q1\tdog\t1", "'q1'.*'dog'.*line 2"),
}


@pytest.mark.parametrize(("name", "line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named(tmp_path: Path, name: str, line: str, message: str) -> None:
    path = write_beir(tmp_path) / name
    lines = [*path.read_text(encoding="utf-8").splitlines(), line]
    write_lines(path, lines)
    with pytest.raises(InvalidInputError, match=rf"{path}, line {len(lines)}: .*{message}"):
        read_beir(tmp_path)


def test_judgements_without_a_relevant_document_are_named(tmp_path: Path) -> None:
    write_beir(tmp_path, judgements={"q1": {"dog": 0}})
    with pytest.raises(InvalidInputError, match=r"test\.tsv.*relevant"):
        read_beir(tmp_path)


def test_a_sample_of_queries_keeps_their_order_and_comes_again_with_its_seed(tmp_path: Path) -> None:
    queries = {f"q{number}": f"number {number}" for number in range(40)}
    data = read_beir(write_beir(tmp_path, queries=queries, judgements={query: {"dog": 1} for query in queries}))
    sample = limit_queries(data, 7, seed=3)
    assert sample == limit_queries(data, 7, seed=3) != limit_queries(data, 7, seed=4)
    assert sample.query_ids == tuple(query for query in queries if query in set(sample.query_ids))
    assert sample.queries == tuple(queries[query] for query in sample.query_ids)
    assert set(sample.judgements) == set(sample.query_ids)
    assert sample.documents == data.documents
    assert limit_queries(data, None, seed=0) is data
    assert limit_queries(data, 40, seed=0) is data


def test_few_documents_hold_the_judged_ones(tmp_path: Path) -> None:
    data = read_beir(write_beir(tmp_path))
    assert set(limit_documents(data, 3, seed=0).document_ids) >= {"dog", "song", "lift"}
    assert len(limit_documents(data, 3, seed=0).documents) == 3
    assert len(limit_documents(data, 1, seed=0).documents) == 3, "none that is judged is left out"
    assert limit_documents(data, None, seed=0) is data


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
        ('{"query": "a tap"}', "line 2: expected a field positive, got none"),
        ('{"query": 7, "positive": "seven"}', "line 2: expected a valid string as query, got 7"),
        ('{"query": " ", "positive": "seven"}', "line 2: query must have words, got ' '"),
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


IDS = [f"d{number}" for number in range(130)]


def slow_metrics(ranking: Sequence[str], grades: Mapping[str, int]) -> dict[str, float]:
    """The definitions, word by word."""
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


@given(st.lists(st.tuples(st.permutations(IDS), st.integers(0, 130), judged), min_size=1, max_size=3))
def test_metrics_equal_their_definitions(cases: list[tuple[list[str], int, dict[str, int]]]) -> None:
    rankings = [ranking[:length] for ranking, length, _ in cases]
    values = query_metrics(rankings, [grades for *_, grades in cases])
    assert tuple(values) == METRICS
    for row, (ranking, (*_, grades)) in enumerate(zip(rankings, cases, strict=True)):
        assert {name: values[name][row] for name in METRICS} == pytest.approx(slow_metrics(ranking, grades))


def test_the_order_of_the_ranking_counts_and_not_that_of_ids() -> None:
    first, last = query_metrics([["b", "a"], ["a", "b"]], [{"b": 1}, {"b": 1}])["mrr_10"]
    assert (first, last) == (1.0, 0.5)


def test_an_empty_ranking_is_worth_nothing() -> None:
    values = query_metrics([[], ["a"]], [{"a": 1}, {"a": 1}])
    assert {name: list(values[name]) for name in METRICS} == {name: [0.0, 1.0] for name in METRICS}
