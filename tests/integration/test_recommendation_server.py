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
    Document,
    FacetsClient,
    InvalidArgumentError,
    NewAuthor,
    NotFoundError,
    Paper,
    PaperAuthor,
    RecommendationOptions,
)
from server_process import ROOT, ServerProcess
from toy_papers import TOPICS, make_toy_papers_checkpoint, toy_papers

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs a server with a model of papers")

SEA = Paper("a storm on the river", " ".join(TOPICS["sea"]), id="sea")
MUSIC = Paper("an opera for the violin", " ".join(TOPICS["music"]), id="music")
COMMAND = [sys.executable, "-c", "from facets_client.cli import main; main()"]


@pytest.fixture(scope="module")
def papers_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_papers_checkpoint(tmp_path_factory.mktemp("papers") / "toy-papers")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, toy_model: Path, papers_model: Path) -> Iterator[ServerProcess]:
    data_dir = tmp_path_factory.mktemp("recommendation") / "data"
    with ServerProcess(data_dir, toy_model, arguments=["--model", str(papers_model)]) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FacetsClient]:
    with FacetsClient(server.target, timeout_s=60) as made:
        yield made


def topic_of(name: str) -> str:
    return name.replace("-", " ").split()[0].lower()


def test_the_models_and_their_health(client: FacetsClient) -> None:
    tasks = {model.task: model for model in client.models()}
    assert set(tasks) == {"sentences", "papers"}
    assert tasks["papers"].num_facets >= 2 and tasks["papers"].limits.max_ranked_papers > 0
    assert client.health()["facets.v1.RecommendationService"] == "SERVING"


def test_authors_of_the_topic_come_first(client: FacetsClient) -> None:
    found = client.recommend_authors([SEA, MUSIC], RecommendationOptions(top_k=4, evidence=True))
    for topic, result in zip(("sea", "music"), found.results, strict=True):
        assert [topic_of(item.id) for item in result[:3]] == [topic] * 3
        assert [item.score for item in result] == sorted((item.score for item in result), reverse=True)
        evidence = result[0].evidence
        assert evidence is not None and evidence.nearest_words
        assert topic_of(evidence.nearest_papers[0].id) == topic
    assert found.model.name == "toy-papers"


def test_citing_papers_of_the_topic_come_first(client: FacetsClient) -> None:
    found = client.recommend_citations([SEA], RecommendationOptions(top_k=3))
    assert "sea" in found.results[0][0].id


def test_filters(client: FacetsClient) -> None:
    everyone = client.recommend_authors([SEA], RecommendationOptions(top_k=50)).results[0]
    ids = [item.id for item in everyone]
    assert len(ids) > 10
    left = client.recommend_authors([SEA], RecommendationOptions(top_k=50, exclude=[*ids[:2], "nobody"])).results[0]
    assert [item.id for item in left] == ids[2:]
    own = Paper(SEA.title, SEA.abstract, excluded=ids[1:])
    assert [item.id for item in client.recommend_authors([own]).results[0]] == ids[:1]
    assert client.recommend_authors([SEA], RecommendationOptions(exclude=ids)).results == ((),)
    assert client.recommend_authors([SEA], RecommendationOptions(candidates=[])).results == ((),)
    some = RecommendationOptions(candidates=[ids[5], ids[3], "nobody"])
    assert [item.id for item in client.recommend_authors([SEA], some).results[0]] == [ids[3], ids[5]]
    assert client.recommend_authors([SEA], RecommendationOptions(from_year=3000)).results == ((),)
    unlike = RecommendationOptions(top_k=50, negative=[ids[0]], example_weight=100.0)
    assert client.recommend_authors([SEA], unlike).results[0][0].id != ids[0]


def test_facet_weight_mixes_both_scores(client: FacetsClient) -> None:
    for weight, part in ((1.0, "facet_score"), (0.0, "document_score")):
        result = client.recommend_authors([SEA], RecommendationOptions(top_k=20, facet_weight=weight)).results[0]
        parts = [getattr(item, part) for item in result]
        assert parts == sorted(parts, reverse=True)


def test_bulk_agrees_with_single_calls(client: FacetsClient) -> None:
    papers = [SEA, MUSIC, Paper("a king", excluded=["War A", "war-b"])] * 50
    options = RecommendationOptions(top_k=5)
    bulk = client.recommend_bulk("authors", papers, options).results
    single = client.recommend_authors(papers[:3], options).results
    for i, result in enumerate(bulk):
        assert [name for name, _ in result] == [item.id for item in single[i % 3]]
        assert [score for _, score in result] == pytest.approx([item.score for item in single[i % 3]], abs=2e-3)


def test_papers_of_a_collection(client: FacetsClient) -> None:
    client.create_collection("shelf")
    documents = [
        Document(str(paper["id"]), f"{paper['title']}", {"abstract": paper["abstract"], "title": paper["title"]})
        for paper in toy_papers()[:30]
    ]
    client.upsert("shelf", documents)
    found = client.rank_papers("authors", ["Sea A", "Music A"], collection="shelf", top_k=5, evidence=True)
    for topic, ranking in zip(("sea", "music"), found.rankings, strict=True):
        assert topic_of(ranking[0].id) == topic
        assert ranking[0].title and ranking[0].evidence is not None
    assert found.num_papers == 30
    (citing,) = client.rank_papers("citations", ["cite-war-0"], collection="shelf", top_k=3).rankings
    assert topic_of(citing[0].id) == "war"
    (given,) = client.rank_papers("authors", ["Sea A"], papers=[MUSIC, SEA]).rankings
    assert given[0].position == 1
    client.delete_collection("shelf")


def test_what_is_wrong_is_told(client: FacetsClient) -> None:
    with pytest.raises(InvalidArgumentError, match=r"papers\[1\]\.title"):
        client.recommend_authors([SEA, Paper("")])
    with pytest.raises(NotFoundError, match="Sea A"):
        client.rank_papers("authors", ["Sea Ax"], papers=[SEA])
    with pytest.raises(NotFoundError, match="nowhere"):
        client.rank_papers("authors", ["Sea A"], collection="nowhere")
    with pytest.raises(InvalidArgumentError, match="papers"):
        client.recommend_authors([SEA], model="toy")
    with pytest.raises(InvalidArgumentError, match="toy-papers"):
        client.summarize(["A text."], model="toy-papers")
    with pytest.raises(InvalidArgumentError, match="nobody"):
        client.recommend_authors([SEA], RecommendationOptions(positive=["nobody"]))
    with pytest.raises(InvalidArgumentError, match="the same as"):
        client.add_papers([Paper("a", id="x"), Paper("b", id="x")])
    with pytest.raises(NotFoundError, match="nope"):
        client.add_authors([NewAuthor(PaperAuthor("Zoe"), paper_ids=["nope"])])
    long = Paper("storm", "boat river " * 50_000)
    assert topic_of(client.recommend_authors([long]).results[0][0].id) == "sea"


def test_both_clients_give_the_same(client: FacetsClient, server: ServerProcess) -> None:
    async def ask() -> tuple[object, object]:
        async with AsyncFacetsClient(server.target, timeout_s=60) as asynchronous:
            found = await asynchronous.recommend_authors([SEA])
            near = await asynchronous.find_candidates("authors", ["Musik A"])
            return found.results, near

    results, near = asyncio.run(ask())
    assert [item.id for item in results[0]] == [item.id for item in client.recommend_authors([SEA]).results[0]]
    assert near == client.find_candidates("authors", ["Musik A"])
    assert near.results[0][0].id.startswith("Music")


def test_additions_survive_a_kill(
    spawn: Callable[..., ServerProcess], tmp_path: Path, toy_model: Path, papers_model: Path
) -> None:
    arguments = ["--model", str(papers_model)]
    first = spawn(arguments=arguments)
    paper = Paper("concert drum", " ".join(TOPICS["music"]), id="new-1", authors=[PaperAuthor("New One", "n-1")])
    with FacetsClient(first.target, timeout_s=60) as client:
        assert client.add_papers([paper]).num_papers == 1
        added = client.add_authors([NewAuthor(PaperAuthor("Old Salt"), papers=[SEA], paper_ids=["sea-00"])])
        assert added.num_authors == 1
        before = client.recommend_authors([SEA, MUSIC], RecommendationOptions(top_k=50))
    assert "n-1" in [item.id for item in before.results[1]]
    assert "Old Salt" in [item.id for item in before.results[0]]
    first.kill()
    second = spawn(arguments=arguments)
    with FacetsClient(second.target, timeout_s=60) as client:
        after = client.recommend_authors([SEA, MUSIC], RecommendationOptions(top_k=50))
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
    out = run(server.target, tmp_path, "recommend", "authors", SEA.title, "--abstract", SEA.abstract, "-k", "3")
    assert "Sea" in out or "sea-" in out
    lines = [json.dumps({"id": f"s{i}", "title": SEA.title, "authors": ["Sea A"]}) for i in range(40)]
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
    assert len(rows) == 81 and all(topic_of(row[1]) == "sea" and row[1] != "Sea A" for row in rows[1:])
    assert "Sea A" in run(server.target, tmp_path, "recommend", "find", "Sea Ax")
