"""``facets export``, ``facets watch`` and ``facets delete``: a collection into files, a folder into a collection."""

import csv
import gzip
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from facets_client.cli.main import app
from facets_client.documents.streams import from_document
from facets_client.documents.types import Document
from fake_server import FakeServer
from typer.testing import CliRunner
from waiting import wait_until

COMMAND = [sys.executable, "-c", "from facets_client.cli import main; main()"]


@pytest.fixture
def facets(server, tmp_path, monkeypatch):
    """Runs a command line in a folder of its own."""
    monkeypatch.setenv("FACETS_TARGET", server.target)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def run(*args):
        done = CliRunner().invoke(app, list(args))
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def stored(world):
    """Two documents that a file holds only with care."""
    documents = (
        Document("a", 'two\nlines, "quoted"', {"year": 1990, "tags": ["x", "y"], "code": "007"}),
        Document("b", "\u00e9t\u00e9", {"title": "Summer"}),
    )
    world.store("news", [from_document(document) for document in documents])
    return {document.id: document for document in documents}


@pytest.mark.parametrize("name", ["news.jsonl", "news.jsonl.gz", "news.csv"])
def test_exported_documents_are_indexed_as_they_were(facets, world, stored, tmp_path, name):
    assert "wrote 2 documents" in facets("export", "news", name).stderr
    before = dict(world.documents["news"])
    world.documents["news"].clear()
    assert facets("index", name, "-c", "news").exit_code == 0
    after = world.documents["news"]
    if name.endswith("csv"):  # which has no types: lists come back as their JSON
        assert {key: one.text for key, one in after.items()} == {key: one.text for key, one in before.items()}
        assert dict(after["a"].payload) == {"year": 1990.0, "tags": '["x", "y"]', "code": "007"}
    else:
        assert [(one.text, one.payload) for one in after.values()] == [
            (one.text, one.payload) for one in before.values()
        ]


def test_columns_of_a_table_are_those_of_all_documents(facets, stored, tmp_path):
    facets("export", "news", "news.csv")
    with (tmp_path / "news.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert set(rows[0]) == {"id", "text", "year", "tags", "code", "title"} and list(rows[0])[:2] == ["id", "text"]
    assert rows[0]["text"] == stored["a"].text and rows[1]["year"] == ""


def test_parquet_holds_documents_with_facets(facets, stored, tmp_path):
    pytest.importorskip("pyarrow", reason="the extra parquet brings it")
    from facets_client.adapters.parquet import read_parquet

    assert facets("export", "news", "news.parquet", "--facets").exit_code == 0
    assert {one.id: one.payload for one in read_parquet(tmp_path / "news.parquet")}["b"] == {"title": "Summer"}


def test_standard_output_takes_lines(facets, stored):
    lines = facets("export", "news", "-").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["a", "b"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("news", "there.jsonl"), "there.jsonl is there already"),
        (("news", "x.xml"), "FILE must end in"),
        (("news", "x.csv", "--facets"), "CSV holds no embeddings"),
        (("nowhere", "x.csv"), "does not exist"),
        (("news", "no/folder/x.csv"), "cannot be written"),
        (("odd", "x.jsonl"), "has a field 'text'"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence_and_leaves_nothing(facets, server, world, tmp_path, args, says):
    (tmp_path / "there.jsonl").write_text("kept")
    server.make("odd")
    world.store("odd", [from_document(Document("x", "y", {"text": "z"}))])
    done = facets("export", *args)
    assert done.exit_code == 2 and says in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["there.jsonl"]
    assert (tmp_path / "there.jsonl").read_text() == "kept"


def test_export_is_packed_where_the_name_says_so(facets, stored, tmp_path):
    facets("export", "news", "news.jsonl.gz")
    with gzip.open(tmp_path / "news.jsonl.gz", "rt", encoding="utf-8") as stream:
        assert json.loads(next(stream))["code"] == "007"


def test_delete_takes_conditions_and_asks_first(facets, world, stored):
    refused = facets("delete", "-c", "news", "--where", "year=1990")
    assert refused.exit_code == 2 and "--yes" in refused.stderr and len(world.documents["news"]) == 2
    assert "deleted" in facets("delete", "-c", "news", "--where", "year=1990", "--yes").stderr


@pytest.fixture
def folder(tmp_path):
    """Two files, one of two rows."""
    made = tmp_path / "hand book"
    (made / "sub").mkdir(parents=True)
    (made / "readme.txt").write_text("The tap drips.")
    (made / "sub" / "rows.csv").write_text("id,text\n1,one\n2,two\n")
    return made


def watch_once(facets):
    done = facets("watch", "hand book", "-c", "news", "--once", "--json")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_watch_stores_what_changes_and_deletes_what_vanishes(facets, world, folder, stored):
    [first] = watch_once(facets)
    assert (first["files_stored"], first["num_stored"]) == (2, 3)
    assert set(world.documents["news"]) == {"a", "b", "readme.txt", "1", "2"}
    assert watch_once(facets) == [], "nothing changed, nothing is done"
    (folder / "sub" / "rows.csv").write_text("id,text\n2,two again\n3,three\n")
    (folder / "readme.txt").unlink()
    [second] = watch_once(facets)
    assert (second["num_stored"], second["files_gone"], second["num_deleted"]) == (2, 1, 2)
    assert set(world.documents["news"]) == {"a", "b", "2", "3"}, "what came another way stays"
    assert world.documents["news"]["2"].text == "two again"


def test_a_file_of_the_same_name_elsewhere_keeps_ids_apart(facets, world, folder):
    watch_once(facets)
    (folder / "sub" / "readme.txt").write_text("Another one.")
    watch_once(facets)
    assert {"readme.txt", "sub/readme.txt"} <= set(world.documents["news"])


def test_an_empty_folder_where_there_were_files_deletes_nothing(facets, world, folder):
    watch_once(facets)
    for path in (folder / "readme.txt", folder / "sub" / "rows.csv"):
        path.unlink()
    done = facets("watch", "hand book", "-c", "news", "--once")
    assert done.exit_code == 2 and "nothing is deleted" in done.stderr
    assert len(world.documents["news"]) == 3


def test_a_file_that_cannot_be_read_is_told_and_the_rest_is_stored(facets, world, folder):
    (folder / "broken.csv").write_bytes(b"\x00\x01\x02")
    done = facets("watch", "hand book", "-c", "news", "--once")
    assert done.exit_code == 1 and "broken.csv" in done.stderr
    assert {"readme.txt", "1", "2"} <= set(world.documents["news"])


def test_no_folder_and_no_collection_are_one_sentence(facets, folder):
    for args, says in ((("nowhere", "-c", "news"), "is no folder"), (("hand book", "-c", "none"), "--create")):
        done = facets("watch", *args)
        assert done.exit_code == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_watching_in_a_terminal_follows_the_folder_until_ctrl_c(server, world, environment, folder, tmp_path):
    mine, theirs = pty.openpty()
    command = [*COMMAND, "--target", server.target, "watch", "hand book", "-c", "news", "--every-s", "0.1"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path, start_new_session=True
    )
    os.close(theirs)
    try:
        wait_until(lambda: "1" in world.documents["news"])
        (folder / "new.txt").write_text("It came later.")
        wait_until(lambda: "new.txt" in world.documents["news"])
        (folder / "new.txt").unlink()
        wait_until(lambda: "new.txt" not in world.documents["news"])
        process.send_signal(signal.SIGINT)
        said = read_all(mine)
        assert process.wait(timeout=30) == 0
        assert "2 files: 3 documents stored" in said and "2 files of" in said and "Traceback" not in said
    finally:
        process.kill()
        os.close(mine)


def read_all(descriptor):
    """What a terminal shows until its program ends."""
    said = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.2)[0]:
            try:
                part = os.read(descriptor, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            said += part
    return said.decode()


def test_watching_goes_on_when_the_server_comes_back(server, world, environment, folder, tmp_path):
    command = [*COMMAND, "--target", server.target, "watch", "hand book", "-c", "news", "--every-s", "0.1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, cwd=tmp_path)
    try:
        wait_until(lambda: "1" in world.documents["news"])
        server.stop()
        (folder / "late.txt").write_text("Written while it was away.")
        wait_until(lambda: b"waiting for the server" in process.stderr.readline())
        again = FakeServer(world, int(server.target.rpartition(":")[2]))
        wait_until(lambda: "late.txt" in world.documents["news"])
        again.stop()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        process.stderr.close()
