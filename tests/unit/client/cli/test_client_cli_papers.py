"""``facets recommend``: what it prints, the bulk file and how it survives, wrong input."""

import csv
import gzip
import json

import grpc
import pytest
from facets_client.load.source import Source
from facets_client.papers.messages import read_authors, read_papers
from fake_server import INVALID, NOT_FOUND, fail, status_of
from ranked_candidates import AUTHORS, RANKING, fake_score


@pytest.fixture
def facets(facets, world):
    """Runs ``facets recommend``."""
    world.replies |= RANKING

    def run(*args, **options):
        words = [str(arg) for arg in args if arg != "--json"]
        return facets(*(["--json"] if "--json" in args else []), "recommend", *words, **options)

    return run


def test_authors_with_their_evidence(facets, world, tmp_path):
    out = facets("authors", "a title", "--top-k", "2", "--exclude", "Ann").stdout
    assert "boat" in out and "About [bold]boats" in out and "\x1b" not in out and "Ann" not in out
    assert "boat" not in facets("authors", "a title", "--no-evidence").stdout
    assert "nothing" in facets("authors", "t", "--candidate", "zz").stdout
    world.replies["RecommendAuthors"] = {"results": [{"candidates": [{"id": "Ann", "confidence": 0.04}]}]}
    assert "nothing relevant: the surest has confidence 0.04" in facets("authors", "a title").stdout
    (tmp_path / "in.jsonl").write_text('{"title": "a"}\n')
    assert "Bob" not in facets("papers", "--author", "Ann", "--file", "in.jsonl").stdout
    world.replies["FindCandidates"] = {"results": [{"candidates": [{"id": "b-1", "name": "Bob"}]}]}
    assert "b-1   Bob" in facets("find", "Bop").stdout


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["authors"], "expected a title, or --file"),
        (["authors", " "], "field 'title' has no text"),
        (["authors", "--file", "good.jsonl", "--abstract", "a"], "--abstract belongs to a title"),
        (["authors", "--file", "bad.jsonl"], "line 2: field 'title' has no text"),
        (["authors", "--file", "empty.jsonl"], "expected at least one paper"),
        (["authors", "a", "--abstract", "@nope.txt"], "No such file"),
        (["papers", "--collection", "news"], "expected --author or --citing"),
        (["papers", "--author", "Ann"], "expected --collection or --file"),
        (["bulk", "good.jsonl", "--out", "good.jsonl"], "must not be the input"),
        (["bulk", "good.jsonl", "--out", "o.csv", "--candidates", "empty.jsonl"], "expected at least one line"),
        (["bulk", "good.jsonl", "--out", "o.csv", "--conflicts", "bad.csv"], "line 2: expected the id of a paper"),
        (["bulk", "-", "--out", "o.csv", "--candidates", "-"], "cannot both be standard input"),
        (["bulk", "good.jsonl", "--out", "no/folder/o.csv"], "No such file"),
        (["assign", "good.jsonl", "--out", "o.csv", "--max-papers", 1], "expected --reviewers or --candidates"),
        (["assign", "good.jsonl", "--out", "o.csv", "--max-papers", 1, "--candidates", "pool.txt"], "3 reviewers per"),
        (
            ["assign", "bad.jsonl", "--out", "o.csv", "--max-papers", 1, "--candidates", "pool.txt"],
            "line 1: field 'id'",
        ),
        (["add-papers", "good.jsonl", "--rejected", "good.jsonl"], "must not be the input"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(facets, tmp_path, args, sentence):
    (tmp_path / "good.jsonl").write_text('{"id": "a", "title": "b"}\n')
    (tmp_path / "bad.jsonl").write_text('{"title": "b"}\n{"id": "x"}\n')
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "bad.csv").write_text("a,Ann\nb\n")
    (tmp_path / "pool.txt").write_text("Ann\nBob\n")
    done = facets(*args, code=2)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) <= 2


# Bulk


def paper_lines(number, **more):
    return "".join(json.dumps({"id": f"p{i}", "title": f"title {i}", **more}) + "\n" for i in range(number))


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def expected_rows(number, top_k, left=AUTHORS):
    for i in range(number):
        ranked = sorted(left, key=lambda name, i=i: (-fake_score(f"title {i}", name), name))[:top_k]
        yield from ([f"p{i}", name, f"{fake_score(f'title {i}', name):.6g}"] for name in ranked)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("authors", "Find authors for papers (reviewers, experts)"),
        ("citations", "Find papers that would cite"),
        ("add-papers", "Add papers, with their authors and the papers that cite them"),
        ("add-authors", "Add authors by their papers"),
    ],
)
def test_each_of_two_names_of_a_command_has_its_own_help(facets, command, says):
    text = facets(command, "--help").stdout
    assert says in text and f"facets recommend {command} " in text.partition("Examples:")[2]


def test_bulk_writes_the_best_candidates_of_every_paper(facets, tmp_path):
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(paper_lines(10).encode()))
    (tmp_path / "pool.txt").write_text("Ann\nBob\n\nBob\nCat\nZed\n")
    out = facets("bulk", "in.jsonl.gz", "--out", "o.csv", "--candidates", "pool.txt", "-k", 2, "--batch-size", 3)
    rows = rows_of(tmp_path / "o.csv")
    assert rows[0] == ["paper", "author", "score"]
    assert [row[:2] for row in rows[1:]] == [row[:2] for row in expected_rows(10, 2, ("Ann", "Bob", "Cat"))]
    assert "10 papers: 20 rows in o.csv" in out.stdout
    assert "1 entry of --candidates is unknown ('Zed')" in out.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl.gz", "o.csv", "pool.txt"]
    (tmp_path / "conflicts.csv").write_text("p0,Ann\np1,Anne\n")
    said = facets("bulk", "in.jsonl.gz", "--out", "o.csv", "--conflicts", "conflicts.csv").stderr
    assert "conflicts.csv: 1 name is unknown: 'Anne'" in said
    assert ["p0", "Ann"] not in [row[:2] for row in rows_of(tmp_path / "o.csv")]
    (tmp_path / "empty.jsonl").touch()
    facets("bulk", "empty.jsonl", "--out", "o.csv")
    assert rows_of(tmp_path / "o.csv") == [["paper", "author", "score"]]


def refusing(request):
    for place, paper in enumerate(request.papers):
        if paper.title == "REFUSE":
            fail(INVALID, f"papers[{place}].title is refused", field=f"papers[{place}].title")
    return RANKING["RecommendBulk"](request)


def test_bulk_rejects_bad_records_and_goes_on(facets, world, tmp_path):
    lines = paper_lines(6).splitlines()
    lines[1] = '{"id": "x", "title": "REFUSE"}'
    lines[2] = '{"id": "p0", "title": "twice"}'
    lines[3] = '{"title": "no id"}'
    lines[4] = '{"id": "cut'
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    world.replies["RecommendBulk"] = refusing
    report = json.loads(facets("--json", "bulk", "in.jsonl", "--out", "o.csv", "-k", 1, code=1).stdout)
    assert (report["num_papers"], report["num_rejected"], report["num_rows"]) == (2, 4, 2)
    rejected = [json.loads(line) for line in (tmp_path / "in.jsonl.rejected.jsonl").read_text().splitlines()]
    assert [(item["line"], item["reason"]) for item in rejected] == [
        (2, "refused"),
        (3, "duplicate_id"),
        (4, "invalid_paper"),
        (5, "invalid_json"),
    ]
    assert [row[0] for row in rows_of(tmp_path / "o.csv")[1:]] == ["p0", "p5"]


def test_bulk_leaves_no_file_after_an_error(facets, world, tmp_path):
    (tmp_path / "in.jsonl").write_text(paper_lines(20))
    world.faults["RecommendBulk"].append(status_of(grpc.StatusCode.INTERNAL, "broken"))
    facets("bulk", "in.jsonl", "--out", "o.csv", code=4)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


# Records


def read_lines(tmp_path, read, *records, **options):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with Source(str(tmp_path / "in.jsonl")) as source:
        return list(read(source, **options))


def test_papers_of_a_file(tmp_path):
    authors = ["X", {"name": "Y", "id": 5}, {"id": "z"}]
    good = {"id": 0, "title": "t", "abstract": None, "authors": authors, "cited_by": ["c"], "year": 2001, "more": {}}
    wrong = ({"authors": "X"}, {"authors": [3]}, {"title": 3}, {"year": "2001"}, {"cited_by": {"c": 1}}, {"id": True})
    records = [good, *({"id": "b", "title": "t", **fields} for fields in wrong)]
    first, *others = read_lines(tmp_path, read_papers, *records, need_id=True)
    assert [(author.name, author.id) for author in first.item.authors] == [("X", ""), ("Y", "5"), ("z", "z")]
    assert (first.item.id, first.item.abstract, first.item.year, first.item.cited_by_ids) == ("0", "", 2001, ("c",))
    assert [other.reason for other in others] == ["invalid_paper"] * len(wrong)


def test_authors_of_a_file(tmp_path):
    records = [{"name": "X", "id": 5, "papers": [{"title": "t"}]}, {"name": "Y", "id": "5", "paper_ids": ["p"]}]
    records += [{"name": "Z"}, {"papers": [{"title": "t"}]}, {"name": "Q", "papers": [{"abstract": "t"}]}]
    found = read_lines(tmp_path, read_authors, *records, {"name": "R", "papers": ["t"]})
    assert (found[0].item.author.name, found[0].item.author.id) == ("X", "5")
    assert [item.reason for item in found[1:]] == ["duplicate_id", *["invalid_author"] * 4]
    assert "papers[0]: field 'title'" in found[4].message and "papers[0]: must be an object" in found[5].message


def test_papers_and_authors_are_added(facets, world, tmp_path):
    (tmp_path / "p.jsonl").write_text(paper_lines(7, authors=["Zoe"]))
    world.replies["AddPapers"] = lambda request: {"num_papers": len(request.papers), "num_authors": 1}
    assert "7 papers: added 7 papers, 2 authors, 0 citing" in facets("add-papers", "p.jsonl", "--batch-size", 4).stdout
    (tmp_path / "a.jsonl").write_text(
        '{"name": "New", "papers": [{"title": "t"}]}\n{"name": "Lost", "paper_ids": ["nope"]}\n'
    )
    world.replies["AddAuthors"] = {"num_authors": 1, "num_papers": 1}
    unknown = status_of(NOT_FOUND, "'nope' is unknown", reason="NOT_FOUND", resource_type="paper")
    world.faults["AddAuthors"].append(unknown)  # of both, so that each is tried alone
    assert "added 2 authors, 2 papers, 0 rejected" in facets("add-authors", "a.jsonl").stdout
    world.faults["AddAuthors"].append(unknown)
    assert "added 1 author, 1 paper, 1 rejected" in facets("add-authors", "a.jsonl", "--batch-size", 1, code=1).stdout


# Assignment


def test_assign_gives_every_paper_reviewers_within_loads_and_conflicts(facets, world, tmp_path):
    pytest.importorskip("scipy", reason="the extra assign brings it")
    papers = [{"id": f"p{i}", "title": f"title {i}", "authors": ["Zoe"] if i else []} for i in range(4)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(paper) + "\n" for paper in papers))
    reviewers = [{"name": name, "papers": [{"title": "x", "authors": [name]}]} for name in AUTHORS[:3]]
    reviewers.append({"name": "Dee", "papers": [{"title": "y", "authors": ["Dee", "Zoe"]}]})
    (tmp_path / "reviewers.jsonl").write_text("".join(json.dumps(reviewer) + "\n" for reviewer in reviewers))
    (tmp_path / "conflicts.csv").write_text("p0,Ann\np1,Anne\n")
    asked = ["assign", "in.jsonl", "--reviewers", "reviewers.jsonl", "--conflicts", "conflicts.csv", "--out", "o.csv"]
    loads = ["--reviewers-per-paper", 2, "--max-papers", 3, "--min-papers", 1]
    report = json.loads(facets("--json", *asked, *loads).stdout)
    head, *rows = rows_of(tmp_path / "o.csv")
    assert head == ["paper", "reviewer", "score"] and len(rows) == 8
    assert [row[0] for row in rows] == [f"p{i // 2}" for i in range(8)]
    assert {tuple(row[:2]) for row in rows if row[1] == "Dee"} == {("p0", "Dee")}  # wrote with Zoe
    assert ["p0", "Ann"] not in [row[:2] for row in rows]
    assert all(
        float(score) == pytest.approx(fake_score(f"title {paper[1:]}", name), abs=1e-5) for paper, name, score in rows
    )
    assert [row[:2] for row in rows] == [[pair["paper"], pair["reviewer"]] for pair in report["assignments"]]
    assert (report["least_papers"], report["most_papers"]) == (1, 3)
    assert world.count("AddAuthors") == 1
    said = facets(*asked, *loads)
    assert "places in o.csv" in said.stdout and "conflicts.csv: 1 name is unknown: 'Anne'" in said.stderr


def test_json_is_one_object_a_paper(facets, tmp_path):
    (tmp_path / "papers.jsonl").write_text('{"title": "a", "id": 7}\n\n{"title": "b", "abstract": null}\n')
    lines = facets("--json", "citations", "--file", "papers.jsonl").stdout.splitlines()
    assert [json.loads(line)["paper"] for line in lines] == [{"id": "7", "title": "a"}, {"id": "", "title": "b"}]
    assert json.loads(lines[0])["candidates"][0]["evidence"]["nearest_words"][0]["word"] == "boat"
