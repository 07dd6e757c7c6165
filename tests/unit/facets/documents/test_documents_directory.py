"""A data directory knows what it must hold, and is missed when it is gone."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from facets.documents import CollectionEngine, Document, EngineConfig
from facets.errors import DamagedError, StorageError, StoreGoneError, StoreInUseError

OpenEngine = Callable[..., CollectionEngine]
MakeDocuments = Callable[..., list[Document]]


@pytest.fixture
def closed(open_engine: OpenEngine, make_documents: MakeDocuments, tmp_path: Path) -> Path:
    """A data directory with a snapshot, closed."""
    open_engine(make_documents(100), exact_max_facets=100).close()
    return tmp_path / "data"


def open_(directory: Path) -> CollectionEngine:
    return CollectionEngine.open(directory, EngineConfig(background=False))


def test_files_are_for_this_user_alone(open_engine: OpenEngine, make_documents: MakeDocuments, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        engine = open_engine(make_documents(100), exact_max_facets=100)
        files = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
        modes = {path.name: path.stat().st_mode & 0o777 for path in files}
        engine.close()
        modes |= {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*")}
    finally:
        os.umask(before)
    assert {"documents.sqlite3", "documents.sqlite3-wal", "documents.sqlite3-mark", "1.index", "lock"} < set(modes)
    folders = {"data", "indexes"}
    assert {mode for name, mode in modes.items() if name in folders} == {0o700}
    assert {mode for name, mode in modes.items() if name not in folders} == {0o600}, modes


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("left", ["all", "nothing but the manifest"])
def test_directory_without_its_store_is_refused(closed: Path, empty: bool, left: str) -> None:
    for path in closed.glob("documents.sqlite3*"):
        path.unlink()
    if left == "nothing but the manifest":
        shutil.rmtree(closed / "indexes")
    if empty:
        (closed / "documents.sqlite3").touch()
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"documents\.sqlite3 is (missing|empty), but .* had one: restore"):
            open_(closed)


@pytest.mark.parametrize("name", ["data", "data/indexes"])
def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(StorageError, match=f"{name} cannot be created: it is a file"):
        open_(tmp_path / "data")


def test_new_directory_gets_its_manifest_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "documents.sqlite3").touch()  # as a first start that was killed leaves it
    open_(tmp_path / "data").close()
    before = (tmp_path / "data" / "directory.json").read_bytes()
    open_(tmp_path / "data").close()
    assert (tmp_path / "data" / "directory.json").read_bytes() == before
    assert json.loads(before)["format"] == 1


def test_store_of_another_directory_is_refused(closed: Path, tmp_path: Path) -> None:
    open_(tmp_path / "other").close()
    shutil.copy(tmp_path / "other" / "documents.sqlite3", closed)
    (closed / "documents.sqlite3-mark").unlink()
    with pytest.raises(StorageError, match="names store"):
        open_(closed)
    (closed / "directory.json").unlink()
    open_(closed).close()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', "flipped", '{"format": 2}'])
def test_damaged_or_newer_manifest_is_refused_until_it_is_deleted(closed: Path, content: str) -> None:
    manifest = closed / "directory.json"
    problem = "format 2, expected 1" if "2" in content else r"directory\.json is damaged: .* or delete this file"
    damaged = manifest.read_text().replace('"store_id": "', '"store_id": "f') if content == "flipped" else content
    manifest.write_text(damaged)
    for _ in range(2):
        with pytest.raises(StorageError, match=problem):
            open_(closed)
        assert manifest.read_text() == damaged
    manifest.unlink()
    with open_(closed) as engine:
        assert engine.count("docs").num_documents == 100
    assert "store_id" in json.loads(manifest.read_text())


@pytest.mark.parametrize("replaced", [False, True])
def test_deleted_directory_takes_no_writes(
    open_engine: OpenEngine, make_documents: MakeDocuments, tmp_path: Path, replaced: bool
) -> None:
    engine = open_engine(make_documents(100), exact_max_facets=100)
    engine.check_directory()
    shutil.rmtree(tmp_path / "data")
    if replaced:
        (tmp_path / "data").mkdir()
    with pytest.raises(StoreGoneError, match="deleted"):
        engine.check_directory()
    for write in (
        lambda: engine.upsert("docs", make_documents(1)),
        lambda: engine.delete("docs", ids=["d0000"]),
        lambda: engine.delete_collection("docs"),
        lambda: engine.create_collection("more", model="toy", model_revision="1", num_facets=2, dim=32),
    ):
        with pytest.raises(StoreGoneError, match="writes are refused"):
            write()
    assert engine.get("docs", ["d0000"]).missing_ids == (), "what was read before can still be read, and saved"
    engine.close()
    open_(tmp_path / "data").close()


def test_engine_of_a_moved_directory_leaves_the_one_in_its_place_alone(
    open_engine: OpenEngine, make_documents: MakeDocuments, tmp_path: Path
) -> None:
    """Neither its snapshots nor SQLite's log: the second engine is killed, and all it acknowledged is there."""
    # Its index is not saved.
    first = open_engine(make_documents(100, prefix="first-"), exact_max_facets=100, snapshot_every_writes=1000)
    (tmp_path / "data").rename(tmp_path / "moved")
    second = open_engine(make_documents(60, prefix="second-"), exact_max_facets=100, snapshot_every_writes=10)
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert {"1.index", "documents.sqlite3-wal"} < {path.name for path in before}
    with pytest.raises(StoreGoneError, match="moved"):
        first.maintain()
    with pytest.raises(StoreGoneError, match="moved"):
        first.upsert("docs", make_documents(1))
    with pytest.raises(StoreInUseError, match="in use by this process"):
        open_(tmp_path / "moved")
    first.close()
    assert {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()} == before
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    second.close()
    for directory, prefix, count in (("killed", "second-", 60), ("moved", "first-", 100)):
        with open_(tmp_path / directory) as again:
            ids = [document.id for document in again.list_documents("docs", page_size=1000).documents]
            assert len(ids) == count and all(id.startswith(prefix) for id in ids)
