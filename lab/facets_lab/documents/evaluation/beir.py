"""Reads a folder in BEIR's layout: documents, queries, and which documents answer which query."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from facets.documents.encoding import check_ids, check_text
from facets.errors import InvalidInputError
from facets.index.config import MAX_TEXT_BYTES
from facets_lab.evaluation.files import fields_of, number_of, read_lines, read_records

__all__ = ["RetrievalData", "limit_documents", "limit_queries", "read_beir"]

_PACKED = ("", ".xz", ".gz")
_COLUMNS = ("query-id", "corpus-id", "score")
_MAX_GRADE = 10_000  # trec_eval counts documents of every grade up to the greatest, in C numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalData:
    """Documents, and queries with the documents that answer them.

    Attributes:
        name: Name of the folder.
        document_ids: In the order of the file.
        documents: Their titles and texts, in the same places; empty where nothing is visible.
        query_ids: Queries with at least one relevant document, in the order of the file.
        queries: Their texts, in the same places; never blank.
        judgements: For each of these queries, ids of documents -> grade; above 0 is relevant.
    """

    name: str
    document_ids: tuple[str, ...]
    documents: tuple[str, ...]
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    judgements: Mapping[str, Mapping[str, int]]


def read_beir(folder: Path) -> RetrievalData:
    """Reads ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv``, each also with ``.xz`` or ``.gz``.

    A line of the corpus is ``{"_id", "title", "text"}`` (the title may be missing), of the queries ``{"_id", "text"}``,
    of the judgements query, document and grade by tabs, with or without a line of names first. A document is read as
    its title, a new line, and its text. Queries without a relevant document are left out, as nothing can be measured.

    Raises:
        ConfigError: A file cannot be read.
        InvalidInputError: A file is missing, a line has another form, an id is there twice or is not known; the
            message names file and line.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: expected a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv")
    corpus, queries, qrels = (_file(folder, name) for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"))
    documents = _texts(corpus, _document)
    asked = _texts(queries, _query)
    judgements = _judgements(qrels, asked, documents)
    kept = [query for query in asked if any(grade > 0 for grade in judgements.get(query, {}).values())]
    if not kept:
        raise InvalidInputError(f"{qrels}: expected a query with a relevant document, got none")
    return RetrievalData(
        name=folder.resolve().name,
        document_ids=tuple(documents),
        documents=tuple(documents.values()),
        query_ids=tuple(kept),
        queries=tuple(asked[query] for query in kept),
        judgements={query: judgements[query] for query in kept},
    )


def limit_queries(data: RetrievalData, num_queries: int | None, *, seed: int) -> RetrievalData:
    """A seeded sample of the queries, in their order; all of them when there are no more or None is asked for.

    Args:
        data: What was read.
        num_queries: At least 1.
        seed: Of the sample; the same one gives the same queries.
    """
    if num_queries is None or num_queries >= len(data.queries):
        return data
    rows = np.sort(np.random.default_rng(seed).choice(len(data.queries), num_queries, replace=False))
    ids = tuple(data.query_ids[row] for row in rows)
    return replace(
        data,
        query_ids=ids,
        queries=tuple(data.queries[row] for row in rows),
        judgements={query: data.judgements[query] for query in ids},
    )


def limit_documents(data: RetrievalData, num_documents: int | None, *, seed: int) -> RetrievalData:
    """The judged documents of the queries, and a seeded sample of the others; all where no more are asked for."""
    if num_documents is None or num_documents >= len(data.documents):
        return data
    judged = {key for grades in data.judgements.values() for key in grades}
    known = np.array([key in judged for key in data.document_ids])
    others = np.flatnonzero(~known)
    wanted = min(len(others), max(0, num_documents - int(known.sum())))
    drawn = np.random.default_rng(seed).choice(others, wanted, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(known), drawn])).tolist()
    return replace(
        data,
        document_ids=tuple(data.document_ids[row] for row in rows),
        documents=tuple(data.documents[row] for row in rows),
    )


def _file(folder: Path, name: str) -> Path:
    candidates = [folder / f"{name}{suffix}" for suffix in _PACKED]
    found = [path for path in candidates if path.is_file()]
    if len(found) != 1:
        got = f"both {found[0].name} and {found[1].name}" if found else "none of them"
        raise InvalidInputError(f"{folder}: expected {name}, {name}.xz or {name}.gz, got {got}")
    return found[0]


def _texts(path: Path, text_of: Callable[[Mapping[str, object], str], str]) -> dict[str, str]:
    """Id -> text."""
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    for place, record in read_records(path):
        key = _id(record, place)
        if key in texts:
            raise InvalidInputError(f"{place}: expected an _id of its own, got {key!r}, also at {places[key]}")
        texts[key] = text_of(record, place)
        places[key] = place
    if not texts:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return texts


def _document(record: Mapping[str, object], place: str) -> str:
    title = record.get("title")
    if title is not None and not isinstance(title, str):
        raise InvalidInputError(f"{place}: expected a string as title, got {type(title).__name__}")
    parts = (title or "", _string(record, "text", place))
    text = "\n".join(part for part in parts if _is_visible(part))
    with _at(place, "document"):
        check_text(text, path=(), max_bytes=MAX_TEXT_BYTES)
    return text


def _query(record: Mapping[str, object], place: str) -> str:
    text = _string(record, "text", place)
    if not _is_visible(text):
        raise InvalidInputError(f"{place}: expected a text with words, got a blank one")
    with _at(place, "query"):
        check_text(text, path=(), max_bytes=MAX_TEXT_BYTES)
    return text


def _is_visible(text: str) -> bool:
    """Whether there is anything to encode: letters, numbers, punctuation or symbols."""
    return any(unicodedata.category(letter)[0] in "LNPS" and letter != "\ufffd" for letter in text)


def _id(record: Mapping[str, object], place: str) -> str:
    value = record.get("_id")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # some tools write numbers; the judgements have texts in any case
    if not isinstance(value, str):
        raise InvalidInputError(f"{place}: expected a string as _id, got {_kind(record, '_id')}")
    with _at(place, "_id"):
        check_ids([value], path=())
    return value


def _string(record: Mapping[str, object], name: str, place: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        raise InvalidInputError(f"{place}: expected a string as {name}, got {_kind(record, name)}")
    return value


def _kind(record: Mapping[str, object], name: str) -> str:
    return type(record[name]).__name__ if name in record else "none"


@contextmanager
def _at(place: str, what: str) -> Iterator[None]:
    """Names the line where the engine's rules are broken."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(f"{place}: the {what} {error.rule}") from error


def _judgements(path: Path, queries: Mapping[str, str], documents: Mapping[str, str]) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    places: dict[tuple[str, str], str] = {}
    for query, document, grade, place in _judged(path):
        for what, key, known in (("query", query, queries), ("document", document, documents)):
            if key not in known:
                raise InvalidInputError(f"{place}: expected the id of a {what}, got {key!r}, which is not there")
        if (query, document) in places:
            first = places[query, document]
            raise InvalidInputError(f"{place}: expected a new pair, got {query!r} and {document!r}, also at {first}")
        places[query, document] = place
        judgements.setdefault(query, {})[document] = grade
    return judgements


def _judged(path: Path) -> Iterator[tuple[str, str, int, str]]:
    for number, (place, line) in enumerate(read_lines(path)):
        query, document, grade = fields_of(line, _COLUMNS, place)
        if number == 0 and grade.strip().lower() == _COLUMNS[-1]:
            continue  # the names of the columns
        value = number_of(grade, place, what="score")
        if not value.is_integer() or abs(value) > _MAX_GRADE:
            raise InvalidInputError(
                f"{place}: expected a whole number from -{_MAX_GRADE} to {_MAX_GRADE} as score, got {grade[:40]!r}"
            )
        yield query, document, int(value), place
