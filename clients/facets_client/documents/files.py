"""Reads documents from files in turn, and decides which table columns become text, id, title and payload."""

import difflib
import hashlib
import itertools
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from facets_client.generated.types import Document
from facets_client.load.child import ReaderProcess, Section
from facets_client.load.formats import FORMATS, Format, InputFile, format_of_name
from facets_client.load.rows import LOSSES, MAX_EXACT_INTEGER, FileEnd, ReadOptions, Record, Rejection, Row, type_name
from facets_client.load.source import InputError
from facets_client.load.state import Place

# Names of columns, in lower case, best first. The playground uses the same ones.
TEXT_NAMES = (
    *("text", "body", "content", "contents", "abstract", "passage", "article", "description", "message", "summary"),
    *("note", "notes", "comment", "comments", "details"),
)
TITLE_NAMES = ("title", "headline", "heading", "subject")
ID_NAMES = ("id", "_id", "doc_id", "docid", "document_id", "uuid")
_MAX_COLUMNS_SHOWN = 20
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
        self._reader = ReaderProcess()
        self._first: Iterator[DocumentRecord] | None = None  # of the first file, after a check
        self._digest = ""
        self._last_note = ""

    @property
    def name(self) -> str:
        """Path of the only file, else the common folder of all files."""
        if len(self.files) == 1:
            return self.files[0].path
        return os.path.commonpath([os.path.dirname(os.path.abspath(file.path)) for file in self.files])

    @property
    def size(self) -> int | None:
        """Bytes of all files; None if one is a stream."""
        return None if None in self._sizes else sum(size or 0 for size in self._sizes)

    @property
    def digest(self) -> str:
        """Digest of the only file's first bytes, else of the names, sizes and times of all files."""
        if len(self.files) == 1 and not os.path.isdir(self.files[0].path):
            if not self._digest:
                self.check()
            return self._digest
        stats = ((os.path.abspath(file.path), os.stat(file.path)) for file in self.files)
        listed = "\0".join(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}" for path, stat in stats)
        return hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def position(self) -> int:
        """Bytes read so far, over all files."""
        return self._bytes_before + self._reader.position

    def check(self) -> None:
        """Opens the first file and notes the use of its columns, before anything is stored."""
        if self._first is not None:
            return
        asked = self._options.format
        for form in {FORMATS[asked] if asked else format_of_name(file.label) for file in self.files}:
            if form:
                form.require_reader()
        documents = self._documents(self.files[0])
        try:
            self._first = itertools.chain(list(itertools.islice(documents, 1)), documents)
        except InputError as error:  # it is read again and rejected when its turn comes
            if len(self.files) == 1 or isinstance(error, ColumnError):
                raise

    def read(self, place: Place) -> Iterator[FileRecord]:
        """The documents after a position, in order, and the end of each file.

        Among several files, an unreadable one counts as one rejection.
        """
        for index, file in enumerate(self.files):
            self._bytes_before = sum(size or 0 for size in self._sizes[:index])
            self._reader.position = 0
            if index < place.file:
                continue
            after = place.line if index == place.file else 0
            is_complete = True
            for record in self._read_file(index, file):
                is_complete = is_complete and not (isinstance(record, Rejection) and record.reason in LOSSES)
                if record.line == 0:  # the file is rejected as a whole, which completes it
                    yield replace(record, file=index + 1, name=file.label)
                elif record.line > after:
                    yield replace(record, file=index, name=file.label)
            yield FileEnd(index, file.label, is_complete and file.path != "-")

    def close(self) -> None:
        """Ends the process that reads."""
        self._reader.close()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

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
        rows = self._reader.read(file, self._options)
        source = "" if file.path == "-" else file.label  # standard input owns nothing
        is_container = False
        number = 0
        for section, pairs in itertools.groupby(rows, key=lambda pair: pair[0]):
            self._digest = self._digest or section.digest
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
                if (columns.text, columns.id) != (("text",), "id"):
                    self._note_columns(section.name, _describe_columns(columns, first_rows))
            elif form.name == "jsonl":  # every line is rejected with its own reason
                columns = replace(self._columns, text=self._columns.text or ("text",), id=self._columns.id or "id")
            else:
                fault = next(item.message for item in items if isinstance(item, Rejection))
                raise InputError(f"{section.name}: none of its rows can be read: {fault}")
        for row in rows:
            if isinstance(row, Rejection):
                yield row
            else:
                key = row.key or (row.line if form.holds != "text" else "")
                yield to_document_record(row, columns, f"{section.name}#{key}" if key else section.name, source)

    def _note_columns(self, name: str, note: str) -> None:
        """Notes the use of the columns, unless it equals that of the previous file."""
        if note != self._last_note:
            self._options.note(f"{name}: {note}")
        self._last_note = note


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
        return Rejection(row.line, reason, message, known_id, row.excerpt)

    if columns.id:
        if columns.id not in fields:
            return reject("missing_id", f"field {columns.id!r} is missing")
        document_id = fields.pop(columns.id)
        if isinstance(document_id, int) and not isinstance(document_id, bool):
            document_id = str(document_id)
        if not isinstance(document_id, str):
            return reject("invalid_id", f"field {columns.id!r} must be a string, got {type_name(document_id)}")
        if not document_id:
            return reject("invalid_id", f"field {columns.id!r} is empty")
    shown = f"field{'s' if len(columns.text) > 1 else ''} {' and '.join(map(repr, columns.text))}"
    values = {name: fields[name] for name in columns.text if name in fields}
    if not values:
        return reject("missing_text", f"{shown}: missing, expected a text")
    texts = {name: value for name, value in values.items() if value is not None or len(columns.text) == 1}
    wrong = [value for value in texts.values() if not isinstance(value, str)]
    if wrong:
        return reject("invalid_text", f"{shown}: must be a string, got {type_name(wrong[0])}")
    label = "{}: ".format if len(columns.text) > 1 else "".format
    text = "\n\n".join(label(name) + value for name, value in texts.items() if value.strip())
    if not text:
        return reject("empty_text", f"{shown}: no text, expected at least one word")
    document = Document(document_id or generated_id, text, _payload(fields, columns), source=source)
    return Record(document, document.id, row.line, row.excerpt)


def _payload(fields: dict[str, Any], columns: Columns) -> dict[str, object]:
    """The payload, title first, without empty cells if the format is untyped."""
    title = fields.get(columns.title) if columns.title else None
    payload: dict[str, object] = {} if title in (None, "") else {"title": title}
    names = columns.payload
    for name in [name for name in fields if name not in (*columns.text, columns.title)] if names is None else names:
        if name in fields and not (name == "title" and "title" in payload):
            value = fields[name]
            is_untyped = name in columns.converters and isinstance(value, str)
            value = columns.converters[name](value) if is_untyped else value
            if value is not None or not is_untyped:
                payload[name] = value
    return payload


def choose_columns(file_name: str, rows: Sequence[Row], asked: Columns, form: Format) -> Columns:
    """The use of each column of a table, from its first rows; raises ColumnError."""
    names = list(dict.fromkeys(name for row in rows for name in row.fields))

    def named(option: str, *wanted: str) -> tuple[str, ...]:
        """The columns of an option; commas separate them unless the whole string is the name of a column."""
        parts = [
            part
            for whole in wanted
            if whole
            for part in ([whole] if whole in names else map(str.strip, whole.split(",")))
        ]
        return tuple(_column(file_name, names, option, part) for part in parts)

    def first_of(candidates: Sequence[str]) -> str:
        folded = {name.strip().casefold(): name for name in reversed(names)}
        return next((folded[candidate] for candidate in candidates if candidate in folded), "")

    text = named("--text", *asked.text) or (first_of(TEXT_NAMES),)
    if text == ("",):
        raise _no_text_column(file_name, names, rows)
    # In JSON, "subject" or "heading" is more likely a value than a title.
    default_title = first_of(TITLE_NAMES[:1] if form.name in ("jsonl", "json") else TITLE_NAMES)
    payload = None if asked.payload is None else named("--payload", *asked.payload)
    converted = [name for name in names if name not in text] if payload is None else payload
    return Columns(
        text=text,
        title="".join(named("--title", asked.title)) or ("" if default_title in text else default_title),
        id="".join(named("--id", asked.id)) or first_of(ID_NAMES),
        payload=payload,
        converters={} if form.has_types else {name: _converter(name, rows) for name in converted},
    )


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


def _no_text_column(file_name: str, names: Sequence[str], rows: Sequence[Row]) -> ColumnError:
    longest = max(names, key=lambda name: sum(len(str(row.fields.get(name) or "")) for row in rows), default="")
    expected = ", ".join(TEXT_NAMES[:4])
    return ColumnError(
        f"{file_name}: no column is called {expected} or the like; the columns are {_shown(names) or 'none'}",
        hint=f"for example --text {shlex.quote(longest)}, which has the longest values" if longest else "",
    )


def _describe_columns(columns: Columns, rows: Sequence[Row]) -> str:
    used = {*columns.text, columns.title, columns.id}
    payload = columns.payload
    if payload is None:
        payload = tuple(name for name in dict.fromkeys(name for row in rows for name in row.fields) if name not in used)
    title = f"title from {columns.title!r}, " if columns.title else ""
    ids = repr(columns.id) if columns.id else "file name and row number"
    text = " and ".join(map(repr, columns.text))
    return f"text from {text}, {title}ids from {ids}, payload: {_shown(payload) or 'nothing'}"


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in names[:_MAX_COLUMNS_SHOWN])
    num_more = len(names) - _MAX_COLUMNS_SHOWN
    return f"{shown} and {num_more} more" if num_more > 0 else shown


_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}


def _converter(column: str, rows: Sequence[Row]) -> Callable[[str], object]:
    """Function that converts a column's strings to values, chosen by the first rows; other strings stay strings."""
    values = [value for row in rows if isinstance(value := row.fields.get(column), str) and value]
    if values and all(value in _BOOLEANS for value in values):
        return lambda value: _BOOLEANS.get(value, value or None)
    if values and all(_NUMBER.fullmatch(value) for value in values):
        return _number
    return lambda value: value or None


def _number(value: str) -> object:
    """A number, if JSON can represent it exactly. A code such as 007 stays a string."""
    if not _NUMBER.fullmatch(value):
        return value or None
    number = float(value) if any(mark in value for mark in ".eE") else int(value)
    return number if abs(number) <= MAX_EXACT_INTEGER else value
