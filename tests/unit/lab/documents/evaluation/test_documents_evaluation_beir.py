"""Folders in BEIR's layout: what is read, and errors that name file and line."""

import gzip
import lzma
from pathlib import Path

import pytest
from facets_lab.documents.evaluation.beir import limit_documents, limit_queries, read_beir
from toy_retrieval import JUDGEMENTS, write_beir, write_lines

from facets.errors import InvalidInputError


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
    "query too long": ("queries.jsonl", f'{{"_id": "x", "text": "{"x" * 2**20}y"}}', "query.*limit"),
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
