"""A folder opened without a server: what it keeps, when it is closed, and what is said when it cannot be opened."""

import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pytest
from facets_client import (
    Document,
    FacetsClientError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OddFilterWarning,
    UnavailableError,
)
from facets_client.filters import Equals, OneOf, Range
from toys import toy_passage_model
from waiting import wait_until

import facets

TEXTS = ["The dog plays music.", "A man is lifting weights in a garage."]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "toy-passages"
    toy_passage_model().save(folder)
    return str(folder)


@pytest.fixture
def opened(tmp_path, model):
    with facets.open(tmp_path / "notes", models=[model]) as client:
        yield client


def test_what_is_added_is_found_and_adding_it_again_changes_nothing(opened):
    assert opened.add([*TEXTS, TEXTS[0]]).num_documents == 2
    assert opened.add(TEXTS).num_documents == 2 and opened.count_documents("documents") == 2
    result = opened.search("dog music", top_k=1)
    assert [hit.text for hit in result] == TEXTS[:1]
    assert opened.search("documents", ["dog music"], top_k=1)[0][0] == result[0]
    assert opened.search("dog music", collection="documents", top_k=1)[0] == result[0]
    with pytest.raises(TypeError, match=r"documents\[0\] must be .* got SearchHit"):
        opened.add(result)  # of a long document it would be a part
    for wrong, got in ((["dog"],), "list"), (("dog", "documents"), "str, str"):
        with pytest.raises(TypeError, match=rf"search\(query, collection=name\) or .*, got \({got}\)"):
            opened.search(*wrong)
    with pytest.warns(OddFilterWarning, match="field 'yaer'") as caught:
        opened.search("dog", where=Equals("yaer", 1))
    assert caught[0].filename == __file__
    with pytest.raises(TypeError, match="queries must be a sequence"):
        opened.search("documents", None)


def write_rows(folder, number):
    (folder / "rows.csv").write_text("id,text\n" + "".join(f"{n},the dog plays {n}\n" for n in range(number)))


def test_a_file_owns_its_documents(opened, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "other.txt").write_text("A man is lifting weights.")
    opened.add(["dog", "man"])

    def added(number, **options):
        write_rows(folder, number)
        report = opened.add_files(folder, **options)
        return report.num_added, report.num_changed, report.num_unchanged, report.num_removed

    assert added(6) == (7, 0, 0, 0)
    assert added(6) == (0, 0, 7, 0)
    assert added(3, keep=True) == (0, 0, 4, 0)
    assert added(3) == (0, 0, 4, 3)
    name = next(name for name in opened.list_sources("documents") if name != "other.txt")
    assert [one.id for one in opened.list_documents("documents", source=name)] == sorted(
        one.id for one in opened.list_documents("documents") if one.source == name
    )
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:40] + b"\xff\0" + whole[60:])  # damaged
    report = opened.add_files(folder)
    assert report.num_removed == 0 and report.rejected and opened.list_sources("documents")[name] >= 3
    assert opened.delete_documents("documents", source=name).num_documents >= 3
    assert opened.count_documents("documents") == 3


class Frame:
    """A table as DataFrames of all libraries are read."""

    def __init__(self, **columns):
        self.columns, self._columns = list(columns), columns

    def __getitem__(self, name):
        return self._columns[name]


class Cell:
    """A list in a table of Polars."""

    dtype = str

    def to_list(self):
        return ["x", "y"]


class NamedTwice(Frame):
    def __init__(self, **columns):
        super().__init__(**columns)
        self.columns += self.columns[-1:]


@pytest.mark.parametrize(
    ("given", "options", "stored"),
    [
        (TEXTS[0], {}, [("", TEXTS[0], {})]),
        ([Document("a", TEXTS[0], {"n": 1})], {}, [("a", TEXTS[0], {"n": 1})]),
        ([{"id": 7, "title": "Dog", "text": TEXTS[0], "n": 1}], {}, [("7", TEXTS[0], {"title": "Dog", "n": 1})]),
        (iter([{"text": TEXTS[0]}, {"text": TEXTS[1]}]), {}, [("", TEXTS[0], {}), ("", TEXTS[1], {})]),
        (Frame(id=["a"], text=["dog"], tags=[Cell()]), {}, [("a", "dog", {"tags": ["x", "y"]})]),
        (Frame(id=[7.0], body=TEXTS[:1], n=[float("nan")], m=[None]), {}, [("7", TEXTS[0], {})]),
        ([{"text": "dog", "n": None, "payload": {"m": 1}}], {}, [("", "dog", {"n": None, "m": 1})]),
        (
            Frame(id=["a"], Name=["Sami"], Role=["nurse"], Age=[41], near=[[0.5]]),
            {},
            [(
                "a",
                "| Name | Role | Age |\n| --- | --- | --- |\n| Sami | nurse | 41 |",
                {"Name": "Sami", "Role": "nurse", "Age": 41, "near": [0.5]},
            )],
        ),
        (
            Frame(a=[1], b=[2], c=[3], note=[{"body": TEXTS[0]}]),
            {},
            [("", TEXTS[0], {"a": 1, "b": 2, "c": 3})],
        ),
        ([{"text": "dog", 5: date(2024, 2, 29), "n": np.int64(3)}], {}, [("", "dog", {"5": "2024-02-29", "n": 3})]),
        ({"review": TEXTS[:1], "text": ["other"]}, {"text": "review"}, [("", TEXTS[0], {"text": "other"})]),
    ],
)  # fmt: skip
def test_texts_documents_dictionaries_and_tables_are_added(opened, given, options, stored):
    assert opened.add(given, collection="c", **options).num_documents == len(stored)
    found = {document.text: document for document in opened.list_documents("c")}
    for name, text, payload in stored:
        assert list(found[text].payload.items()) == sorted(payload.items())
        assert found[text].id == name if name else len(found[text].id) == 32


@pytest.mark.parametrize("day", [date(2024, 2, 29), datetime(2024, 2, 29, 12)])
def test_a_filter_takes_the_dates_that_were_added(opened, day):
    opened.add([{"text": "dog", "on": day}])
    for where in (Equals("on", day), OneOf("on", [day]), Range("on", gte=day, lt="2024-03"), Range("on", lte=day)):
        assert opened.count_documents("documents", where=where) == 1
    assert opened.count_documents("documents", where=Range("on", gt=day)) == 0


def test_a_long_input_is_added_in_batches(opened, capsys):
    result = opened.add((f"The dog number {i} plays music." for i in range(300)), progress=False)
    assert result.num_documents == 300 == opened.count_documents("documents", min_revision=result.index_revision)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (Frame(a=[1]), ValueError, r"columns are a"),
        ([{"foo": 1}], ValueError, r"columns are foo"),
        ({"text": TEXTS}, None, ""),
        ({"text": TEXTS, "n": 1}, TypeError, r"write \[\{\.\.\.\}\]"),
        ({"text": TEXTS, "n": [1] * 9}, ValueError, "as many values .* 'n': 9"),
        (NamedTwice(text=TEXTS, n=TEXTS), ValueError, "two columns are called 'n'"),
        (5, TypeError, "got int 5"),
        (["x", 5], TypeError, r"documents\[1\] must be .* got int 5"),
        ([Document("a", None)], TypeError, r"documents\[0\]\.text must be str, got NoneType"),
        ([{"text": "x"}, {"text": "y", "n": {1}}], ValueError, r"documents\[1\]: payload has set \{1\}"),
        (["x", " "], ValueError, r"documents\[1\] has no text"),
        ([{"text": "x"}, {"text": None}], ValueError, r"documents\[1\] has no text"),
        ([{"text": "x"}, {"text": float("nan")}], ValueError, r"documents\[1\] has no text"),
        (Frame(body=["x", None]), ValueError, r"documents\[1\] .*'body'.*dropna"),
        (Frame(id=[1.0, None], body=TEXTS), ValueError, r"documents\[1\]: field 'id' must be a string, got null"),
        ([Document("a", "x"), Document("a", "y")], ValueError, r"documents\[1\] has the id 'a' of documents\[0\]"),
        (["dog", Document("n" * 600, "dog"), "man"], InvalidArgumentError, r"documents\[1\]\.id has 600 bytes.*stored"),
    ],
)
def test_what_is_no_document_is_named(opened, given, error, message):
    if error is None:
        assert opened.add(given).num_documents == len(TEXTS)
        return
    with pytest.raises(error, match=message):
        opened.add(given)
    if error is InvalidArgumentError:
        assert opened.count_documents("documents") == 2
    else:
        assert not opened.list_collections()


def test_a_store_in_memory_leaves_nothing_behind(model, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(threading.enumerate())
    with facets.open(models=[model]) as client:
        client.add(TEXTS)
        session = client.open_upsert_session("documents")  # left open
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
    wait_until(lambda: set(threading.enumerate()) <= before)
    for call in (client.list_collections, session.receive_ack, lambda: client.open_upsert_session("documents")):
        with pytest.raises(UnavailableError):
            call()
    client.close()


def run(folder, model, *lines):
    code = "\n".join(["import facets", f"notes = facets.open({str(folder)!r}, models=[{model!r}])", *lines])
    return [sys.executable, "-c", code]


def test_a_program_that_forgets_to_close_loses_nothing_and_keeps_out_others(tmp_path, model):
    code = [f"notes.add({TEXTS})", "print('added', flush=True)", "input()"]
    with subprocess.Popen(run(tmp_path, model, *code), stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "added\n", process.stderr.read()
        with pytest.raises(FailedPreconditionError, match=rf"in use by process {process.pid}\b") as caught:
            facets.open(tmp_path, models=[model])
        assert caught.value.reason == "STORE_IN_USE"
        _, errors = process.communicate("\n")
    assert process.returncode == 0 and not errors
    with facets.open(tmp_path, models=[model]) as client:
        assert client.count_documents("documents") == 2
        with pytest.raises(FailedPreconditionError, match="this process: close it first"):
            facets.open(tmp_path, models=[model])


def test_a_call_in_a_forked_process_is_refused_and_the_parent_goes_on(tmp_path, model):
    code = [
        "import os",
        f"notes.add({TEXTS})",
        "if not os.fork():",
        "    for call in (notes.list_collections, lambda: notes.search('dog'), lambda: notes.add(['A cat.'])):",
        "        try: call()",
        "        except Exception as error: print(type(error).__name__, error)",
        "    os._exit(print(flush=True) or 0)",
        "os.wait()",
        "print(notes.count_documents('documents'))",
    ]
    ended = subprocess.run(run(tmp_path, model, *code), capture_output=True, text=True, timeout=60, check=True)
    *refused, empty, counted = ended.stdout.splitlines()
    assert len(refused) == 3 and not empty and counted == "2"
    expected = r"FailedPreconditionError .* was opened by process \d+, which forked this one"
    assert all(re.match(expected, line) for line in refused)


def newer(folder):
    with sqlite3.connect(folder / "documents.sqlite3") as database:
        database.execute("PRAGMA user_version = 999")


def other_files(folder):
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "letter.txt").write_text("The boiler is repaired.")


def file_instead(folder):
    shutil.rmtree(folder)
    folder.write_text("a file")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (newer, FailedPreconditionError, "version 999"),
        (file_instead, InvalidArgumentError, "is a file"),
        (other_files, InvalidArgumentError, "other files"),
    ],
)
def test_a_folder_that_cannot_be_opened_is_named(tmp_path, model, change, error, message):
    folder = tmp_path / "notes"
    facets.open(folder, models=[model]).close()
    change(folder)
    with pytest.raises(error, match=message) as caught:
        facets.open(folder, models=[model])
    assert str(folder) in str(caught.value)


def test_unknown_names_and_a_missing_package_are_named(opened, tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match="'nope'"):
        opened.search("dog", collection="nope")
    with pytest.raises(NotFoundError, match=r"'own' is not served, .*facets\.open\(models=.* an encoder as 'sentence"):
        opened.create_collection("c", model="own")
    for name in ("nope", "", "n" * 300, "\ud800"):
        with pytest.raises(NotFoundError, match=re.escape(f"no model {name!r}: expected a checkpoint folder")):
            facets.open(tmp_path / "other", models=[name])
    with pytest.raises(InvalidArgumentError, match="models must have distinct names, got"):
        facets.open(tmp_path / "other", models=["facets-en"] * 2)
    with pytest.raises(TypeError, match=r"models must be a sequence, got one str: try \['nope'\]"):
        facets.open(tmp_path / "other", models="nope")
    with pytest.raises(UnavailableError, match="nnn cannot be read: File name too long"):
        facets.open(tmp_path / ("n" * 300))
    for device, got in (("tpu", "auto, cpu or cuda, got 'tpu'"), (None, "a valid string, got null$")):
        with pytest.raises(InvalidArgumentError, match=f"ARGUMENT: device must be {got}"):
            facets.open(tmp_path / "other", device=device)
    for name in ("a\0b", "notes\ud800"):
        with pytest.raises(InvalidArgumentError, match="ARGUMENT: data_dir must be a path without NUL and lone surr"):
            facets.open(tmp_path / name)
    monkeypatch.setitem(sys.modules, "facets_server", None)
    with pytest.raises(ImportError, match=r"pip install 'multifacet\[local\]'"):
        facets.open(tmp_path / "other")


def test_a_tilde_before_an_unknown_user_is_part_of_the_name(tmp_path, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    facets.open("~no-such-user/notes", models=[model]).close()
    assert (tmp_path / "~no-such-user" / "notes" / "documents.sqlite3").exists()


def test_a_model_that_does_not_open_is_reported_by_its_calls_and_by_health(tmp_path, model):
    damaged = tmp_path / "damaged"
    shutil.copytree(model, damaged)
    (damaged / "tokenizer.json").write_text("{}")
    with facets.open(tmp_path / "notes", models=[str(damaged)]) as client:
        assert client.health()["facets.v1.DocumentService"] == "SERVING"
        with pytest.raises(FacetsClientError, match=r"tokenizer\.json"):
            client.add(TEXTS)
        assert client.health()["facets.v1.DocumentService"] == "NOT_SERVING"
        shutil.copy(Path(model) / "tokenizer.json", damaged)
        assert client.add(TEXTS).num_documents == 2
        assert client.health()["facets.v1.DocumentService"] == "SERVING"


def test_a_first_search_loads_nothing_that_it_does_not_need(tmp_path, model):
    code = ["import sys", "notes.add(['A dog.'])", "assert len(notes.search('dog')) == 1", "print(*sys.modules)"]
    done = subprocess.run(run(tmp_path, model, *code), capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "torch" in loaded
    assert not loaded & {"faiss", "rapidfuzz", "scipy", "spacy"}
