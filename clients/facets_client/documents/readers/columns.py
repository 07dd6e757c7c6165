"""Which columns of a table become the text, the title, the id and the payload."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from facets_client.core.payloads import MAX_EXACT_INTEGER
from facets_client.core.records import RecordFormat, Row
from facets_client.core.source import InputError
from facets_client.documents.readers.formats import Format

__all__ = ["ColumnChoice", "ColumnError", "MadeIds", "choose", "described"]

MadeIds = Literal["row", "content"]

_TEXTS = ("text", "body", "content", "contents", "abstract", "passage", "article", "description", "message", "summary")
_TITLES = ("title", "headline", "heading", "subject")
_IDS = ("id", "_id", "doc_id", "docid", "document_id", "uuid")
_MAX_SHOWN = 20
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?")
_TRUTHS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnChoice:
    """What the caller says about the columns; what is not said is found by name.

    Attributes:
        text: Columns of the text, joined.
        title: Column of the title.
        id: Column of the id.
        payload: Columns of the payload; None: all others.
        made_ids: Ids are made, of the file's name and the row or of the text; None: only where no column has them.
    """

    text: tuple[str, ...] = ()
    title: str = ""
    id: str = ""
    payload: tuple[str, ...] | None = None
    made_ids: MadeIds | None = None

    def __post_init__(self) -> None:
        if self.id and self.made_ids:
            raise ValueError("--id and --ids exclude each other: ids are in a column or made")


class ColumnError(InputError):
    """A table does not have the columns that are asked for, or none that looks like a text."""


def choose(name: str, rows: Sequence[Row], asked: ColumnChoice, form: Format) -> RecordFormat:
    """How the rows of a table become documents.

    Args:
        name: Of the file, for messages.
        rows: The first ones.
        asked: What the caller says.
        form: Of the file: JSON says its types and, mostly, its title.

    Raises:
        ColumnError: A column is not there, or none looks like a text.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row.fields))
    texts = tuple(found for part in asked.text for found in _named(name, "--text", part, columns))
    if not texts:
        texts = (_by_name(columns, _TEXTS) or _no_text(name, rows, columns),)
    titles = _TITLES[:1] if form.name in ("jsonl", "json") else _TITLES
    title = "".join(_named(name, "--title", asked.title, columns)) if asked.title else _by_name(columns, titles)
    id_field = "".join(_named(name, "--id", asked.id, columns)) if asked.id else _by_name(columns, _IDS)
    payload = asked.payload
    if payload is not None:
        payload = tuple(found for part in payload if part for found in _named(name, "--payload", part, columns))
    kept = [column for column in columns if column not in texts] if payload is None else payload
    return RecordFormat(
        text_fields=texts,
        title_field="" if title in texts and not asked.title else title,
        id_field="" if asked.made_ids else id_field,
        payload_fields=payload,
        content_ids=asked.made_ids == "content",
        convert={} if form.typed else {column: _converter(column, rows) for column in kept},
    )


def described(chosen: RecordFormat, rows: Sequence[Row]) -> str:
    """What becomes of the columns, in one line."""
    ids = "the digest of the text" if chosen.content_ids else "file name and row number"
    columns = list(dict.fromkeys(column for row in rows for column in row.fields))
    used = {*chosen.text_fields, chosen.title_field, chosen.id_field}
    payload = chosen.payload_fields
    if payload is None:
        payload = tuple(column for column in columns if column not in used)
    title = f"title from {chosen.title_field!r}, " if chosen.title_field else ""
    return (
        f"text from {' and '.join(map(repr, chosen.text_fields))}, {title}"
        f"ids from {repr(chosen.id_field) if chosen.id_field else ids}, payload: {_shown(payload) or 'nothing'}"
    )


def _named(name: str, option: str, asked: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that an option names; commas part them where no column has the whole as its name."""
    if asked in columns:
        return (asked,)
    found = []
    for part in (part.strip() for part in asked.split(",")):
        folded = [column for column in columns if column.casefold() == part.casefold()]
        if part not in columns and len(folded) != 1:
            near = difflib.get_close_matches(part.casefold(), [column.casefold() for column in columns], 1, 0.6)
            nearest = next((column for column in columns if near and column.casefold() == near[0]), "")
            raise ColumnError(
                f"{name}: {option}: there is no column {part!r}; the columns are {_shown(columns) or 'none'}",
                hint=f"did you mean {nearest!r}?" if nearest else "",
            )
        found.append(part if part in columns else folded[0])
    return tuple(found)


def _by_name(columns: Sequence[str], candidates: Sequence[str]) -> str:
    folded = {column.strip().casefold(): column for column in reversed(columns)}
    return next((folded[candidate] for candidate in candidates if candidate in folded), "")


def _no_text(name: str, rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Raises: no column looks like a text."""
    lengths = {column: sum(len(str(row.fields.get(column) or "")) for row in rows) for column in columns}
    longest = max(columns, key=lambda column: lengths[column], default="")
    raise ColumnError(
        f"{name}: no column is called {', '.join(_TEXTS[:4])} or the like; the columns are {_shown(columns) or 'none'}",
        hint=f"say which holds the text: --text {_quoted(longest)} has the longest ones" if longest else "",
    )


def _quoted(column: str) -> str:
    return column if re.fullmatch(r"[\w.-]+", column) else f"'{column}'"


def _shown(columns: Sequence[str]) -> str:
    shown = ", ".join(column if len(column) <= 40 else f"{column[:37]}..." for column in columns[:_MAX_SHOWN])
    return f"{shown} and {len(columns) - _MAX_SHOWN} more" if len(columns) > _MAX_SHOWN else shown


def _converter(column: str, rows: Sequence[Row]) -> Callable[[str], object]:
    """What the values of a column are, as far as the first rows show; a later one that is none stays a string."""
    values = [value for row in rows if isinstance(value := row.fields.get(column), str) and value]
    if values and all(value in _TRUTHS for value in values):
        return _truth
    if values and all(_NUMBER.fullmatch(value) for value in values):
        return _number
    return _string


def _truth(value: str) -> object:
    return _TRUTHS.get(value, value or None)


def _number(value: str) -> object:
    """A number that JSON carries exactly; a code such as 007 is none."""
    if not _NUMBER.fullmatch(value):
        return value or None
    number = float(value) if any(mark in value for mark in ".eE") else int(value)
    return number if abs(number) <= MAX_EXACT_INTEGER else value


def _string(value: str) -> object:
    return value or None
