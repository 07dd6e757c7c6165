"""Rows of CSV, TSV and Parquet files."""

import csv
import datetime
import decimal
import json
import math
import re
import uuid
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TextIO

from facets_client.load.rows import (
    MAX_EXACT_INTEGER,
    MAX_ROW_BYTES,
    TEXT_NAMES,
    ReadOptions,
    Rejection,
    Row,
    Rows,
    has_undecodable,
    read_line,
)
from facets_client.load.source import InputError, Source, detect_encoding

_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)  # the first line of a file that Excel reads
_MAX_RECORD_LINES = 20_000  # lines to search for the end of an open quote
_BATCH_ROWS = 1_024
_EXPORTED = {"id", "text", "payload", "facets", "spans", "part_facets", "source", "tokens"}  # of ``facets export``
_MOST_ABOVE = 10  # lines above the header, or one fewer


def read_csv(source: Source, options: ReadOptions, *, kind: str = "CSV", delimiter: str = "") -> Rows:
    """Rows of a file whose first row, below titles, names the columns; the delimiter is detected if not given."""
    encoding = detect_encoding(source.name, source.text_head(kind), options.encoding, options.note)
    stream = source.text(encoding)
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    header = read_line(stream)
    above: list[str] = []
    if named := _SEPARATOR.fullmatch(header):
        delimiter, above, header = named[1], ["\n"], read_line(stream)
    if not header.strip():
        return
    if header.lstrip().startswith(('{"', "[{")):
        raise InputError(f"{source.name}: expected {kind}, got JSON", hint="use --format jsonl or --format json")
    titles, header, below = _find_header(header, stream)
    delimiter = delimiter or _delimiter_of(header)
    is_spaced = f"{delimiter} " in header  # then white space stands after the delimiters of the rows, too
    records = _records(stream, [*above, *("\n" for _ in titles), header, *below], delimiter, is_spaced=is_spaced)
    first = next(records, None)
    if first is None:
        return
    if isinstance(first, Rejection):
        raise InputError(f"{source.name}: the first row does not name columns: {first.message}")
    names = column_names(first[1])
    for item in records:
        if isinstance(item, Rejection):
            yield item
            continue
        line, values = item
        if len(values) != len(names):
            message = f"row has {len(values)} fields, the header has {len(names)}"
            yield Rejection(line, "broken_row", message)
        elif undecodable := [name for name, value in zip(names, values, strict=True) if has_undecodable(value)]:
            message = f"column {undecodable[0]!r} has bytes that are not of the encoding"
            yield Rejection(line, "invalid_encoding", message)
        else:
            yield Row(dict(zip(names, values, strict=True)), line, may_have_commas=delimiter == ";")


def column_names(values: list[str]) -> list[str]:
    """Unique names of the columns: an empty one becomes its column number, a repeated one gets a suffix number."""
    names: list[str] = []
    for position, value in enumerate(values, start=1):
        name = value.strip() or f"column {position}"
        number = 2
        while name in names:
            name = f"{value.strip()} {number}"
            number += 1
        names.append(name)
    return names


def _delimiter_of(header: str) -> str:
    return max(_DELIMITERS, key=header.count)


def _find_header(first: str, stream: TextIO) -> tuple[list[str], str, list[str]]:
    """The lines above the header, the header, and lines below it; ``first``: a line read before.

    A bank writes the account and the period above the table: lines of one value above rows of three or more.
    """
    values = [value for value in re.split(f"[{_DELIMITERS}]", first) if value.strip(' \t\r\n"')]
    if len(values) > 1 or first.strip().casefold() in TEXT_NAMES:
        return [], first, []
    lines = [first, *islice(iter(partial(read_line, stream), ""), _MOST_ABOVE)]
    for number, line in enumerate(lines[:-1]):
        delimiter = _delimiter_of(line)
        own, *others = (len(next(csv.reader([one], delimiter=delimiter))) for one in lines[number:] if one.strip())
        if number and own >= 3 and others and set(others) == {own} and not line.strip().endswith(delimiter):
            return lines[:number], line, lines[number + 1 :]
    return [], first, lines[1:]


def _records(
    stream: TextIO, first: list[str], delimiter: str, *, is_spaced: bool
) -> Iterator[tuple[int, list[str]] | Rejection]:
    """Line and values of each record that is not blank. Only the first line of a broken record is rejected.

    ``first``: lines read before. ``is_spaced``: white space stands after delimiters.
    """
    waiting = deque(first)  # lines to read, or to read again, before those of the stream
    record: list[str] = []  # lines of the current record
    num_lines = 0  # before the current record

    def lines() -> Iterator[str]:
        """The lines of one record; they end where a quote has been open for too long."""
        num_chars = 0
        while len(record) < _MAX_RECORD_LINES and num_chars <= MAX_ROW_BYTES:
            line = waiting.popleft() if waiting else read_line(stream)
            if not line:
                return
            record.append(line)
            num_chars += len(line)
            yield line

    while True:
        record.clear()
        fault = ""
        try:
            values = next(csv.reader(lines(), delimiter=delimiter, skipinitialspace=is_spaced, strict=True), None)
        except csv.Error as error:
            values = []
            fault = f"broken row: {'a quote is opened and not closed' if len(record) > 1 else error}"
        if values is None:
            return
        number = num_lines + 1
        if len(record[0]) > MAX_ROW_BYTES:
            yield Rejection(number, "row_too_long", f"row has more than {MAX_ROW_BYTES} characters")
        elif fault:
            yield Rejection(number, "broken_row", fault)
            waiting.extendleft(reversed(record[1:]))
            del record[1:]
        elif any(value.strip() for value in values):
            yield number, values
        num_lines += len(record)


def read_parquet(source: Source, options: ReadOptions) -> Rows:
    """Rows of a Parquet file, without binary columns, which a payload cannot hold.

    Of one that ``facets export`` wrote, the rows are the documents, whose text is encoded again.
    """
    import pyarrow.parquet
    from pyarrow import types

    file = pyarrow.parquet.ParquetFile(source.seekable(options.unpacked_bytes))
    is_binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    left_out = [column.name for column in file.schema_arrow if any(check(column.type) for check in is_binary)]
    if left_out:
        options.note(f"{source.name}: columns of bytes are left out: {', '.join(left_out)}")
    columns = [column.name for column in file.schema_arrow if column.name not in left_out]
    is_export = _EXPORTED.issubset(columns)
    number = 0
    for batch in file.iter_batches(_BATCH_ROWS, columns=["id", "text", "payload"] if is_export else columns):
        for row in batch.to_pylist():
            number += 1
            if is_export:
                row["payload"] = json.loads(row["payload"])
            yield Row({name: plain(value) for name, value in row.items()}, number)
        source.share_read = number / file.metadata.num_rows


def plain(value: object) -> object:
    """A value that JSON can represent; missing values become None, values of other types strings."""
    if hasattr(value, "dtype") and (to_list := getattr(value, "tolist", None) or getattr(value, "to_list", None)):
        value = to_list()  # of NumPy, pandas or Polars
    if type(value).__name__ in ("NAType", "NaTType"):  # missing in pandas
        return None
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
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case _:
            return value
