"""Records of a JSON array, one at a time."""

import json
from collections.abc import Iterator
from typing import Any

from facets_client.core.extras import require_extra
from facets_client.core.records import EXCERPT_CHARS, Rejection, Row, read_objects
from facets_client.core.source import DAMAGED, InputError, RecordSource
from facets_client.documents.readers.encoding import check_text_head
from facets_client.documents.readers.options import ReadOptions, Rows

__all__ = ["read_json"]


def read_json(source: RecordSource, options: ReadOptions) -> Rows:
    """Objects of an array; of JSON lines that are called ``.json``, too.

    Raises:
        InputError: The input is neither.
        ImportError: The reader is not installed.
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
    require_extra("files", "ijson")
    yield from _elements(source)


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


def _elements(source: RecordSource) -> Iterator[Row | Rejection]:
    import ijson

    number = 0
    elements: Iterator[Any] = ijson.items(source, "item", use_float=True)
    while True:
        try:
            value = next(elements)
        except StopIteration:
            return
        except (ijson.JSONError, UnicodeDecodeError, *DAMAGED) as error:
            message = f"the array is cut off or damaged after record {number}: {' '.join(str(error).split())}"
            yield Rejection(number + 1, 0, "damaged_input", message)
            return
        number += 1
        shown = json.dumps(value, ensure_ascii=False)[:EXCERPT_CHARS]
        if isinstance(value, dict):
            yield Row(value, number, 0, shown)
        else:
            yield Rejection(number, 0, "not_an_object", "expected a JSON object in the array", excerpt=shown)
