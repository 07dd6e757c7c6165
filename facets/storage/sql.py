"""The database of a store: SQLite in this process, or PostgreSQL shared by several servers."""

from typing import TypeAlias

from facets.storage.database import Database, SqliteConnection
from facets.storage.postgres import PostgresConnection, PostgresDatabase

SqlDatabase: TypeAlias = Database | PostgresDatabase
SqlConnection: TypeAlias = SqliteConnection | PostgresConnection
