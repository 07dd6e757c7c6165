"""Copies of a data directory: taken while it is in use, checked, and put back whole; and stores looked through."""

import hashlib
import json
import os
import shutil
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from facets.errors import ConflictError, DamagedError, StorageError
from facets.storage.checksums import damaged_rows, register_checksum
from facets.storage.database import Schema
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
_VERIFIED = "verified"  # an empty file in a backup in which everything was compared
_LAST_BACKUP = "last-backup.json"  # in the data directory: when the last one was taken
_FORMAT = 1
_MAY_BE_THERE = {LOCK, "lost+found", UNFINISHED_RESTORE}  # in a directory that counts as empty
_BUFFER = 1024 * 1024
_SQLITE_MAGIC = b"SQLite format 3\0"
_SQLITE_HEADER = struct.Struct(">16s52xI")  # magic, what only SQLite needs, application id
_MOST = 20  # problems of its pages that SQLite names


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupFile:
    """One store in a backup."""

    num_bytes: int  # size
    sha256: str  # of its bytes
    writes: int | None  # how many writes it had seen, of a document store its revision; None: nobody counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Backup:
    """A backup that was taken."""

    folder: str  # its whole path
    made: datetime  # UTC
    num_bytes: int  # of its stores


def back_up(directory: Path, destination: Path, stores: Sequence[tuple[Path, str]]) -> dict[str, BackupFile]:
    """Copies stores of a directory that may be in use; writers are not held up.

    Each store is copied as it was at one moment, one after the other in the order given: what points at another store
    comes before it. ``backup.json`` is written last and the folder named last, so a folder of that name is whole.

    Args:
        directory: The data directory.
        destination: A new folder.
        stores: Path of each store, and the statement that counts its writes (``Schema.counter``).

    Returns:
        What was copied, by path in the directory.

    Raises:
        ConflictError: The destination exists.
        DiskFullError: There is no room; the destination is not made.
        StoreInUseError: Another process is taking the same backup.
        StorageError: A store cannot be read, or the copy not written.
    """
    part = destination.with_name(f"{destination.name}.part")
    with clear_errors(f"cannot write {destination}"):
        if destination.exists():
            raise ConflictError(f"{destination} exists: expected the name of a new folder")
        _clear_abandoned(destination.parent)
        make_private_directory(part)
        lock = DirectoryLock(part)
        try:
            files = {}
            for store, counter in stores:
                copy = part / store.relative_to(directory)
                _make_private_parents(copy, part)
                writes = _copy(store, copy, counter)
                files[str(store.relative_to(directory))] = BackupFile(
                    num_bytes=copy.stat().st_size, sha256=_digest(copy), writes=writes
                )
            made = datetime.now(tz=UTC).isoformat(timespec="seconds")
            copied = {name: asdict(file) for name, file in files.items()}
            content = {"format": _FORMAT, "made": made, "store_id": _store_id(directory / MANIFEST), "files": copied}
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
    """Writes into a data directory when its last backup was taken, for whoever asks the server.

    Raises:
        StorageError: It cannot be written, say because only the server's user may; the backup is good all the same.
    """
    with clear_errors(f"cannot write {directory / _LAST_BACKUP}"):
        made = json.loads((source / BACKUP_MANIFEST).read_text(encoding="utf-8"))["made"]
        write_whole(directory / _LAST_BACKUP, json.dumps({"made": made, "folder": str(source)}) + "\n", private=True)


def last_backup(directory: Path) -> datetime | None:
    """When the last backup of a data directory was taken; None: nobody knows of any."""
    try:
        made = json.loads((directory / _LAST_BACKUP).read_text(encoding="utf-8"))["made"]
        return datetime.fromisoformat(made)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def backups_in(folder: Path) -> list[Backup]:
    """The backups of a folder, the newest first; what is no backup is passed over, none is compared."""
    found = []
    for manifest in folder.glob(f"*/{BACKUP_MANIFEST}"):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            content = json.loads(manifest.read_text(encoding="utf-8"))
            num_bytes = sum(int(file["num_bytes"]) for file in content["files"].values())
            made = datetime.fromisoformat(content["made"]).astimezone(UTC)
            found.append(Backup(folder=str(manifest.parent.absolute()), made=made, num_bytes=num_bytes))
    return sorted(found, key=lambda one: (one.made, one.folder), reverse=True)


def mark_verified(source: Path) -> None:
    """Notes in a backup that everything in it was compared and is what was written."""
    write_whole(source / _VERIFIED, "", durable=True, private=True)


def remove_older(newest: Path, pattern: str, *, keep: int) -> Iterator[Path]:
    """Removes backups beside one that was marked as verified, the oldest first, until so many are left with it.

    Only those go that are of the same store, are marked as verified, and have a name of the pattern. Killed at any
    moment it leaves a whole backup, or half of one that the next backup removes.

    Args:
        newest: The backup that stays whatever the clock said; not marked: nothing is removed.
        pattern: Of the names, as of ``glob``.
        keep: How many stay, at least 1.

    Returns:
        The folders that are gone, as they go.

    Raises:
        StorageError: One cannot be removed, say because another process is doing so.
    """
    store_id = _store_id(newest / BACKUP_MANIFEST)
    if store_id is None or not (newest / _VERIFIED).exists():
        return
    found = [Path(backup.folder) for backup in backups_in(newest.parent) if Path(backup.folder) != newest.absolute()]
    like = [one for one in found if one.match(pattern) and (one / _VERIFIED).exists()]
    same = [one for one in like if _store_id(one / BACKUP_MANIFEST) == store_id]
    for old in reversed(same[keep - 1 :]):
        part = old.with_name(f"{old.name}.part")
        with clear_errors(f"cannot remove {old}"):
            os.replace(old, part)  # from here on it is half a backup for everybody
        sync_directory(old.parent)
        with closing(DirectoryLock(part)):
            _remove(part)
        yield old


def check_backup(source: Path) -> dict[str, BackupFile]:
    """Compares every file of a backup with what was written.

    Raises:
        DamagedError: A file is missing or has changed, or the folder is no backup.
        StorageError: It is of a newer version, or cannot be read.
    """
    manifest = source / BACKUP_MANIFEST
    with clear_errors(f"cannot read backup {source}"):
        try:
            content = json.loads(manifest.read_text(encoding="utf-8"))
            number = content["format"]
            files = {str(name): BackupFile(**values) for name, values in content["files"].items()}
        except FileNotFoundError as error:
            raise DamagedError(f"{source} is no whole backup: it has no {BACKUP_MANIFEST}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(f"{manifest} is damaged: expected what a backup wrote") from error
        if number != _FORMAT:
            raise StorageError(f"{manifest} has format {number}, expected {_FORMAT}: use the release that wrote it")
        for name, file in files.items():
            path = source / name
            if ".." in Path(name).parts or Path(name).is_absolute() or not path.is_file():
                raise DamagedError(f"{path} is missing in the backup: use another one")
            if any(place.is_symlink() for place in (path, *path.parents) if source in place.parents):
                raise DamagedError(f"{path} is a link: a backup holds its files itself; use another one")
            if path.stat().st_size != file.num_bytes or _digest(path) != file.sha256:
                raise DamagedError(f"{path} is not what was backed up: its checksum differs; use another backup")
    return files


def restore(source: Path, directory: Path, *, stores: Mapping[str, Schema], needed: str) -> Mapping[str, BackupFile]:
    """Puts a backup into an empty directory, which is not to be opened until all of it is there.

    Args:
        source: The backup. Its manifest is not trusted: who can write it could name any file.
        directory: Where it goes.
        stores: What it may hold: pattern of the path in the directory, such as ``papers/*/recommendation.sqlite3``,
            and what files of such a path hold.
        needed: Path of the store without which the others mean nothing.

    Raises:
        ConflictError: The directory holds something.
        DamagedError: The backup is damaged, or holds what is no store; nothing was copied.
        DiskFullError: There is no room; the same call again goes on.
        StorageError: The directory is in use, or cannot be written.
    """
    files = check_backup(source)
    if needed not in files:
        raise DamagedError(f"{source} is a backup without {needed}: use another one")
    for name in files:
        schemas = [schema for pattern, schema in stores.items() if _matches(name, pattern)]
        if not any(_is_store(source / name, schema) for schema in schemas):
            raise DamagedError(f"{source / name} is no store of a data directory: use another backup")
    with clear_errors(f"cannot write {directory}"):
        make_private_directory(directory)
        there = {path.name for path in directory.iterdir()}
        if there - _MAY_BE_THERE and UNFINISHED_RESTORE not in there:
            held = min(there - _MAY_BE_THERE)
            raise ConflictError(f"data directory {directory} holds {held}: expected an empty one, or no such folder")
        with closing(DirectoryLock(directory)):
            write_whole(directory / UNFINISHED_RESTORE, f"{source}\n", durable=True, private=True)
            for name, file in files.items():
                _make_private_parents(directory / name, directory)
                _put_back(source / name, directory / name, file)
            (directory / UNFINISHED_RESTORE).unlink()
            sync_directory(directory)
    return files


def _store_id(manifest: Path) -> str | None:
    """Which store a data directory has, or a backup is of; None: it does not say."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return json.loads(manifest.read_text(encoding="utf-8"))["store_id"]
    return None


def _clear_abandoned(folder: Path) -> None:
    """Removes what killed backups have left in a folder; one that is being taken holds its lock."""
    for part in folder.glob("*.part"):
        if (part / LOCK).is_file() or (part / BACKUP_MANIFEST).is_file():
            with suppress(StorageError):  # in use, or finished just now
                with closing(DirectoryLock(part)):
                    _remove(part)


def _remove(part: Path) -> None:
    """Removes half a backup, its lock last: without it nobody would know again what is left when this is killed."""
    for held in part.iterdir():
        if held.is_dir():
            shutil.rmtree(held, ignore_errors=True)
        elif held.name != LOCK:
            held.unlink(missing_ok=True)
    shutil.rmtree(part, ignore_errors=True)


def _copy(store: Path, copy: Path, counter: str) -> int | None:
    """Copies a database as it is at one moment; returns how many writes it had seen."""
    make_private_file(copy)
    try:
        with _open_read_only(store) as source, closing(sqlite3.connect(copy)) as target:
            source.execute("COMMIT")  # the copy is a read of its own
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            found = target.execute(counter).fetchone() if counter else None
    except sqlite3.Error as error:
        kind, reason = explain(error, copy)
        raise kind(f"cannot copy {store} to {copy}: {reason}") from error
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
    return None if found is None else int(found[0])


def _matches(name: str, pattern: str) -> bool:
    """Whether a path matches a pattern, part by part."""
    return len(Path(name).parts) == len(Path(pattern).parts) and Path(name).match(pattern)


def _is_store(path: Path, schema: Schema) -> bool:
    """Whether the header of a file says that it is a database of ours that holds such things."""
    with clear_errors(f"cannot read {path}"), path.open("rb") as file:
        header = file.read(_SQLITE_HEADER.size)
    if len(header) < _SQLITE_HEADER.size:
        return False
    magic, application_id = _SQLITE_HEADER.unpack(header)
    return bool(magic == _SQLITE_MAGIC and application_id == schema.application_id)


def _make_private_parents(path: Path, directory: Path) -> None:
    """Makes the folders between a directory and a file in it."""
    for folder in reversed(path.relative_to(directory).parents):
        make_private_directory(directory / folder)


def _put_back(copy: Path, path: Path, file: BackupFile) -> None:
    for suffix in ("-wal", "-shm", "-mark"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with write_atomically(path, durable=True, private=True) as part:
        shutil.copyfile(copy, part)
        if _digest(part) != file.sha256:
            raise DamagedError(f"{copy} changed while it was copied: its checksum differs")


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_BUFFER):
            digest.update(data)
    return digest.hexdigest()


@contextmanager
def _open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees one state of the file and changes nothing, also beside a process that writes.

    Raises:
        DamagedError: The file is damaged, empty or missing.
        StorageError: It cannot be read.
    """
    with clear_errors(f"cannot read {path}"):
        if not path.exists() or not path.stat().st_size:
            raise DamagedError(f"{path} is {'empty' if path.exists() else 'missing'}: expected a store")
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            register_checksum(connection)
            connection.execute("BEGIN")
            yield connection
    except sqlite3.Error as error:
        kind, reason = explain(error, path)
        raise kind(f"cannot read {path}: {reason}") from error


def problems_of(path: Path, schema: Schema) -> Iterator[str]:
    """Everything in a store that is not what was written, a sentence each; reads all of it.

    Args:
        path: The file; a server may have it open.
        schema: What it holds.
    """
    try:
        mark, known = HighWaterMark(path), None
        try:
            known = mark.read() if schema.counter else None  # before the state that is looked at
        except DamagedError as error:
            yield str(error)
        with _open_read_only(path) as connection:
            answers = [str(line) for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST})")]
            yield from (f"{path}: {' '.join(line.split())}" for line in answers if line != "ok")
            application, version = (
                int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
            )
            if application != schema.application_id or version != schema.version:
                yield (
                    f"{path}: is a {schema.title} of version {version}, expected {schema.version}: only its pages were "
                    "compared; start a server of this release on it, then verify again"
                )
                return
            for table in schema.checked:
                yield from (f"{path}: {row}: its checksum differs" for row in damaged_rows(connection, table))
            if schema.counter:
                count = int(connection.execute(schema.counter).fetchone()[0])
                mark.compare(schema.title, path, count, known)
            if schema.inspect is not None:
                yield from (f"{path}: {problem}" for problem in schema.inspect(connection))
    except StorageError as error:
        yield str(error)
