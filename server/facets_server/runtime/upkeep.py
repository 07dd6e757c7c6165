"""Backup, restore, verification and migration of a data directory; the rooms name its stores."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from facets import errors
from facets.documents.store import SCHEMA as DOCUMENTS
from facets.documents.store import STORE_FILE, move_to_postgres
from facets.errors import ConfigError, DamagedError, OverloadedError, StorageError, StoreGoneError
from facets.index.snapshot import check_snapshot
from facets.papers.store import SCHEMA as PAPERS
from facets.relations.additions import SCHEMA as RELATIONS
from facets.storage import backup as backups
from facets.storage.database import Schema
from facets.storage.directory import LOCK, MANIFEST, DirectoryManifest
from facets.storage.files import clear_errors
from facets_server.documents.stream_store import FILE as STREAMS_FILE
from facets_server.documents.stream_store import SCHEMA as STREAMS
from facets_server.runtime.config import ServerConfig

logger = logging.getLogger(__name__)
_NAMED = "%Y-%m-%dT%H-%M-%S.%fZ"
_NAMES = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]-[0-9][0-9]-[0-9][0-9].[0-9]*Z"  # of these
_SNAPSHOTS = "indexes/*.index"
# File patterns in the data directory -> schemas. A store that refers to another comes before it.
STORES = {
    STREAMS_FILE: STREAMS,
    STORE_FILE: DOCUMENTS,
    "relations/*/relations.sqlite3": RELATIONS,
    "papers/*/recommendation.sqlite3": PAPERS,
}
_taking = threading.Lock()  # one backup at a time
Say = Callable[[str], None]


def back_up_directory(data_dir: Path, destination: Path, say: Say) -> bool:
    """Copies every store of a directory, even one in use, and verifies the copy; False when a part is damaged."""
    stores = [(path, schema.counter) for path, schema in _stores(data_dir)]
    if not stores:
        raise StoreGoneError(f"{data_dir} is no data directory, or no longer: it has no {STORE_FILE}")
    files = backups.back_up(data_dir, destination, stores)
    for name, file in files.items():
        say(f"{name}: {file.num_bytes} bytes" + ("" if file.writes is None else f", revision {file.writes}"))
    is_whole = verify_directory(destination, say)
    if is_whole:
        backups.mark_verified(destination)
    try:
        backups.note_backup(data_dir, destination)
    except StorageError as error:
        say(f"{error}: the server will not know of this backup")
    say(f"backup of {data_dir} written to {destination}")
    return is_whole


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenBackup:
    """A backup in the server's backup folder, its damage (empty: none), and the older backups it replaced."""

    backup: backups.Backup
    problems: Sequence[str]
    removed_folders: Sequence[str]


def check_store(config: ServerConfig) -> None:
    """Raises ConfigError if the documents are not in files."""
    if config.engine.store.get_secret_value() != "sqlite":
        raise ConfigError("the documents are in PostgreSQL, whose own backups hold them: see docs/run/cluster.md")


def take_backup(config: ServerConfig, say: Say = logger.debug) -> TakenBackup:
    """Writes a new backup; an undamaged one replaces the oldest. OverloadedError while another thread takes one."""
    check_store(config)
    if config.backup_dir is None:
        raise ConfigError(
            "this server has no folder for backups: expected the setting backup_dir, or facets-server backup FOLDER"
        )
    if not _taking.acquire(blocking=False):
        raise OverloadedError("this server is taking a backup, expected one at a time: try again when it is complete")
    lines, removed = list[str](), list[str]()
    try:
        destination = config.backup_dir.absolute() / f"{datetime.now(tz=UTC):{_NAMED}}"
        is_whole = back_up_directory(config.data_dir, destination, lines.append)
        for line in lines:
            say(line)
        backup = next(backup for backup in backups.backups_in(destination.parent) if backup.folder == str(destination))
        keep = config.backup_keep
        try:
            for folder in backups.remove_older(destination, _NAMES, keep=keep) if keep else ():
                removed.append(str(folder))
                say(f"{folder} removed: {keep} are kept")
        except StorageError as error:  # the new backup is good
            logger.warning("an old backup stays: %s", error)
    finally:
        _taking.release()
    return TakenBackup(backup=backup, problems=() if is_whole else lines, removed_folders=removed)


def restore_directory(source: Path, data_dir: Path, say: Say) -> None:
    """Puts a backup into an empty or new directory; raises as :func:`facets.storage.backup.restore`."""
    files = backups.restore(source, data_dir, stores=STORES, needed=STORE_FILE)
    say(f"{len(files)} stores of {source} restored to {data_dir}; indexes are built again when a server starts")


def migrate_directory(config: ServerConfig, say: Say) -> None:
    """Moves the documents of a data directory into PostgreSQL; see :mod:`facets.documents.store`."""
    url = config.engine.store.get_secret_value()
    if url == "sqlite":
        raise ConfigError('engine.store must be the postgres:// address to move to, got "sqlite"')
    kept = {pattern: schema for pattern, schema in STORES.items() if "*" in pattern}
    move_to_postgres(config.data_dir, url, kept, say=say)


def verify_directory(directory: Path, say: Say) -> bool:
    """Verifies checksums, even in use; False for damage that cannot be repaired. ``say`` gets each damaged part."""
    if directory.suffix == ".part":
        raise DamagedError(f"{directory} is an unfinished backup: use another one")
    if (directory / backups.BACKUP_MANIFEST).exists():
        backups.check_backup(directory)
    elif not (directory / MANIFEST).exists() and not (directory / LOCK).exists():
        raise DamagedError(f"{directory} is no data directory, and no backup: it has no {backups.BACKUP_MANIFEST}")
    stores = list(_stores(directory))
    if not any(path.name == STORE_FILE for path, _ in stores):
        raise DamagedError(f"{directory} has no {STORE_FILE}: expected a data directory or a backup")
    manifest = DirectoryManifest(directory, STORE_FILE)
    num_damaged = 0
    for problem in chain(manifest.problems(), *(backups.problems_of(*store) for store in stores)):
        say(problem)
        num_damaged += 1
    for path in sorted(directory.glob(_SNAPSHOTS)):
        try:
            with clear_errors(f"cannot read {path}"):
                check_snapshot(path)
        except errors.IndexFormatError as error:
            say(f"{path}: {error}; it will be built again")
    result = f"{num_damaged} damaged or unreadable" if num_damaged else "nothing damaged"
    say(f"{directory}: {len(stores)} stores, {result}")
    return not num_damaged


def _stores(directory: Path) -> Iterator[tuple[Path, Schema]]:
    """Yields existing stores in the order in which to back them up: positions in a store before the store itself."""
    for pattern, schema in STORES.items():
        yield from ((path, schema) for path in sorted(directory.glob(pattern)))
