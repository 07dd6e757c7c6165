"""Durable files: one SQLite opener, one atomic write, one lock of a directory, errors of their own."""

from facets.storage.database import Database, Migration, Schema
from facets.storage.files import clear_errors, sync_directory, write_atomically
from facets.storage.lock import DirectoryLock

__all__ = [
    "Database",
    "DirectoryLock",
    "Migration",
    "Schema",
    "clear_errors",
    "sync_directory",
    "write_atomically",
]
