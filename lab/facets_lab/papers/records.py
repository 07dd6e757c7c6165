"""Papers from JSON lines: ``{"id", "title", "abstract", "authors", "cited_by"}``, optionally ``"year"``."""

import json
from collections.abc import Mapping
from pathlib import Path

from facets.errors import InvalidInputError
from facets.language.files import read_lines
from facets.papers.records import Author, Paper, year_of_id

__all__ = ["paper_from_record", "read_papers"]


def read_papers(path: Path) -> list[Paper]:
    """Papers of a file, in order; blank lines are passed over.

    Args:
        path: JSON lines, plain, ``.gz`` or ``.xz``. An author is a name or ``{"name", "id"}``; an id wins over
            the name. Without ``year`` the year is taken from an id of the ACL Anthology.

    Raises:
        ConfigError: The file cannot be read.
        InvalidInputError: A line is no such record, has no title, or its id came before; names file and line.
    """
    papers: list[Paper] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line:
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInputError(f"{where}: expected a JSON object, got {error}") from error
        if not isinstance(record, dict):
            raise InvalidInputError(f"{where}: expected a JSON object, got {type(record).__name__}")
        paper = paper_from_record(record, where)
        if paper.id in lines:
            raise InvalidInputError(f"{where}: expected distinct ids, got {paper.id!r} as in line {lines[paper.id]}")
        lines[paper.id] = number
        papers.append(paper)
    return papers


def paper_from_record(record: Mapping[str, object], where: str) -> Paper:
    """One paper from a decoded JSON object.

    Args:
        record: Keys ``id`` and ``title`` are needed; others than the known ones are ignored.
        where: For messages.

    Raises:
        InvalidInputError: A value is missing or of the wrong kind.
    """
    paper_id = _text(record, "id", where)
    title = _text(record, "title", where)
    if not paper_id or not title.strip():
        raise InvalidInputError(f"{where}: expected an id and a title, got an empty one")
    year = record.get("year")
    if year is not None and (isinstance(year, bool) or not isinstance(year, int)):
        raise InvalidInputError(f"{where}: year must be an integer, got {year!r}")
    return Paper(
        title=title,
        abstract=_text(record, "abstract", where, default=""),
        id=paper_id,
        # An empty name is nobody: real lists have them where an author was lost.
        authors=tuple(_author(value, where) for value in _list(record, "authors", where) if value != ""),
        cited_by_ids=tuple(_item(value, "cited_by", where) for value in _list(record, "cited_by", where)),
        year=year_of_id(paper_id) if year is None else year,
    )


def _text(record: Mapping[str, object], key: str, where: str, *, default: str | None = None) -> str:
    value = record.get(key, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise InvalidInputError(f"{where}: {key} must be a string, got {value!r:.60}")
    return value


def _list(record: Mapping[str, object], key: str, where: str) -> list[object]:
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInputError(f"{where}: {key} must be a list, got {value!r:.60}")
    return value


def _item(value: object, key: str, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInputError(f"{where}: {key} must hold ids, got {value!r:.60}")
    return value


def _author(value: object, where: str) -> Author:
    if isinstance(value, Mapping):
        name, author_id = value.get("name", ""), value.get("id", "")
        if isinstance(name, str) and isinstance(author_id, str) and (name or author_id):
            return Author(name or author_id, author_id)
        raise InvalidInputError(f"{where}: an author must have a name or an id, got {value!r:.60}")
    return Author(_item(value, "authors", where))
