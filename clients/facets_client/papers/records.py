"""Papers and authors from JSON lines.

A paper is ``{"id", "title", "abstract", "authors", "cited_by", "year", "excluded"}``; only the title is required, and
for some commands the id. An author of a paper is a name or ``{"name", "id"}``. An author to add is ``{"name", "id",
"papers": [paper, ...], "paper_ids": [...]}``. Other fields are ignored.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from facets_client.generated.types import Author, NewAuthor, Paper
from facets_client.load.rows import Record, Rejection, read_jsonl
from facets_client.load.source import Source
from facets_client.papers.messages import new_author_message, paper_message

ItemT = TypeVar("ItemT")


def read_papers(source: Source, *, need_id: bool) -> Iterator[Record[Paper] | Rejection]:
    """The papers of an input, in order.

    If an id is needed, a paper without one, or with the id of an earlier one, is rejected.
    """

    def read(fields: Mapping[str, object]) -> tuple[Paper, str]:
        paper = paper_of(fields, need_id=need_id)
        paper_message(paper)
        return paper, paper.id if need_id else ""

    return _read(source, read, "paper", "id")


def read_authors(source: Source) -> Iterator[Record[NewAuthor] | Rejection]:
    """The authors of an input, in order. A repeated author is rejected."""

    def read(fields: Mapping[str, object]) -> tuple[NewAuthor, str]:
        author = new_author_of(fields)
        new_author_message(author)
        return author, author.author.id or author.author.name

    return _read(source, read, "author", "author")


def _read(
    source: Source, read: Callable[[Mapping[str, object]], tuple[ItemT, str]], kind: str, key_name: str
) -> Iterator[Record[ItemT] | Rejection]:
    """Records of the rows. ``read`` returns an item and its key, which must be unique unless it is empty."""
    lines: dict[str, int] = {}  # key -> line
    for row in read_jsonl(source):
        if isinstance(row, Rejection):
            yield row
            continue
        name = row.fields.get("id") or row.fields.get("name")
        record_id = name if isinstance(name, str) else ""
        unread = Record(None, record_id, row.line, row.excerpt)
        try:
            item, key = read(row.fields)
        except (TypeError, ValueError) as error:
            yield unread.rejected(f"invalid_{kind}", str(error))
            continue
        if key and lines.setdefault(key, row.line) != row.line:
            yield unread.rejected(f"duplicate_{key_name}", f"duplicate of the {key_name} at line {lines[key]}")
        else:
            yield Record(item, record_id, row.line, row.excerpt)


def paper_of(fields: Mapping[str, object], *, need_id: bool = False) -> Paper:
    """A paper from a JSON object.

    Raises:
        ValueError: A field is missing or has a wrong type.
    """
    title, paper_id = _text(fields, "title"), _text(fields, "id")
    if not title.strip():
        raise ValueError("field 'title' has no text, expected at least one word")
    if need_id and not paper_id:
        raise ValueError("field 'id' is missing or empty, expected a non-empty string")
    year = fields.get("year")
    if year is not None and (isinstance(year, bool) or not isinstance(year, int)):
        raise ValueError(f"field 'year' must be a whole number, got {_shown(year)}")
    return Paper(
        title=title,
        abstract=_text(fields, "abstract"),
        id=paper_id,
        authors=tuple(_author(value) for value in _list(fields, "authors")),
        cited_by_ids=_names(fields, "cited_by"),
        year=year,
        excluded_ids=_names(fields, "excluded"),
    )


def new_author_of(fields: Mapping[str, object]) -> NewAuthor:
    """An author to add from a JSON object.

    Raises:
        ValueError: A field is missing or has a wrong type.
    """
    papers = []
    for i, value in enumerate(_list(fields, "papers")):
        if not isinstance(value, dict):
            raise ValueError(f"papers[{i}] must be an object, got {_shown(value)}")
        try:
            papers.append(paper_of(value))
        except ValueError as error:
            raise ValueError(f"papers[{i}]: {error}") from error
    paper_ids = _names(fields, "paper_ids")
    if not papers and not paper_ids:
        raise ValueError("the author has no papers, expected at least one in 'papers' or 'paper_ids'")
    return NewAuthor(_author(fields), tuple(papers), paper_ids)


def _author(value: object) -> Author:
    if isinstance(value, dict):
        name, author_id = _text(value, "name"), _text(value, "id")
        if name.strip() or author_id.strip():
            return Author(name or author_id, author_id)
    elif isinstance(value, str) and value.strip():
        return Author(value)
    raise ValueError(f"an author must be a name, or an object with a name or an id, got {_shown(value)}")


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool) and name == "id":
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"field {name!r} must be a string, got {_shown(value)}")
    return value


def _list(fields: Mapping[str, object], name: str) -> list[object]:
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"field {name!r} must be a list, got {_shown(value)}")
    return value


def _names(fields: Mapping[str, object], name: str) -> tuple[str, ...]:
    values = _list(fields, name)
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"field {name!r} must hold names, got {_shown(value)}")
    return tuple(value for value in values if isinstance(value, str))


def _shown(value: object) -> str:
    return f"{value!r:.60}"
