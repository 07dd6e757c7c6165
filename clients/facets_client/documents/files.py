"""Reads documents from files in turn, and decides which table columns become text, id, title and payload."""

import difflib
import functools
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from facets_client.generated.types import Document
from facets_client.load.child import ReaderProcess, Section
from facets_client.load.formats import FORMATS, Format, InputFile, format_of_name
from facets_client.load.rows import (
    LOSSES,
    MAX_EXACT_INTEGER,
    TEXT_NAMES,
    FileEnd,
    ReadOptions,
    Record,
    Rejection,
    Row,
    type_name,
)
from facets_client.load.source import InputError

# Names of columns, in lower case, best first.
TITLE_NAMES = ("title", "headline", "heading", "subject")
ID_NAMES = ("id", "_id", "doc_id", "docid", "document_id", "uuid")
_MAX_COLUMNS_SHOWN = 20
_PROSE_WORDS = 4  # a value of a column of prose has as many on average
# These may be about the other columns; an article may be of a price list.
_REMARKS = {"article", "description", "summary", "note", "notes", "comment", "comments", "details"}
_RECORD_WORDS = 12  # a row with a shorter text, or without prose, is a record
_MOST_FACTS = 100  # filled columns of a record; the header of more would fill parts of its own
_MAX_PATH = 6  # keys of a path that is searched for columns
_MAX_NESTED = 500  # columns within objects
# Columns and types are decided from the first rows: limits in rows, and in characters of a file or a stream.
_FIRST_ROWS = 100
_FIRST_CHARS = 2**16
_FIRST_STREAM_CHARS = 2**12

DocumentRecord = Record[Document] | Rejection
FileRecord = DocumentRecord | FileEnd


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Use of each column; unset attributes are decided by the names of the columns."""

    text: tuple[str, ...] = ()  # several are joined by a blank line, each after its name
    title: str = ""  # it becomes ``title`` in the payload
    id: str = ""  # strings, or integers, which become strings
    payload: tuple[str, ...] | None = None  # None: all others
    keeps_null: bool = True
    is_record: bool = False  # the text is the whole row, whose columns stay in the payload
    as_row: bool = False  # it is a table of one row
    converters: Mapping[str, Callable[[str], object]] = field(default_factory=dict)  # for columns without types


class ColumnError(InputError):
    """A table lacks a requested column, or no column looks like a text."""


class DocumentFiles(AbstractContextManager["DocumentFiles"]):
    """An input of the bulk runner: documents from files, which are opened one at a time."""

    def __init__(self, files: Sequence[InputFile], columns: Columns, options: ReadOptions) -> None:
        self.files = files
        self._columns = columns
        self._options = replace(options, text=columns.text)
        self._sizes = [os.path.getsize(file.path) if os.path.isfile(file.path) else None for file in files]
        self._bytes_before = 0  # total of the files before the open one
        self._reader = ReaderProcess(self._options)
        self._first: Iterator[DocumentRecord] | None = None  # of the first file, after a check
        self._last_note = ""

    @property
    def name(self) -> str:
        """Path of the only file, else the current folder."""
        return self.files[0].path if len(self.files) == 1 else os.curdir

    @property
    def size(self) -> int | None:
        """Bytes of all files; None if one is a stream."""
        return None if None in self._sizes else sum(size or 0 for size in self._sizes)

    @property
    def position(self) -> int:
        """Bytes read so far, over all files."""
        return self._bytes_before + self._reader.position

    def check(self) -> None:
        """Opens the first file and notes the use of its columns, before anything is stored."""
        if self._first is not None:
            return
        asked = self._options.format
        forms = {FORMATS[asked] if asked else format_of_name(file.label) for file in self.files}
        if len(forms) == 1 and (form := forms.pop()):  # of several formats, files without a reader are rejected
            form.require_reader()
        documents = self._documents(self.files[0])
        try:
            self._first = itertools.chain(list(itertools.islice(documents, 1)), documents)
        except (InputError, ImportError) as error:  # it is read again and rejected when its turn comes
            if len(self.files) == 1 or isinstance(error, ColumnError):
                raise

    def read(self) -> Iterator[FileRecord]:
        """The documents, in order, and the end of each file; one rejection for each unreadable file among several."""
        self._bytes_before = 0
        for index, (file, size) in enumerate(zip(self.files, self._sizes, strict=True)):
            is_complete = True
            for record in self._read_file(index, file):
                is_complete = is_complete and not (isinstance(record, Rejection) and record.reason in LOSSES)
                yield replace(record, file=file.label)
            self._bytes_before += size or 0
            self._reader.position = 0
            yield FileEnd(file.label, is_complete and file.path != "-")

    def __exit__(self, *exc_info: object) -> None:
        """Ends the process that reads."""
        self._reader.close()

    def _read_file(self, index: int, file: InputFile) -> Iterator[DocumentRecord]:
        documents, self._first = (self._first if index == 0 else None) or self._documents(file), None
        try:
            yield from documents
        except (InputError, ImportError) as error:
            if len(self.files) == 1:
                raise
            self._options.note(str(error))
            yield Rejection(0, "unreadable_file", str(error))

    def _documents(self, file: InputFile) -> Iterator[DocumentRecord]:
        """The documents of a file. Those of a file with others in it are numbered; their ids name the inner file."""
        rows = self._reader.read(file)
        source = "" if file.path == "-" else file.label  # standard input owns nothing
        is_container = False
        number = 0
        for section, pairs in itertools.groupby(rows, key=lambda pair: pair[0]):
            is_container = is_container or section.name != file.label or FORMATS[section.format].holds == "files"
            try:
                for record in self._documents_of_section(section, (row for _, row in pairs), source):
                    number += 1
                    yield replace(record, line=number) if is_container else record
            except ColumnError as error:
                if section.name == file.label:
                    raise
                number += 1
                yield Rejection(number, "unreadable_file", str(error))

    def _documents_of_section(
        self, section: Section, rows: Iterator[Row | Rejection], source: str
    ) -> Iterator[DocumentRecord]:
        form = FORMATS[section.format]
        columns = Columns(text=("text",), title="title")
        if form.holds == "table":
            items = list(_take_first(rows, _FIRST_STREAM_CHARS if None in self._sizes else _FIRST_CHARS))
            rows = itertools.chain(items, rows)
            if first_rows := [item for item in items if isinstance(item, Row)]:
                columns = choose_columns(section.name, first_rows, self._columns, form)
                if not first_rows[0].key and (columns.text, columns.id) != (("text",), "id"):
                    note = _describe_columns(columns, first_rows)
                    if note != self._last_note:  # of the table before
                        self._options.note(f"{section.name}: {note}")
                    self._last_note = note
            elif form.name == "jsonl":  # every line is rejected with its own reason
                columns = replace(self._columns, text=self._columns.text or ("text",), id=self._columns.id or "id")
            elif not section.member:
                fault = next(item.message for item in items if isinstance(item, Rejection))
                raise InputError(f"{section.name}: none of its rows can be read: {fault}")
        for row in rows:
            if isinstance(row, Rejection):
                yield row
            else:
                key = row.key or (row.line if form.holds in ("table", "pages") else "")
                yield to_document_record(row, columns, f"{section.name}#{key}" if key else section.name, source)


def _take_first(rows: Iterator[Row | Rejection], max_chars: int) -> Iterator[Row | Rejection]:
    num_chars = 0
    for item in itertools.islice(rows, _FIRST_ROWS):
        yield item
        if isinstance(item, Row):
            num_chars += sum(len(value) for value in item.fields.values() if isinstance(value, str))
        if num_chars >= max_chars:
            return


def to_document_record(row: Row, columns: Columns, generated_id: str, source: str = "") -> DocumentRecord:
    """The document of a row, or its rejection; ``generated_id`` is its id if no column holds one."""
    fields = row.fields
    document_id: Any = ""

    def reject(reason: str, message: str) -> Rejection:
        known_id = document_id if isinstance(document_id, str) else ""
        return Rejection(row.line, reason, message, known_id)

    if columns.id:
        document_id = _value_at(fields, columns.id)
        if document_id is _MISSING:
            return reject("missing_id", f"field {columns.id!r} is missing")
        if isinstance(document_id, float) and document_id.is_integer():  # pandas makes floats of integers with gaps
            document_id = int(document_id)
        if isinstance(document_id, int) and not isinstance(document_id, bool):
            document_id = str(document_id)
        if not isinstance(document_id, str):
            return reject("invalid_id", f"field {columns.id!r} must be a string, got {type_name(document_id)}")
        if not document_id:
            return reject("invalid_id", f"field {columns.id!r} is empty")
    shown = f"field{'s' if len(columns.text) > 1 else ''} {' and '.join(map(repr, columns.text))}"
    values = {name: value for name in columns.text if (value := _value_at(fields, name)) is not _MISSING}
    if not values:
        return reject("missing_text", f"{shown}: missing, expected a text")
    texts = {name: value for name, value in values.items() if value is not None or len(columns.text) == 1}
    if columns.is_record:
        texts = {name: str(value) for name, value in texts.items()}
    wrong = [value for value in texts.values() if not isinstance(value, str)]
    if wrong:
        return reject("invalid_text", f"{shown}: must be a string, got {type_name(wrong[0])}")
    filled = {name: value for name, value in texts.items() if value.strip()}
    label = "{}: ".format if len(columns.text) > 1 else "".format
    text = "\n\n".join(label(name) + value for name, value in filled.items())
    if columns.as_row and filled:
        text = "\n".join(map(_row_of_table, (filled, itertools.repeat("---", len(filled)), filled.values())))
    if not text:
        return reject("empty_text", f"{shown}: no text, expected at least one word")
    document = Document(document_id or generated_id, text, _payload(fields, columns), source=source)
    return Record(document, document.id, row.line)


def _row_of_table(cells: Iterable[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def _payload(fields: dict[str, Any], columns: Columns) -> dict[str, object]:
    """The payload, title first, without empty cells of a table."""
    title = _value_at(fields, columns.title) if columns.title else None
    payload: dict[str, object] = {} if title in (None, "", _MISSING) else {"title": title}
    kept: dict[str, Any] = {}
    if columns.payload is None:
        kept = fields
        for name in (columns.id,) if columns.is_record else (*columns.text, columns.title, columns.id):
            if name:
                _remove(kept, (name,) if name in kept else path_of(name))
    else:
        for name in columns.payload:
            if (value := _value_at(fields, name)) is not _MISSING:
                *parents, key = (name,) if name in fields else path_of(name)
                inner = kept
                for parent in parents:
                    inner = inner.setdefault(parent, {})
                inner[key] = value
    inside: dict[str, Any] = {}
    if columns.payload is None:
        kept.pop("facet_embeddings", None)  # of ``facets export --facets``
        if isinstance(kept.get("payload"), dict):
            kept |= (inside := kept.pop("payload"))
    for name, value in kept.items():
        if not (name == "title" and "title" in payload):
            if name in columns.converters and isinstance(value, str):
                value = columns.converters[name](value)
            if value is not None or columns.keeps_null or name in inside:
                payload[name] = value
    return payload


_MISSING = object()
_PATH_PART = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')


@functools.lru_cache(maxsize=1_024)
def path_of(name: str) -> tuple[str, ...]:
    """The keys of a dotted path, such as ``note.body``. A key that contains a dot is quoted: ``meta."created.by"``."""
    return tuple(quoted.replace('""', '"') or bare for quoted, bare in _PATH_PART.findall(name)) or (name,)


def _name_of(path: Sequence[str]) -> str:
    return ".".join('"' + key.replace('"', '""') + '"' if set('."').intersection(key) else key for key in path)


def _value_at(fields: Mapping[str, Any], name: str) -> Any:
    if name in fields:
        return fields[name]
    value: Any = fields
    for key in path_of(name):
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _remove(fields: dict[str, Any], path: Sequence[str]) -> None:
    """Removes a value, and the objects that become empty."""
    if len(path) == 1:
        fields.pop(path[0], None)
    elif isinstance(inner := fields.get(path[0]), dict):
        _remove(inner, path[1:])
        if not inner:
            del fields[path[0]]


def _nested_names(fields: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Dotted paths of the values within objects."""
    for key, value in fields.items():
        if isinstance(value, dict) and len(path) < _MAX_PATH:
            yield from _nested_names(value, (*path, key))
        elif path:
            yield _name_of((*path, key))


def choose_columns(file_name: str, rows: Sequence[Row], asked: Columns, form: Format) -> Columns:
    """The use of each column of a table, from its first rows; raises ColumnError."""
    columns = list(dict.fromkeys(name for row in rows for name in row.fields))
    nested = list(dict.fromkeys(name for row in rows for name in _nested_names(row.fields)))[:_MAX_NESTED]
    names = [*columns, *nested]

    def named(option: str, *wanted: str) -> tuple[str, ...]:
        """The columns of an option; commas separate them unless the whole string is the name of a column."""
        parts = [
            part
            for whole in wanted
            if whole
            for part in ([whole] if whole in names else map(str.strip, whole.split(",")))
        ]
        return tuple(_column(file_name, names, option, part) for part in parts)

    def first_of(candidates: Sequence[str], parent: str = "") -> str:
        folded = {name.strip().casefold(): name for name in reversed(names if parent else columns)}
        return next((folded[parent + name] for name in candidates if parent + name in folded), "")

    is_json = form.name in ("jsonl", "json")
    text, is_record, as_row = named("--text", *asked.text), False, False
    if not text:
        text = _text_columns(columns, nested, rows)
        if not (is_json or nested) and (facts := _facts(columns, text, rows)):
            is_record, as_row = True, sum(_num_words(text, rows)) < _RECORD_WORDS * len(rows)
            text = facts
    if not text:
        raise ColumnError(
            f"{file_name}: no column holds texts; the columns are {_shown(names) or 'none'}",
            hint="--text COLUMN names one; dots reach into objects",
        )
    parent = "".join(f"{_name_of([key])}." for key in path_of(text[0])[:-1]).casefold() if text[0] in nested else ""
    # In JSON, "subject" or "heading" is more likely a value than a title.
    titles = TITLE_NAMES[:1] if is_json else TITLE_NAMES
    default_title = first_of(titles, parent) or first_of(titles)
    payload = None if asked.payload is None else named("--payload", *asked.payload)
    converted = [name for name in columns if is_record or name not in text] if payload is None else payload
    has_commas = _has_decimal_commas(rows)
    return Columns(
        text=text,
        title="".join(named("--title", asked.title)) or ("" if default_title in text else default_title),
        id="".join(named("--id", asked.id)) or first_of(ID_NAMES) or (first_of(ID_NAMES, parent) if parent else ""),
        payload=payload,
        keeps_null=is_json,
        is_record=is_record,
        as_row=as_row,
        converters={}
        if form.has_types
        else {name: _converter(name, rows, has_commas=has_commas) for name in converted},
    )


def _text_columns(columns: Sequence[str], nested: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """The column named like a text; one within objects if it is the only one of its name; else the columns of prose.

    A table without prose, such as a list of addresses, has its text in all columns.
    """

    def named_like(names: Sequence[str], wanted: str) -> list[str]:
        return [
            name
            for name in names
            if (name if name in columns else path_of(name)[-1]).strip().casefold() == wanted
            and any(isinstance(_value_at(row.fields, name), str) for row in rows)
        ]

    for names in (columns, nested):
        for wanted in TEXT_NAMES:
            if found := named_like(names, wanted):
                return (found[0],) if names is columns or len(found) == 1 else ()
    folded = {name.strip().casefold(): name for name in reversed(columns)}
    if empty := next((folded[name] for name in TEXT_NAMES if name in folded), ""):
        return (empty,)
    values = {
        name: [value for row in rows if isinstance(value := row.fields.get(name), str) and value.strip()]
        for name in columns
        if name.strip().casefold() not in ID_NAMES
    }
    filled = {name: own for name, own in values.items() if own}
    prose = [name for name, own in filled.items() if sum(len(one.split()) for one in own) >= _PROSE_WORDS * len(own)]
    return tuple(prose or filled)


def _facts(columns: Sequence[str], text: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns of a table of records, such as tickets or contacts; empty if one is named like a text."""
    if not {name.strip().casefold() for name in text}.isdisjoint(set(TEXT_NAMES) - _REMARKS):
        return ()
    lists = {name for row in rows for name, value in row.fields.items() if isinstance(value, list)}
    facts = [name for name in columns if name not in lists and name.strip().casefold() not in ID_NAMES]
    num_filled = sum(any(row.fields.get(name) not in (None, "") for row in rows) for name in facts)
    fewest = 3 if any(_num_words(text, rows)) else 2  # beside one column of prose, the other is in the payload anyway
    return tuple(facts) if fewest <= num_filled <= _MOST_FACTS else ()


def _num_words(text: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """Words of each column of prose."""
    values = [[value for row in rows if isinstance(value := row.fields.get(name), str)] for name in text]
    num_words = [sum(len(value.split()) for value in own) for own in values]
    return [num for num, own in zip(num_words, values, strict=True) if num >= _PROSE_WORDS * max(1, len(own))]


def _column(file_name: str, names: Sequence[str], option: str, wanted: str) -> str:
    """The column of that name; case matters only if two columns differ by it."""
    same = [name for name in names if name.casefold() == wanted.casefold()]
    if wanted in names or len(same) == 1:
        return wanted if wanted in names else same[0]
    folded = {name.casefold(): name for name in reversed(names)}
    nearest = difflib.get_close_matches(wanted.casefold(), folded, 1)
    raise ColumnError(
        f"{file_name}: {option}: there is no column {wanted!r}; the columns are {_shown(names) or 'none'}",
        hint=f"did you mean {folded[nearest[0]]!r}?" if nearest else "",
    )


def _describe_columns(columns: Columns, rows: Sequence[Row]) -> str:
    used = {columns.id} if columns.is_record else {*columns.text, columns.title, columns.id}
    payload = columns.payload
    if payload is None:
        payload = tuple(name for name in dict.fromkeys(name for row in rows for name in row.fields) if name not in used)
    title = f"title from {columns.title!r}, " if columns.title else ""
    ids = repr(columns.id) if columns.id else "file name and row number"
    text = "the whole row" if columns.is_record else " and ".join(map(repr, columns.text))
    return f"text from {text}, {title}ids from {ids}, payload: {_shown(payload) or 'nothing'}"


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in names[:_MAX_COLUMNS_SHOWN])
    num_more = len(names) - _MAX_COLUMNS_SHOWN
    return f"{shown} and {num_more} more" if num_more > 0 else shown


_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?")
# A whole number with three points could be an IP address.
_COMMA_NUMBER = re.compile(
    r"-?(?:0|[1-9]\d{0,15}|[1-9]\d{0,2}(?:(?:\.\d{3}){1,2}|(?:\.\d{3})+(?=,)))(?:,\d{1,20})?(?:[eE][+-]?\d{1,2})?"
)
_COMMA_OR_THOUSANDS = re.compile(r"-?[1-9]\d{0,2},\d{3}")
_TO_POINT = str.maketrans(",", ".", ".")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}


def _has_decimal_commas(rows: Sequence[Row]) -> bool:
    """Whether the numbers of a file have decimal commas, and points that group thousands."""
    values = [value for row in rows if row.may_have_commas for value in row.fields.values() if isinstance(value, str)]
    commas = [value for value in values if "," in value and _COMMA_NUMBER.fullmatch(value)]
    has_points = any(_NUMBER.fullmatch(value) and not _COMMA_NUMBER.fullmatch(value) for value in values)
    return bool(commas) and not (has_points and all(map(_COMMA_OR_THOUSANDS.fullmatch, commas)))


def _converter(column: str, rows: Sequence[Row], *, has_commas: bool) -> Callable[[str], object]:
    """Function that converts a column's strings to values, chosen by the first rows; other strings stay strings."""
    values = [value for row in rows if isinstance(value := row.fields.get(column), str) and value]
    if values and all(value in _BOOLEANS for value in values):
        return lambda value: _BOOLEANS.get(value, value or None)
    if values and has_commas and all(map(_COMMA_NUMBER.fullmatch, values)):
        return _number_with_comma
    if values and all(map(_NUMBER.fullmatch, values)):
        return _number
    return lambda value: value or None


def _number_with_comma(value: str) -> object:
    number = _number(value.translate(_TO_POINT)) if _COMMA_NUMBER.fullmatch(value) else None
    return (value or None) if number is None or isinstance(number, str) else number


def _number(value: str) -> object:
    """A number, if JSON can represent it exactly. A code such as 007 stays a string."""
    if not _NUMBER.fullmatch(value):
        return value or None
    number = float(value) if any(mark in value for mark in ".eE") else int(value)
    return number if abs(number) <= MAX_EXACT_INTEGER else value
