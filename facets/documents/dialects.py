"""Where the SQL of SQLite and PostgreSQL differs: tables, a few expressions, and filters on payloads.

PostgreSQL keeps a payload as it was written, and again as ``jsonb`` in the column ``fields`` for filters.
``jsonb`` compares numbers as decimals and strings by the collation of the database; both are adjusted here so that
filters mean exactly what :func:`facets.documents.filters.matches` means.
"""

import json
import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence

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
    Scalar,
    bounds_of,
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
    -- How directions of facets are stored: always int8.
    code TEXT NOT NULL,
    num_facets {integer} NOT NULL,
    dim {integer} NOT NULL,
    created_us {integer} NOT NULL,
    config TEXT NOT NULL,
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
    num_parts {integer} NOT NULL
);
CREATE UNIQUE INDEX documents_by_id ON documents (collection, id);
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
    -- Where each facet stands in the text of its part; the highest bit of a start marks a heading.
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
    **{"auto_key": "INTEGER PRIMARY KEY AUTOINCREMENT", "row_key": "INTEGER PRIMARY KEY AUTOINCREMENT"},
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
    statements = _TABLES.format(**_SQLITE_TYPES, store_id=uuid.uuid4().hex)
    tables_with_checksums(statements, "meta", "collections")(connection)


def postgres_schema() -> PostgresSchema:
    """The schema of a document store in PostgreSQL, with a new store id."""
    statements = _TABLES.format(**_POSTGRES_TYPES, store_id=uuid.uuid4().hex)
    tables = [*statements.split(";\n"), *_POSTGRES_TABLES.split(";\n")]
    return PostgresSchema(title="document store", tables=tables, version=1, renewal=_RENEWAL)


class Dialect(ABC):
    """The SQL expressions that differ between databases.

    Attributes:
        is_shared: Whether other processes may write, too.
        row_in: Condition that ``row`` is in a JSON list of integers.
        id_in: Condition that ``id`` is in a JSON list of strings.
        given_rows: Table ``given`` with the column ``value``, from a JSON list of integers.
        join: Join that keeps the order of the tables.
        next_revision: Statement that increments the revision.
        row_sequence: Table with the last row number.
        payload_columns: Columns of ``documents`` that hold the payload.
        field_names: Query for the paths of all payload fields of some documents, given a collection and their number.
    """

    is_shared: bool
    row_in: str
    id_in: str
    given_rows: str
    join: str
    next_revision: str
    row_sequence: str
    payload_columns: str
    field_names: str
    _blob: str
    _num_bytes: str

    def blob(self, column: str) -> str:
        """A column of bytes or text as bytes."""
        return self._blob.format(column)

    def num_bytes(self, column: str) -> str:
        """The size of a column in bytes."""
        return self._num_bytes.format(column)

    def payload_values(self, payload: str) -> tuple[str, ...]:
        """The values of ``payload_columns``."""
        return (payload, _to_jsonb(payload)) if self.is_shared else (payload,)

    def split_codes(self, codes: bytes, num_other_bytes: int) -> tuple[bytes, list[bytes]]:
        """Facet codes for the row in ``facets``, and chunks for ``facet_parts``; PostgreSQL needs no chunks."""
        return (codes, []) if self.is_shared else split_codes(codes, num_other_bytes)

    @abstractmethod
    def json_type(self, path: str) -> Sql:
        """The JSON type of a payload field; NULL where it is missing."""

    def filter_sql(self, filter: Filter) -> Sql:
        """A valid filter as a condition on the payload that is true or false, never NULL."""
        match filter:
            case AllOf(filters):
                return self._joined(filters, " AND ", if_empty="1 = 1")
            case AnyOf(filters):
                return self._joined(filters, " OR ", if_empty="1 = 0")
            case NoneOf(filters):
                expression, parameters = self._joined(filters, " OR ", if_empty="1 = 0")
                return f"(NOT {expression})", parameters
            case _:
                return self._condition_sql(filter)

    def _joined(self, filters: Sequence[Filter], operator: str, *, if_empty: str) -> Sql:
        parts = [self.filter_sql(filter) for filter in filters]
        expression = operator.join(expression for expression, _ in parts) or if_empty
        return f"({expression})", [parameter for _, parameters in parts for parameter in parameters]

    @abstractmethod
    def _condition_sql(self, condition: Condition) -> Sql: ...


class SqliteDialect(Dialect):
    """SQLite. Text is read as bytes, since damaged text may not be valid UTF-8; the checksum reports the damage.

    Filter values are passed as JSON text, so that a number in the filter and the same number in a payload are parsed by
    the same code and compare equal.
    """

    is_shared = False
    row_in = "row IN (SELECT value FROM json_each(?))"
    id_in = "id IN (SELECT value FROM json_each(?))"
    given_rows = "json_each(?) AS given"
    join = "CROSS JOIN"
    next_revision = "UPDATE meta SET value = value + 1 WHERE key = 'revision'"
    row_sequence = "sqlite_sequence"
    payload_columns = "payload"
    field_names = (
        "SELECT DISTINCT fullkey FROM (SELECT payload FROM documents WHERE collection = ? LIMIT ?), "
        "json_tree(payload) WHERE fullkey <> '$' AND instr(fullkey, '[') = 0"
    )

    _blob = "CAST({} AS BLOB)"
    _num_bytes = "length(CAST({} AS BLOB))"

    def json_type(self, path: str) -> Sql:
        """The JSON type of a payload field."""
        return "json_type(payload, ?)", [_sqlite_path(path)]

    def _condition_sql(self, condition: Condition) -> Sql:
        path = _sqlite_path(condition.field)
        parameters: Parameters
        match condition:
            case Exists():
                return "(json_type(payload, ?) IS NOT NULL)", [path]
            case Equals(_, value):
                return self._one_of(path, [value])
            case OneOf(_, values):
                return self._one_of(path, values)
            case Contains(_, value):
                where, parameters = f"item.type IN ({_sqlite_types(value)})", [path, path]
                if _has_content(value):
                    where += " AND item.value = json_extract(?, '$')"
                    parameters.append(json.dumps(value, ensure_ascii=False))
                return (
                    "(COALESCE(json_type(payload, ?) = 'array', 0) AND "
                    f"EXISTS (SELECT 1 FROM json_each(payload, ?) AS item WHERE {where}))"
                ), parameters
            case Range():
                bounds = bounds_of(condition)
                terms = [f"json_type(payload, ?) IN ({_sqlite_types(bounds[0][1])})"]
                parameters = [path]
                for comparison, bound in bounds:
                    terms.append(f"json_extract(payload, ?) {comparison} json_extract(?, '$')")
                    parameters += [path, json.dumps(bound, ensure_ascii=False)]
                return f"COALESCE({' AND '.join(terms)}, 0)", parameters

    def _one_of(self, path: str, values: Sequence[Scalar]) -> Sql:
        """One term for each JSON type among the values."""
        by_types: dict[str, list[Scalar]] = {}
        for value in values:
            by_types.setdefault(_sqlite_types(value), []).append(value)
        terms: list[str] = []
        parameters: Parameters = []
        for types, members in by_types.items():
            term = f"json_type(payload, ?) IN ({types})"
            parameters.append(path)
            if _has_content(members[0]):
                term += " AND json_extract(payload, ?) IN (SELECT value FROM json_each(?))"
                parameters += [path, json.dumps(members, ensure_ascii=False)]
            terms.append(f"COALESCE({term}, 0)")
        return f"({' OR '.join(terms)})", parameters


def _sqlite_path(path: str) -> str:
    return "$" + "".join(f'."{key}"' for key in path.split("."))


def _sqlite_types(value: Scalar) -> str:
    """The JSON types that equal values may have, as an SQL list."""
    if value is None:
        return "'null'"
    if isinstance(value, bool):
        return "'true'" if value else "'false'"
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


def _has_content(value: Scalar) -> bool:
    """Whether the value is not determined by its JSON type alone."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


class PostgresDialect(Dialect):
    """PostgreSQL."""

    is_shared = True
    row_in = "row = ANY(translate(?, '[]', '{}')::bigint[])"
    id_in = "id IN (SELECT json_array_elements_text(?::json))"
    given_rows = "unnest(translate(?, '[]', '{}')::bigint[]) AS given(value)"
    join = "JOIN"
    next_revision = "UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'revision'"
    row_sequence = "row_sequence"
    payload_columns = "payload, fields"
    field_names = (
        "WITH RECURSIVE found (path, value) AS ("
        "SELECT '$'::text, fields FROM (SELECT fields FROM documents WHERE collection = ? LIMIT ?) AS some_documents "
        "UNION ALL "
        "SELECT path || '.' || key, inner_value FROM found, LATERAL jsonb_each("
        "CASE jsonb_typeof(value) WHEN 'object' THEN value ELSE '{}' END) AS inner_fields (key, inner_value)) "
        "SELECT DISTINCT path FROM found WHERE path <> '$'"
    )

    _blob = "{}"
    _num_bytes = "octet_length({})"

    def json_type(self, path: str) -> Sql:
        """The JSON type of a payload field."""
        field, keys = _postgres_field(path)
        return f"jsonb_typeof({field})", keys

    def _condition_sql(self, condition: Condition) -> Sql:
        field, keys = _postgres_field(condition.field)
        match condition:
            case Exists():
                return f"({field} IS NOT NULL)", keys
            case Equals(_, value):
                return f"COALESCE({field} IN (SELECT jsonb_array_elements(?::jsonb)), FALSE)", [*keys, _json([value])]
            case OneOf(_, values):
                among = f"COALESCE({field} IN (SELECT jsonb_array_elements(?::jsonb)), FALSE)"
                return among, [*keys, _json(list(values))]
            case Contains(_, value):
                where = f"COALESCE(jsonb_typeof({field}) = 'array' AND {field} @> ?::jsonb, FALSE)"
                return where, [*keys, *keys, _json([value])]
            case Range():
                bounds = bounds_of(condition)
                is_text = isinstance(bounds[0][1], str)
                compared = f"({field} #>> '{{}}') COLLATE \"C\"" if is_text else field
                terms = [f"jsonb_typeof({field}) = '{'string' if is_text else 'number'}'"]
                parameters = [*keys]
                for comparison, bound in bounds:
                    terms.append(f"{compared} {comparison} {'?::text' if is_text else '?::jsonb'}")
                    parameters += [*keys, bound if isinstance(bound, str) else _json(bound)]
                return f"COALESCE({' AND '.join(terms)}, FALSE)", parameters


def _postgres_field(path: str) -> Sql:
    """The value at a path; ``->`` with a text looks into objects only."""
    keys: Parameters = list(path.split("."))
    return f"(fields{' -> ?::text' * len(keys)})", keys


def _json(value: Scalar | Sequence[Scalar]) -> str:
    return _to_jsonb(json.dumps(value, ensure_ascii=False))


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


SQLITE, POSTGRES = SqliteDialect(), PostgresDialect()
