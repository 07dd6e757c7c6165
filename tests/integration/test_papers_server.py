"""Recommendations by a real server process with a real, tiny model of papers: client, command line, restart."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from facets_client import Author, FacetsClient, NewAuthor, Paper, PaperOptions
from facets_client.cli import app
from server_process import ServerProcess
from toy_papers import SUBJECTS, toy_records
from typer.testing import CliRunner

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs a server with a model of papers")

PARSING = Paper("a treebank and its parser", " ".join(SUBJECTS["parsing"]), id="parsing")
SPEECH = Paper("the tone of a speaker", " ".join(SUBJECTS["speech"]), id="speech")
SUBJECT_OF_PAPER = {
    str(record["id"]): str(record["authors"][0]).split()[0]  # type: ignore[index]
    for record in toy_records()
}


def subject_of(name: str) -> str:
    """Of an author, a citing paper or a paper."""
    return SUBJECT_OF_PAPER.get(name, name.replace("-", " ").split()[0])


@pytest.mark.slow
def test_additions_survive_a_kill(
    spawn: Callable[..., ServerProcess], tmp_path: Path, toy_model: Path, papers_model: Path
) -> None:
    arguments = ["--model", str(papers_model)]
    first = spawn(arguments=arguments)
    paper = Paper("voice signal", " ".join(SUBJECTS["speech"]), id="new-1", authors=[Author("New One", "n-1")])
    with FacetsClient(first.target, timeout_s=60) as client:
        assert client.add_papers([paper]).num_papers == 1
        added = client.add_authors([NewAuthor(Author("Old Salt"), papers=[PARSING], paper_ids=["P06-1057"])])
        assert added.num_authors == 1
        before = client.recommend_authors([PARSING, SPEECH], PaperOptions(top_k=50))
    assert "n-1" in [item.id for item in before.results[1]]
    assert "Old Salt" in [item.id for item in before.results[0]]
    first.kill()
    second = spawn(arguments=arguments)
    with FacetsClient(second.target, timeout_s=60) as client:
        after = client.recommend_authors([PARSING, SPEECH], PaperOptions(top_k=50))
    assert [[item.id for item in result] for result in after.results] == [
        [item.id for item in result] for result in before.results
    ]


def test_the_command_line(toy_target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["--target", toy_target, *arguments])
        assert done.exit_code == code, (done.stderr, done.exception)
        return done.stdout

    assert "parsing" in run("recommend", "authors", PARSING.title, "--abstract", PARSING.abstract, "-k", "3")
    lines = [json.dumps({"id": f"s{i}", "title": PARSING.title, "authors": ["parsing A"]}) for i in range(40)]
    Path("in.jsonl").write_text("\n".join(lines) + '\n{"id": "bad", "title": " "}\n')
    report = run("--json", "recommend", "bulk", "in.jsonl", "--out", "o.csv", "-k", "2", code=1)
    counts = json.loads(report.partition("}")[0] + "}")
    assert (counts["num_papers"], counts["num_rows"], counts["num_rejected"]) == (40, 80, 1)
    with Path("o.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert len(rows) == 81 and all(subject_of(row[1]) == "parsing" and row[1] != "parsing A" for row in rows[1:])
    assert "parsing A" in run("recommend", "find", "parsing Ax")
