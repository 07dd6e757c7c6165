"""PostgreSQL as the database of many servers: a pool, durable transactions in turn, errors by cause, word of writes.

No message holds more of the address than host, port and name of the database.
"""

import logging
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from facets.errors import (
    ConfigError,
    ConflictError,
    DiskFullError,
    StorageError,
    StoreAwayError,
    StoreClosedError,
    StoreGoneError,
)
from facets.extras import require_extra

if TYPE_CHECKING:
    import psycopg

logger = logging.getLogger(__name__)

_MAX_CONNECTIONS = 16  # of one server, besides the one that listens
_WAIT_S = 5.0  # for a connection, and for PostgreSQL to answer while one is made
_LOCK_SPACE = 0x46414345  # "FACE": of our advisory locks; the other half of their key is the table of the store
_SETTINGS = {"connect_timeout": str(int(_WAIT_S)), "application_name": "facets-server", "tcp_user_timeout": "10000"}
_CHECKED_AT = "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool"
# Whose database a connection leads to: cluster, store, table; and the history of the cluster, which a standby that is
# promoted begins anew, as does one restored to a point in time.
_IDENTITY = """
SELECT pg_is_in_recovery(), system_identifier::text, value, 'meta'::regclass::oid::text,
    CASE WHEN NOT pg_is_in_recovery()
        THEN system_identifier || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
    (SELECT value FROM meta WHERE key = 'history')
FROM pg_control_system(), meta WHERE key = 'store_id'
"""
# The lock of a server whose machine is gone must not be held for hours.
_SESSION = (
    "SELECT set_config('tcp_keepalives_idle', '10', FALSE), set_config('tcp_keepalives_interval', '5', FALSE), "
    "set_config('tcp_keepalives_count', '3', FALSE), set_config('synchronous_commit', "
    # Who turns it off for all trades writes for speed; an acknowledged one of ours is on disk, and on the standby.
    "replace(replace(current_setting('synchronous_commit'), 'off', 'on'), 'local', 'on'), FALSE)"
)

# What SQLite calls otherwise: pattern -> PostgreSQL's words, see `reworded`.
_WORDS = {
    r"\brow IN \(SELECT value FROM json_each\(\?\)\)": "row = ANY(translate(?, '[]', '{}')::bigint[])",
    r"\bIN \(SELECT value FROM json_each\(\?\)\)": "IN (SELECT json_array_elements_text(?::json))",
    r"json_each\(\?\) AS wanted": "unnest(translate(?, '[]', '{}')::bigint[]) AS wanted(value)",
    r"\bCROSS JOIN (\w+) ON\b": r"JOIN \1 ON",
    r"\blength\(CAST\(([\w.]+) AS BLOB\)\)": r"octet_length(\1)",
    r"\bCAST\(([\w.]+) AS BLOB\)": r"\1",
    r"\bvalue = value \+ 1\b": "value = (value::bigint + 1)::text",
    r"\bsqlite_sequence\b": "row_sequence",
    r"\?": "%s",
}
# What else a store may be than ready.
_STATES = {
    None: "holds a store already: expected an empty database",
    "filling": "is being filled: run facets-server migrate again, to its end",
    "moved": "was moved into a data directory: use that, or another database",
}
_INSERT = re.compile(r"INSERT INTO (\w+) \(([^)]*)\) VALUES")


@lru_cache(maxsize=1024)
def translated(statement: str) -> str:
    """A statement in PostgreSQL's words.

    Example:
        >>> translated("SELECT row FROM facets WHERE row IN (SELECT value FROM json_each(?))")
        "SELECT row FROM facets WHERE row = ANY(translate(%s, '[]', '{}')::bigint[])"
    """
    return reworded(statement, _WORDS)


def reworded(statement: str, words: Mapping[str, str]) -> str:
    """What SQLite calls otherwise, as PostgreSQL does: pattern -> words, one after another."""
    for pattern, replacement in words.items():
        statement = re.sub(pattern, replacement, statement, flags=re.MULTILINE)
    return statement


@dataclass(frozen=True, kw_only=True)
class PostgresSchema:
    """What a store keeps in PostgreSQL."""

    title: str  # what messages call it
    tables: Sequence[str]  # the statements that make it; the first table is `meta` with `key` and `value`
    version: int  # of the tables; stands in `meta`
    # Statements that are run once when a standby was promoted, or a backup restored: what was written last may be lost,
    # and what others have seen of it must not be taken for what is written next.
    renewal: Sequence[str] = ()


def _register_types(connection: "psycopg.Connection[Any]") -> None:
    """Text goes into jsonb as it stands, and into bytea, which unlike text may hold a NUL."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class JsonbText(Dumper):
        format, oid = Format.BINARY, 3802

        def dump(self, obj: str) -> bytes:
            return b"\x01" + obj.encode()

    class TextOrBytes(Dumper):
        format, oid = Format.BINARY, 17

        def dump(self, obj: str | bytes) -> bytes:
            return obj.encode() if isinstance(obj, str) else obj

    connection.adapters.register_dumper(None, JsonbText)
    connection.adapters.register_dumper(None, TextOrBytes)


class _Connection:
    """A connection that takes SQLite's statements."""

    def __init__(self, real: "psycopg.Connection[Any]") -> None:
        self._real = real

    def execute(self, statement: str, values: Any = (), /) -> "psycopg.Cursor[Any]":
        return self._real.execute(translated(statement), values or None, binary=True)

    def executemany(self, statement: str, lines: Iterable[Any], /) -> None:
        """By COPY, which takes a fraction of the time."""
        found = _INSERT.match(statement)
        if found is None or not (lines := list(lines)):
            return
        with self._real.cursor() as cursor:
            types = _types_of(self._real, *found.groups())
            with cursor.copy(f"COPY {found[1]} ({found[2]}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(types)
                for line in lines:
                    copy.write_row(line)


_KNOWN_TYPES: dict[tuple[str, str], list[int]] = {}  # of the columns of our tables


def _types_of(connection: "psycopg.Connection[Any]", table: str, columns: str) -> list[int]:
    if (table, columns) not in _KNOWN_TYPES:
        cursor = connection.execute(f"SELECT {columns} FROM {table} LIMIT 0")
        _KNOWN_TYPES[table, columns] = [column.type_code for column in cursor.description or ()]
    return _KNOWN_TYPES[table, columns]


class PostgresDatabase:
    """The tables of one store in one schema of a database; as :class:`facets.storage.Database`, for many processes."""

    def __init__(self, url: str, schema: PostgresSchema, *, filling: bool = False, make: bool = True) -> None:
        """Connects, and makes the tables where there are none.

        Args:
            url: ``postgres://USER:PASSWORD@HOST:PORT/DATABASE?SETTING=...``, as libpq reads it; several hosts are tried
                in turn. The schema is the first one of ``search_path`` (``options=-csearch_path%3DNAME``).
            schema: What is kept there.
            filling: Take it for the target of a move, which nobody else opens until it is whole.
            make: Whether to make tables; else their absence is an error.

        Raises:
            ImportError: The extra ``postgres`` is not installed.
            ConfigError: The address cannot be read.
            StoreAwayError: Nobody answers there, or not in time.
            StorageError: The database is read-only, of another encoding, or its tables are of another version.
        """
        require_extra("postgres", "psycopg", "psycopg_pool")
        from psycopg_pool import ConnectionPool

        self._title = schema.title
        conninfo, self.address = _conninfo(url)
        self._conninfo = conninfo
        self._identity: tuple[str, ...] | None = None
        self._renewal = schema.renewal
        self._refused: tuple[float, StorageError] | None = None  # why the last connection was of no use, and when
        self._holding = threading.local()
        self._closed = False
        with self._clear_errors("open"):
            self._prepare(schema, filling, make)
        self._pool: ConnectionPool[Any] = ConnectionPool(
            conninfo,
            min_size=1,
            max_size=_MAX_CONNECTIONS,
            kwargs={"autocommit": True},
            configure=self._check_connection,
            timeout=_WAIT_S,
            reconnect_timeout=_WAIT_S / 2,
            open=True,
        )

    def _prepare(self, schema: PostgresSchema, filling: bool, make: bool) -> None:
        """Makes the tables under a lock, or checks whose they are."""
        import psycopg

        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise StorageError(f"{self._name()} has encoding {encoding}, expected UTF8: make a database in UTF8")
            self._refuse_read_only(connection)
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCK_SPACE,))
                if _one(connection, "SELECT to_regclass('meta') IS NULL"):
                    if not make:
                        raise StorageError(f"{self._name()} has no tables yet: the first server makes them")
                    for statement in schema.tables:
                        connection.execute(statement)
                    connection.execute("INSERT INTO meta VALUES ('version', %s)", (str(schema.version),))
                    if filling:
                        connection.execute("INSERT INTO meta VALUES ('state', 'filling')")
                state = _one(connection, "SELECT value FROM meta WHERE key = 'state'")
                version = int(_one(connection, "SELECT value FROM meta WHERE key = 'version'") or 0)
            if version != schema.version:
                raise StorageError(
                    f"{self._name()} has tables of version {version}, expected {schema.version}: use the release that "
                    f"wrote them{'' if version < schema.version else ', or a newer one'}"
                )
            if state != ("filling" if filling else None):
                raise ConflictError(f"{self._name()} {_STATES[state]}")
            self._check_connection(connection)

    def filled(self) -> None:
        """Everything has been moved here: servers may open it."""
        with self.write() as connection:
            connection.execute("DELETE FROM meta WHERE key = 'state'")

    def moved(self) -> None:
        """Everything has been moved away: nobody opens it any more."""
        with self.write() as connection:
            connection.execute("INSERT INTO meta (key, value) SELECT 'state', 'moved'")

    def _refuse_read_only(self, connection: "psycopg.Connection[Any]") -> None:
        if _one(connection, _CHECKED_AT):
            raise StorageError(
                f"{self._name()} is read-only: expected the primary; name all hosts and "
                "target_session_attrs=read-write in the address, and libpq finds it"
            )

    def _check_connection(self, connection: "psycopg.Connection[Any]") -> None:
        """Looks where a new connection leads to: never to another store unnoticed, nor to a standby."""
        _register_types(connection)
        try:
            is_standby, *identity, history, known = connection.execute(_IDENTITY).fetchone() or (False, "", "")
            if self._identity is None:
                self._identity, self._lock_key = tuple(identity), (_LOCK_SPACE, int(identity[2]) % 2**31)
            elif tuple(identity) != self._identity:
                logger.error("%s is another one than when this server started", self._name())
                raise StoreGoneError(
                    f"{self._name()} is another one than when this server started: two clusters answer at one address, "
                    "or it was made anew; nothing is written any more: put that right, then start again"
                )
            if is_standby:
                self._refuse_read_only(connection)
        except StorageError as error:
            self._refused = time.monotonic(), error
            raise
        self._refused = None
        if history != known:
            self._renew(connection, history)
        connection.execute(_SESSION)

    def _renew(self, connection: "psycopg.Connection[Any]", history: str) -> None:
        """The first one to see that the cluster goes on as another one notes it."""
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", self._lock_key)
            known = _one(connection, "SELECT value FROM meta WHERE key = 'history'")
            if known is None:
                connection.execute("INSERT INTO meta VALUES ('history', %s)", (history,))
            elif known != history:
                logger.warning("%s was promoted or restored: it goes on as %s", self._name(), history)
                connection.execute("UPDATE meta SET value = %s WHERE key = 'history'", (history,))
                for statement in self._renewal:
                    connection.execute(statement)

    @contextmanager
    def read(self) -> Iterator[_Connection]:
        """One consistent state, see :class:`facets.storage.SqlDatabase`."""
        with self._transaction("read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as connection:
            yield _Connection(connection)

    @contextmanager
    def write(self) -> Iterator[_Connection]:
        """One durable transaction. Revisions are in the order of commits, so all servers' writers take turns."""
        with self._transaction("write", "BEGIN") as connection:
            if not getattr(self._holding, "depth", 0):
                connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", self._lock_key)
            yield _Connection(connection)
            connection.execute("SELECT pg_notify(%s, '')", (self._channel,))

    @contextmanager
    def hold_writes(self) -> Iterator[None]:
        """Lets the writes of all others wait, those of other threads too; they go on when this process dies."""
        depth = getattr(self._holding, "depth", 0)
        if depth:
            yield
            return
        with self._transaction("hold", "BEGIN") as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", self._lock_key)
            self._holding.depth = 1
            try:
                yield
            finally:
                self._holding.depth = 0

    @contextmanager
    def alone(self, key: int) -> Iterator[bool]:
        """Whether this process has what the key stands for to itself until the block ends, or it dies."""
        with self._transaction("lock", "BEGIN") as connection:
            statement = "SELECT pg_try_advisory_xact_lock(%s, %s)"
            found = connection.execute(statement, (self._lock_key[1], key % 2**31)).fetchone()
            yield bool(found and found[0])

    def writes(self, timeout_s: float) -> Iterator[None]:
        """Word of writes, of whichever server: after each one, and at least so often; for one thread, for ever."""
        import psycopg

        while not self._closed:
            try:
                with psycopg.connect(self._conninfo, autocommit=True) as connection:
                    connection.execute(f'LISTEN "{self._channel}"')
                    while not self._closed:
                        yield
                        for _ in connection.notifies(timeout=timeout_s, stop_after=1):
                            pass
            except psycopg.Error as error:
                logger.warning("cannot listen to %s, trying again: %s", self._name(), type(error).__name__)
                threading.Event().wait(timeout_s)
                yield

    def check_place(self) -> None:
        """Asks it for its clock.

        Raises:
            StorageError: It does not answer, answers as another one, or takes no writes.
        """
        with self._transaction("find", "BEGIN READ ONLY") as connection:
            self._refuse_read_only(connection)

    def close(self) -> None:
        """Closes every connection. Idempotent."""
        if not self._closed:
            self._closed = True
            self._pool.close()

    @property
    def _channel(self) -> str:
        return f"facets_{self._lock_key[1]}"

    @contextmanager
    def _transaction(self, action: str, begin: str) -> Iterator["psycopg.Connection[Any]"]:
        if self._closed:
            raise StoreClosedError(f"{self._name()} is closed: expected an open one")
        with self._clear_errors(action):
            connection = self._begun(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.info.transaction_status:  # not idle: an error, in the middle or of the line
                    with suppress(Exception):
                        connection.execute("ROLLBACK")
                self._pool.putconn(connection)

    def _begun(self, begin: str) -> "psycopg.Connection[Any]":
        """A connection in a transaction; those that broke while nobody used them are found here."""
        import psycopg

        for last in (False, True):
            connection = self._pool.getconn()
            try:
                connection.execute(begin)
                return connection
            except psycopg.OperationalError:
                self._pool.putconn(connection)
                if last:
                    raise
                self._pool.check()
        raise AssertionError("the last one returns or raises")

    def _name(self) -> str:
        return f"PostgreSQL {self._title} {self.address}"

    @contextmanager
    def _clear_errors(self, action: str) -> Iterator[None]:
        import psycopg
        from psycopg_pool import PoolTimeout

        try:
            yield
        except (PoolTimeout, psycopg.OperationalError, psycopg.InterfaceError) as error:
            if self._refused is not None and time.monotonic() - self._refused[0] < 2 * _WAIT_S:
                raise type(self._refused[1])(str(self._refused[1])) from None
            kind, reason = _explained(error)
            raise kind(f"cannot {action} {self._name()}: {reason}") from None
        except psycopg.Error as error:
            kind, reason = _explained(error)
            raise kind(f"cannot {action} {self._name()}: {reason}") from error


def _one(connection: "psycopg.Connection[Any]", statement: str) -> Any:
    found = connection.execute(statement).fetchone()
    return None if found is None else found[0]


_CAUSES: dict[str, tuple[type[StorageError], str]] = {
    "53100": (DiskFullError, "its disk is full"),
    "53300": (StoreAwayError, "it has too many connections: raise max_connections, or run fewer servers"),
    "25006": (StorageError, "it is read-only: expected the primary"),
    "42501": (StorageError, "the user may not do that: it needs to own the tables"),
    "28P01": (StorageError, "it refuses user or password"),
    "28000": (StorageError, "it refuses the user"),
    "3D000": (StorageError, "there is no such database"),
    "42P01": (StorageError, "its tables are gone"),
    "40001": (StoreAwayError, "another transaction was in the way: try again"),
    "40P01": (StoreAwayError, "another transaction was in the way: try again"),
}

# While connecting, libpq says some in words only.
_SAID = {
    **{"password authentication failed": "28P01", "no pg_hba.conf entry": "28000", 'FATAL:  role "': "28000"},
    **{"does not exist": "3D000"},
}


def _explained(error: Exception) -> tuple[type[StorageError], str]:
    """What an error of the driver means, without anything of the address or of values."""
    import psycopg

    state = getattr(error, "sqlstate", None)
    if state in _CAUSES:
        return _CAUSES[state]
    for words, code in _SAID.items():
        if words in str(error):
            return _CAUSES[code]
    if state[:2] in ("08", "57") if state else not isinstance(error, psycopg.DataError):
        return StoreAwayError, "it does not answer; what was being written is there whole or not at all"
    return StorageError, f"PostgreSQL says {state} ({type(error).__name__})"


def _conninfo(url: str) -> tuple[str, str]:
    """An address for libpq, and what of it may be told."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        scheme = urlsplit(url).scheme or "no"
        raise ConfigError(
            "the address of the store cannot be read: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, got one "
            f"of scheme {scheme!r}; special characters of a password are written as %XX"
        ) from None
    hosts, ports = str(given.get("host", "localhost")).split(","), str(given.get("port", 5432)).split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))
    return make_conninfo(
        **(_SETTINGS | {key: str(value) for key, value in given.items()})
    ), f"{places}/{given.get('dbname', '')}"
