"""Rows of CSV and TSV, one record at a time: a broken row costs itself and nothing else."""

import csv
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO

from facets_client.core.records import Rejection, Row, excerpt_of
from facets_client.core.source import DAMAGED, InputError, RecordSource
from facets_client.documents.readers.encoding import as_utf8, check_text_head
from facets_client.documents.readers.options import ReadOptions, Rows

__all__ = ["read_csv", "read_tsv"]

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
    lines = _Lines(as_utf8(source, head, options), options.max_row_bytes)
    csv.field_size_limit(max(csv.field_size_limit(), options.max_row_bytes))
    try:
        header = lines.first()
    except DAMAGED as error:
        raise InputError(f"{source.name}: the {source.compression} data is damaged: {error}") from error
    if not header.strip():
        return
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
