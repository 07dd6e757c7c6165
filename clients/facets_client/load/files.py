"""The documents of many files, one after the other, from any place on; which columns of a table become what."""

import difflib
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from facets_client.core.values import MAX_EXACT_INTEGER
from facets_client.load.batches import Place
from facets_client.load.formats import FORMATS, Format, FormatName, InputFile, format_of, format_of_name
from facets_client.load.records import ReadOptions, Record, RecordFormat, Rejection, Row, read_objects, to_record
from facets_client.load.source import InputError, RecordSource

MadeIds = Literal["row", "content"]

TEXTS = (
    "text",
    "body",
    "content",
    "contents",
    "abstract",
    "passage",
    "article",
    "description",
    "message",
    "summary",
    "note",
    "notes",
    "comment",
    "comments",
    "details",
)
TITLES = ("title", "headline", "heading", "subject")
IDS = ("id", "_id", "doc_id", "docid", "document_id", "uuid")
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
    """How the rows of a table become documents, as its first ones show; JSON says its types and, mostly, its title.

    Raises:
        ColumnError: A column is not there, or none looks like a text.
    """
    columns = _Columns(name, rows)
    texts = columns.named("--text", *asked.text) or (columns.called(TEXTS) or columns.refuse_without_text(),)
    title = "".join(columns.named("--title", asked.title))
    called_title = columns.called(TITLES[:1] if form.name in ("jsonl", "json") else TITLES)
    id_field = "".join(columns.named("--id", asked.id)) or columns.called(IDS)
    payload = None if asked.payload is None else columns.named("--payload", *asked.payload)
    kept = [column for column in columns.names if column not in texts] if payload is None else payload
    return RecordFormat(
        text_fields=texts,
        title_field=title or ("" if called_title in texts else called_title),
        id_field="" if asked.made_ids else id_field,
        payload_fields=payload,
        content_ids=asked.made_ids == "content",
        convert={} if form.typed else {column: _converter(column, rows) for column in kept},
    )


class _Columns:
    """The columns of a file's first rows, by what a caller asks for or by what they are called."""

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self._name = name
        self._rows = rows
        self.names = list(dict.fromkeys(column for row in rows for column in row.fields))

    def named(self, option: str, *asked: str) -> tuple[str, ...]:
        """The columns that an option names; commas part them where no column has the whole as its name."""
        found: list[str] = []
        for whole in filter(None, asked):
            parts = [whole] if whole in self.names else [part.strip() for part in whole.split(",")]
            found += (self._found(option, part) for part in parts)
        return tuple(found)

    def _found(self, option: str, part: str) -> str:
        folded = [column for column in self.names if column.casefold() == part.casefold()]
        if part in self.names or len(folded) == 1:
            return part if part in self.names else folded[0]
        near = difflib.get_close_matches(part.casefold(), [column.casefold() for column in self.names], 1, 0.6)
        nearest = next((column for column in self.names if near and column.casefold() == near[0]), "")
        raise ColumnError(
            f"{self._name}: {option}: there is no column {part!r}; the columns are {_shown(self.names) or 'none'}",
            hint=f"did you mean {nearest!r}?" if nearest else "",
        )

    def called(self, candidates: Sequence[str]) -> str:
        """The column with the first of these names that there is; empty without any."""
        folded = {column.strip().casefold(): column for column in reversed(self.names)}
        return next((folded[candidate] for candidate in candidates if candidate in folded), "")

    def refuse_without_text(self) -> str:
        """Raises: no column looks like a text."""
        lengths = {column: sum(len(str(row.fields.get(column) or "")) for row in self._rows) for column in self.names}
        longest = max(self.names, key=lambda column: lengths[column], default="")
        called = ", ".join(TEXTS[:4])
        raise ColumnError(
            f"{self._name}: no column is called {called} or the like; the columns are {_shown(self.names) or 'none'}",
            hint=f"say which holds the text: --text {_quoted(longest)} has the longest ones" if longest else "",
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


_FIRST_ROWS = 100  # looked at for the columns and their types
# Bytes of the stored input looked at for them, more where they hold no whole row; a slow stream is not waited for long.
_HEADS = (2**16, 2**20, 2**24)
_STREAM_HEADS = (2**12, *_HEADS)
_OWN_COLUMNS = RecordFormat(id_field="", title_field="title")


class DocumentFiles:
    """An input of the bulk runner made of files; opened one at a time.

    Args:
        files: At least one.
        options: How they are read.
        choice: Which columns of tables become what.
        form: Format of all files; None: each says its own.

    Attributes:
        files: As given.
    """

    def __init__(
        self, files: Sequence[InputFile], options: ReadOptions, *, choice: ColumnChoice, form: FormatName | None
    ) -> None:
        self.files = files
        self._options = options
        self._choice = choice
        self._form = form
        self._open: RecordSource | None = None
        self._told = ""
        self._sizes = [_size_of(file.path) for file in files]
        self._bytes_before = 0
        self._first: RecordSource | None = None

    @property
    def name(self) -> str:
        """Path of the only file, else the folder that all have in common."""
        if len(self.files) == 1:
            return self.files[0].path
        return os.path.commonpath([os.path.dirname(os.path.abspath(file.path)) for file in self.files])

    @property
    def size(self) -> int | None:
        """Bytes of all files; None when one is a stream."""
        return None if None in self._sizes else sum(size or 0 for size in self._sizes)

    @property
    def head_digest(self) -> str:
        """Of the only file's first bytes, else of the names, sizes and times of all files."""
        if len(self.files) == 1:
            return self._opened(self.files[0]).head_digest
        known = ((os.path.abspath(file.path), os.stat(file.path)) for file in self.files)
        listed = "\0".join(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}" for path, stat in known)
        return hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def raw_position(self) -> int:
        """Bytes of all files that were read so far."""
        return self._bytes_before + (self._open.raw_position if self._open else 0)

    def check(self) -> None:
        """Says what becomes of the first file's columns, before anything is stored.

        Raises:
            InputError: It does not have the columns that are asked for, or the only file cannot be read.
            ImportError: The reader of one of the files is not installed.
        """
        for form in {FORMATS[self._form] if self._form else format_of_name(file.path) for file in self.files}:
            if form:
                form.require_reader()
        try:
            self._format_of(self._opened(self.files[0]), self.files[0])
        except InputError as error:
            if len(self.files) == 1 or isinstance(error, ColumnError):
                raise  # else it is rejected when its turn comes

    def read(self, place: Place, max_text_bytes: int = 0) -> Iterator[Record | Rejection]:
        """The documents after a place, in order; a file that cannot be read is one rejection.

        Args:
            place: What is done already.
            max_text_bytes: Longer texts are rejected; 0: none is.
        """
        for number, file in enumerate(self.files):
            self._bytes_before = sum(size or 0 for size in self._sizes[:number])
            if number < place.file:
                continue
            line, end = (place.line, place.byte) if number == place.file else (0, 0)
            for item in self._read_file(file, line=line, end=end, max_text_bytes=max_text_bytes):
                done = number + (item.line == 0)  # a whole file is done with its rejection
                yield replace(item, file=done, name=file.label if len(self.files) > 1 else "")
        self._bytes_before = self.size or 0

    def close(self) -> None:
        """Closes what is open."""
        for source in (self._first, self._open):
            if source:
                source.close()

    def __enter__(self) -> "DocumentFiles":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _read_file(self, file: InputFile, *, line: int, end: int, max_text_bytes: int) -> Iterator[Record | Rejection]:
        try:
            with self._opened(file) as source:
                self._open = source
                form, record_format = self._format_of(source, file)
                record_format = replace(record_format, max_text_bytes=max_text_bytes)
                for item in self._rows(source, form, line=line, end=end):
                    yield item if isinstance(item, Rejection) else to_record(item, record_format)
        except (InputError, ImportError) as error:
            if len(self.files) == 1:
                raise
            self._options.tell(str(error))
            yield Rejection(0, 0, "unreadable_file", str(error))
        finally:
            self._open = None

    def _opened(self, file: InputFile) -> RecordSource:
        """The first file stays open from the beginning: standard input can be opened only once."""
        if file is not self.files[0]:
            return RecordSource(file.path)
        self._first = self._first or RecordSource(file.path)
        return self._first

    def _rows(self, source: RecordSource, form: Format, *, line: int, end: int) -> Iterator[Row | Rejection]:
        """Rows after a place: of JSON lines found by their byte, of others by going through those before."""
        if form.name == "jsonl":
            return read_objects(source, max_line_bytes=self._options.max_row_bytes, line=line, end=end)
        return (item for item in form.read(source, self._options) if item.line > line)

    def _format_of(self, source: RecordSource, file: InputFile) -> tuple[Format, RecordFormat]:
        form = format_of(source, self._form)
        form.require_reader()
        if form.holds != "table":
            own = replace(_OWN_COLUMNS, content_ids=self._choice.made_ids == "content")
            return form, replace(own, id_prefix=file.label, numbered=form.holds == "pages")
        rows, fault = self._first_rows(source, form)
        if fault and not rows and form.name == "jsonl":  # line by line it is said why
            choice = self._choice
            return form, RecordFormat(text_fields=choice.text or ("text",), id_field=choice.id or "id")
        if not rows:
            why = f"none of its rows can be read: {fault}" if fault else "is empty: it has no rows"
            raise InputError(f"{source.name}: {why}")
        chosen = choose(source.name, rows, self._choice, form)
        told = described(chosen, rows)
        if told != self._told and (chosen.text_fields, chosen.id_field) != (("text",), "id"):
            self._options.tell(f"{source.name}: {told}")
        self._told = told
        return form, replace(chosen, id_prefix=file.label)

    def _first_rows(self, source: RecordSource, form: Format) -> tuple[list[Row], str]:
        """The first good rows, without moving forward, and what was wrong before them."""
        quiet = replace(self._options, tell=lambda sentence: None)
        if form.jumps:
            return _good(form.read(source, quiet))
        found: tuple[list[Row], str] = ([], "")
        for num_bytes in _STREAM_HEADS if source.size is None else _HEADS:
            head = source.head(num_bytes)
            found = _good(form.read(RecordSource(source.name, io.BytesIO(head)), quiet))
            if found[0]:
                break
        return found


def _good(items: Iterator[Row | Rejection]) -> tuple[list[Row], str]:
    """The first rows, and why the first of those that are none is none."""
    rows: list[Row] = []
    fault = ""
    for item in items:
        if isinstance(item, Row):
            rows.append(item)
        fault = fault or (item.message if isinstance(item, Rejection) else "")
        if len(rows) == _FIRST_ROWS:
            break
    return rows, fault


def _size_of(path: str) -> int | None:
    return os.path.getsize(path) if path != "-" and os.path.isfile(path) else None
