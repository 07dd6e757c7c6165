"""`facets encode` as a user types it; a server stores the same as if it had encoded; kill -9 of either side."""

import hashlib
import importlib.util
import json
import os
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from facets_client import Document, FacetsClient
from facets_client.cli import app
from facets_client.errors import FailedPreconditionError, InvalidArgumentError
from facets_client.generated.types import ModelVersion
from server_process import COMMAND, client_environment
from toys import toy_passage_model
from typer.testing import CliRunner
from waiting import wait_until

pytestmark = [
    pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs server processes of its own"),
    pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra 'parquet' is not installed"),
]
BOOK = "# Music\n\n" + "The dog plays the guitar. " * 150 + "\n\n# Weights\n\n" + "A man lifting weights. " * 160
RECORDS = [
    {"id": "dog", "text": "The dog plays music.", "title": "A dog", "year": 2019, "score": 2.0},
    {"id": "book", "text": BOOK, "title": "The garage", "tags": ["a", "b"]},
    {"id": "hollow", "text": "The dog. " * 300 + "\n\n" + "\u200b " * 2000 + "\n\n" + "A man lifting weights. " * 90},
    {"id": "unreadable", "text": "\u200b\u200b \u200b"},
    {"id": "emoji", "text": "\U0001f600 The guitar caf\u00e9 plays.", "title": ["two", "titles"]},
    *({"id": f"n{n}", "text": f"The man number {n} plays the guitar in garage {n % 7}."} for n in range(60)),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("encode") / "toy-passages"
    toy_passage_model().save(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("encoding")


@pytest.fixture(scope="module")
def whole(command, folder) -> dict[str, str]:
    """Checksums of what an encoding makes that nothing interrupts."""
    command.done(*command.encode, "--out", "whole", code=1)
    return digests(folder / "whole")


@pytest.fixture(scope="module")
def command(folder, model):
    """Starts ``facets``; ``done`` runs it to its end."""
    (folder / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    environment = client_environment(folder, RAY_worker_niceness="0")

    def start(*arguments: object) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)], cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def done(*arguments: object, code: int = 0) -> str:
        process = start(*arguments)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code and "Traceback" not in err, (process.returncode, out, err)
        return out + err

    start.done = done
    start.encode = ("encode", "in.jsonl", "--model", model, "--part-size", 8)
    return start


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def stored(client: FacetsClient, collection: str) -> dict[str, tuple[object, ...]]:
    """All that can be read of each document, but for when it was stored."""
    return {
        one.id: (
            *(one.facet_embeddings, one.text, dict(one.payload)),
            *(one.facet_spans, one.token_stats, one.parts, one.part_facets),
        )
        for one in client.list_documents(collection, include_facets=True)
    }


def test_what_is_stored_is_what_the_server_would_have_encoded(spawn, command, model, folder):
    server = spawn(arguments=["--model", str(model)])
    told = command.done(*command.encode, "--out", "encoded", code=1)
    assert "64 documents: 64 encoded, 1 rejected" in told and "toy-passages encodes" in told
    rejected = json.loads((folder / "in.jsonl.rejected.jsonl").read_text())
    assert (rejected["id"], rejected["message"]) == ("unreadable", "text has no words, expected at least one")
    with FacetsClient(server.target, timeout_s=60) as client:
        client.create_collection("one", model="toy-passages")
        to = ("--target", server.target)
        command.done(*to, "index", "in.jsonl", "-c", "one", code=1)
        command.done(*to, "index", "--from-encoded", "encoded", "-c", "two", "--create")
        one, two = stored(client, "one"), stored(client, "two")
        assert set(one) == set(two) == {record["id"] for record in RECORDS} - {"unreadable"}
        for name, (facets, *others) in one.items():
            again, *same = two[name]
            assert others == same, name
            norms = np.linalg.norm(facets, axis=1), np.linalg.norm(again, axis=1)
            assert np.array_equal(norms[0] > 0, norms[1] > 0)
            held = norms[0] > 0  # in other batches bfloat16 rounds otherwise, see PassageModel
            assert ((facets * again).sum(axis=1)[held] > 0.9998 * (norms[0] * norms[1])[held]).all(), name
        assert sum(np.array_equal(one[name][0], two[name][0]) for name in one) > len(one) // 2
        assert len(one["book"][5]) == 4 and sum(one["book"][6]) == len(one["book"][0])
        for mode in ("hybrid", "facets", "lexical"):
            pages = [client.search(name, ["who plays the guitar"], mode=mode)[0].hits for name in ("one", "two")]
            scores = [[hit.score for hit in page] for page in pages]
            assert scores[0] == pytest.approx(scores[1], abs=1e-3)
        refused = "searches the fields none, the documents were encoded with title:2"
        client.create_collection("three", model="toy-passages", search_fields={})
        assert refused in command.done(*to, "index", "--from-encoded", "encoded", "-c", "three", code=2)


def test_facets_of_another_model_are_refused(spawn, model):
    server = spawn(arguments=["--model", str(model)])
    with FacetsClient(server.target, timeout_s=60) as client:
        made = client.create_collection("news", model="toy-passages")
        whole = [Document("book", BOOK)]
        client.add(whole, collection="news")
        held = client.get_documents("news", ["book"], include_facets=True).documents
        own = ModelVersion(made.model, made.model_revision)
        list(client.upsert_stream("news", held, encoded_by=own))
        for other in (ModelVersion("toy-far", made.model_revision), ModelVersion(made.model, "0")):
            with pytest.raises(FailedPreconditionError, match="encode with the model of the collection"):
                list(client.upsert_stream("news", held, encoded_by=other))
        for wrong, rule in ((held[0].part_facets[:-1], "one for each part"), ([0] * 4, "its share")):
            with pytest.raises(InvalidArgumentError, match=rule):
                client.add([Document(**{**fields(held[0]), "part_facets": wrong})], collection="news")


def fields(document: Document) -> dict[str, object]:
    return {name: getattr(document, name) for name in Document.__dataclass_fields__}


def test_an_interrupted_command_goes_on_and_makes_the_same_files(command, folder, whole):
    assert len(whole) == 1 + 9
    killed = command(*command.encode, "--out", "broken")
    wait_until(lambda: len(list((folder / "broken").glob("part-*.parquet"))) >= 2, timeout_s=120)
    killed.kill()
    killed.wait(30)
    (folder / "broken" / "part-00000003.parquet.partial").write_bytes(b"half")
    if not (folder / "broken" / "encoding.json").exists():
        refused = "encoding is not complete: run facets encode again"
        assert refused in command.done("index", "--from-encoded", "broken", "-c", "x", "--dry-run", code=2)
        command.done(*command.encode, "--out", "broken", code=1)
    assert digests(folder / "broken") == whole
    command.done(*command.encode, "--out", "several", "--workers", 2, code=1)
    assert digests(folder / "several") == whole


def test_a_worker_that_is_killed_costs_nothing_but_time(command, folder, whole):
    process = command(*command.encode, "--out", "lost")
    wait_until(lambda: list((folder / "lost").glob("part-*.parquet")) or process.poll() is not None, timeout_s=120)
    for pid in children(process.pid):
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, (out, err)
    assert digests(folder / "lost") == whole


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()] or [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and f"\nPPid:\t{parent}\n" in read_status(entry)
    ]


def read_status(entry: Path) -> str:
    try:
        return (entry / "status").read_text()
    except OSError:
        return ""


def test_bad_input_is_named(command, folder, monkeypatch):
    assert "no model 'nobody'" in command.done("encode", "in.jsonl", "--out", "x", "--model", "nobody", code=2)
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    assert "is not empty" in command.done(*command.encode, "--out", "full", code=2)
    assert "expected a folder" in command.done("index", "--from-encoded", "full", "-c", "x", "--dry-run", code=2)
    assert "expected files, or" in command.done("index", "-c", "x", code=2)
    told = command.done("index", "--from-encoded", "full", "-c", "x", "--text", "body", code=2)
    assert "were chosen by facets encode" in told
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "facets" else find_spec(name))
    done = CliRunner().invoke(app, ["encode", str(folder / "in.jsonl"), "--out", str(folder / "y")])
    assert (done.exit_code, "pip install 'multifacet[local]'" in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="the extra 'ray' is not installed")
def test_ray_makes_the_same_files_though_a_worker_is_killed(command, folder, whole):
    process = command(*command.encode, "--out", "ray", "--ray", "local", "--workers", 2)
    wait_until(lambda: list((folder / "ray").glob("part-*.parquet")) or process.poll() is not None, timeout_s=120)
    actors = [pid for pid in descendants(process.pid) if "ray::Worker" in command_line(pid)]
    assert actors
    os.kill(actors[0], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, (out, err)
    assert digests(folder / "ray") == whole


def descendants(parent: int) -> list[int]:
    found = children(parent)
    return found + [further for pid in found for further in descendants(pid)]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
