"""Reads a file of queries and texts that answer them, one pair a line, as training data is written."""

from pathlib import Path

from facets.documents.encoding import check_text
from facets.errors import InvalidInputError
from facets.index.config import MAX_TEXT_BYTES
from facets_lab.documents.evaluation.beir import RetrievalData
from facets_lab.evaluation.files import read_records

__all__ = ["read_pairs"]

_FIELDS = ("query", "positive")


def read_pairs(path: Path) -> RetrievalData:
    """Reads lines ``{"query", "positive"}``: documents are the different texts, relevant are those of a query's lines.

    Args:
        path: Plain, ``.gz`` or ``.xz``.

    Returns:
        Ids are ``q`` and ``d`` with numbers in the order of the file; ``name`` is that of the file to its first dot.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: It has no line, or a line has another form; the message names file and line.
    """
    documents: dict[str, str] = {}
    queries: dict[str, str] = {}
    judgements: dict[str, dict[str, int]] = {}
    for place, record in read_records(path):
        query, positive = (_text(record, name, place) for name in _FIELDS)
        document_id = documents.setdefault(positive, f"d{len(documents)}")
        query_id = queries.setdefault(query, f"q{len(queries)}")
        judgements.setdefault(query_id, {})[document_id] = 1
    if not queries:
        raise InvalidInputError(f"{path}: expected at least one line, got an empty file")
    return RetrievalData(
        name=path.name.partition(".")[0],
        document_ids=tuple(documents.values()),
        documents=tuple(documents),
        query_ids=tuple(queries.values()),
        queries=tuple(queries),
        judgements=judgements,
    )


def _text(record: dict[str, object], name: str, place: str) -> str:
    value = record.get(name)
    if not isinstance(value, str):
        got = type(value).__name__ if name in record else "none"
        raise InvalidInputError(f"{place}: expected a string as {name}, got {got}")
    if not value.strip():
        raise InvalidInputError(f"{place}: expected a {name} with words, got a blank one")
    try:
        check_text(value, path=(), max_bytes=MAX_TEXT_BYTES)
    except InvalidInputError as error:
        raise InvalidInputError(f"{place}: the {name} {error.rule}") from error
    return value
