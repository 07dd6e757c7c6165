"""Opening the store that the settings name, which is the one that the data directory has known so far."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from facets.documents.dialects import POSTGRES, postgres_schema
from facets.documents.store import SCHEMA, DocumentStore
from facets.errors import ConflictError
from facets.index.config import EngineConfig
from facets.storage import MANIFEST, Database, DirectoryManifest, PostgresDatabase

STORE_FILE = "documents.sqlite3"
_WITNESSES = ("indexes/*.index", "ingest-streams.sqlite3", "papers/*/*.sqlite3", "relations/*/relations.*")


def open_store(directory: Path, config: EngineConfig) -> DocumentStore:
    """Opens it; the caller has the lock of the directory.

    Raises:
        ConflictError: The directory holds a store of its own, and the settings name another one.
        StorageError: It cannot be opened, or is another one than before.
    """
    url = config.store.get_secret_value()
    if url == "sqlite":
        manifest = DirectoryManifest(directory, STORE_FILE, _WITNESSES)
        manifest.check()
        database = Database(directory / STORE_FILE, SCHEMA, max_bytes=config.max_database_bytes)
        store = DocumentStore(database, config.stored_code)
    else:
        manifest = DirectoryManifest(directory, "PostgreSQL", ())
        if (directory / STORE_FILE).exists():
            raise ConflictError(
                f"data directory {directory} holds {STORE_FILE}, and the settings name PostgreSQL as the store: "
                "expected one of the two; move its documents (facets-server migrate), or name another directory"
            )
        store = DocumentStore(PostgresDatabase(url, postgres_schema()), config.stored_code, POSTGRES)
    try:
        manifest.agree(store.store_id)
    except BaseException:
        store.close()
        raise
    return store


def examine_postgres(url: str, directory: Path) -> Iterator[str]:
    """What there is in the database that settings name as the store, a line each; changes nothing.

    Raises:
        StorageError: No server would take it; the message says why.
    """
    with closing(PostgresDatabase(url, postgres_schema(), make=False)) as database:
        database.check_place()
        with database.read() as connection:
            (store_id,) = (value for (value,) in connection.execute("SELECT value FROM meta WHERE key = 'store_id'"))
            [(names, waits, most, promotions)] = connection.execute(
                "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'), "
                "current_setting('max_connections'), (SELECT count(*) FROM promotions)"
            ).fetchall()
        yield f"{database.address} takes writes; store {store_id}, promoted or restored {promotions} times"
        held = (
            f"a write waits for standbys {names!r} ({waits})"
            if names
            else "no synchronous standby: its death loses writes"
        )
        yield f"{held}; max_connections {most}, of which a server takes 18"
        if (directory / MANIFEST).exists():
            DirectoryManifest(directory, "PostgreSQL", ()).agree(store_id)
