"""The tables of the document store."""

import sqlite3
import uuid

from facets.documents.inspection import inspect_documents
from facets.storage import Schema, add_checksums

__all__ = ["SCHEMA"]

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE collections (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    model_revision TEXT NOT NULL,
    -- Models of one space search each other's collections.
    space TEXT NOT NULL,
    -- How directions of facets are kept: fp16 or int8.
    code TEXT NOT NULL,
    num_facets INTEGER NOT NULL,
    dim INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    config TEXT NOT NULL,
    -- Of the data directory after the last write to this collection.
    revision INTEGER NOT NULL,
    num_documents INTEGER NOT NULL DEFAULT 0,
    -- live, building or retired; one that is building will take the place of the collection it replaces.
    state TEXT NOT NULL DEFAULT 'live',
    replaces INTEGER
);
-- A write of a document always takes a new row, so a row number stands for one unchanging set of facets.
CREATE TABLE documents (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    payload TEXT NOT NULL,
    text TEXT NOT NULL,
    -- Tokens of the text, and how many of them the model has read.
    num_tokens INTEGER,
    num_read INTEGER
);
CREATE UNIQUE INDEX documents_by_id ON documents (collection, id);
-- Apart from the documents, so that listing and filtering never read over them.
CREATE TABLE facets (
    row INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,
    norms BLOB NOT NULL,
    units BLOB NOT NULL,
    -- Where in the text each facet comes from.
    spans BLOB
);
-- What facets.units goes on with, cut so that three lines fill a page: part = row * 4096 + place. One long line would
-- leave a third of its last page empty.
CREATE TABLE facet_parts (part INTEGER PRIMARY KEY, units BLOB NOT NULL);
-- Terms of each text, for lexical search.
CREATE TABLE terms (row INTEGER PRIMARY KEY, terms BLOB NOT NULL);
INSERT INTO meta VALUES ('revision', 0)
"""


def _version_1(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))
    add_checksums(connection, "meta", "collections")  # documents and facets have checksums of their own


SCHEMA = Schema(
    title="document store",
    application_id=0x46414345,  # "FACE"
    migrations=(_version_1,),
    checked=("meta", "collections"),
    counter="SELECT value FROM meta WHERE key = 'revision'",
    inspect=inspect_documents,
)
