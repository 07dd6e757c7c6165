"""Backups of a data directory: taken while it is in use, verified, restored; and verification of single stores."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from facets.errors import ConflictError, DamagedError, StorageError
from facets.storage.checksums import damaged_rows, register_checksum
from facets.storage.database import Schema, pragma
from facets.storage.directory import LOCK, MANIFEST, UNFINISHED_RESTORE, DirectoryLock
from facets.storage.files import (
    clear_errors,
    explain,
    make_private_directory,
    make_private_file,
    sync_directory,
    write_atomically,
    write_whole,
)
from facets.storage.mark import HighWaterMark

BACKUP_MANIFEST = "backup.json"
_VERIFIED = "verified"  # empty file in a backup that was completely verified
_LAST_BACKUP = "last-backup.json"  # in the data directory: when the last backup was taken
_FORMAT = 1
_IGNORED_NAMES = {LOCK, "lost+found", UNFINISHED_RESTORE}  # a directory with only these counts as empty
_SQLITE_MAGIC = b"SQLite format 3\0"
_USER_VERSION, _APPLICATION_ID = slice(60, 64), slice(68, 72)  # bytes of a SQLite file
_MAX_PAGE_PROBLEMS = 20
_BAD_CONTENT = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # of a JSON file with another content


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupFile:
    """One store in a backup."""

    num_bytes: int
    sha256: str
    writes: int | None  # number of writes it had seen, for a document store its revision; None: not counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Backup:
    """A backup in a folder."""

    folder: str  # absolute path
    made: datetime  # UTC
    num_bytes: int  # total size of its stores


def back_up(directory: Path, destination: Path, stores: Sequence[tuple[Path, str]]) -> dict[str, BackupFile]:
    """Copies stores of a directory that may be in use, without blocking writers; returns the files by their path in it.

    Each store is copied in one consistent state, one after the other: list a store that refers to another one first,
    with the query that counts its writes. The folder gets its name last, so a folder of that name is complete. Raises
    ConflictError if the destination exists, StoreInUseError if another process is taking the same backup.
    """
    part = destination.with_name(f"{destination.name}.part")
    with clear_errors(f"cannot write {destination}"):
        if destination.exists():
            raise ConflictError(f"{destination} exists: expected the name of a new folder")
        _remove_abandoned(destination.parent)
        make_private_directory(part)
        lock = DirectoryLock(part)
        try:
            files = {}
            for store, counter in stores:
                name = str(store.relative_to(directory))
                make_private_directory((part / name).parent)
                writes = _copy(store, part / name, counter)
                num_bytes = (part / name).stat().st_size
                files[name] = BackupFile(num_bytes=num_bytes, sha256=_digest(part / name), writes=writes)
            content = {
                "format": _FORMAT,
                "made": datetime.now(tz=UTC).isoformat(timespec="seconds"),
                "store_id": _store_id(directory / MANIFEST),
                "files": {name: asdict(file) for name, file in files.items()},
            }
            write_whole(part / BACKUP_MANIFEST, json.dumps(content, indent=2) + "\n", durable=True, private=True)
            for folder in {(part / name).parent for name in files}:
                sync_directory(folder)
            (part / LOCK).unlink()
            os.replace(part, destination)
        except BaseException:
            _remove(part)
            raise
        finally:
            lock.close()
    sync_directory(destination.absolute().parent)
    return files


def note_backup(directory: Path, source: Path) -> None:
    """Records in a data directory when its last backup was taken; raises StorageError if it cannot be written."""
    with clear_errors(f"cannot write {directory / _LAST_BACKUP}"):
        content = {"made": _read(source / BACKUP_MANIFEST)["made"], "folder": str(source)}
        write_whole(directory / _LAST_BACKUP, json.dumps(content) + "\n", private=True)


def last_backup(directory: Path) -> datetime | None:
    """When the last backup of a data directory was taken; None if there is no record of one."""
    with suppress(OSError, *_BAD_CONTENT):
        return datetime.fromisoformat(_read(directory / _LAST_BACKUP)["made"])
    return None


def backups_in(folder: Path) -> list[Backup]:
    """The backups in a folder, newest first, without verifying them."""
    backups = []
    for manifest in folder.glob(f"*/{BACKUP_MANIFEST}"):
        with suppress(OSError, *_BAD_CONTENT):
            content = _read(manifest)
            num_bytes = sum(int(file["num_bytes"]) for file in content["files"].values())
            made = datetime.fromisoformat(content["made"]).astimezone(UTC)
            backups.append(Backup(folder=str(manifest.parent.absolute()), made=made, num_bytes=num_bytes))
    return sorted(backups, key=lambda backup: (backup.made, backup.folder), reverse=True)


def mark_verified(source: Path) -> None:
    """Records in a backup that everything in it was verified."""
    write_whole(source / _VERIFIED, "", durable=True, private=True)


def remove_older(newest: Path, pattern: str, *, keep: int) -> Iterator[Path]:
    """Removes old backups beside a verified one, oldest first, until ``keep`` backups remain; yields removed folders.

    Only verified backups of the same store whose name matches the glob pattern are removed; nothing if ``newest`` is
    not verified. A kill at any moment leaves complete backups, or a partial folder that the next backup removes.
    """
    store_id = _store_id(newest / BACKUP_MANIFEST)
    if store_id is None or not (newest / _VERIFIED).exists():
        return
    folders = [Path(backup.folder) for backup in backups_in(newest.parent)]
    removable = [
        folder
        for folder in folders
        if folder != newest.absolute()
        and folder.match(pattern)
        and (folder / _VERIFIED).exists()
        and _store_id(folder / BACKUP_MANIFEST) == store_id
    ]
    for old in reversed(removable[keep - 1 :]):
        part = old.with_name(f"{old.name}.part")
        with clear_errors(f"cannot remove {old}"):
            os.replace(old, part)  # from here on it does not count as a backup
        sync_directory(old.parent)
        with closing(DirectoryLock(part)):
            _remove(part)
        yield old


def check_backup(source: Path) -> dict[str, BackupFile]:
    """Compares every file of a backup with its checksum; raises DamagedError or, for another format, StorageError."""
    manifest = source / BACKUP_MANIFEST
    with clear_errors(f"cannot read backup {source}"):
        try:
            content = _read(manifest)
            format_number = content["format"]
            files = {str(name): BackupFile(**values) for name, values in content["files"].items()}
        except FileNotFoundError as error:
            raise DamagedError(f"{source} is not a complete backup: it has no {BACKUP_MANIFEST}") from error
        except _BAD_CONTENT as error:
            raise DamagedError(f"{manifest} is damaged: expected what a backup wrote") from error
        if format_number != _FORMAT:
            raise StorageError(
                f"{manifest} has format {format_number}, expected {_FORMAT}: use the release that wrote it"
            )
        for name, file in files.items():
            path = source / name
            if ".." in Path(name).parts or Path(name).is_absolute() or not path.is_file():
                raise DamagedError(f"{path} is missing in the backup: use another one")
            if any(parent.is_symlink() for parent in (path, *path.parents) if source in parent.parents):
                raise DamagedError(f"{path} is a link, expected a file: use another backup")
            if path.stat().st_size != file.num_bytes or _digest(path) != file.sha256:
                raise DamagedError(f"{path} has changed since the backup: its checksum differs; use another backup")
    return files


def restore(source: Path, directory: Path, *, stores: Mapping[str, Schema], needed: str) -> Mapping[str, BackupFile]:
    """Copies a backup into an empty directory; servers refuse the directory until the copy is complete.

    The manifest of the backup is not trusted, since it could name any file. ``stores``: allowed content: pattern of the
    path, e.g. ``papers/*/recommendation.sqlite3`` -> schema. ``needed``: path of the store that must be in the backup.

    Raises ConflictError if the directory is not empty, DamagedError if the backup is damaged or contains other files;
    then nothing was copied. After a DiskFullError, repeating the call continues.
    """
    files = check_backup(source)
    if needed not in files:
        raise DamagedError(f"{source} is a backup without {needed}: use another one")
    for name in files:
        application_id, version = _header(source / name)
        schemas = [schema for pattern, schema in stores.items() if _matches(name, pattern)]
        schema = next((schema for schema in schemas if schema.application_id == application_id), None)
        if schema is None:
            raise DamagedError(f"{source / name} is no file of a backup: use another backup")
        if schema.version != version:
            raise DamagedError(
                f"{source / name} has version {version}, expected {schema.version}: use the release that wrote it"
            )
    with clear_errors(f"cannot write {directory}"):
        make_private_directory(directory)
        names = {path.name for path in directory.iterdir()}
        if names - _IGNORED_NAMES and UNFINISHED_RESTORE not in names:
            name = min(names - _IGNORED_NAMES)
            raise ConflictError(f"data directory {directory} contains {name}: expected an empty one, or no such folder")
        with closing(DirectoryLock(directory)):
            write_whole(directory / UNFINISHED_RESTORE, f"{source}\n", durable=True, private=True)
            for name in files:
                make_private_directory((directory / name).parent)
                for suffix in ("-wal", "-shm", "-mark"):
                    (directory / f"{name}{suffix}").unlink(missing_ok=True)
                with write_atomically(directory / name, durable=True, private=True) as part:
                    shutil.copyfile(source / name, part)
            (directory / UNFINISHED_RESTORE).unlink()
            sync_directory(directory)
    return files


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _store_id(manifest: Path) -> str | None:
    """The store id in the manifest of a data directory or backup; None if there is none."""
    with suppress(OSError, *_BAD_CONTENT):
        store_id: str | None = _read(manifest)["store_id"]
        return store_id
    return None


def _remove_abandoned(folder: Path) -> None:
    """Removes partial backups of killed processes; a running backup holds its lock."""
    for part in folder.glob("*.part"):
        if (part / LOCK).is_file() or (part / BACKUP_MANIFEST).is_file():
            with suppress(StorageError), closing(DirectoryLock(part)):  # in use, or finished in the meantime
                _remove(part)


def _remove(part: Path) -> None:
    """Removes a partial backup, its lock last: the lock identifies what remains if this process is killed."""
    for path in part.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK:
            path.unlink(missing_ok=True)
    shutil.rmtree(part, ignore_errors=True)


def _copy(store: Path, copy: Path, counter: str) -> int | None:
    """Copies a database in one consistent state; returns the number of its writes."""
    make_private_file(copy)
    try:
        with _open_read_only(store) as source, closing(sqlite3.connect(copy)) as target:
            source.execute("COMMIT")  # the copy is a separate read transaction
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            count_row = target.execute(counter).fetchone() if counter else None
    except sqlite3.Error as error:
        kind, reason = explain(error, copy)
        raise kind(f"cannot copy {store} to {copy}: {reason}") from error
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
    return None if count_row is None else int(count_row[0])


def _matches(name: str, pattern: str) -> bool:
    return len(Path(name).parts) == len(Path(pattern).parts) and Path(name).match(pattern)


def _header(path: Path) -> tuple[int, int]:
    """Application id and version in the header of a SQLite database; (-1, -1) for other files."""
    with clear_errors(f"cannot read {path}"), path.open("rb") as file:
        header = file.read(_APPLICATION_ID.stop)
    if len(header) < _APPLICATION_ID.stop or not header.startswith(_SQLITE_MAGIC):
        return -1, -1
    return int.from_bytes(header[_APPLICATION_ID], "big"), int.from_bytes(header[_USER_VERSION], "big")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees one state of the file and changes nothing; another process may be writing."""
    with clear_errors(f"cannot read {path}"):
        if not path.exists() or not path.stat().st_size:
            raise DamagedError(f"{path} is {'empty' if path.exists() else 'missing'}: expected a store")
    try:
        # SQLite makes files beside the store while it is open, unless told that nothing changes it.
        is_fixed = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
        uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_fixed else ''}"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            register_checksum(connection)
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        kind, reason = explain(error, path)
        raise kind(f"cannot read {path}: {reason}") from error


def problems_of(path: Path, schema: Schema) -> Iterator[str]:
    """Reads a store completely and yields a description of each problem; a server may have it open."""
    try:
        mark, expected_writes = HighWaterMark(path), None
        try:
            expected_writes = mark.read() if schema.counter else None  # read it first: the store may still be written
        except DamagedError as error:
            yield str(error)
        with _open_read_only(path) as connection:
            answers = [str(answer) for (answer,) in connection.execute(f"PRAGMA integrity_check({_MAX_PAGE_PROBLEMS})")]
            yield from (f"{path}: {' '.join(answer.split())}" for answer in answers if answer != "ok")
            version = pragma(connection, "user_version")
            if pragma(connection, "application_id") != schema.application_id or version != schema.version:
                yield (
                    f"{path}: is not a {schema.title} of version {schema.version} (found version {version}): only its "
                    "pages were verified; use the release that wrote it"
                )
                return
            for table in schema.checked:
                yield from (f"{path}: {row}: its checksum differs" for row in damaged_rows(connection, table))
            if schema.counter:
                mark.compare(schema.title, schema.num_writes(connection), expected_writes)
            if schema.inspect is not None:
                yield from (f"{path}: {problem}" for problem in schema.inspect(connection))
    except StorageError as error:
        yield str(error)
