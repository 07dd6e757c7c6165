"""Methods of the clients about papers, their authors and the papers that cite them."""

import pytest
from facets_client import Author, NewAuthor, Paper, PaperOptions, filters
from ranked_candidates import AUTHORS, RANKING, fake_score

PAPERS = [Paper(f"paper number {i}", "abstract", id=f"p{i}") for i in range(10)]


@pytest.fixture(autouse=True)
def replies(world):
    world.replies |= RANKING


def test_authors_in_the_order_of_the_papers_over_several_requests(client, world):
    found = client.recommend_authors(PAPERS, PaperOptions(top_k=2, evidence=True))
    best = [sorted(AUTHORS, key=lambda name, title=paper.title: -fake_score(title, name))[:2] for paper in PAPERS]
    assert [[item.id for item in result] for result in found] == best
    assert (world.count("RecommendAuthors"), found.model.name, len(found)) == (3, "papers", 10)
    assert found.to_dicts()[2]["input"] == 1 and found[0][0].evidence.nearest_papers[0].id == "p1"


def test_options_travel(client, world):
    client.recommend_authors(PAPERS[:1], PaperOptions(excluded_ids=["Ann"], from_year=2000, facet_weight=0.0))
    sent = world.calls[-1][1].options
    assert (sent.excluded_ids, sent.from_year, sent.HasField("to_year")) == (["Ann"], 2000, False)
    assert sent.HasField("facet_weight") and not sent.HasField("candidates")
    assert client.recommend_authors(PAPERS[:1], PaperOptions(candidates=[])).results == ((),)  # none, not all
    where = filters.Equals("kind", "a")
    client.rank_papers("authors", ["Ann", "Bob", "Cat"], collection="news", where=where, to_year=1999, min_revision=1)
    sent = world.calls[-1][1]
    assert (sent.to_year, sent.HasField("from_year"), sent.min_revision) == (1999, False, 1)
    assert sent.where.field.field == "kind"
    assert world.count("RankPapers") == 2  # two ids a request


def test_many_papers_of_the_callers_take_several_requests(client, world):
    (ranking,) = client.rank_papers("authors", ["Ann"], papers=PAPERS, top_k=3)
    expected = sorted(range(10), key=lambda i: -fake_score(PAPERS[i].title, "Ann"))
    assert [item.position for item in ranking] == expected[:3]
    assert world.count("RankPapers") == 3  # at most four papers a request
    (ranking,) = client.rank_papers("authors", ["Ann"], papers=PAPERS)
    assert [item.position for item in ranking] == expected


def test_additions(client, world):
    world.replies["AddPapers"] = lambda request: {"num_papers": len(request.papers), "unknown_citations": ["q"]}
    added = client.add_papers([Paper("t", id=f"n{i}", authors=[Author("Zoe", "z-1")], year=2020) for i in range(10)])
    assert (added.num_papers, added.unknown_citations) == (10, ("q", "q"))
    sent = world.calls[-1][1].papers[0]
    assert (sent.authors[0].id, sent.year) == ("z-1", 2020)
    client.add_authors([NewAuthor(Author(f"A{i}"), papers=PAPERS[:2]) for i in range(5)])
    assert world.count("AddAuthors") == 3  # two papers each, at most four papers a request
