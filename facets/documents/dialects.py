"""What SQLite and PostgreSQL are asked in different words: payloads, which they keep differently, and the tables.

In PostgreSQL a payload stands as it was written, and once more as ``jsonb`` for filters. That compares numbers as
decimals and strings by the language of the database: both are made to mean what :func:`matches` means.
"""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from facets.documents.codes import split_codes
from facets.documents.filters import (
    Condition,
    Contains,
    Equals,
    Exists,
    Filter,
    OneOf,
    Parameters,
    Range,
    Scalar,
    Sql,
    bounds_of,
    sql_path,
    to_sql,
    write_sql,
)
from facets.storage import PostgresSchema
from facets.storage.postgres import reworded

KEPT_WRITES = 20_000  # a server that is further behind compares all rows
# So far on goes the count of writes, and that of rows, where a standby is promoted: no number of a write that it does
# not have is ever given again.
_SKIPPED_WRITES, _SKIPPED_ROWS = 10_000, 10_000_000


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one kind of database is asked about payloads."""

    to_sql: Callable[[Filter], Sql]  # a valid filter -> a condition that is never NULL
    json_type: Callable[[str], Sql]  # path of a field -> the type of its value, NULL where there is none
    field_names: str  # statement: paths, as SQLite writes them, of the fields of the first documents of a collection
    derived: str  # further columns of documents, made of the payload
    derive: Callable[[str], tuple[str, ...]]  # their values
    # Codes of facets, and bytes beside them -> what stands in the line of facets, and further parts.
    split: Callable[[bytes, int], tuple[bytes, list[bytes]]]
    is_shared: bool  # whether other processes write, too


SQLITE = Dialect(
    to_sql=lambda filter: to_sql(filter, "payload"),
    json_type=lambda path: ("json_type(payload, ?)", [sql_path(path)]),
    field_names=(
        "SELECT DISTINCT fullkey FROM (SELECT payload FROM documents WHERE collection = ? LIMIT ?), "
        "json_tree(payload) WHERE fullkey <> '$' AND instr(fullkey, '[') = 0"
    ),
    derived="",
    derive=lambda _: (),
    split=split_codes,
    is_shared=False,
)


def to_jsonb(payload: str) -> str:
    r"""A payload as ``jsonb`` can hold it: floats beyond 2**53, which are integers, as all of their digits.

    Example:
        >>> print(to_jsonb('{"a": "b", "c": 1e+20}'))
        {"a": "b", "c": 100000000000000000000}
    """
    if "e+" in payload:
        payload = json.dumps(json.loads(payload, parse_float=_exact), ensure_ascii=False)
    return payload


def _exact(digits: str) -> int | float:
    number = float(digits)
    return int(number) if abs(number) >= 2**53 else number


def _field(path: str) -> Sql:
    """The value at a path; ``->`` with a text goes into objects alone."""
    keys: Parameters = list(path.split("."))
    return f"(fields{' -> ?::text' * len(keys)})", keys


def filter_to_postgres(filter: Filter) -> Sql:
    """Writes a valid filter as a condition of PostgreSQL on ``fields``; it is never NULL."""
    return write_sql(filter, _to_postgres, ("FALSE", "TRUE"))


def _to_postgres(condition: Condition) -> Sql:
    match condition:
        case Exists(path):
            field, keys = _field(path)
            return f"({field} IS NOT NULL)", keys
        case Equals(path, value):
            return _among(path, [value])
        case OneOf(path, values):
            return _among(path, values)
        case Contains(path, value):
            field, keys = _field(path)
            where = f"COALESCE(jsonb_typeof({field}) = 'array' AND {field} @> ?::jsonb, FALSE)"
            return where, [*keys, *keys, _json([value])]
        case Range(path):
            field, keys = _field(path)
            bounds = bounds_of(condition)
            is_text = isinstance(bounds[0][1], str)
            value = f"({field} #>> '{{}}') COLLATE \"C\"" if is_text else field
            terms, parameters = [f"jsonb_typeof({field}) = '{'string' if is_text else 'number'}'"], [*keys]
            for comparison, bound in bounds:
                terms.append(f"{value} {comparison} {'?::text' if is_text else '?::jsonb'}")
                parameters += [*keys, bound if isinstance(bound, str) else _json(bound)]
            return f"COALESCE({' AND '.join(terms)}, FALSE)", parameters


def _among(path: str, values: Sequence[Scalar]) -> Sql:
    field, keys = _field(path)
    where = f"COALESCE({field} IN (SELECT jsonb_array_elements(?::jsonb)), FALSE)"
    return where, [*keys, _json(list(values))]


def _json(value: Scalar | Sequence[Scalar]) -> str:
    return to_jsonb(json.dumps(value, ensure_ascii=False))


def _postgres_type(path: str) -> Sql:
    field, keys = _field(path)
    return f"jsonb_typeof({field})", keys


POSTGRES = Dialect(
    to_sql=filter_to_postgres,
    json_type=_postgres_type,
    field_names=(
        "WITH RECURSIVE found (path, value) AS ("
        "SELECT '$'::text, fields FROM (SELECT fields FROM documents WHERE collection = ? LIMIT ?) AS looked_at "
        "UNION ALL "
        "SELECT path || '.' || key, inner_value FROM found, LATERAL jsonb_each("
        "CASE jsonb_typeof(value) WHEN 'object' THEN value ELSE '{}' END) AS inner_fields (key, inner_value)) "
        "SELECT DISTINCT path FROM found WHERE path <> '$'"
    ),
    derived=", fields",
    derive=lambda payload: (to_jsonb(payload),),
    split=lambda codes, _: (codes, []),  # long values have a place of their own there
    is_shared=True,
)

SQLITE_TABLES = """
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
    -- Fields of payloads that are searched with the text: name -> weight.
    search_fields TEXT NOT NULL,
    -- Of the data directory after the last write to this collection.
    revision INTEGER NOT NULL,
    num_documents INTEGER NOT NULL DEFAULT 0,
    num_parts INTEGER NOT NULL DEFAULT 0,
    -- live, building or retired; one that is building will take the place of the collection it replaces.
    state TEXT NOT NULL DEFAULT 'live',
    replaces INTEGER
);
-- A write of a document always takes a new row, so a row number stands for one unchanging set of facets. One of several
-- parts takes as many rows, one behind another from its own on; facets and terms are those of a part.
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
    num_read INTEGER,
    num_parts INTEGER NOT NULL
);
CREATE UNIQUE INDEX documents_by_id ON documents (collection, id);
CREATE INDEX long_documents ON documents (collection, num_parts) WHERE num_parts > 1;
-- The text of documents of several parts, whose own text is empty.
CREATE TABLE document_parts (
    row INTEGER PRIMARY KEY,
    document INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    start INTEGER NOT NULL,
    page INTEGER NOT NULL,
    headings TEXT NOT NULL,
    text TEXT NOT NULL
);
-- Apart from the documents, so that listing and filtering never read over them.
CREATE TABLE facets (
    row INTEGER PRIMARY KEY,
    checksum INTEGER NOT NULL,
    norms BLOB NOT NULL,
    units BLOB NOT NULL,
    -- Where in the text of its part each facet comes from; the highest bit of a start: in a heading.
    spans BLOB
);
-- What facets.units goes on with, cut so that three lines fill a page: part = row * 4096 + place. One long line would
-- leave a third of its last page empty.
CREATE TABLE facet_parts (part INTEGER PRIMARY KEY, units BLOB NOT NULL);
-- Terms of each part, for lexical search.
CREATE TABLE terms (row INTEGER PRIMARY KEY, terms BLOB NOT NULL);
INSERT INTO meta VALUES ('revision', 0)
"""
# What PostgreSQL has otherwise: texts as bytes, for they may hold a NUL; ids in the order of code points; payloads once
# more as it compares them.
_OTHERWISE = {
    r" *--.*\n": "",
    r"number INTEGER PRIMARY KEY AUTOINCREMENT": "number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    r" AUTOINCREMENT": "",
    r"\bINTEGER\b": "bigint",
    r"\bBLOB\b": "bytea",
    r"^    text TEXT": "    text bytea",
    r"^    id TEXT NOT NULL": r'\g<0> COLLATE "C"',
    r"name TEXT NOT NULL UNIQUE": r'\g<0> COLLATE "C"',
    r"^    payload TEXT NOT NULL,": r"\g<0> fields jsonb NOT NULL,",
    r"value\) WITHOUT ROWID": "value text NOT NULL)",
    r"\('revision', 0\)": "('revision', '0')",
}
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


def postgres_schema() -> PostgresSchema:
    """The tables of a document store, with a name of its own should they be made."""
    statements = [*reworded(SQLITE_TABLES, _OTHERWISE).split(";\n"), *_POSTGRES_TABLES.split(";\n")]
    statements.append(f"INSERT INTO meta VALUES ('store_id', '{uuid.uuid4().hex}')")
    return PostgresSchema(title="document store", tables=statements, version=1, renewal=_RENEWAL)
