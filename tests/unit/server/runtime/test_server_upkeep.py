"""Backup, restore and verify, as they are typed, beside an engine that goes on."""

import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from damage import flip_bit
from facets_server.__main__ import main
from facets_server.documents.stream_store import StreamStore

from facets.documents import CollectionEngine, Document, EngineConfig, SearchRequest
from facets.papers.records import Paper
from facets.papers.store import Added, AdditionStore
from facets.relations.additions import AddedRelationStore, added_record, updated
from facets.relations.results import Relation
from facets.storage.backup import last_backup

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
GUIDE = Path(__file__).resolve().parents[4] / "docs" / "run" / "operations.md"
NUM_DOCUMENTS = 300


def documents(number, prefix="d"):
    facets = np.random.default_rng(0).standard_normal((number, 2, 32))
    return [Document(id=f"{prefix}{n}", text=f"text {n}", facet_embeddings=facets[n]) for n in range(number)]


def open_(folder):
    return CollectionEngine.open(folder, EngineConfig(background=False, exact_max_facets=100))


@pytest.fixture
def data(tmp_path):
    """A data directory with every kind of store and a snapshot; its engine stays open."""
    folder = tmp_path / "data"
    with open_(folder) as engine:
        engine.create_collection("docs", model="toy", model_revision="1", num_facets=2, dim=32)
        engine.upsert("docs", documents(NUM_DOCUMENTS))
        engine.maintain()
    papers = AdditionStore(folder / "papers" / "toy", "toy")
    papers.add(revision="r1", papers=[Paper("title", id="p1")])
    relations = AddedRelationStore(folder / "relations" / "toy", "toy")
    relations.write([added_record(Relation(name="mentor", threshold=0.5, examples=("$ARG1 taught $ARG2",)))])
    streams = StreamStore(folder / "ingest-streams.sqlite3")
    stream = streams.begin(collection="docs", collection_created="now")
    streams.advance(stream, 3)
    engine = open_(folder)
    engine.upsert("docs", documents(5, "late"))
    yield folder
    for store in (papers, relations, streams, engine):
        store.close()


def test_directory_knows_when_it_was_last_copied(data, tmp_path, capsys):
    assert last_backup(data) is None
    assert main(["backup", str(tmp_path / "backup"), "--data-dir", str(data)]) == 0
    made = json.loads((tmp_path / "backup" / "backup.json").read_text())["made"]
    assert last_backup(data).isoformat(timespec="seconds") == made
    (data / "last-backup.json").write_text("{")
    assert last_backup(data) is None
    (data / "last-backup.json").unlink()
    (data / "last-backup.json").mkdir()  # cannot be written
    assert main(["backup", str(tmp_path / "second"), "--data-dir", str(data)]) == 0
    assert "the server will not know of this backup" in capsys.readouterr().out


def test_folders_in_the_way_are_refused(data, tmp_path, capsys):
    assert main(["backup", str(tmp_path / "backup"), "--data-dir", str(data)]) == 0
    assert main(["backup", str(tmp_path / "backup"), "--data-dir", str(data)]) == 2
    assert main(["restore", str(tmp_path / "backup"), "--data-dir", str(data)]) == 2
    assert "expected an empty one" in capsys.readouterr().err
    assert main(["backup", str(tmp_path / "other"), "--data-dir", str(tmp_path / "none")]) == 1
    assert main(["verify", str(tmp_path)]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_verify_names_everything_that_is_damaged(data, tmp_path, capsys):
    main(["backup", str(tmp_path / "backup"), "--data-dir", str(data)])
    main(["restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "copy")])
    copy = tmp_path / "copy"
    with sqlite3.connect(copy / "documents.sqlite3") as connection:
        connection.execute("UPDATE parts SET text = 'other' WHERE row = (SELECT row FROM documents WHERE id = 'd7')")
        connection.execute("UPDATE parts SET norms = zeroblob(8) WHERE row = 9")
        connection.execute("DELETE FROM documents WHERE id = 'd9'")
    connection.close()
    page = (copy / "papers" / "toy" / "recommendation.sqlite3").read_bytes().index(b"title")
    flip_bit(copy / "papers" / "toy" / "recommendation.sqlite3", 8 * page)
    before = {path: path.read_bytes() for path in copy.rglob("*.sqlite3")}
    capsys.readouterr()
    assert main(["verify", str(copy)]) == 1
    printed = capsys.readouterr().out
    for words in (
        "'d7'",
        "text or payload",
        "'d8'",
        "facets damaged",
        "305 documents, found 304",
        """records 'papers/toy', 'paper', '"p1"'""",
        "305 parts, found 304",
        "5 damaged",
    ):
        assert words in printed, printed
    assert {path: path.read_bytes() for path in copy.rglob("*.sqlite3")} == before


READ_ONLY = ["unshare", "-rm", "sh", "-c", 'mount --bind -o ro "$1" "$1" || exit 77; shift; exec "$@"', "sh"]


@pytest.mark.skipif(shutil.which("unshare") is None, reason="Linux alone mounts a folder for one process")
@pytest.mark.parametrize(("is_closed", "said"), [(True, "nothing damaged"), (False, "1 damaged or unreadable")])
def test_a_read_only_data_directory_is_read_unless_a_log_is_left(tmp_path, is_closed, said):
    data = tmp_path / "data"
    open_(data).close()
    if not is_closed:
        (data / "documents.sqlite3-wal").write_bytes(b"log")
    ended = subprocess.run(
        [*READ_ONLY, data, sys.executable, "-m", "facets_server", "verify", data],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode in (1, 77) and ("unshare" in ended.stderr or "mount" in ended.stderr):
        pytest.skip("this user cannot mount a folder read-only")
    assert said in ended.stdout, ended
    assert ended.returncode == (0 if is_closed else 1)


def test_half_a_backup_is_no_data_directory(data, tmp_path, capsys):
    half = tmp_path / "backup.part"
    half.mkdir()
    shutil.copy(data / "documents.sqlite3", half)
    assert main(["verify", str(half)]) == 1
    assert "unfinished backup" in capsys.readouterr().err


def test_a_backup_without_its_manifest_is_no_data_directory(data, tmp_path, capsys):
    backup = tmp_path / "backup"
    assert main(["backup", str(backup), "--data-dir", str(data)]) == 0
    assert main(["verify", str(backup), "--data-dir", str(data)]) == 2
    (backup / "backup.json").unlink()
    assert main(["verify", str(backup)]) == 1
    assert "it has no backup.json" in capsys.readouterr().err


def test_damaged_snapshot_is_told_and_is_no_loss(data, capsys):
    flip_bit(data / "indexes" / "1.index", 800)
    assert main(["verify", str(data)]) == 0
    assert "will be built again" in capsys.readouterr().out


def test_guide_to_backups_works_as_printed(data, tmp_path):
    block = re.search(r"## Backup\n\n```\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL).group(1)
    commands = [line.partition("#")[0].split() for line in block.splitlines()]
    assert [command[:2] for command in commands] == [
        ["facets-server", name] for name in ("backup", "verify", "restore", "verify")
    ]
    for command in commands:
        arguments = [re.sub("/var/(lib|backups)", str(tmp_path), argument) for argument in command[1:]]
        assert main([str(data) if argument == f"{tmp_path}/facets" else argument for argument in arguments]) == 0
    restored = tmp_path / "restored"
    with open_(restored) as engine:
        assert engine.count("docs").num_documents == NUM_DOCUMENTS + 5
        query = documents(5)[4].facet_embeddings[None].astype(np.float32)
        assert engine.search("docs", SearchRequest(facets=query, top_k=1)).hits[0][0].id in ("d4", "late4")
    papers = AdditionStore(restored / "papers" / "toy", "toy")
    assert [paper.id for paper in Added.of(papers.news()).papers.values()] == ["p1"]
    papers.close()
    relations = AddedRelationStore(restored / "relations" / "toy", "toy")
    assert [relation.name for relation in updated([], relations.news())] == ["mentor"]
    relations.close()


def test_backup_of_documents_in_postgres_says_where_backups_are(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FACETS_SERVER_ENGINE_STORE", "postgres://localhost/d")
    for destination in ([], [str(tmp_path / "copy")]):
        assert main(["backup", *destination, "--data-dir", str(tmp_path)]) == 2
        assert "PostgreSQL, whose own backups" in capsys.readouterr().err


def test_backup_of_an_earlier_release_is_restored(tmp_path):
    assert main(["restore", str(GOLDEN / "backup_v1"), "--data-dir", str(tmp_path / "data")]) == 0
    with open_(tmp_path / "data") as engine:
        assert engine.count("golden").num_documents == 59
    assert main(["verify", "--data-dir", str(tmp_path / "data")]) == 0


@pytest.mark.parametrize(
    ("port", "said"),
    [
        ("{free}", "ok       port: {free} on 127.0.0.1 is free"),
        ("{busy}", "problem  port: port {busy} on 127.0.0.1 cannot be used"),
    ],
)
def test_doctor_looks_at_the_port_that_will_be_used(tmp_path, monkeypatch, capsys, port, said):
    with socket.create_server(("127.0.0.1", 0)) as busy, socket.create_server(("127.0.0.1", 0)) as other:
        ports = {"busy": busy.getsockname()[1], "free": other.getsockname()[1]}
        other.close()
        monkeypatch.setenv("FACETS_SERVER_PORT", port.format(**ports))
        code = main(["doctor", "--data-dir", str(tmp_path / "new")])
    assert said.format(**ports) in capsys.readouterr().out
    assert code == said.startswith("problem")


def test_doctor_reads_keys_and_models(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FACETS_SERVER_PORT", "0")
    (tmp_path / "facets.toml").write_text(f'models = ["none"]\n[security]\napi_keys_file = "{tmp_path}/keys"\n')
    assert main(["doctor", "--data-dir", str(tmp_path / "new"), "--config", str(tmp_path / "facets.toml")]) == 1
    said = capsys.readouterr().out
    assert f"problem  security: api_keys_file {tmp_path}/keys" in said and "problem  models: no model 'none'" in said
