"""Opening the store that the settings name, which is the one that the data directory has known so far."""

from pathlib import Path

from facets.documents.dialects import POSTGRES, postgres_schema
from facets.documents.store import SCHEMA, DocumentStore
from facets.errors import ConflictError
from facets.index.config import EngineConfig
from facets.storage import Database, DirectoryManifest, PostgresDatabase

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
