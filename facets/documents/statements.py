"""SQL on the tables of the document store."""

import json
import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from facets.documents.filters import Filter, to_sql
from facets.documents.records import CollectionRecord, CollectionState
from facets.errors import DamagedError

__all__ = [
    "AMONG",
    "COLLECTION_COLUMNS",
    "PARTS_AMONG",
    "changed",
    "collection_from",
    "condition",
    "delete_collection",
    "delete_rows",
    "meta",
    "next_revision",
    "row_list",
    "rows_by_filter",
    "rows_by_id",
    "rows_of",
]

AMONG = "row IN (SELECT value FROM json_each(?))"
_PARTS_OF = "CROSS JOIN facet_parts ON part BETWEEN {row} * 4096 AND {row} * 4096 + 4095"  # see the schema
PARTS_AMONG = f"json_each(?) AS wanted {_PARTS_OF.format(row='wanted.value')}"
COLLECTION_COLUMNS = (
    "number, name, model, model_revision, space, code, num_facets, dim, created_us, config, revision, num_documents, "
    "state, replaces"
)


def collection_from(values: Sequence[str | int | None]) -> CollectionRecord:
    """A collection from its ``COLLECTION_COLUMNS``."""
    named = dict(zip(COLLECTION_COLUMNS.split(", "), values, strict=True))
    named["config"] = json.loads(str(named["config"]))
    named["state"] = CollectionState(str(named["state"]))
    return CollectionRecord(**named)  # type: ignore[arg-type]  # the columns have these types


def changed(connection: sqlite3.Connection, record: CollectionRecord, num_more: int) -> int:
    """Counts a write to a collection that now has ``num_more`` documents more; returns the new revision."""
    revision = next_revision(connection)
    connection.execute(
        "UPDATE collections SET revision = ?, num_documents = num_documents + ? WHERE number = ?",
        (revision, num_more, record.number),
    )
    return revision


def meta(connection: sqlite3.Connection, key: str) -> str | int:
    """A value about the whole store.

    Raises:
        DamagedError: It is missing.
    """
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    if found is None:
        raise DamagedError(f"the document store is damaged: its {key} is missing; restore it from a backup")
    value: str | int = found[0]
    return value


def next_revision(connection: sqlite3.Connection) -> int:
    """Counts a write to the data directory; returns its revision."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    return int(meta(connection, "revision"))


def row_list(rows: NDArray[np.int64]) -> str:
    """Rows as the parameter of :data:`AMONG`."""
    return json.dumps(rows.tolist())


def rows_of(cursor: sqlite3.Cursor) -> NDArray[np.int64]:
    """Rows that a statement found, in its order."""
    return np.array(cursor.fetchall(), dtype=np.int64).reshape(-1)


def condition(record: CollectionRecord, filter: Filter | None) -> tuple[str, list[str | int]]:
    """SQL condition and parameters of the documents that match."""
    if filter is None:
        return "collection = ?", [record.number]
    expression, parameters = to_sql(filter, "payload")
    return f"collection = ? AND {expression}", [record.number, *parameters]


def rows_by_filter(
    connection: sqlite3.Connection, record: CollectionRecord, filter: Filter | None
) -> NDArray[np.int64]:
    """Rows of the documents that match, ascending."""
    where, parameters = condition(record, filter)
    rows = rows_of(connection.execute(f"SELECT row FROM documents WHERE {where}", parameters))
    return np.sort(rows)


def rows_by_id(connection: sqlite3.Connection, record: CollectionRecord, ids: Sequence[str]) -> NDArray[np.int64]:
    """Rows of the documents of these ids, ascending."""
    cursor = connection.execute(
        "SELECT row FROM documents WHERE collection = ? AND id IN (SELECT value FROM json_each(?))",
        (record.number, json.dumps(list(ids), ensure_ascii=False)),
    )
    return np.sort(rows_of(cursor))


def delete_collection(connection: sqlite3.Connection, number: int) -> None:
    """Deletes a collection with its documents."""
    parts = f"SELECT part FROM documents {_PARTS_OF.format(row='documents.row')} WHERE collection = ?"
    connection.execute(f"DELETE FROM facet_parts WHERE part IN ({parts})", (number,))
    for table in ("facets", "terms"):
        connection.execute(
            f"DELETE FROM {table} WHERE row IN (SELECT row FROM documents WHERE collection = ?)", (number,)
        )
    connection.execute("DELETE FROM documents WHERE collection = ?", (number,))
    connection.execute("DELETE FROM collections WHERE number = ?", (number,))


def delete_rows(connection: sqlite3.Connection, rows: NDArray[np.int64]) -> None:
    """Deletes documents with their facets."""
    if len(rows):
        connection.execute(f"DELETE FROM facet_parts WHERE part IN (SELECT part FROM {PARTS_AMONG})", (row_list(rows),))
        connection.execute(f"DELETE FROM facets WHERE {AMONG}", (row_list(rows),))
        connection.execute(f"DELETE FROM terms WHERE {AMONG}", (row_list(rows),))
        connection.execute(f"DELETE FROM documents WHERE {AMONG}", (row_list(rows),))
