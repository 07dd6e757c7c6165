"""Writes a golden file of a small store; run once per version, never to mend a test.

python tests/golden/make_stores.py papers_v1|relations_v1|streams_v1|backup_v1
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from facets_server.documents.stream_store import SCHEMA as STREAMS
from facets_server.runtime.upkeep import back_up_directory

from facets.papers.records import Author, CandidateKind, Paper
from facets.papers.store import AddedVector, AdditionStore
from facets.relations.additions import AddedRelation, AddedRelationStore
from facets.storage.database import Database

HERE = Path(__file__).resolve().parent


def write_papers(folder: Path) -> None:
    store = AdditionStore(folder, "toy")
    store.add(
        revision="r1",
        papers=[Paper("Title", "Abstract", "p1", (Author("Ada", "ada"),), ("p2",), year=2001)],
        vectors=[AddedVector(CandidateKind.AUTHORS, "ada", "Ada", np.arange(4, dtype=np.float32))],
        sentences={"p1": np.array([0.5, -1.0], dtype=np.float32)},
        given=[("ada", "p1")],
    )
    store.close()


def write_relations(folder: Path) -> None:
    store = AddedRelationStore(folder, "toy")
    store.add(AddedRelation("mentor", ("$ARG1 taught $ARG2", "$ARG2 , a pupil of $ARG1"), 0.25))
    store.add(AddedRelation("caf\u00e9", ("$ARG1 drinks at $ARG2",), 0.5))
    store.close()


def write_streams(folder: Path) -> None:
    database = Database(folder / "ingest-streams.sqlite3", STREAMS)  # the store would choose the token and the time
    with database.write() as connection:
        connection.execute(
            "INSERT INTO streams (token, collection, collection_created, last_sequence, generation, updated) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            ("golden-token", "news", "2026-01-01T00:00:00+00:00", 7, 1, 1e11),
        )
    database.close()


def write_backup(folder: Path) -> None:
    folder.rmdir()
    with TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        shutil.copytree(HERE / "index_v1" / "directory", data)
        shutil.copytree(HERE / "papers_v1", data / "papers" / "toy")
        shutil.copytree(HERE / "relations_v1", data / "relations" / "toy")
        shutil.copy(HERE / "streams_v1" / "ingest-streams.sqlite3", data)
        assert back_up_directory(data, folder, print)


MAKERS = {"papers": write_papers, "relations": write_relations, "streams": write_streams, "backup": write_backup}


def main(version: str) -> None:
    """Writes into the folder of the version, which must be new; the mark stays out, as in a copy."""
    folder = HERE / version
    folder.mkdir()
    MAKERS[version.partition("_")[0]](folder)
    for mark in folder.glob("*-mark"):
        mark.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
