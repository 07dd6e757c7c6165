"""The database of a store: SQLite in this process, or PostgreSQL shared by several servers."""

import sqlite3
from typing import TypeAlias

from facets.storage.database import Database, SqliteConnection
from facets.storage.postgres import PostgresConnection, PostgresDatabase

SqlDatabase: TypeAlias = Database | PostgresDatabase
SqlConnection: TypeAlias = SqliteConnection | PostgresConnection
SqlCursor: TypeAlias = sqlite3.Cursor  # or psycopg's, which has the same methods
