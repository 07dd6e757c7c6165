"""The tables of the document store, version by version."""

import sqlite3
import uuid

from facets.storage import Schema

__all__ = ["SCHEMA"]

_VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE collections (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    model_revision TEXT NOT NULL,
    num_facets INTEGER NOT NULL,
    dim INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    config TEXT NOT NULL
);
-- A write of a document always takes a new row, so a row number stands for one unchanging set of facets.
CREATE TABLE documents (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    payload TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX documents_by_id ON documents (collection, id);
-- Apart from the documents, so that listing and filtering never read over them.
CREATE TABLE facets (
    row INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,
    norms BLOB NOT NULL,
    units BLOB NOT NULL
);
INSERT INTO meta VALUES ('revision', 0)
"""


def _version_1(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_1.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))


SCHEMA = Schema(
    title="document store",
    application_id=0x46414345,  # "FACE"
    migrations=(_version_1,),
)
