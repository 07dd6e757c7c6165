"""Recommendations by a real server process with a real, tiny model of papers: client, command line, restart."""

import asyncio
import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from facets_client import (
    AsyncFacetsClient,
    Author,
    Document,
    FacetsClient,
    InvalidArgumentError,
    NewAuthor,
    NotFoundError,
    Paper,
    PaperOptions,
)
from server_process import ROOT, ServerProcess
from toy_papers import SUBJECTS, toy_paper_model, toy_records

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs a server with a model of papers")

PARSING = Paper("a treebank and its parser", " ".join(SUBJECTS["parsing"]), id="parsing")
SPEECH = Paper("the tone of a speaker", " ".join(SUBJECTS["speech"]), id="speech")
SUBJECT_OF_PAPER = {
    str(record["id"]): str(record["authors"][0]).split()[0]  # type: ignore[index]
    for record in toy_records()
}
COMMAND = [sys.executable, "-c", "from facets_client.cli import main; main()"]


@pytest.fixture(scope="module")
def papers_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    toy_paper_model(folder)
    return folder / "run" / "model"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, toy_model: Path, papers_model: Path) -> Iterator[ServerProcess]:
    data_dir = tmp_path_factory.mktemp("recommendation") / "data"
    with ServerProcess(data_dir, toy_model, arguments=["--model", str(papers_model)]) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FacetsClient]:
    with FacetsClient(server.target, timeout_s=60) as made:
        yield made


def subject_of(name: str) -> str:
    """Of an author, a citing paper or a paper."""
    return SUBJECT_OF_PAPER.get(name, name.replace("-", " ").split()[0])


def test_the_models_and_their_health(client: FacetsClient) -> None:
    tasks = {model.task: model for model in client.models()}
    assert set(tasks) == {"sentences", "papers"}
    assert tasks["papers"].num_facets >= 2 and tasks["papers"].limits.max_ranked_papers > 0
    assert client.health()["facets.v1.RecommendationService"] == "SERVING"


def test_authors_of_the_subject_come_first(client: FacetsClient) -> None:
    found = client.recommend_authors([PARSING, SPEECH], PaperOptions(top_k=4, evidence=True))
    for subject, result in zip(("parsing", "speech"), found.results, strict=True):
        assert [subject_of(item.id) for item in result[:3]] == [subject] * 3
        assert [item.score for item in result] == sorted((item.score for item in result), reverse=True)
        evidence = result[0].evidence
        assert evidence is not None and evidence.nearest_words
        assert subject_of(evidence.nearest_papers[0].id) == subject
    assert found.model.name == "toy-papers"


def test_citing_papers_of_the_subject_come_first(client: FacetsClient) -> None:
    found = client.recommend_citations([PARSING], PaperOptions(top_k=3))
    assert subject_of(found.results[0][0].id) == "parsing"


def test_filters(client: FacetsClient) -> None:
    everyone = client.recommend_authors([PARSING], PaperOptions(top_k=50)).results[0]
    ids = [item.id for item in everyone]
    assert len(ids) > 10
    left = client.recommend_authors([PARSING], PaperOptions(top_k=50, excluded_ids=[*ids[:2], "nobody"])).results[0]
    assert [item.id for item in left] == ids[2:]
    own = Paper(PARSING.title, PARSING.abstract, excluded_ids=ids[1:])
    assert [item.id for item in client.recommend_authors([own]).results[0]] == ids[:1]
    assert client.recommend_authors([PARSING], PaperOptions(excluded_ids=ids)).results == ((),)
    assert client.recommend_authors([PARSING], PaperOptions(candidates=[])).results == ((),)
    some = PaperOptions(candidates=[ids[5], ids[3], "nobody"])
    assert [item.id for item in client.recommend_authors([PARSING], some).results[0]] == [ids[3], ids[5]]
    assert client.recommend_authors([PARSING], PaperOptions(from_year=3000)).results == ((),)
    unlike = PaperOptions(top_k=50, negative_ids=[ids[0]], example_weight=100.0)
    assert client.recommend_authors([PARSING], unlike).results[0][0].id != ids[0]


def test_facet_weight_mixes_both_scores(client: FacetsClient) -> None:
    for weight, part in ((1.0, "facet_score"), (0.0, "document_score")):
        result = client.recommend_authors([PARSING], PaperOptions(top_k=20, facet_weight=weight)).results[0]
        parts = [getattr(item, part) for item in result]
        assert parts == sorted(parts, reverse=True)


def test_bulk_agrees_with_single_calls(client: FacetsClient) -> None:
    papers = [PARSING, SPEECH, Paper("a pixel", excluded_ids=["vision A", "vision B"])] * 50
    options = PaperOptions(top_k=5)
    bulk = client.recommend_bulk("authors", papers, options).results
    single = client.recommend_authors(papers[:3], options).results
    for i, result in enumerate(bulk):
        assert [name for name, _ in result] == [item.id for item in single[i % 3]]
        assert [score for _, score in result] == pytest.approx([item.score for item in single[i % 3]], abs=2e-3)


def test_papers_of_a_collection(client: FacetsClient) -> None:
    client.create_collection("shelf")
    documents = [
        Document(str(paper["id"]), f"{paper['title']}", {"abstract": paper["abstract"], "title": paper["title"]})
        for paper in toy_records()[:30]
    ]
    client.upsert("shelf", documents)
    found = client.rank_papers("authors", ["parsing A", "speech A"], collection="shelf", top_k=5, evidence=True)
    for subject, ranking in zip(("parsing", "speech"), found.rankings, strict=True):
        assert subject_of(ranking[0].id) == subject
        assert ranking[0].title and ranking[0].evidence is not None
    assert found.num_papers == 30
    (citing,) = client.rank_papers("citations", ["vision-citing-0"], collection="shelf", top_k=3).rankings
    assert subject_of(citing[0].id) == "vision"
    (given,) = client.rank_papers("authors", ["parsing A"], papers=[SPEECH, PARSING]).rankings
    assert given[0].position == 1
    client.delete_collection("shelf")


def test_what_is_wrong_is_reported(client: FacetsClient) -> None:
    with pytest.raises(InvalidArgumentError, match=r"papers\[1\]\.title"):
        client.recommend_authors([PARSING, Paper("")])
    with pytest.raises(NotFoundError, match="parsing A"):
        client.rank_papers("authors", ["parsing Ax"], papers=[PARSING])
    with pytest.raises(NotFoundError, match="nowhere"):
        client.rank_papers("authors", ["parsing A"], collection="nowhere")
    with pytest.raises(InvalidArgumentError, match="papers"):
        client.recommend_authors([PARSING], model="toy")
    with pytest.raises(InvalidArgumentError, match="toy-papers"):
        client.summarize(["A text."], model="toy-papers")
    with pytest.raises(InvalidArgumentError, match="nobody"):
        client.recommend_authors([PARSING], PaperOptions(positive_ids=["nobody"]))
    with pytest.raises(InvalidArgumentError, match="distinct"):
        client.add_papers([Paper("a", id="x"), Paper("b", id="x")])
    with pytest.raises(NotFoundError, match="nope"):
        client.add_authors([NewAuthor(Author("Zoe"), paper_ids=["nope"])])
    long = Paper("syntax", "grammar rule " * 50_000)
    assert subject_of(client.recommend_authors([long]).results[0][0].id) == "parsing"


def test_both_clients_give_the_same(client: FacetsClient, server: ServerProcess) -> None:
    async def ask() -> tuple[object, object]:
        async with AsyncFacetsClient(server.target, timeout_s=60) as asynchronous:
            found = await asynchronous.recommend_authors([PARSING])
            near = await asynchronous.find_candidates("authors", ["speach A"])
            return found.results, near

    results, near = asyncio.run(ask())
    assert [item.id for item in results[0]] == [item.id for item in client.recommend_authors([PARSING]).results[0]]
    assert near == client.find_candidates("authors", ["speach A"])
    assert near.results[0][0].id.startswith("speech")


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


def run(target: str, folder: Path, *args: str, code: int = 0) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FACETS_")}
    paths = os.pathsep.join(str(ROOT / room) for room in ("clients", "proto"))
    done = subprocess.run(
        [*COMMAND, "--target", target, *args],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env={**kept, "PYTHONPATH": paths},
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def test_the_command_line(server: ServerProcess, tmp_path: Path) -> None:
    out = run(server.target, tmp_path, "recommend", "authors", PARSING.title, "--abstract", PARSING.abstract, "-k", "3")
    assert "parsing" in out
    lines = [json.dumps({"id": f"s{i}", "title": PARSING.title, "authors": ["parsing A"]}) for i in range(40)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + '\n{"id": "bad", "title": " "}\n')
    report = json.loads(
        run(
            server.target, tmp_path, "--json", "recommend", "bulk", "in.jsonl", "--out", "o.csv", "-k", "2", code=1
        ).partition("}")[0]
        + "}"
    )
    assert (report["num_papers"], report["num_rows"], report["num_rejected"]) == (40, 80, 1)
    with (tmp_path / "o.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert len(rows) == 81 and all(subject_of(row[1]) == "parsing" and row[1] != "parsing A" for row in rows[1:])
    assert "parsing A" in run(server.target, tmp_path, "recommend", "find", "parsing Ax")
