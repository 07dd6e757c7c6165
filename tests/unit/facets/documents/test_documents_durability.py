"""What survives: kill -9, damaged snapshots and pages, a full disk, a second server."""

import json
import logging
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from waiting import wait_until

from facets.documents import (
    CollectionEngine,
    Contains,
    Document,
    EngineConfig,
    SearchRequest,
    SearchResult,
    index_manager,
)
from facets.documents.dialects import postgres_schema
from facets.documents.store import SCHEMA
from facets.documents.types import TokenStats
from facets.errors import DamagedError, DiskFullError
from facets.index import live
from facets.index.backends import FaissBackend

OpenEngine = Callable[..., CollectionEngine]
MakeDocuments = Callable[..., list[Document]]

_WRITER = """
import sys
import threading
import zlib
import numpy as np
from facets.documents import CollectionEngine, Document, EngineConfig

engine = CollectionEngine.open(sys.argv[1], EngineConfig(exact_max_facets=200, snapshot_every_writes=50))
engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
rng = np.random.default_rng(0)
print("ready", flush=True)
number = 0
while True:
    facets = rng.standard_normal((20, 2, 32))
    batch = [Document(id=f"d{number + i}", text=f"w{number + i}", facet_embeddings=facets[i]) for i in range(20)]
    revision = engine.upsert("docs", batch).revision
    number += 20
    print(number, revision, flush=True)
"""


def child(script: str, data_dir: Path) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[4]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script, str(data_dir)], stdout=subprocess.PIPE, text=True, env=environment
    )


def search_all(engine: CollectionEngine, num: int = 5) -> SearchResult:
    queries = np.random.default_rng(3).standard_normal((num, 2, 32)).astype(np.float32)
    return engine.search("docs", SearchRequest(facets=queries, top_k=10, exact=True))


def answers(result: SearchResult) -> list[list[tuple[str, float]]]:
    return [[(hit.id, hit.score) for hit in hits] for hits in result.hits]


@pytest.fixture
def saved(open_engine: OpenEngine, make_documents: MakeDocuments, tmp_path: Path) -> tuple[Path, object]:
    """A closed data directory with a FAISS snapshot of 600 documents, and the answers it gave."""
    engine = open_engine(make_documents(600), exact_max_facets=1000)
    expected = answers(search_all(engine))
    engine.close()
    assert (tmp_path / "data" / "indexes" / "1.index").is_file()
    return tmp_path / "data", expected


def test_acknowledged_documents_survive_sigkill(tmp_path: Path) -> None:
    process = child(_WRITER, tmp_path / "data")
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while len(lines) < 20:
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait()
    acknowledged, revision = map(int, [line for line in lines if line.endswith("\n")][-1].split())
    assert acknowledged >= 300
    with CollectionEngine.open(tmp_path / "data", EngineConfig(background=False)) as engine:
        assert engine.revision >= revision
        wanted = [f"d{number}" for number in range(acknowledged)]
        assert engine.get("docs", wanted).missing_ids == ()
        total = engine.count("docs").num_documents
        assert total in (acknowledged, acknowledged + 20), "a batch is stored whole or not at all"
        last = engine.get("docs", [wanted[-1]], include_facets=True).documents[0]
        assert last.facet_embeddings is not None
        found = engine.search("docs", SearchRequest(facets=last.facet_embeddings[None], top_k=1, exact=True))
        assert found.hits[0][0].id == wanted[-1]
        by_words = engine.search(
            "docs", SearchRequest(texts=[f"w{id[1:]}" for id in wanted[-200:]], mode="lexical", top_k=1)
        )
        assert [hits[0].id for hits in by_words.hits] == wanted[-200:]


def test_stale_snapshot_is_caught_up(
    saved: tuple[Path, object], open_engine: OpenEngine, make_documents: MakeDocuments, tmp_path: Path
) -> None:
    snapshot = saved[0] / "indexes" / "1.index"
    shutil.copy(snapshot, tmp_path / "old.index")
    engine = open_engine(exact_max_facets=1000)
    engine.delete("docs", ids=[f"d{number:04}" for number in range(100, 200)])
    engine.upsert("docs", make_documents(50, seed=4))
    engine.upsert("docs", make_documents(30, seed=5, prefix="new"))
    expected = answers(search_all(engine))
    engine.close()
    shutil.copy(tmp_path / "old.index", snapshot)
    engine = open_engine(exact_max_facets=1000)
    assert engine.get_collection("docs").index_kind == "faiss-ivf-int8"
    assert answers(search_all(engine)) == expected


def flip(path: Path, where: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(where * (len(data) - 1))] ^= 0x40
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda path, where=where: flip(path, where) for where in (0.001, 0.4, 0.7)),
        lambda path: flip(path, 1.0),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1000]),
    ],
)
def test_damaged_snapshot_is_set_aside_and_rebuilt(
    saved: tuple[Path, object],
    open_engine: OpenEngine,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], object],
) -> None:
    snapshot = saved[0] / "indexes" / "1.index"
    damage(snapshot)
    with caplog.at_level(logging.WARNING):
        engine = open_engine(exact_max_facets=1000)
    assert "set aside" in caplog.text
    assert snapshot.with_suffix(".damaged").exists()
    assert answers(search_all(engine)) == saved[1]
    engine.maintain()
    assert engine.get_collection("docs").index_kind == "faiss-ivf-int8"
    assert answers(search_all(engine)) == saved[1]


@pytest.mark.parametrize("is_newer", [False, True])
def test_snapshot_of_another_or_a_newer_store_is_not_trusted(
    saved: tuple[Path, object], make_documents: MakeDocuments, tmp_path: Path, is_newer: bool
) -> None:
    config, other = EngineConfig(background=False, exact_max_facets=1000), tmp_path / "other"
    if is_newer:
        shutil.copytree(saved[0], other)
    with CollectionEngine.open(saved[0] if is_newer else other, config) as engine:
        if not is_newer:
            engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
        engine.upsert("docs", make_documents(600, seed=8))
        engine.maintain()
        expected = saved[1] if is_newer else answers(search_all(engine))
    shutil.copy(saved[0] / "indexes" / "1.index", other / "indexes" / "1.index")
    with CollectionEngine.open(other, config) as engine:
        assert answers(search_all(engine)) == expected
    assert (other / "indexes" / "1.damaged").exists()


def test_leftovers_of_deleted_collections_are_removed(saved: tuple[Path, object], open_engine: OpenEngine) -> None:
    for name in ("99.index", "1.tmp", "1.index.part"):
        (saved[0] / "indexes" / name).write_bytes(b"left over")
    open_engine()
    assert sorted(path.name for path in (saved[0] / "indexes").iterdir()) == ["1.index"]


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_one_document_with_damaged_facets_is_named_and_left_out(
    open_engine: OpenEngine,
    make_documents: MakeDocuments,
    tmp_path: Path,
    with_snapshot: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    documents = make_documents(600)
    victim = documents[300]
    open_engine(documents, exact_max_facets=1000).close()
    if not with_snapshot:
        (tmp_path / "data" / "indexes" / "1.index").unlink()
    with sqlite3.connect(tmp_path / "data" / "documents.sqlite3") as connection:
        changed = (
            "UPDATE parts SET units = CAST(substr(units, 1, 5) || x'77' || substr(units, 7) AS BLOB) WHERE row = 301"
        )
        assert connection.execute(changed).rowcount == 1
        # One facet too few: the codes and their norms disagree, as before checksums of both
        shortened = "UPDATE parts SET units = substr(units, 1, 20) WHERE row = 311"
        assert connection.execute(shortened).rowcount == 1
    connection.close()
    query = victim.facet_embeddings[None].astype(np.float32)
    with caplog.at_level(logging.ERROR):  # of what a snapshot holds, the store is read when it is found
        engine = open_engine(exact_max_facets=1000)
        for exact in (True, False):
            hits = engine.search("docs", SearchRequest(facets=query, top_k=600, exact=exact)).hits[0]
            assert {hit.id for hit in hits} <= {document.id for document in documents} - {"d0300", "d0310"}
            assert len(hits) == 598 or not exact
    assert {line for record in caplog.records for line in ("d0300", "d0310") if line in record.message} == {
        "d0300",
        "d0310",
    }
    assert engine.get_collection("docs").num_damaged == 2
    assert engine.count("docs").num_documents == 600
    with pytest.raises(DamagedError, match="d0300"):
        engine.get("docs", ["d0300"], include_facets=True)
    assert engine.get("docs", ["d0300"]).documents[0].text == "text 300", "the text can still be read"
    engine.upsert("docs", [victim])
    engine.delete("docs", ids=["d0310"])
    assert engine.search("docs", SearchRequest(facets=query, top_k=1)).hits[0][0].id == "d0300"
    assert engine.get_collection("docs").num_damaged == 0


def test_a_damaged_payload_is_reported_by_filters_and_named_by_reads(
    open_engine: OpenEngine, make_documents: MakeDocuments, tmp_path: Path
) -> None:
    open_engine(make_documents(9)).close()
    with closing(sqlite3.connect(tmp_path / "data" / "documents.sqlite3")) as connection, connection:
        connection.execute('UPDATE documents SET payload = \'{"a": 1, "b\' WHERE row = 3')
    engine, where = open_engine(), Contains("tags", "odd")
    for filtered in (
        lambda: engine.count("docs", where=where),
        lambda: engine.delete("docs", where=where),
        lambda: engine.list_documents("docs", where=where, page_size=9),
        lambda: engine.search("docs", SearchRequest(texts=["text"], mode="lexical", where=where)),
    ):
        with pytest.raises(DamagedError, match="a document is damaged: verify"):
            filtered()
    with pytest.raises(DamagedError, match="'d0002' damaged on disk: store it again"):
        engine.list_documents("docs", page_size=9)
    engine.delete("docs", ids=["d0002"])
    assert engine.count("docs", where=where).num_documents == 0


def test_full_disk_keeps_the_old_snapshot(
    saved: tuple[Path, object], open_engine: OpenEngine, make_documents: MakeDocuments
) -> None:
    engine = open_engine(exact_max_facets=1000)
    engine.upsert("docs", make_documents(500, seed=2, prefix="more"))
    engine.maintain()
    expected = answers(search_all(engine))
    before = (saved[0] / "indexes" / "1.index").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        engine.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (saved[0] / "indexes" / "1.index").read_bytes() == before
    assert not list((saved[0] / "indexes").glob("*.part"))
    assert answers(search_all(open_engine(exact_max_facets=1000))) == expected


def test_write_on_a_full_disk_is_refused_and_loses_nothing(
    open_engine: OpenEngine, make_documents: MakeDocuments
) -> None:
    engine = open_engine(max_database_bytes=200_000)
    engine.create_collection("docs", model="m", model_revision="1", num_facets=2, dim=32)
    engine.upsert("docs", make_documents(20))
    with pytest.raises(DiskFullError):
        engine.upsert("docs", make_documents(1000, seed=2))
    expected = answers(search_all(engine))
    assert len(expected[0]) == 10
    engine.close()
    engine = open_engine()
    assert engine.count("docs").num_documents == 20
    assert answers(search_all(engine)) == expected


def test_closing_does_not_wait_for_training(
    open_engine: OpenEngine, make_documents: MakeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, release = threading.Event(), threading.Event()

    def train_for_ever(*_: object) -> None:
        training.set()
        release.wait(60)

    monkeypatch.setattr(index_manager, "CLOSE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(live.LiveIndex, "maintain", train_for_ever)
    engine = open_engine(background=True, exact_max_facets=100)
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
    engine.upsert("docs", make_documents(100))
    assert training.wait(60)
    engine.close()
    assert not release.is_set()
    with open_engine() as again:
        assert again.count("docs").num_documents == 100
    release.set()


def test_maintenance_goes_on_after_a_mistake_of_ours(
    open_engine: OpenEngine, make_documents: MakeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = list[str]()
    build = FaissBackend.build

    def fails_once(*arguments: object, **keywords: object) -> object:
        attempts.append("one")
        assert len(attempts) > 1, "a mistake of ours"
        return build(*arguments, **keywords)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(FaissBackend, "build", fails_once)
    monkeypatch.setattr("facets.documents.index_manager.RETRY_S", 0.01)
    engine = open_engine(exact_max_facets=1000, background=True)
    engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
    engine.upsert("docs", make_documents(600))
    wait_until(lambda: search_all(engine).index_kind != "exact")
    assert len(attempts) == 2


GOLDEN = Path(__file__).resolve().parents[3] / "golden"


def best_pairs(engine: CollectionEngine, query: NDArray[np.float32], exact: bool) -> list[tuple[str, list[float]]]:
    """The five best documents by the closest pair of facets, which is what the files hold: id, cosine, pair."""
    found = engine.search("golden", SearchRequest(facets=query[:, None, :], top_k=5, exact=exact))
    best: dict[str, list[float]] = {}
    for facet, hits in enumerate(found.hits):
        for hit in hits:
            line = [hit.score, facet, hit.evidence[0].second_facet]
            best[hit.id] = max(best.get(hit.id, line), line)
    return sorted(best.items(), key=lambda entry: -entry[1][0])[:5]


def test_a_change_of_the_tables_has_a_new_version() -> None:
    schema = postgres_schema()  # the tables of SQLite, and its own
    tables = re.sub("[0-9a-f]{32}", "STORE_ID", ";\n".join(schema.tables))
    assert schema.version == SCHEMA.version
    assert (schema.version, zlib.crc32(tables.encode())) == (2, 3186103013), "raise VERSION, make new golden files"


@pytest.mark.parametrize("version", ["index_v1"])
def test_golden_data_directory_loads(version: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = json.loads((GOLDEN / version / "expected.json").read_text(encoding="utf-8"))
    shutil.copytree(GOLDEN / version / "directory", tmp_path / "data")
    with caplog.at_level(logging.WARNING):
        engine = CollectionEngine.open(tmp_path / "data", EngineConfig(background=False, exact_max_facets=10_000))
    with engine:
        assert not caplog.records, "the snapshot must be used, not set aside"
        info = engine.get_collection("golden")
        assert (info.num_facets, info.dim, info.num_documents) == (2, 32, 59)
        assert info.index_kind == "faiss-ivf-int8"
        assert engine.revision == expected["revision"]
        queries = np.array(expected["queries"], dtype=np.float32)
        for exact in (True, False):
            for query, wanted in zip(queries, expected["hits"], strict=True):
                best = best_pairs(engine, query, exact)
                assert [(id, *pair) for id, (_, *pair) in best] == [(id, *pair) for id, _, *pair in wanted]
                np.testing.assert_allclose([line[0] for _, line in best], [line[1] for line in wanted], atol=1e-6)
        result = engine.get("golden", ["d05", "d07"], include_facets=True)
        assert result.missing_ids == ("d07",)
        stored = result.documents[0]
        assert (stored.text, stored.payload) == (expected["d05"]["text"], expected["d05"]["payload"])
        assert stored.facet_embeddings is not None
        np.testing.assert_allclose(stored.facet_embeddings, expected["d05"]["facets"], atol=1.5e-2)
        assert info.space == "toys"
        assert stored.token_stats == TokenStats(8, 9)
        assert stored.facet_spans is not None and stored.facet_spans.tolist() == [[0, 4], [5, 7]]
        assert engine.search("golden", SearchRequest(texts=["text 31"], mode="lexical", top_k=3)).hits[0][0].id == "d31"
        assert engine.count("golden", where=Contains("tags", "odd")).num_documents == 29
