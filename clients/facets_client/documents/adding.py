"""Turns what a Python program has - texts, documents, dictionaries, a table - into documents, for ``add``."""

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

import grpc

from facets_client.core.requests import shown
from facets_client.documents.files import ColumnError, Columns, choose_columns, to_document_record
from facets_client.documents.messages import check_payload
from facets_client.documents.results import RejectedDocument
from facets_client.errors import CLASS_OF_CODE, FacetsClientError, FieldViolation
from facets_client.generated.types import Document
from facets_client.load.formats import FORMATS
from facets_client.load.rows import Rejection, Row
from facets_client.load.tables import plain

DEFAULT_COLLECTION = "documents"
_FIRST_ROWS = 100  # decide which columns are text, title and id


def documents_of(
    items: object, text: str | Sequence[str], positions: dict[str, int]
) -> tuple[Iterator[Document], int | None]:
    """The documents, in order, without repetitions, and the number of items, None if that is unknown.

    A table is a DataFrame or a mapping of columns.

    A document without an id gets one from its text and payload, so that adding it again changes nothing. ``positions``
    is filled with the position of each id in ``items``. Raises ValueError or TypeError for what is no document, at once
    for the first rows and for a table or dictionaries without a column of texts.
    """
    source, form, total = _items(items)
    source = (
        {str(name): plain(value) for name, value in item.items()} if isinstance(item, Mapping) else item
        for item in source
    )
    first = list(itertools.islice(source, _FIRST_ROWS))
    rows = [Row(item, 0) for item in first if isinstance(item, dict)]
    asked = Columns(text=(text,) if isinstance(text, str) and text else tuple(text))
    try:
        columns = choose_columns("documents", rows, asked, FORMATS[form]) if rows else Columns(text=("text",))
    except ColumnError as error:
        problem = f"{error}: {error.hint}" if error.hint else str(error)
        raise ValueError(problem.replace("--text ", "text=").replace("--", "")) from error
    documents = _documents(itertools.chain(first, source), columns, positions)
    return itertools.chain(list(itertools.islice(documents, _FIRST_ROWS)), documents), total


def rejection_error(rejected: Sequence[RejectedDocument], positions: Mapping[str, int]) -> FacetsClientError:
    """The error for rejected documents; ``positions``: by id, in the arguments of the caller."""
    first, *more = rejected
    path = f"documents[{positions[first.id]}]"
    problem = re.sub(r"^(batch\.)?documents\[\d+\]", path, first.message)
    others = f" (and {len(more)} more)" if more else ""
    code = grpc.StatusCode[first.code]
    return CLASS_OF_CODE.get(code, FacetsClientError)(
        code,
        f"{problem}{others}: every other document is stored",
        reason=first.reason,
        field_violations=(FieldViolation(path, problem),),
    )


def _items(items: Any) -> tuple[Iterator[Any], str, int | None]:
    """The items, those of a table as dictionaries, the format whose rules apply to their columns, and their number."""
    if isinstance(items, str | Document):
        items = [items]
    is_frame = hasattr(items, "columns") and hasattr(items, "__getitem__")  # of pandas, Polars or others
    if not is_frame and not isinstance(items, Mapping):
        if not isinstance(items, Iterable) or isinstance(items, bytes):
            raise TypeError(f"documents must be texts, documents, dictionaries or a table, got {shown(items)}")
        return iter(items), "jsonl", len(items) if isinstance(items, Sized) else None
    names = list(items.columns if is_frame else items)
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise ValueError(f"documents: two columns are called {twice[0]!r}, expected different names")
    columns = [items[name] for name in names]
    if any(isinstance(column, str) or not isinstance(column, Iterable) for column in columns):
        raise TypeError("documents is one dictionary, whose values must be columns: write [{...}] for one document")
    lengths = {name: len(column) for name, column in zip(names, columns, strict=True) if hasattr(column, "__len__")}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"documents: columns must have as many values as each other, got {lengths}")
    rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return rows, "parquet", next(iter(lengths.values()), None)


def _documents(items: Iterator[Any], columns: Columns, positions: dict[str, int]) -> Iterator[Document]:
    for position, item in enumerate(items):
        path = f"documents[{position}]"
        has_id = True
        if isinstance(item, str):
            document, has_id = Document("", item), False
        elif isinstance(item, Mapping):
            document = _of_row(dict(item), columns, path)
            has_id = bool(document.id)
        elif hasattr(item, "payload") and hasattr(item, "facet_embeddings"):
            document = item
        else:
            raise TypeError(f"{path} must be a text, a Document or a dictionary, got {shown(item)}")
        if not isinstance(document.text, str):
            raise TypeError(f"{path}.text must be str, got {shown(document.text)}")
        try:
            check_payload(document.payload)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if not document.text.strip() and not document.payload:
            raise ValueError(f"{path} has no text, expected at least one word")
        if not has_id:
            document = Document(_id_of(document), document.text, document.payload)
        before = positions.setdefault(document.id, position)
        if before == position:
            yield document
        elif has_id:
            raise ValueError(f"{path} has the id {document.id!r} of documents[{before}], expected different ones")


def _of_row(fields: dict[str, Any], columns: Columns, path: str) -> Document:
    record = to_document_record(Row(fields, 0), columns, "")
    if isinstance(record, Rejection):
        if any(name in fields for name in columns.text) and all(fields.get(name) is None for name in columns.text):
            names = list(columns.text)
            how = f"leave out rows without text, for example with df.dropna(subset={names})"
            raise ValueError(f"{path} has no text in {', '.join(map(repr, names))}: {how}")
        raise ValueError(f"{path}: {record.message}")
    return record.item


def _id_of(document: Document) -> str:
    payload = json.dumps(document.payload, sort_keys=True, default=str) if document.payload else ""
    return hashlib.sha256(f"{document.text}\0{payload}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
