"""The file of added papers: what is read is what was written, or an error."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from damage import flipped_copies

from facets.errors import DamagedError, StorageError
from facets.papers.records import Author, CandidateKind, Paper
from facets.papers.store import AddedVector, AdditionStore

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
NUM_FLIPS = 60


def content(store: AdditionStore) -> object:
    added = store.content()
    vectors = [(v.kind, v.id, v.name, v.vector.tolist()) for v in added.vectors]
    sentences = {key: vector.tolist() for key, vector in added.sentences.items()}
    return added.papers, vectors, sentences, added.given, added.revision


def filled(folder: Path) -> object:
    store = AdditionStore(folder, "toy")
    rng = np.random.default_rng(0)
    store.add(
        revision="r1",
        papers=[Paper(f"title {n}", f"abstract {n}", f"p{n}", (Author(f"a{n}"),), ("x",), year=2000) for n in range(9)],
        vectors=[
            AddedVector(CandidateKind.AUTHORS, f"a{n}", f"Name {n}", rng.standard_normal(64).astype(np.float32))
            for n in range(9)
        ],
        sentences={f"p{n}": rng.standard_normal(16).astype(np.float32) for n in range(9)},
        given=[(f"a{n}", "p1") for n in range(9)],
    )
    expected = content(store)
    store.close()
    return expected


def test_no_flipped_bit_loads_as_other_data(tmp_path: Path) -> None:
    expected, wrong = filled(tmp_path), []
    for bit in flipped_copies(tmp_path / "recommendation.sqlite3", NUM_FLIPS, seed=1):
        try:
            store = AdditionStore(tmp_path, "toy")
        except StorageError:
            continue
        try:
            if content(store) != expected:
                wrong.append(bit)
        except StorageError:
            pass
        store.close()
    assert not wrong


def test_lost_log_is_told_with_the_number_of_writes(tmp_path: Path) -> None:
    store = AdditionStore(tmp_path / "before", "toy")
    store.add(revision="r1", papers=[Paper("title", id="kept")])
    (tmp_path / "after").mkdir()
    for number in range(3):
        store.add(revision="r1", papers=[Paper("title", id=f"p{number}")])
    for name in ("", "-mark"):  # without the log
        shutil.copy(tmp_path / "before" / f"recommendation.sqlite3{name}", tmp_path / "after")
    store.close()
    with pytest.raises(DamagedError, match="lost its last 4 writes"):
        AdditionStore(tmp_path / "after", "toy")
    (tmp_path / "after" / "recommendation.sqlite3-mark").unlink()
    AdditionStore(tmp_path / "after", "toy").close()


def test_the_golden_file_of_additions_is_read(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "papers_v1", tmp_path / "papers")
    for _ in range(2):
        store = AdditionStore(tmp_path / "papers", "toy")
        added = store.content()
        assert added.revision == "r1" and added.given == {("ada", "p1")}
        assert [(paper.id, paper.authors[0].id, paper.cited_by_ids, paper.year) for paper in added.papers.values()] == [
            ("p1", "ada", ("p2",), 2001)
        ]
        assert added.vectors[0].vector.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert {key: vector.tolist() for key, vector in added.sentences.items()} == {"p1": [0.5, -1.0]}
        store.close()
