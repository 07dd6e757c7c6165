"""Durable storage: SQLite and PostgreSQL databases, atomic files, locked data directories, backups."""

from facets.storage.backup import (
    BACKUP_MANIFEST,
    Backup,
    BackupFile,
    back_up,
    backups_in,
    check_backup,
    last_backup,
    mark_verified,
    note_backup,
    problems_of,
    remove_older,
    restore,
)
from facets.storage.checksums import row_checksum, tables_with_checksums
from facets.storage.database import Database, Schema
from facets.storage.directory import MANIFEST, DirectoryLock, DirectoryManifest
from facets.storage.files import (
    clear_errors,
    make_private_directory,
    sync_directory,
    write_atomically,
    write_whole,
)
from facets.storage.fitted import FITTED_FORMAT, LogisticCurves, read_fitted
from facets.storage.mark import HighWaterMark
from facets.storage.postgres import PostgresDatabase, PostgresSchema
from facets.storage.records import NO_NEWS, News, Record, RecordFollower, RecordStore, record_schema
from facets.storage.sql import SqlConnection, SqlCursor, SqlDatabase

__all__ = [
    "BACKUP_MANIFEST",
    "FITTED_FORMAT",
    "MANIFEST",
    "NO_NEWS",
    "Backup",
    "BackupFile",
    "Database",
    "DirectoryLock",
    "DirectoryManifest",
    "HighWaterMark",
    "LogisticCurves",
    "News",
    "PostgresDatabase",
    "PostgresSchema",
    "Record",
    "RecordFollower",
    "RecordStore",
    "Schema",
    "SqlConnection",
    "SqlCursor",
    "SqlDatabase",
    "back_up",
    "backups_in",
    "check_backup",
    "clear_errors",
    "last_backup",
    "make_private_directory",
    "mark_verified",
    "note_backup",
    "problems_of",
    "read_fitted",
    "record_schema",
    "remove_older",
    "restore",
    "row_checksum",
    "sync_directory",
    "tables_with_checksums",
    "write_atomically",
    "write_whole",
]
