"""Rows of Parquet and of Arrow files (Feather, IPC), a few thousand at a time."""

import datetime
import decimal
import math
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from facets_client.core.extras import require_extra
from facets_client.core.payloads import MAX_EXACT_INTEGER
from facets_client.core.records import EXCERPT_CHARS, Rejection, Row
from facets_client.core.source import InputError, RecordSource
from facets_client.documents.readers.options import ReadOptions, Rows

__all__ = ["read_arrow", "read_parquet"]

_BATCH_ROWS = 1_024


def read_parquet(source: RecordSource, options: ReadOptions) -> Rows:
    """Rows of a Parquet file.

    Raises:
        InputError: It is none.
        ImportError: The reader is not installed.
    """
    require_extra("parquet", "pyarrow")
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
        ImportError: The reader is not installed.
    """
    require_extra("parquet", "pyarrow")
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
