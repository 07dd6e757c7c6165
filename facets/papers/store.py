"""Papers and vectors added after training: one SQLite file, written before the caller hears of it."""

import json
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.errors import StorageError
from facets.papers.inputs import Author, CandidateKind, Paper

__all__ = ["AddedVector", "AdditionStore"]

_FILE = "recommendation.sqlite3"
_VERSION = 1
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE papers (id TEXT PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE vectors (
    kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (kind, id)
);
-- Papers of an author beyond those that name him or her: given by add_authors.
CREATE TABLE memberships (kind TEXT NOT NULL, id TEXT NOT NULL, paper TEXT NOT NULL, PRIMARY KEY (kind, id, paper));
"""


@dataclass(frozen=True, slots=True)
class AddedVector:
    """The fitted vector of an author or a citing paper; ``vector`` is ``[D]`` float32."""

    kind: CandidateKind
    id: str
    name: str
    vector: NDArray[np.float32]


class AdditionStore:
    """The additions of one model in one folder; a call has stored all of its arguments or nothing.

    Raises:
        StorageError: The folder cannot be opened, is damaged, or belongs to another model.
    """

    def __init__(self, folder: Path, model_name: str) -> None:
        self._path = folder / _FILE
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                self._create(model_name)
            elif version != _VERSION:
                raise StorageError(f"{self._path}: expected version {_VERSION} of the file, got {version}")
            owner = self._meta("model")
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"cannot open the additions in {self._path}: {error}") from error
        if owner != model_name:
            raise StorageError(f"{self._path}: expected additions to the model {model_name!r}, got {owner!r}")

    def _create(self, model_name: str) -> None:
        self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION};")
        self._connection.execute("INSERT INTO meta VALUES ('model', ?)", (model_name,))
        self._connection.execute("COMMIT")

    def _meta(self, key: str) -> str:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def revision(self) -> str:
        """Revision of the model that the vectors were fitted with; empty before the first addition."""
        return self._meta("revision")

    def papers(self) -> list[Paper]:
        """All added papers, in the order of their ids."""
        rows = self._read("SELECT record FROM papers ORDER BY id")
        return [_decoded(str(record), self._path) for (record,) in rows]

    def vectors(self) -> list[AddedVector]:
        """All fitted vectors, by kind and id."""
        rows = self._read("SELECT kind, id, name, vector FROM vectors ORDER BY kind, id")
        return [
            AddedVector(CandidateKind(kind), str(key), str(name), np.frombuffer(blob, dtype="<f4").astype(np.float32))
            for kind, key, name, blob in rows
        ]

    def memberships(self) -> list[tuple[CandidateKind, str, str]]:
        """Kind, id and paper id of all memberships given apart from the papers."""
        rows = self._read("SELECT kind, id, paper FROM memberships ORDER BY kind, id, paper")
        return [(CandidateKind(kind), str(key), str(paper)) for kind, key, paper in rows]

    def write(
        self,
        *,
        revision: str,
        papers: Sequence[Paper] = (),
        vectors: Iterable[AddedVector] = (),
        memberships: Iterable[tuple[CandidateKind, str, str]] = (),
    ) -> None:
        """Stores everything in one durable transaction; papers and vectors of known ids are replaced.

        Raises:
            StorageError: The file could not be written; nothing was stored.
        """
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(
                    "INSERT OR REPLACE INTO papers VALUES (?, ?)", [(p.id, _encoded(p)) for p in papers]
                )
                self._connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                    [(str(v.kind), v.id, v.name, v.vector.astype("<f4").tobytes()) for v in vectors],
                )
                self._connection.executemany(
                    "INSERT OR REPLACE INTO memberships VALUES (?, ?, ?)",
                    [(str(kind), key, paper) for kind, key, paper in memberships],
                )
                self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('revision', ?)", (revision,))
                self._connection.execute("COMMIT")
            except (sqlite3.Error, UnicodeEncodeError) as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise StorageError(f"cannot store the additions in {self._path}: {error}") from error

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(query).fetchall()
            except sqlite3.Error as error:
                raise StorageError(f"cannot read the additions in {self._path}: {error}") from error


def _encoded(paper: Paper) -> str:
    return json.dumps(
        {
            "id": paper.id,
            "title": paper.title,
            "abstract": paper.abstract,
            "authors": [[author.name, author.id] for author in paper.authors],
            "cited_by": list(paper.cited_by),
            "year": paper.year,
        }
    )


def _decoded(record: str, path: Path) -> Paper:
    try:
        values = json.loads(record)
        return Paper(
            title=values["title"],
            abstract=values["abstract"],
            id=values["id"],
            authors=tuple(Author(name, key) for name, key in values["authors"]),
            cited_by=tuple(values["cited_by"]),
            year=values["year"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: a paper is damaged: {error}") from error
