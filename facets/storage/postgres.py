"""PostgreSQL as the database of several servers: connection pool, durable serialized writes, errors with their cause.

Messages show host, port and database name of the address, never user or password.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from facets.errors import (
    ConfigError,
    DiskFullError,
    StorageError,
    StoreAwayError,
    StoreClosedError,
    StoreFormatError,
    StoreGoneError,
)
from facets.extras import require_extra

if TYPE_CHECKING:
    import psycopg

logger = logging.getLogger(__name__)

_MAX_CONNECTIONS = 16  # of one server, besides the one that listens for notifications
_TIMEOUT_S = 5.0  # for a connection from the pool and for connecting
_LOCK_SPACE = 0x46414345  # "FACE": first half of our advisory lock keys; the other half is the oid of the table `meta`
_LIBPQ_SETTINGS = {
    "connect_timeout": str(int(_TIMEOUT_S)),
    "application_name": "facets-server",
    "tcp_user_timeout": "10000",
}
_TAKE_LOCK, _TRY_LOCK = "SELECT pg_advisory_xact_lock(%s, %s)", "SELECT pg_try_advisory_xact_lock(%s, %s)"
_IS_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool"
# Which database a connection leads to: cluster, store, table; and the history of the cluster. A promoted standby starts
# a new history, and so does a cluster that was restored to a point in time.
_IDENTITY = """
SELECT pg_is_in_recovery(), system_identifier::text, value, 'meta'::regclass::oid::text,
    CASE WHEN NOT pg_is_in_recovery()
        THEN system_identifier || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
    (SELECT value FROM meta WHERE key = 'history')
FROM pg_control_system(), meta WHERE key = 'store_id'
"""
# Keepalives release the lock of a server whose machine is gone. Disabling synchronous_commit globally trades durability
# for speed; our acknowledged writes must be on disk (and on a synchronous standby), so we turn it back on.
_SESSION = (
    "SELECT set_config('tcp_keepalives_idle', '10', FALSE), set_config('tcp_keepalives_interval', '5', FALSE), "
    "set_config('tcp_keepalives_count', '3', FALSE), set_config('synchronous_commit', "
    "replace(replace(current_setting('synchronous_commit'), 'off', 'on'), 'local', 'on'), FALSE)"
)


class PostgresSchema(NamedTuple):
    """The content of a store in PostgreSQL."""

    tables: Sequence[str]  # statements that create it; the first table is `meta` with `key` and `value`
    # Statements that run once after a standby was promoted or a backup restored. The last writes may be lost then, and
    # what other servers have seen of them must not be confused with later writes.
    renewal: Sequence[str]
    version: int  # of the tables; stored in `meta`


def _register_types(connection: "psycopg.Connection[Any]") -> None:
    """Sends text unchanged to jsonb columns, and to bytea columns, which unlike text may hold NUL."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class TextOrBytes(Dumper):
        format, oid, prefix = Format.BINARY, 17, b""

        def dump(self, obj: str | bytes) -> bytes:
            return self.prefix + (obj.encode() if isinstance(obj, str) else obj)

    class JsonbText(TextOrBytes):
        oid, prefix = 3802, b"\x01"

    connection.adapters.register_dumper(None, JsonbText)
    connection.adapters.register_dumper(None, TextOrBytes)


_COLUMN_TYPES: dict[tuple[str, str], list[int]] = {}  # cache: table, columns -> type oids


class PostgresConnection:
    """A connection inside one transaction."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def execute(self, statement: str, values: Any = (), /) -> Any:
        """Runs a statement, in which each ``?`` is replaced by a value, and returns its cursor."""
        return self._connection.execute(statement.replace("?", "%s"), values or None, binary=True)

    def insert_rows(self, table: str, columns: str, rows: Iterable[Any]) -> None:
        """Inserts many rows by COPY, which takes a fraction of the time of INSERT."""
        rows = list(rows)
        if not rows:
            return
        if (table, columns) not in _COLUMN_TYPES:
            description = self._connection.execute(f"SELECT {columns} FROM {table} LIMIT 0").description
            _COLUMN_TYPES[table, columns] = [column.type_code for column in description or ()]
        with self._connection.cursor() as cursor:
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(_COLUMN_TYPES[table, columns])
                for row in rows:
                    copy.write_row(row)


class PostgresDatabase:
    """The tables of one store in one schema of a database; shared by several processes, thread-safe."""

    def __init__(self, url: str, schema: PostgresSchema, *, create: bool = True) -> None:
        """Connects and creates missing tables, unless ``create`` is False.

        ``url``: ``postgres://USER:PASSWORD@HOST:PORT/DATABASE?SETTING=...``, as libpq reads it; several hosts are tried
        in order. The schema is the first one of ``search_path`` (``options=-csearch_path%3DNAME``). Raises ConfigError
        for a bad address, StorageError if the server does not answer or the database is read-only or has other tables.
        """
        require_extra("postgres", "psycopg", "psycopg_pool")
        from psycopg_pool import ConnectionPool

        self._conninfo, self.address = _conninfo(url)
        self._identity: tuple[str, ...] | None = None
        self._renewal = schema.renewal
        self._refused: tuple[float, StorageError] | None = None  # when and why the last connection was rejected
        self._holding = threading.local()
        self._closed = False
        with self._clear_errors("open"):
            self._prepare(schema, create)
        self._pool: ConnectionPool[Any] = ConnectionPool(
            self._conninfo,
            min_size=1,
            max_size=_MAX_CONNECTIONS,
            kwargs={"autocommit": True},
            configure=self._check_connection,
            check=ConnectionPool.check_connection,
            timeout=_TIMEOUT_S,
            reconnect_timeout=_TIMEOUT_S / 2,
            open=True,
        )

    def _prepare(self, schema: PostgresSchema, create: bool) -> None:
        """Creates the tables under a lock, or checks existing ones."""
        import psycopg

        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise StorageError(f"{self._name()} has encoding {encoding}, expected UTF8: create a database in UTF8")
            self._refuse_read_only(connection)
            with connection.transaction():
                connection.execute(_TAKE_LOCK, (_LOCK_SPACE, 0))
                if _value(connection, "SELECT to_regclass('meta') IS NULL"):
                    if not create:
                        raise StorageError(f"{self._name()} has no tables yet: the first server creates them")
                    for statement in schema.tables:
                        connection.execute(statement)
                    connection.execute("INSERT INTO meta VALUES ('version', %s)", (str(schema.version),))
                version = int(_value(connection, "SELECT value FROM meta WHERE key = 'version'") or 0)
            if version != schema.version:
                raise StoreFormatError(
                    f"{self._name()} has tables of version {version}, expected {schema.version}: use the release "
                    "that wrote them"
                )
            self._check_connection(connection)

    def _refuse_read_only(self, connection: "psycopg.Connection[Any]") -> None:
        if _value(connection, _IS_READ_ONLY):
            raise StorageError(
                f"{self._name()} is read-only: expected the primary; name all hosts and "
                "target_session_attrs=read-write in the address, and libpq finds it"
            )

    def _check_connection(self, connection: "psycopg.Connection[Any]") -> None:
        """Checks that a new connection leads to the same store as before, and not to a standby."""
        _register_types(connection)
        try:
            is_standby, *identity, history, known = connection.execute(_IDENTITY).fetchone() or (False, "", "")
            if self._identity is None:
                self._identity, self._lock_key = tuple(identity), (_LOCK_SPACE, int(identity[2]) % 2**31)
            elif tuple(identity) != self._identity:
                logger.error("%s is not the database that this server opened", self._name())
                raise StoreGoneError(
                    f"{self._name()} is not the database that this server opened: two clusters answer at one address, "
                    "or it was created again; writes are refused: fix the address, then start again"
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
        """Records a new history of the cluster; done by the first server that sees it."""
        with connection.transaction():
            connection.execute(_TAKE_LOCK, self._lock_key)
            known = _value(connection, "SELECT value FROM meta WHERE key = 'history'")
            if known is None:
                connection.execute("INSERT INTO meta VALUES ('history', %s)", (history,))
            elif known != history:
                logger.warning("%s was promoted or restored: its history is now %s", self._name(), history)
                connection.execute("UPDATE meta SET value = %s WHERE key = 'history'", (history,))
                for statement in self._renewal:
                    connection.execute(statement)

    @contextmanager
    def read(self) -> Iterator[PostgresConnection]:
        """One consistent state, not blocked by writers."""
        with self._transaction("read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as connection:
            yield PostgresConnection(connection)

    @contextmanager
    def write(self, *, frees_space: bool = False) -> Iterator[PostgresConnection]:
        """One durable transaction. A lock serializes the writes of all servers, so revisions follow commit order.

        ``frees_space``: see ``Database``; changes nothing.
        """
        with self._transaction("write", "BEGIN") as connection:
            if not self._is_held():
                connection.execute(_TAKE_LOCK, self._lock_key)
            yield PostgresConnection(connection)
            connection.execute("SELECT pg_notify(%s, '')", (self._channel,))

    @contextmanager
    def hold_writes(self) -> Iterator[None]:
        """Blocks the writes of other processes and threads until the block ends or this process dies."""
        if self._is_held():
            yield
            return
        with self._transaction("hold", "BEGIN") as connection:
            connection.execute(_TAKE_LOCK, self._lock_key)
            self._holding.value = True
            try:
                yield
            finally:
                self._holding.value = False

    def _is_held(self) -> bool:
        return getattr(self._holding, "value", False)

    @contextmanager
    def alone(self, key: int) -> Iterator[bool]:
        """Tries to take an advisory lock until the block ends or this process dies; yields whether it was taken."""
        with self._transaction("lock", "BEGIN") as connection:
            yield _value(connection, _TRY_LOCK, (self._lock_key[1], key % 2**31))

    def writes(self, timeout_s: float) -> Iterator[None]:
        """Yields after each write of any server (NOTIFY) and at least every ``timeout_s`` seconds; for one thread."""
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
        """Opens a transaction; raises StorageError if the database does not answer, is another one or read-only."""
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
            raise StoreClosedError(f"{self._name()} is closed and cannot be used")
        with self._clear_errors(action):
            with self._pool.connection() as connection:  # commits, or rolls back
                connection.execute(begin)
                yield connection

    def _name(self) -> str:
        return f"PostgreSQL document store {self.address}"

    @contextmanager
    def _clear_errors(self, action: str) -> Iterator[None]:
        import psycopg
        from psycopg_pool import PoolTimeout

        try:
            yield
        except (PoolTimeout, psycopg.Error) as error:
            is_away = isinstance(error, (PoolTimeout, psycopg.OperationalError, psycopg.InterfaceError))
            if is_away and self._refused is not None and time.monotonic() - self._refused[0] < 2 * _TIMEOUT_S:
                raise type(self._refused[1])(str(self._refused[1])) from None
            kind, reason = _explained(error)
            raise kind(f"cannot {action} {self._name()}: {reason}") from (None if is_away else error)


def _value(connection: "psycopg.Connection[Any]", statement: str, values: Sequence[object] | None = None) -> Any:
    row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]


_CAUSES: dict[str, tuple[type[StorageError], str]] = {
    "53100": (DiskFullError, "its disk is full"),
    "53300": (StoreAwayError, "it has too many connections: raise max_connections, or run fewer servers"),
    "25006": (StorageError, "it is read-only: expected the primary"),
    "42501": (StorageError, "the user lacks the permission: it must own the tables"),
    "28P01": (StorageError, "it rejects user or password"),
    "28000": (StorageError, "it rejects the user"),
    "3D000": (StorageError, "there is no such database"),
    "42P01": (StorageError, "its tables are gone"),
    "40001": (StoreAwayError, "another transaction conflicted: try again"),
    "40P01": (StoreAwayError, "another transaction conflicted: try again"),
}

# While connecting, libpq reports some errors only as text.
_MESSAGES = {
    "password authentication failed": "28P01",
    "no pg_hba.conf entry": "28000",
    'FATAL:  role "': "28000",
    "does not exist": "3D000",
}


def _explained(error: Exception) -> tuple[type[StorageError], str]:
    """Error class and cause for an error of the driver, without address or values."""
    import psycopg

    state = getattr(error, "sqlstate", None)
    code = state if state in _CAUSES else next((code for words, code in _MESSAGES.items() if words in str(error)), None)
    if code is not None:
        return _CAUSES[code]
    if state[:2] in ("08", "57") if state else not isinstance(error, psycopg.DataError):
        return StoreAwayError, "it does not answer; a running write was stored completely or not at all"
    return StorageError, f"PostgreSQL reports {state} ({type(error).__name__})"


def _conninfo(url: str) -> tuple[str, str]:
    """Connection string for libpq, and the part of it that messages may show."""
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
    settings = _LIBPQ_SETTINGS | {key: str(value) for key, value in given.items()}
    return make_conninfo(**settings), f"{places}/{given.get('dbname', '')}"
