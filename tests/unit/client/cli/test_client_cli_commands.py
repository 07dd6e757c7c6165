"""The ``facets`` command in this process: what it prints, in both forms."""

import errno
import importlib.util
import json
import os
import sys

import numpy as np
import pytest
import typer
from facets_client import Document, FacetsClient
from facets_client.cli import app
from facets_client.cli.options import parse_where
from facets_client.core.channel import SERVICES
from facets_client.core.drawing import clean, shortened
from facets_client.filters import AllOf, Contains, Equals, Exists, NoneOf, OneOf, Range
from fake_server import DIM, NUM_FACETS, fake_facets
from made_docx import make_docx
from made_pdf import make_pdf
from typer.testing import CliRunner

NEEDS_FILES = pytest.mark.skipif(importlib.util.find_spec("pypdfium2") is None, reason="the extra 'files' is missing")


@pytest.mark.parametrize(
    "command", sorted(set(typer.main.get_command(app).commands) - {"models", "health", "status", "backup"})
)
def test_help_shows_examples(command):
    text = CliRunner().invoke(app, [command, "--help"]).stdout
    assert f"facets {command}" in text.replace("--json ", "").partition("Examples:")[2]


@pytest.fixture
def filled(server):
    with FacetsClient(server.target) as client:
        client.add([Document(f"d{i}", f"text number {i}", {"n": i}) for i in range(5)], collection="news")


def test_without_a_command(facets):
    assert "search" in facets(code=2).stderr
    for group, command in (("documents", "count"), ("recommend", "find")):
        lines = facets(group, code=2).stderr.splitlines()
        assert lines[0].startswith("Usage: ") and any(line.startswith(f"  {command} ") for line in lines)


def test_embed_prints_json_or_writes_an_array(facets, tmp_path):
    rows = [json.loads(line) for line in facets("--json", "embed", "a", "b").stdout.splitlines()]
    assert [row["text"] for row in rows] == ["a", "b"]
    np.testing.assert_allclose(rows[1]["facet_embeddings"], fake_facets("b"), rtol=1e-6)
    (tmp_path / "in.txt").write_text("one\n\nthr\u00e9e\n", encoding="utf-8")
    facets("embed", "--file", "in.txt", "--out", "out.npy")
    np.testing.assert_array_equal(np.load("out.npy"), [fake_facets("one"), fake_facets("thr\u00e9e")])


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["embed"], "expected texts, or --file"),
        (["embed", "a", "--out", "x.txt"], "must end in .npy"),
        (["embed", "--file", "nope.txt"], "No such file"),
        (["embed", "--file", "bad.txt"], "bad.txt: expected lines of text, got binary data"),
        pytest.param(["summarize", "--file", "bad.pdf"], "bad.pdf: ", marks=NEEDS_FILES),
        (["summarize", "--file", "empty"], "expected a file, got a folder"),
        (["topics", "--file", "in.jsonl"], "got jsonl, which holds many (facets index in.jsonl -c NAME"),
        (["embed", ""], "texts[0] is empty"),
        (["embed", "REFUSE"], "refused"),
        (["similarity", "a"], "expected two texts"),
        (["similarity", "--file", "pairs.tsv"], "pairs.tsv, line 3: expected two texts"),
        (["similarity", "--file", "empty_side.tsv"], "empty_side.tsv, line 2: expected two texts"),
        (["similarity", "--file", "blank.txt"], "blank.txt: expected at least one line with text"),
        (["summarize"], "expected one text"),
        (["summarize", "a", "--sentences", "1", "--words", "1"], "exclude"),
        (["models", "nope"], "'nope' does not exist"),
        (["collections", "create", "news"], "'news' exists already"),
        (["collections", "delete", "news"], "--yes"),
        (["search", "query", "-c", "news", "--where", "owner:Jo"], "expects FIELD=VALUE or the like"),
        (["search", "query", "-c", "news", "--where", "a<true"], "expects a number or a string"),
        (["search", "query", "-c", "news", "--where", "a>"], "expects a number or a string"),
        *(
            (["search", "query", "-c", "news", "--where", f"a{operator}1"], f"expects one operator, got 'a{operator}1'")
            for operator in ("=>", "=<", ">>", "<>", "===")
        ),
        (["documents", "get", "nope", "-c", "news"], "no document nope"),
        (["documents", "delete", "-c", "news"], "expected ids, or --where"),
        (["index", "nope.jsonl", "-c", "news"], "No such file"),
        (["index", "in.jsonl", "-c", "nope"], "--create"),
        (["index", "in.jsonl", "-c", "news", "--rejected", "in.jsonl"], "must not be the input"),
        (["--timeout-s", "0", "health"], "timeout_s must be"),
        (["search", "q", "-c", "news", "--top-k", "5000000000"], "top_k must be 0 to 4294967295, got 5000000000"),
        (["documents", "count", "-c", "news", "--where", "n=" + "9" * 400], "must fit a double"),
        (["embed", "caf\udcff"], "valid Unicode, got 'caf"),
        (["--ca-cert", "nope.pem", "health"], "No such file"),
        (["nope"], "No such command"),
        (["serach", "dog"], "Did you mean 'search'?"),
        *(
            (asked.split(), "'blank.txt' is a file: \"$(cat blank.txt)\" gives its text")
            for asked in ("embed blank.txt", "search blank.txt", "rerank dog blank.txt", "recommend authors blank.txt")
        ),
        (["summarize", "blank.txt"], "'blank.txt' is a file: --file blank.txt reads it"),
        (["embed", "--nope"], "No such option"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(facets, tmp_path, args, sentence):
    (tmp_path / "bad.txt").write_bytes(b"good\n\0\xe9\n")
    (tmp_path / "bad.pdf").write_bytes(b"no PDF")
    (tmp_path / "pairs.tsv").write_text("a\tb\n\nonly one\n")
    (tmp_path / "empty_side.tsv").write_text("a\tb\na\t\n")
    (tmp_path / "blank.txt").write_text(" \n\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "in.jsonl").write_text('{"id": "a", "text": "b"}\n')
    done = facets(*args, code=2)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert done.stdout == "" or args[0] == "documents"


TOKENS = [{"text": "a", "attention": 0.5, "known": True}, {"text": "longer", "attention": 2.0, "known": True}]
DOG = {"word": "dog", "cosine": 0.9}
MATCH = {"first_words": [DOG], "second_words": [DOG], "cosine": 0.75, "contribution": 1.0}
FACET = {"words": [DOG], "tokens": [{"token": 1}]}
EXPLAINED = {"tokens": TOKENS, "facets": [FACET], "token_stats": {"truncated": True}}
SCORE = {"score": -0.00001, "explanation": {"matches": [MATCH], "first_tokens": TOKENS, "second_tokens": TOKENS}}
SUMMARY = {"sentences": [{"text": "One here."}], "num_sentences_in_document": 4, "num_words": 2, "has_prose": True}
NO_TOPICS = {"vectors": {"shape": [0, 4]}}
TOPICS = {**NO_TOPICS, "topics": [{"words": [DOG], "likelihood": 0.5, "novelty": 0.25}]}
NEAR = {"num_queries": 4, "self_first": 1.0, "unreached": 0.25, "largest_hub": 3}
VECTORS = {"num_rows": 9, "dim": 4, "cosine": NEAR, "findings": ["nothing stands out"]}
TAKEN = {"backup": {"folder": "/backups/now", "num_bytes": 9}, "removed_folders": ["/backups/then"]}


@pytest.mark.parametrize(
    ("command", "rpc", "reply", "parts"),
    [
        ("explain text", "Explain", {"explanations": [EXPLAINED]}, "longer/9|dog (0.90) longer|was not read"),
        ("similarity a b --explain", "Score", {"scores": [SCORE]}, " 0.0000 a b|100% 1st facet 0 (dog) matches 2nd"),
        ("summarize text --sentences 2", "Summarize", {"summaries": [SUMMARY]}, "1 of 4 sentences|2 were asked for"),
        ("topics text", "SuggestTopics", {"texts": [TOPICS]}, "dog 0.500 0.250"),
        ("topics text --avoid dog", "SuggestTopics", {"texts": [NO_TOPICS]}, "avoid less"),
        ("diagnose -c news", "DiagnoseCollection", {"vectors": VECTORS}, "vectors.num_rows 9|nothing stands out"),
        ("models", "", {}, "fake sentences"),
        ("models fake", "", {}, "limits.max_texts_per_request 4"),
        ("collections", "", {}, "news fake"),
        ("collections show news", "", {}, "num_facets 3"),
        ("backup", "TakeBackup", TAKEN, "/backups/now: 9 bytes, was compared with its checksums /backups/then removed"),
    ],
)
def test_an_answer_is_a_table_or_json(facets, world, command, rpc, reply, parts):
    world.replies[rpc] = reply
    shown = " ".join(facets(*command.split()).stdout.split())
    assert all(part in shown for part in parts.split("|")), shown
    assert isinstance(json.loads(facets("--json", *command.split()).stdout), dict)


def test_texts_and_pairs_come_from_files_and_standard_input(facets, world, tmp_path):
    world.replies |= {"Score": {"scores": [SCORE, SCORE]}, "Summarize": {"summaries": [SUMMARY]}}
    (tmp_path / "pairs.tsv").write_text("a\tb\nsame\tsame\n")
    found = json.loads(facets("--json", "similarity", "--file", "pairs.tsv").stdout)
    assert [(pair["first"], pair["second"]) for pair in found["pairs"]] == [("a", "b"), ("same", "same")]
    facets("summarize", "--file", "-", stdin="One. Two.")
    assert world.calls[-1][1].documents[0].text == "One. Two."


def test_files_of_any_format_are_read_as_facets_index_reads_them(facets, world, tmp_path):
    world.replies["Summarize"] = {"summaries": [SUMMARY]}
    pytest.importorskip("lxml", reason="the extra 'files' is not installed")
    (tmp_path / "a.html").write_text("<p>One <b>here</b>.</p><p>Two.</p>")
    make_docx(tmp_path / "a.docx", "<w:p><w:r><w:t>One here.</w:t></w:r></w:p>")
    make_pdf(tmp_path / "a.pdf", ["One here.", "Two."])
    (tmp_path / "a.csv").write_text("n,text\n1,One here.\n2,Two.\n")
    (tmp_path / "a.txt").write_bytes("One here.\n\nOn d\u00e9teste.\n".encode("cp1252"))
    texts = {}
    for file in ("a.html", "a.docx", "a.pdf", "a.csv", "a.txt"):
        if file != "a.csv":
            facets("summarize", "--file", file)
            assert "One here." in world.calls[-1][1].documents[0].text, file
        rows = facets("--json", "embed", "--file", file).stdout.splitlines()
        texts[file] = [json.loads(row)["text"] for row in rows]
    facets("summarize", "--file", "a.pdf")
    assert world.calls[-1][1].documents[0].text == "One here.\fTwo."
    assert texts["a.pdf"] == texts["a.csv"] == ["One here.", "Two."]
    assert texts["a.txt"] == ["One here.", "On d\u00e9teste."]
    assert [text.split("\n")[0] for text in texts["a.html"] + texts["a.docx"]] == ["One here."] * 2


def test_collections_are_created_listed_and_deleted(facets, world):
    assert "created collection second with model fake" in facets("collections", "create", "second").stderr
    for number in range(30):
        world.make(f"c{number}")
    assert all(f"c{number} " in facets("collections").stdout for number in (0, 29))
    assert "0 documents" in facets("collections", "delete", "second", "--yes").stderr


def test_global_options_may_be_behind_the_command(facets, server):
    found = facets("documents", "count", "-c", "news", "--json", "--target", server.target).stdout
    assert json.loads(found) == {"collection": "news", "num_documents": 0}


def test_documents(facets, filled, server):
    assert "text number 1" in facets("documents", "get", "d1", "-c", "news").stdout
    done = facets("--json", "documents", "get", "d1", "nope", "-c", "news", "--facets", code=2)
    found = json.loads(done.stdout)
    assert found["missing_ids"] == ["nope"]
    assert np.shape(found["documents"][0]["facet_embeddings"]) == (NUM_FACETS, DIM)
    assert "d4" in facets("documents", "list", "-c", "news").stdout
    lines = facets("--json", "documents", "list", "-c", "news", "--limit", "2").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["d0", "d1"]
    assert facets("documents", "count", "-c", "news").stdout.strip() == "5"
    assert "deleted 1 document" in facets("documents", "delete", "d1", "nope", "-c", "news").stderr
    facets("documents", "delete", "-c", "news", "--where", "n=1", "--yes")
    assert server.world.documents["news"] == {}


def test_health(facets, server):
    assert SERVICES[0] in facets("health", code=3).stdout  # the server answers, but none of its services does
    server.serve_health(["", *SERVICES])
    assert json.loads(facets("--json", "health").stdout)["services"][SERVICES[0]] == "SERVING"


def test_a_damaged_backup_is_exit_code_1(facets, world):
    world.replies["TakeBackup"] = {**TAKEN, "problems": ["documents.sqlite3: page 3 is damaged"]}
    assert "is damaged\ndocuments.sqlite3: page 3 is damaged" in facets("backup", code=1).stdout


def test_api_key(facets, server, monkeypatch):
    server.world.api_key = "secret"
    assert "key" in facets("embed", "a", code=5).stderr
    facets("--api-key", "secret", "embed", "a")
    monkeypatch.setenv("FACETS_API_KEY", "secret")
    facets("embed", "a")


def test_index_reports_totals_and_removes_what_a_file_lost(facets, tmp_path, world):
    rows = [json.dumps({"id": f"d{i}", "text": f"text {i}"}) for i in range(20)]
    (tmp_path / "in.jsonl").write_text("\n".join(rows) + "\n")
    expected = "20 documents: 20 added, 0 changed, 0 unchanged, 0 removed, 0 rejected"
    assert expected in facets("index", "in.jsonl", "-c", "news").stdout
    (tmp_path / "in.jsonl").write_text("\n".join([*rows[:3], "nonsense"]) + "\n")
    facets("index", "in.jsonl", "-c", "other", "--create", code=1)
    assert json.loads((tmp_path / "in.jsonl.rejected.jsonl").read_text())["line"] == 4
    facets("index", "in.jsonl", "-c", "news", "--limit", "2")
    assert not (tmp_path / "in.jsonl.rejected.jsonl").exists()  # of this load there are none
    (tmp_path / "in.jsonl").write_text("\n".join(rows[:3]) + "\n")
    for option, removed in (("--keep", 0), ("--dry-run", None), ("--json", 17)):
        done = facets("--json", "index", "in.jsonl", "-c", "news", option)
        assert json.loads(done.stdout).get("num_removed") == removed
    assert "in.jsonl           3" in facets("collections", "sources", "news").stdout
    unknown = facets("delete", "-c", "news", "--source", "inn.jsonl", "--yes", code=2).stderr
    assert "collection news has no document of 'inn.jsonl' (did you mean 'in.jsonl'?)" in unknown
    facets("delete", "-c", "news", "--source", "in.jsonl", "--yes")
    assert not world.documents["news"]


def test_files_that_a_folder_lost_are_told_and_pruned(facets, tmp_path, world, monkeypatch):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt", "d.log"):
        (tmp_path / "in" / name).write_text(f"text of {name}")
    facets("index", "in", "-c", "news")
    facets("index", "in/d.log", "-c", "news")  # a run over the folder skips it, but it is there
    (tmp_path / "in" / "a.txt").unlink()
    (tmp_path / "in" / "sub" / "c.txt").rename(tmp_path / "in" / "sub" / "e.txt")
    told = facets("index", "in", "-c", "news").stderr
    gone = "2 files of the collection are not in in (a.txt, sub/c.txt): 2 documents stay, "
    assert gone + "--prune deletes them" in told
    (tmp_path / "in" / "locked").mkdir()
    scandir = os.scandir

    def locked(path):
        if os.path.basename(path) == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr("os.scandir", locked)
        told = facets("index", "in", "-c", "news", "--prune", code=1).stderr
    assert gone + "as locked could not be listed" in told
    (tmp_path / "in" / "b.txt").write_bytes(b"")  # it can no longer be read
    assert "2 removed" in facets("index", "in", "-c", "news", "--prune", code=1).stdout
    assert set(world.documents["news"]) == {"b.txt", "d.log", "sub/e.txt"}
    for args in (["in/b.txt"], ["in", "in/b.txt"], ["in", "--keep"]):
        assert "--prune expects one folder" in facets("index", *args, "-c", "news", "--prune", code=2).stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["year>=1990"], Range("year", gte=1990)),
        (["day>2020-01-01"], Range("day", gt="2020-01-01")),
        (["language=en"], Equals("language", "en")),
        (['n="7"'], Equals("n", "7")),
        (["n=null"], Equals("n", None)),
        (["n==7"], Equals("n", 7)),
        (['n="=7"'], Equals("n", "=7")),
        (["n=1|2|x"], OneOf("n", [1, 2, "x"])),
        (["n!=1"], NoneOf((Equals("n", 1),))),
        (["tags~red"], Contains("tags", "red")),
        (["n=" + "[" * 100_000], Equals("n", "[" * 100_000)),
        (["n"], Exists("n")),
        (['"dc:title"'], Exists('"dc:title"')),
        (['!"v1.0".note'], Exists('"v1.0".note', False)),
        (['"v<=1.0".note="a"'], Equals('"v<=1.0".note', "a")),
        (["a=1", "b=2"], AllOf((Equals("a", 1), Equals("b", 2)))),
        (None, None),
    ],
)
def test_conditions_as_typed(typed, meant):
    assert parse_where(typed) == meant


def test_text_from_elsewhere_cannot_command_the_terminal():
    assert clean("a\x1b[2Jb\rc\nd") == "a [2Jb c d"
    assert shortened("x" * 100, 10) == "xxxxxxx..."
    assert shortened(" a\n b ", 10) == "a b"


def test_status_is_one_screen(facets, server):
    server.world.replies["GetServerStatus"] = {
        **{"version": "0.1.0", "free_bytes": 5 * 2**30, "model_queues": [{"model": "fake", "num_waiting": 7}]},
        **{"start_time": {"seconds": 1_700_000_000}, "last_backup_time": {"seconds": 1_700_003_600}},
        "request_counts": [{"code": "OK", "num_requests": 42}],
        "disk_uses": [{"part": "documents", "num_bytes": 3 * 2**20}],
    }
    shown = facets("status").stdout
    for part in ("0.1.0", "42 OK", "documents 3.1 MB", "5.4 GB", "2023-11-14 23:13 UTC", "fake 7"):
        assert part in shown
    found = json.loads(facets("--json", "status").stdout)
    assert (found["version"], found["request_counts"], found["disk_uses"]) == (
        "0.1.0",
        {"OK": 42},
        {"documents": 3 * 2**20},
    )
    assert found["target"] == server.target


def test_serve_replaces_itself_by_the_server(facets, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'multifacet[local]'" in facets("serve", code=2).stderr
    started = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(os, "execv", lambda program, command: started.append((program, command)))
    options = ["--port", "0", "--data-dir", "x", "--model", "a"]
    facets("serve", *options)
    assert started == [(sys.executable, [sys.executable, "-P", "-m", "facets_server", *options])]


def test_the_environment_names_server_and_collection(facets, filled, monkeypatch):
    monkeypatch.setenv("FACETS_COLLECTION", "news")
    assert facets("documents", "count").stdout.strip() == "5"


def test_without_a_name_the_collection_is_that_of_the_client(facets, server, tmp_path):
    assert "those that exist: news" in facets("search", "gate", code=2).stderr
    server.world.make("documents")
    (tmp_path / "notes.txt").write_text("The gate opens at nine.\n")
    assert "those that exist" in facets("index", "notes.txt", "-c", "new", code=2).stderr
    facets("index", "notes.txt")
    assert facets("documents", "count").stdout.strip() == "1"


def test_reindex(facets, world):
    moved = {"name": "news", "num_documents": 5, "model": "other"}
    steps = iter([{"num_encoded": 2}, {"num_encoded": 5, "done": True}])
    world.replies["ReindexCollection"] = lambda request: {"collection": moved, **next(steps)}
    assert "5 documents now uses model other" in facets("collections", "reindex", "news", "--model", "other").stderr
    assert world.count("ReindexCollection") == 2
