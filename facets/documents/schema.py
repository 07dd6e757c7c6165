"""The tables of the document store, version by version."""

import sqlite3
import uuid

from facets.documents.inspection import inspect_documents
from facets.storage import Schema, add_checksums

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


_VERSION_2 = """
-- Of the data directory after the last write to this collection.
ALTER TABLE collections ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE collections ADD COLUMN num_documents INTEGER NOT NULL DEFAULT 0;
-- live, building or retired; one that is building will take the place of the collection it replaces.
ALTER TABLE collections ADD COLUMN state TEXT NOT NULL DEFAULT 'live';
ALTER TABLE collections ADD COLUMN replaces INTEGER;
UPDATE collections SET
    revision = (SELECT value FROM meta WHERE key = 'revision'),
    num_documents = (SELECT count(*) FROM documents WHERE collection = number)
"""


_VERSION_3 = """
-- Terms of each text, for lexical search; a document stored before this version has no line yet.
CREATE TABLE terms (row INTEGER PRIMARY KEY, terms BLOB NOT NULL)
"""


_VERSION_4 = """
-- Models of one space search each other's collections; before this version every revision had its own.
ALTER TABLE collections ADD COLUMN space TEXT NOT NULL DEFAULT '';
-- How directions of facets are kept: fp16, or int8, which collections made since this version have.
ALTER TABLE collections ADD COLUMN code TEXT NOT NULL DEFAULT 'fp16';
UPDATE collections SET space = model || '@' || model_revision;
-- Tokens of the text, and how many of them the model has read.
ALTER TABLE documents ADD COLUMN num_tokens INTEGER;
ALTER TABLE documents ADD COLUMN num_read INTEGER;
-- Where in the text each facet comes from.
ALTER TABLE facets ADD COLUMN spans BLOB;
-- What facets.units goes on with, cut so that three lines fill a page: part = row * 4096 + place. One long line would
-- leave a third of its last page empty.
CREATE TABLE facet_parts (part INTEGER PRIMARY KEY, units BLOB NOT NULL)
"""


def _version_1(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_1.split(";\n"):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))


def _version_5(connection: sqlite3.Connection) -> None:
    # Documents and facets have had checksums of their own since the first version; since this one theirs cover where
    # they belong, too, and are negative.
    add_checksums(connection, "meta", "collections")


SCHEMA = Schema(
    title="document store",
    application_id=0x46414345,  # "FACE"
    migrations=(_version_1, _VERSION_2, _VERSION_3, _VERSION_4, _version_5),
    checked=("meta", "collections"),
    counter="SELECT value FROM meta WHERE key = 'revision'",
    inspect=inspect_documents,
)
