"""The documents of many files, one after the other, from any place on."""

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from facets_client.core.bulk.state import Place
from facets_client.core.records import Record, RecordFormat, Rejection, Row, read_objects, to_record
from facets_client.core.source import InputError, RecordSource
from facets_client.documents.readers.columns import ColumnChoice, ColumnError, choose, described
from facets_client.documents.readers.finding import InputFile
from facets_client.documents.readers.formats import Format, FormatName, format_of
from facets_client.documents.readers.options import ReadOptions

__all__ = ["DocumentFiles"]

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
        """Bytes of all files read so far."""
        return self._bytes_before + (self._open.raw_position if self._open else 0)

    def check(self) -> None:
        """Says what becomes of the first file's columns, before anything is stored.

        Raises:
            InputError: It does not have the columns that are asked for, or the only file cannot be read.
            ImportError: Its reader is not installed.
        """
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
        if form.holds != "table":
            own = replace(_OWN_COLUMNS, content_ids=self._choice.made_ids == "content")
            return form, replace(own, id_prefix=file.label, numbered=form.holds == "pages")
        rows, fault = self._first_rows(source, form)
        if not rows and form.name == "jsonl":  # line by line it is said why
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
