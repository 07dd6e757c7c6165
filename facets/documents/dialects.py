"""The SQL of SQLite and PostgreSQL: tables, the expressions that differ, and filters on payloads.

PostgreSQL keeps a payload as text, and again as ``jsonb`` in the column ``fields`` for filters.
"""

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from typing import ClassVar

from facets.documents.filters import AllOf, AnyOf, Filter, NoneOf, Scalar, keys_of, tests_of
from facets.storage.checksums import tables_with_checksums
from facets.storage.postgres import PostgresSchema

Parameters = list[str | int]
Sql = tuple[str, Parameters]
"""An expression and the values of its ``?`` placeholders."""

KEPT_WRITES = 20_000  # length of the log of writes; a server that is further behind compares all rows
# After a standby is promoted, revisions and rows skip this many numbers, so that no number of a lost write is reused.
_SKIPPED_WRITES, _SKIPPED_ROWS = 10_000, 10_000_000

VERSION = 2  # of the tables: raise it when they change
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE collections (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    model_revision TEXT NOT NULL,
    -- Models of one space search each other's collections.
    space TEXT NOT NULL,
    num_facets INTEGER NOT NULL,
    dim INTEGER NOT NULL,
    created_us INTEGER NOT NULL,
    -- ISO 639-1 code, whose rules words follow; empty until the first documents are stored.
    language TEXT NOT NULL,
    -- Payload fields that are searched with the text: JSON object, name -> weight.
    search_fields TEXT NOT NULL,
    -- Revision of the data directory after the last write to this collection.
    revision INTEGER NOT NULL,
    num_documents INTEGER NOT NULL DEFAULT 0,
    num_parts INTEGER NOT NULL DEFAULT 0,
    -- live, building or retired; a building collection will replace the collection `replaces`.
    state TEXT NOT NULL DEFAULT 'live',
    replaces INTEGER
);
-- Each write of a document takes a new row, so a row number identifies one unchanging set of facets. A document of
-- several parts takes as many consecutive rows, starting with its own.
CREATE TABLE documents (
    row INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    payload TEXT NOT NULL,
    -- Tokens of the text, and how many of them the model has read.
    num_tokens INTEGER,
    num_read INTEGER,
    num_parts INTEGER NOT NULL,
    -- The file that the document came from; empty: none.
    source TEXT NOT NULL
);
CREATE UNIQUE INDEX documents_by_id ON documents (collection, id);
CREATE INDEX documents_by_source ON documents (collection, source, id) WHERE source <> '';
CREATE INDEX long_documents ON documents (collection, num_parts) WHERE num_parts > 1;
-- Separate from documents, so that listing and filtering do not read texts and facets.
CREATE TABLE parts (
    row INTEGER PRIMARY KEY,
    document INTEGER NOT NULL,
    start INTEGER NOT NULL,
    page INTEGER NOT NULL,
    headings TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    -- For lexical search, with a checksum of their own.
    terms BLOB NOT NULL,
    text TEXT NOT NULL,
    facets_checksum INTEGER NOT NULL,
    norms BLOB NOT NULL,
    -- Where each facet stands in the text.
    spans BLOB,
    units BLOB NOT NULL
);
-- Counters, and the id of the store. Numbers are never used again.
INSERT INTO meta VALUES ('revision', '0'), ('last_row', '0'), ('last_collection', '0'), ('store_id', '{store_id}')
"""
# PostgreSQL sorts ids and names by code point, and keeps texts as bytes, because they may contain NUL.
_AS_POSTGRES = {
    " text TEXT": " text bytea",
    "payload TEXT NOT NULL": "payload TEXT NOT NULL, fields jsonb NOT NULL",
    "TEXT": 'text COLLATE "C"',
    "INTEGER": "bigint",
    "BLOB": "bytea",
}
_POSTGRES_TABLES = """
ALTER TABLE parts ALTER COLUMN units SET STORAGE EXTERNAL;
CREATE TABLE writes (revision bigint PRIMARY KEY, collection bigint NOT NULL, added bytea NOT NULL,
    removed bytea NOT NULL);
CREATE TABLE record_owners (owner text PRIMARY KEY, writes bigint NOT NULL, renewed bigint NOT NULL);
CREATE TABLE records (owner text NOT NULL, kind text NOT NULL, key text NOT NULL, written bigint NOT NULL,
    value bytea, PRIMARY KEY (owner, kind, key));
CREATE INDEX records_by_write ON records (owner, written);
CREATE TABLE promotions (revision bigint PRIMARY KEY, after bigint NOT NULL);
CREATE TABLE streams (token text PRIMARY KEY, collection text NOT NULL, collection_created text NOT NULL,
    last_sequence bigint NOT NULL, generation bigint NOT NULL, updated double precision NOT NULL)
"""
_RENEWAL = (
    f"INSERT INTO promotions SELECT value::bigint + {_SKIPPED_WRITES}, value::bigint FROM meta WHERE key = 'revision'",
    f"UPDATE meta SET value = (value::bigint + {_SKIPPED_WRITES})::text WHERE key IN ('revision', 'last_collection')",
    f"UPDATE meta SET value = (value::bigint + {_SKIPPED_ROWS})::text WHERE key = 'last_row'",
    f"UPDATE record_owners SET writes = writes + {_SKIPPED_WRITES}, renewed = writes + {_SKIPPED_WRITES}",
)


def create_sqlite_tables(connection: sqlite3.Connection) -> None:
    """Creates the tables of a document store; documents and parts are stored with their own checksums."""
    tables_with_checksums(_TABLES.format(store_id=uuid.uuid4().hex), "meta", "collections")(connection)


def postgres_schema() -> PostgresSchema:
    """The schema of a document store in PostgreSQL, with a new store id."""
    statements = _TABLES.format(store_id=uuid.uuid4().hex)
    for sqlite, postgres in _AS_POSTGRES.items():
        statements = statements.replace(sqlite, postgres)
    return PostgresSchema([*statements.split(";\n"), *_POSTGRES_TABLES.split(";\n")], _RENEWAL, VERSION)


class Dialect:
    """The SQL of SQLite; the subclass has what differs in PostgreSQL."""

    is_shared = False  # whether other processes may write, too
    given_rows = "json_each(?) AS given"  # table with the column `value`, from a JSON list of integers
    id_in = "id IN (SELECT value FROM json_each(?))"  # condition that `id` is in a JSON list of strings
    join = "CROSS JOIN"  # join that keeps the order of the tables
    payload_columns = "payload"  # columns of `documents` that hold the payload
    # A column of bytes or text as bytes, since damaged text may not be valid UTF-8; the checksum reports the damage.
    blob = staticmethod("CAST({} AS BLOB)".format)
    num_bytes = staticmethod("length(CAST({} AS BLOB))".format)  # the size of a column
    # Conditions on {field}, a payload field, each with at most one parameter, a JSON list of values, after the field;
    # the last two compare with the first value. Integers and floats are one type.
    conditions: ClassVar[Mapping[str, str]] = {
        "exists": "json_type({field}) IS NOT NULL",
        "one of": "(replace(json_type({field}), 'integer', 'real'), ifnull(json_extract({field}), 0)) "
        "IN (SELECT replace(type, 'integer', 'real'), ifnull(atom, 0) FROM json_each(?))",
        "contains": "json_type({field}) = 'array' AND EXISTS (SELECT 1 FROM json_each({field}) AS item, json_each(?) "
        "AS value WHERE replace(item.type, 'integer', 'real') = replace(value.type, 'integer', 'real') "
        "AND item.atom IS value.atom)",
        "number": "json_type({field}) IN ('integer', 'real') "
        "AND json_extract({field}) {comparison} json_extract(?, '$[0]')",
        "string": "json_type({field}) = 'text' AND json_extract({field}) {comparison} json_extract(?, '$[0]')",
    }

    @property
    def row_in(self) -> str:
        """Condition that ``row`` is in a JSON list of integers."""
        return f"row IN (SELECT value FROM {self.given_rows})"

    def payload_values(self, payload: str) -> tuple[str, ...]:
        """The values of ``payload_columns``."""
        return (payload, _to_jsonb(payload)) if self.is_shared else (payload,)

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
                tests = [self._test_sql(keys_of(filter.field), *test) for test in tests_of(filter)]
                expression, parameters = _joined(tests, " AND ", if_empty="1 = 1")
                # Not COALESCE: SQLite would compare each value of a list to tell NULL from false.
                return f"CASE WHEN {expression} THEN TRUE ELSE FALSE END", parameters

    def _test_sql(self, keys: list[str], test: str, comparison: str, values: Sequence[Scalar]) -> Sql:
        field, path = "payload, ?", ["$" + "".join(f'."{key}"' for key in keys)]
        encoded = [json.dumps(list(values), ensure_ascii=False)] if values else []
        if self.is_shared:  # `->` with a text looks into objects only
            field, path, encoded = f"(fields{' -> ?::text' * len(keys)})", keys, list(map(_to_jsonb, encoded))
        condition = self.conditions[test].replace("{comparison}", comparison)
        return condition.replace("{field}", field), [*path * condition.count("{field}"), *encoded]


class PostgresDialect(Dialect):
    """The SQL of PostgreSQL, whose ``jsonb`` compares numbers as decimals, and strings by the collation."""

    is_shared = True
    given_rows = "unnest(translate(?, '[]', '{}')::bigint[]) AS given(value)"
    id_in = "id IN (SELECT json_array_elements_text(?::json))"
    join = "JOIN"
    payload_columns = "payload, fields"
    blob = staticmethod("{}".format)
    num_bytes = staticmethod("octet_length({})".format)
    conditions: ClassVar[Mapping[str, str]] = {
        "exists": "{field} IS NOT NULL",
        "one of": "{field} IN (SELECT jsonb_array_elements(?::jsonb))",
        "contains": "jsonb_typeof({field}) = 'array' AND {field} @> ?::jsonb",
        "number": "jsonb_typeof({field}) = 'number' AND {field} {comparison} ?::jsonb -> 0",
        "string": "jsonb_typeof({field}) = 'string' "
        "AND ({field} #>> '{}') COLLATE \"C\" {comparison} (?::jsonb #>> '{0}')",
    }


SQLITE, POSTGRES = Dialect(), PostgresDialect()


def _joined(parts: Sequence[Sql], operator: str, *, if_empty: str) -> Sql:
    expression = operator.join(expression for expression, _ in parts) or if_empty
    return f"({expression})", [parameter for _, parameters in parts for parameter in parameters]


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
