"""Rows of tables: CSV and TSV, JSON arrays, Parquet and Arrow, one record at a time."""

import csv
import datetime
import decimal
import json
import math
import re
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from facets_client.core.values import MAX_EXACT_INTEGER
from facets_client.load.records import (
    EXCERPT_CHARS,
    ReadOptions,
    Rejection,
    Row,
    Rows,
    excerpt_of,
    object_row,
    read_objects,
)
from facets_client.load.source import DAMAGED, InputError, RecordSource, as_utf8, check_text_head

_DELIMITERS = ",;\t|"
# A quote that is not closed swallows what follows it: so many lines are looked at for its end.
_MAX_RECORD_LINES = 20_000


def read_csv(source: RecordSource, options: ReadOptions) -> Rows:
    """Rows of a CSV file whose first row names the columns; the delimiter is the header's most common candidate."""
    return _read(source, options, "CSV", options.delimiter)


def read_tsv(source: RecordSource, options: ReadOptions) -> Rows:
    """Rows of a file with tabs between the values."""
    return _read(source, options, "TSV", options.delimiter or "\t")


def _read(source: RecordSource, options: ReadOptions, kind: str, delimiter: str) -> Rows:
    head = check_text_head(source, kind)
    lines = _Lines(as_utf8(source, head, encoding=options.encoding, tell=options.tell), options.max_row_bytes)
    csv.field_size_limit(max(csv.field_size_limit(), options.max_row_bytes))
    try:
        header = lines.first()
    except DAMAGED as error:
        raise InputError(f"{source.name}: the {source.compression} data is damaged: {error}") from error
    except _TooLongError as error:
        raise InputError(f"{source.name}: the first row does not name columns: {error}") from error
    if not header.strip():
        return
    if header.lstrip().startswith(('{"', "[{")):
        raise InputError(f"{source.name}: expected {kind}, got JSON", hint="say --format jsonl or json")
    delimiter = delimiter or max(_DELIMITERS, key=header.count)
    records = _records(lines, delimiter)
    names: list[str] = []
    for item in records:
        if isinstance(item, Rejection):
            if not names:
                raise InputError(f"{source.name}: the first row does not name columns: {item.message}")
            yield item
            continue
        line, values, raw = item
        if not names:
            names = _column_names(values)
        elif len(values) != len(names):
            message = f"row has {len(values)} fields, the header has {len(names)}"
            yield Rejection(line, 0, "broken_row", message, excerpt=raw)
        elif any(_is_escaped(value) for value in values):
            place = next(name for name, value in zip(names, values, strict=True) if _is_escaped(value))
            yield Rejection(line, 0, "invalid_encoding", f"column {place!r} has bytes that are no text", excerpt=raw)
        else:
            yield Row(dict(zip(names, values, strict=True)), line, 0, raw)


def _is_escaped(value: str) -> bool:
    return not value.isascii() and any("\udc80" <= character <= "\udcff" for character in value)


def _column_names(values: list[str]) -> list[str]:
    """Names of the columns: those without get one, and those that are there twice get a number."""
    names: list[str] = []
    for place, value in enumerate(values, start=1):
        name = value.strip() or f"column {place}"
        number = 2
        while name in names:
            name = f"{value.strip()} {number}"
            number += 1
        names.append(name)
    return names


class _Lines:
    """Physical lines for the CSV reader, which can be given back."""

    def __init__(self, stream: BinaryIO | RecordSource, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._again: deque[str | int] = deque()  # lines; of those over the limit their length
        self.taken: list[str] = []  # lines of the record that is being read
        self.number = 0  # lines handed out, those given back not counted
        self._num_bytes = 0

    def first(self) -> str:
        """The first line, which is read again."""
        line = next(self, "")
        self.give_back(0)
        return line

    def begin(self) -> None:
        """A record is over."""
        self.taken.clear()
        self._num_bytes = 0

    def give_back(self, num_kept: int) -> None:
        """Lines of the record after the first ``num_kept`` ones are read again."""
        again = self.taken[num_kept:]
        self._again.extendleft(reversed(again))
        self.number -= len(again)
        self.begin()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if len(self.taken) >= _MAX_RECORD_LINES or self._num_bytes > self._max_bytes:
            raise csv.Error("a quote is opened and not closed")
        line = self._again.popleft() if self._again else self._read()
        if isinstance(line, int) and self.taken:
            self._again.appendleft(line)  # a record of its own
            raise csv.Error("a quote is opened and not closed")
        if isinstance(line, int):
            self.number += 1
            raise _TooLongError(f"row has {line} bytes, the limit is {self._max_bytes}")
        self.taken.append(line)
        self.number += 1
        self._num_bytes += len(line)
        return line

    def _read(self) -> str | int:
        raw = self._stream.readline(self._max_bytes + 1)
        if not raw:
            raise StopIteration
        if len(raw) > self._max_bytes:
            length = len(raw)
            while raw and not raw.endswith(b"\n"):
                raw = self._stream.readline(1 << 18)
                length += len(raw)
            return length
        return raw.decode("utf-8", "surrogateescape")


class _TooLongError(Exception):
    """A line over the limit, whose bytes are dropped."""


def _records(lines: _Lines, delimiter: str) -> Iterator[tuple[int, list[str], str] | Rejection]:
    """Line number, values and beginning of each record that is not blank; of a broken one its first line alone."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.begin()
        start = lines.number + 1
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raw = lines.taken[0] if lines.taken else ""
            lines.give_back(1)
            yield Rejection(start, 0, "broken_row", f"broken row: {error}", excerpt=_beginning(raw))
        except _TooLongError as error:
            yield Rejection(start, 0, "row_too_long", str(error))
        except DAMAGED as error:
            yield Rejection(start, 0, "damaged_input", f"cut off or damaged after line {start - 1}: {error}")
            return
        else:
            if any(value.strip() for value in values):
                yield start, values, _beginning(lines.taken[0])


def _beginning(line: str) -> str:
    return excerpt_of(line[:1_000].encode("utf-8", "surrogateescape"))


def read_json(source: RecordSource, options: ReadOptions) -> Rows:
    """Objects of an array; of JSON lines that are called ``.json``, too.

    Raises:
        InputError: The input is neither.
    """
    head = check_text_head(source, "JSON").removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"{"):
        _check_lines(source.name, head)
        yield from read_objects(source, max_line_bytes=options.max_row_bytes)
        return
    if not head:
        return
    if not head.startswith(b"["):
        raise InputError(
            f"{source.name}: expected a JSON array or JSON lines, got {head[:20].decode('ascii', 'replace')!r}"
        )
    yield from _elements(source, options.max_row_bytes)


def _check_lines(name: str, head: bytes) -> None:
    """Refuses one object over many lines."""
    first = head.partition(b"\n")[0]
    try:
        fields = json.loads(first)
    except ValueError:
        fields = None
    if fields is None and b"\n" in head.strip():
        raise InputError(
            f"{name}: expected a JSON array of objects or one object a line, got one object over many lines",
            hint="take the array out of it, or end each object with its line",
        )


def _elements(source: RecordSource, max_bytes: int) -> Iterator[Row | Rejection]:
    cutter = _ArrayCutter(source, max_bytes)
    number = 0
    try:
        for raw in cutter.elements():
            number += 1
            item = object_row(raw.strip() + b"\n", number)
            is_long = len(raw) > max_bytes
            if isinstance(item, Rejection) and item.reason == "invalid_json" and cutter.begin_again():
                is_long = False
            if is_long:
                message = f"record has more than {max_bytes} bytes, the limit"
                item = Rejection(number, 0, "row_too_long", message, excerpt=excerpt_of(raw))
            yield item
    except DAMAGED as error:
        message = f"the array is cut off or damaged after record {number}: {error}"
        yield Rejection(number + 1, 0, "damaged_input", message)


_OUTSIDE = re.compile(rb'[\[\]{},"]')
_INSIDE = re.compile(rb'["\n]|\\[\s\S]?')
_MAX_AGAIN_BYTES = 256 * 2**20


class _ArrayCutter:
    """Cuts an array into its elements by quotes and brackets alone, so that a broken element costs itself.

    A line end closes a string, since none may hold one. Where an element is none, the cutter can begin again within
    it: at the next line that starts as the elements do, by an indentation and a brace.

    Args:
        stream: The array, in UTF-8.
        max_bytes: Of a longer element only so many bytes and one more are held.
    """

    def __init__(self, stream: RecordSource, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._data = b""
        self._start = self._position = 0  # of the element, and how far it was looked at
        self._depth = 0
        self._is_string = False
        self._border = b""  # how elements begin: line end, indentation, brace
        self._is_again = False
        self._again_bytes = 0

    def elements(self) -> Iterator[bytes]:
        """The elements that are not blank; of one over the limit the beginning.

        Raises:
            EOFError: The array has no end, or something follows it.
        """
        is_dropped = False
        while True:
            mark = self._next_mark()
            if mark == b"":
                if not is_dropped and self._position - self._start > self._max_bytes:
                    yield self._data[self._start : self._start + self._max_bytes + 1]
                    is_dropped = not self._has_begun_again()
                elif not self._read(keep=not is_dropped):
                    rest = self._data[self._start :].strip()
                    if not is_dropped and (rest.endswith(b"}") or self._next_border() >= 0):
                        yield rest
                    if not self._has_begun_again():
                        raise EOFError("it does not end")
            elif self._ends_element(mark):
                element = self._data[self._start : self._position - 1]
                if not is_dropped and element.strip():
                    self._learn_border(element)
                    yield element
                    if self._has_begun_again():
                        continue
                if self._depth == 0:
                    if self._has_more():
                        raise EOFError("something follows its end")
                    return
                self._start, is_dropped = self._position, False

    def _has_more(self) -> bool:
        """Whether anything but white space follows."""
        rest = self._data[self._position :]
        while not rest.strip():
            rest = self._stream.read(1 << 18)
            if not rest:
                return False
        return True

    def begin_again(self) -> bool:
        """Begins again within the element that was handed out last; False where it cannot."""
        place = self._next_border()
        self._is_again = place >= 0 and self._again_bytes < _MAX_AGAIN_BYTES
        if self._is_again:
            self._again_bytes += self._position - place
            self._start = self._position = place
            self._depth, self._is_string = 1, False
        return self._is_again

    def _has_begun_again(self) -> bool:
        was_again, self._is_again = self._is_again, False
        return was_again

    def _next_border(self) -> int:
        return self._data.find(self._border, self._start + 1, self._position) if self._border else -1

    def _learn_border(self, element: bytes) -> None:
        blanks = element[: len(element) - len(element.lstrip())]
        if b"\n" in blanks and not self._border:
            self._border = blanks[blanks.rindex(b"\n") :] + b"{"

    def _next_mark(self) -> bytes:
        """The next quote, bracket or comma that is not in a string; empty where more must be read."""
        while True:
            found = (_INSIDE if self._is_string else _OUTSIDE).search(self._data, self._position)
            if found is None or found[0] == b"\\":
                self._position = len(self._data) if found is None else found.start()
                return b""
            self._position = found.end()
            if not self._is_string and found[0] != b'"':
                return found[0]
            if found[0] in (b'"', b"\n"):
                self._is_string = not self._is_string

    def _ends_element(self, mark: bytes) -> bool:
        if mark in (b"[", b"{"):
            self._depth += 1
            self._start = self._position if self._depth == 1 else self._start
        elif mark == b"]" or (mark == b"}" and self._depth > 1):
            self._depth -= 1
        return self._depth == 0 or (mark == b"," and self._depth == 1)

    def _read(self, *, keep: bool) -> bool:
        """Reads on behind what is kept; False at the end."""
        kept = self._start if keep else self._position
        more = self._stream.read(1 << 18)
        self._data = self._data[kept:] + more
        self._start, self._position = 0, self._position - kept
        return bool(more)


_BATCH_ROWS = 1_024


def read_parquet(source: RecordSource, options: ReadOptions) -> Rows:
    """Rows of a Parquet file.

    Raises:
        InputError: It is none.
    """
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(source.seekable())
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{source.name}: expected Parquet: {_first_line(error)}") from error
    wanted = _readable(source, file.schema_arrow, options)
    yield from _rows(source, file.iter_batches(_BATCH_ROWS, columns=wanted), file.metadata.num_rows)


def read_arrow(source: RecordSource, options: ReadOptions) -> Rows:
    """Rows of an Arrow file or stream, Feather included.

    Raises:
        InputError: It is none.
    """
    import pyarrow.ipc

    stored = source.seekable()
    try:
        file = pyarrow.ipc.open_file(stored)
        num_rows, batches = file.count_rows(), (file.get_batch(place) for place in range(file.num_record_batches))
    except (pyarrow.ArrowException, OSError):
        stored.seek(0)
        try:
            file = pyarrow.ipc.open_stream(stored)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{source.name}: expected Arrow or Feather: {_first_line(error)}") from error
        num_rows, batches = 0, iter(file)
    wanted = _readable(source, file.schema, options)
    yield from _rows(source, (batch.select(wanted) for batch in batches), num_rows)


def _readable(source: RecordSource, schema: Any, options: ReadOptions) -> list[str]:
    """Names of the columns that a payload can hold; the others are told."""
    import pyarrow

    held = [field.name for field in schema if not _is_binary(pyarrow.types, field.type)]
    left_out = [field.name for field in schema if field.name not in held]
    if left_out:
        options.tell(f"{source.name}: columns of bytes are left out: {', '.join(left_out)}")
    return held


def _is_binary(types: Any, kind: Any) -> bool:
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)


def _rows(source: RecordSource, batches: Iterable[Any], num_rows: int) -> Iterator[Row | Rejection]:
    import pyarrow

    number = 0
    try:
        for batch in batches:
            for row in batch.to_pylist():
                number += 1
                fields = {name: _plain(value) for name, value in row.items()}
                yield Row(fields, number, 0, str(row)[:EXCERPT_CHARS])
            source.mark_read(number / num_rows if num_rows else 0.0)
    except (pyarrow.ArrowException, OSError) as error:
        message = f"the file is damaged after row {number}: {_first_line(error)}"
        yield Rejection(number + 1, 0, "damaged_input", message)


def _plain(value: object) -> object:
    """A value as JSON has it; what JSON has not becomes its text."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case int() if abs(value) > MAX_EXACT_INTEGER:
            return str(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return value.total_seconds()
        case decimal.Decimal():
            return float(value) if value.is_finite() else None
        case uuid.UUID():
            return str(value)
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case _:
            return value


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
