"""The SQL of SQLite and PostgreSQL: tables, the expressions that differ, and filters on payloads.

PostgreSQL keeps a payload as text, and again as ``jsonb`` in the column ``fields`` for filters.
"""

import json
import sqlite3
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from facets.documents.codes import split_codes
from facets.documents.filters import (
    AllOf,
    AnyOf,
    Condition,
    Contains,
    Equals,
    Exists,
    Filter,
    NoneOf,
    OneOf,
    Range,
    bounds_of,
    keys_of,
    values_of,
)
from facets.storage.checksums import tables_with_checksums
from facets.storage.postgres import PostgresSchema

Parameters = list[str | int]
Sql = tuple[str, Parameters]
"""An expression and the values of its ``?`` placeholders."""

KEPT_WRITES = 20_000  # length of the log of writes; a server that is further behind compares all rows
# After a standby is promoted, revisions and rows skip this many numbers, so that no number of a lost write is reused.
_SKIPPED_WRITES, _SKIPPED_ROWS = 10_000, 10_000_000

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value {meta_value}){meta_options};
CREATE TABLE collections (
    number {auto_key},
    name TEXT NOT NULL UNIQUE {collation},
    model TEXT NOT NULL,
    model_revision TEXT NOT NULL,
    -- Models of one space search each other's collections.
    space TEXT NOT NULL,
    num_facets {integer} NOT NULL,
    dim {integer} NOT NULL,
    created_us {integer} NOT NULL,
    -- ISO 639-1 code, whose rules words follow; empty until the first documents are stored.
    language TEXT NOT NULL,
    -- Payload fields that are searched with the text: JSON object, name -> weight.
    search_fields TEXT NOT NULL,
    -- Revision of the data directory after the last write to this collection.
    revision {integer} NOT NULL,
    num_documents {integer} NOT NULL DEFAULT 0,
    num_parts {integer} NOT NULL DEFAULT 0,
    -- live, building or retired; a building collection will replace the collection `replaces`.
    state TEXT NOT NULL DEFAULT 'live',
    replaces {integer}
);
-- Each write of a document takes a new row, so a row number identifies one unchanging set of facets. A document of
-- several parts takes as many consecutive rows, starting with its own; facets and terms belong to a part.
CREATE TABLE documents (
    row {row_key},
    collection {integer} NOT NULL,
    id TEXT NOT NULL {collation},
    revision {integer} NOT NULL,
    checksum {integer} NOT NULL,
    payload TEXT NOT NULL,{payload_as_json}
    text {text} NOT NULL,
    -- Tokens of the text, and how many of them the model has read.
    num_tokens {integer},
    num_read {integer},
    num_parts {integer} NOT NULL,
    -- The file that the document came from; empty: none.
    source TEXT NOT NULL {collation}
);
CREATE UNIQUE INDEX documents_by_id ON documents (collection, id);
CREATE INDEX documents_by_source ON documents (collection, source, id) WHERE source <> '';
CREATE INDEX long_documents ON documents (collection, num_parts) WHERE num_parts > 1;
-- The texts of documents of several parts, whose own text is empty.
CREATE TABLE document_parts (
    row {integer} PRIMARY KEY,
    document {integer} NOT NULL,
    checksum {integer} NOT NULL,
    start {integer} NOT NULL,
    page {integer} NOT NULL,
    headings TEXT NOT NULL,
    text {text} NOT NULL
);
-- Separate from documents, so that listing and filtering do not read them.
CREATE TABLE facets (
    row {integer} PRIMARY KEY,
    checksum {integer} NOT NULL,
    norms {blob} NOT NULL,
    units {blob} NOT NULL,
    -- Where each facet stands in the text of its part.
    spans {blob}
);
-- Continues facets.units in SQLite, cut so that three rows fill a page: one long row would leave a third of its last
-- page empty. part = row * 4096 + position.
CREATE TABLE facet_parts (part {integer} PRIMARY KEY, units {blob} NOT NULL);
-- Terms of each part, for lexical search.
CREATE TABLE terms (row {integer} PRIMARY KEY, terms {blob} NOT NULL);
INSERT INTO meta VALUES ('revision', {zero});
INSERT INTO meta VALUES ('store_id', '{store_id}')
"""
_POSTGRES_TABLES = """
CREATE TABLE row_sequence (name text PRIMARY KEY, seq bigint NOT NULL);
ALTER TABLE facets ALTER COLUMN units SET STORAGE EXTERNAL;
CREATE TABLE writes (revision bigint PRIMARY KEY, collection bigint NOT NULL, added bytea NOT NULL,
    removed bytea NOT NULL);
CREATE TABLE record_owners (owner text PRIMARY KEY, writes bigint NOT NULL, renewed bigint NOT NULL);
CREATE TABLE records (owner text NOT NULL, kind text NOT NULL, key text NOT NULL, written bigint NOT NULL,
    value bytea, PRIMARY KEY (owner, kind, key));
CREATE INDEX records_by_write ON records (owner, written);
CREATE TABLE promotions (revision bigint PRIMARY KEY, after bigint NOT NULL);
CREATE TABLE streams (token text PRIMARY KEY, collection text NOT NULL, collection_created text NOT NULL,
    last_sequence bigint NOT NULL, generation bigint NOT NULL, updated double precision NOT NULL);
INSERT INTO row_sequence VALUES ('documents', 0)
"""
_RENEWAL = (
    f"INSERT INTO promotions SELECT value::bigint + {_SKIPPED_WRITES}, value::bigint FROM meta WHERE key = 'revision'",
    f"UPDATE meta SET value = (value::bigint + {_SKIPPED_WRITES})::text WHERE key = 'revision'",
    f"UPDATE record_owners SET writes = writes + {_SKIPPED_WRITES}, renewed = writes + {_SKIPPED_WRITES}",
    f"UPDATE row_sequence SET seq = seq + {_SKIPPED_ROWS}",
    "SELECT setval(pg_get_serial_sequence('collections', 'number'), "
    f"nextval(pg_get_serial_sequence('collections', 'number')) + {_SKIPPED_WRITES})",
)
_SQLITE_TYPES = {
    **{"integer": "INTEGER", "blob": "BLOB", "text": "TEXT", "collation": "", "payload_as_json": "", "zero": "0"},
    **dict.fromkeys(("auto_key", "row_key"), "INTEGER PRIMARY KEY AUTOINCREMENT"),
    **{"meta_value": "", "meta_options": " WITHOUT ROWID"},
}
# Text is stored as bytes because it may contain NUL; ids and names sort by code point.
_POSTGRES_TYPES = {
    **{"integer": "bigint", "blob": "bytea", "text": "bytea", "collation": 'COLLATE "C"', "zero": "'0'"},
    **{"auto_key": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "row_key": "bigint PRIMARY KEY"},
    **{"meta_value": "text NOT NULL", "meta_options": "", "payload_as_json": " fields jsonb NOT NULL,"},
}


def create_sqlite_tables(connection: sqlite3.Connection) -> None:
    """Creates the tables of a document store; documents, facets and terms are stored with their own checksums."""
    tables_with_checksums(_TABLES.format(**_SQLITE_TYPES, store_id=uuid.uuid4().hex), "meta", "collections")(connection)


def postgres_schema() -> PostgresSchema:
    """The schema of a document store in PostgreSQL, with a new store id."""
    statements = _TABLES.format(**_POSTGRES_TYPES, store_id=uuid.uuid4().hex)
    tables = [*statements.split(";\n"), *_POSTGRES_TABLES.split(";\n")]
    return PostgresSchema(tables, _RENEWAL)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The SQL expressions that differ between databases."""

    is_shared: bool  # whether other processes may write, too
    row_in: str  # condition that `row` is in a JSON list of integers
    id_in: str  # condition that `id` is in a JSON list of strings
    given_rows: str  # table `given` with the column `value`, from a JSON list of integers
    join: str  # join that keeps the order of the tables
    next_revision: str  # statement that increments the revision
    row_sequence: str  # table with the last row number
    payload_columns: str  # columns of `documents` that hold the payload
    blob: Callable[[str], str]  # a column of bytes or text as bytes
    num_bytes: Callable[[str], str]  # the size of a column in bytes
    # Conditions on {field}, a payload field, each with at most one parameter, a JSON value, after the field.
    conditions: Mapping[str, str]

    def payload_values(self, payload: str) -> tuple[str, ...]:
        """The values of ``payload_columns``."""
        return (payload, _to_jsonb(payload)) if self.is_shared else (payload,)

    def split_codes(self, codes: bytes, num_other_bytes: int) -> tuple[bytes, list[bytes]]:
        """Facet codes for the row in ``facets``, and chunks for ``facet_parts``; PostgreSQL needs no chunks."""
        return (codes, []) if self.is_shared else split_codes(codes, num_other_bytes)

    def _on_field(self, template: str, path: str, *values: object) -> Sql:
        """An expression with a payload field, and with values as JSON."""
        keys: Parameters = list(keys_of(path))
        field = f"(fields{' -> ?::text' * len(keys)})"  # `->` with a text looks into objects only
        if not self.is_shared:
            field, keys = "payload, ?", ["$" + "".join(f'."{key}"' for key in keys)]
        encode = _to_jsonb if self.is_shared else str
        encoded = [encode(json.dumps(value, ensure_ascii=False)) for value in values]
        return template.replace("{field}", field), [*keys * template.count("{field}"), *encoded]

    def filter_sql(self, filter: Filter) -> Sql:
        """A valid filter as a condition on the payload that is true or false, never NULL."""
        match filter:
            case AllOf(filters):
                return _joined([self.filter_sql(inner) for inner in filters], " AND ", if_empty="1 = 1")
            case AnyOf(filters):
                return _joined([self.filter_sql(inner) for inner in filters], " OR ", if_empty="1 = 0")
            case NoneOf(filters):
                expression, parameters = self.filter_sql(AnyOf(filters))
                return f"(NOT {expression})", parameters
            case _:
                terms = [
                    self._on_field(self.conditions[test].replace("{comparison}", comparison), filter.field, *value)
                    for test, comparison, *value in _tests(filter)
                ]
                expression, parameters = _joined(terms, " AND ", if_empty="1 = 1")
                # Not COALESCE: SQLite would compare each value of a list to tell NULL from false.
                return f"CASE WHEN {expression} THEN TRUE ELSE FALSE END", parameters


def _joined(parts: Sequence[Sql], operator: str, *, if_empty: str) -> Sql:
    expression = operator.join(expression for expression, _ in parts) or if_empty
    return f"({expression})", [parameter for _, parameters in parts for parameter in parameters]


def _tests(condition: Condition) -> Sequence[tuple[str, str, *tuple[object, ...]]]:
    """The tests of a condition, all of which must pass: name in ``Dialect.conditions``, comparison, value if any."""
    match condition:
        case Exists():
            return [("exists", "")]
        case Equals() | OneOf():
            return [("one of", "", [*values_of(condition)])]
        case Contains(_, value):
            return [("contains", "", [value])]
        case Range():
            bounds = bounds_of(condition)
            return [("string" if isinstance(bound, str) else "number", sign, bound) for sign, bound in bounds]


# Text is read as bytes, since damaged text may not be valid UTF-8; the checksum reports the damage. Integers and floats
# are one type.
SQLITE = Dialect(
    is_shared=False,
    row_in="row IN (SELECT value FROM json_each(?))",
    id_in="id IN (SELECT value FROM json_each(?))",
    given_rows="json_each(?) AS given",
    join="CROSS JOIN",
    next_revision="UPDATE meta SET value = value + 1 WHERE key = 'revision'",
    row_sequence="sqlite_sequence",
    payload_columns="payload",
    blob="CAST({} AS BLOB)".format,
    num_bytes="length(CAST({} AS BLOB))".format,
    conditions={
        "exists": "json_type({field}) IS NOT NULL",
        "one of": "(replace(json_type({field}), 'integer', 'real'), ifnull(json_extract({field}), 0)) "
        "IN (SELECT replace(type, 'integer', 'real'), ifnull(atom, 0) FROM json_each(?))",
        "contains": "json_type({field}) = 'array' AND EXISTS (SELECT 1 FROM json_each({field}) AS item, json_each(?) "
        "AS value WHERE replace(item.type, 'integer', 'real') = replace(value.type, 'integer', 'real') "
        "AND item.atom IS value.atom)",
        "number": "json_type({field}) IN ('integer', 'real') "
        "AND json_extract({field}) {comparison} json_extract(?, '$')",
        "string": "json_type({field}) = 'text' AND json_extract({field}) {comparison} json_extract(?, '$')",
    },
)
# `jsonb` compares numbers as decimals, and strings by the collation of the database.
POSTGRES = Dialect(
    is_shared=True,
    row_in="row = ANY(translate(?, '[]', '{}')::bigint[])",
    id_in="id IN (SELECT json_array_elements_text(?::json))",
    given_rows="unnest(translate(?, '[]', '{}')::bigint[]) AS given(value)",
    join="JOIN",
    next_revision="UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'revision'",
    row_sequence="row_sequence",
    payload_columns="payload, fields",
    blob="{}".format,
    num_bytes="octet_length({})".format,
    conditions={
        "exists": "{field} IS NOT NULL",
        "one of": "{field} IN (SELECT jsonb_array_elements(?::jsonb))",
        "contains": "jsonb_typeof({field}) = 'array' AND {field} @> ?::jsonb",
        "number": "jsonb_typeof({field}) = 'number' AND {field} {comparison} ?::jsonb",
        "string": "jsonb_typeof({field}) = 'string' "
        "AND ({field} #>> '{}') COLLATE \"C\" {comparison} (?::jsonb #>> '{}')",
    },
)


def _to_jsonb(payload: str) -> str:
    r"""JSON for ``jsonb``; floats of 2**53 and more, which are integers, are written with all their digits.

    Example:
        >>> print(_to_jsonb('{"a": "b", "c": 1e+20}'))
        {"a": "b", "c": 100000000000000000000}
    """
    if "e+" in payload:
        payload = json.dumps(json.loads(payload, parse_float=_exact), ensure_ascii=False)
    return payload


def _exact(digits: str) -> int | float:
    number = float(digits)
    return int(number) if abs(number) >= 2**53 else number
