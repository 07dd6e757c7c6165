"""Durable storage: SQLite and PostgreSQL databases, atomic files, locked data directories, backups."""
