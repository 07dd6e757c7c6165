"""The ``facets`` command against a real server: the main job, and what may break in the middle of it."""

import gzip
import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from facets_client import FacetsClient
from server_process import COMMAND, TOY_WORDS, client_environment


class Command:
    """Runs ``facets`` for one server, its state kept in a folder of the test."""

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.environment = client_environment(folder)

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, "--target", self.target, "--timeout-s", "60", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.folder,
        )

    def run(self, *args: str, code: int = 0) -> str:
        return finish(self.start(*args), code)[0]


def finish(process: subprocess.Popen[str], code: int) -> tuple[str, str]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    assert "Traceback" not in err
    return out, err


def make_rows(number: int) -> list[str]:
    words = random.Random(5)
    return [
        json.dumps({"id": f"p{i:05}", "text": " ".join(words.choices(TOY_WORDS[:-3], k=12)), "n": i}) + "\n"
        for i in range(number)
    ]


@pytest.fixture
def facets(server_target: str, channel: object, tmp_path: Path) -> Command:
    """``channel`` has waited for the server."""
    return Command(server_target, tmp_path)


def test_main_job(facets: Command, collection: str, tmp_path: Path) -> None:
    lines = make_rows(300)
    lines[17] = '{"id": "broken", "text": "cut o\n'
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))
    report = json.loads(facets.run("index", "in.jsonl.gz", "--collection", collection, "--json", code=1))
    assert (report["num_indexed"], report["num_rejected"]) == (299, 1)
    rejected = json.loads((tmp_path / report["rejected_file"]).read_text())
    assert (rejected["line"], rejected["reason"]) == (18, "invalid_json")
    text = json.loads(lines[42])["text"]
    found = json.loads(facets.run("--json", "search", text, "--collection", collection, "--top-k", "3"))
    assert found["hits"][0]["id"] == "p00042"
    assert found["hits"][0]["evidence"][0]["first_words"]
    assert "p00042" in facets.run("search", text, "--collection", collection)
    filtered = facets.run("--json", "search", text, "-c", collection, "--where", "n<10", "--exact", "-k", "50")
    assert sorted(hit["id"] for hit in json.loads(filtered)["hits"]) == [f"p{i:05}" for i in range(10)]
    assert facets.run("documents", "count", "-c", collection).strip() == "299"
    listed = facets.run("--json", "documents", "list", "-c", collection, "--limit", "0").splitlines()
    assert [json.loads(line)["payload"]["n"] for line in listed] == [i for i in range(300) if i != 17]


NUM_ROWS = 2_000


class Load:
    """A load of ``NUM_ROWS`` documents that is under way."""

    def __init__(self, facets: Command, collection: str) -> None:
        self.facets = facets
        self.args = ("index", "in.jsonl", "-c", collection, "--batch-size", "4", "--window", "1", "--json")
        self.collection = collection
        (facets.folder / "in.jsonl").write_text("".join(make_rows(NUM_ROWS)))

    def start_until(self, num_documents: int) -> subprocess.Popen[str]:
        """Starts the command and returns when so many documents are stored."""
        process = self.facets.start(*self.args)
        until = time.monotonic() + 120
        with FacetsClient(self.facets.target) as client:
            while client.count_documents(self.collection) < num_documents:
                assert time.monotonic() < until and process.poll() is None
                time.sleep(0.01)
        return process

    def ids(self) -> list[str]:
        with FacetsClient(self.facets.target) as client:
            return [document.id for document in client.list_documents(self.collection, page_size=1_000)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_client_stopped_in_the_middle(facets: Command, collection: str, number: signal.Signals) -> None:
    load = Load(facets, collection)
    process = load.start_until(100)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number is signal.SIGINT else -number)
    out, err = finish(facets.start(*load.args[:-1]), 0)
    assert out.startswith(f"{NUM_ROWS:,} documents: ") and " 0 changed" in out and err == ""
    assert load.ids() == [f"p{i:05}" for i in range(NUM_ROWS)]
