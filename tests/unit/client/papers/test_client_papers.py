"""Methods of the clients about papers, their authors and the papers that cite them."""

import pytest
from facets_client import Author, Document, InvalidArgumentError, NewAuthor, NotFoundError, Paper, PaperOptions, filters
from fake_papers import AUTHORS, fake_score

PAPERS = [Paper(f"paper number {i}", "abstract", id=f"p{i}") for i in range(10)]


def best(paper, names=AUTHORS):
    return sorted(names, key=lambda name: -fake_score(paper.title, name))


def test_authors_in_the_order_of_the_papers_over_several_requests(client, world):
    found = client.recommend_authors(PAPERS, PaperOptions(top_k=2))
    assert [[item.id for item in result] for result in found.results] == [best(paper)[:2] for paper in PAPERS]
    assert world.count("RecommendAuthors") == 3  # at most four papers a request
    assert found.model.name == "papers"
    item = found.results[0][0]
    assert (item.facet_score, item.document_score, item.evidence) == (0.25, 0.75, None)


def test_rankings_are_gone_through_indexed_and_rows(client):
    found = client.recommend_authors(PAPERS[:3], PaperOptions(top_k=2))
    assert found[1] == found.results[1] and len(found) == 3 and [len(ranking) for ranking in found] == [2, 2, 2]
    rows = found.to_dicts()
    assert [(row["input"], row["id"]) for row in rows[2:4]] == [(1, item.id) for item in found[1]]
    near = client.find_candidates("authors", ["An"])
    assert [candidate.id for candidate in near[0]] == ["Ann"] and near.num_candidates == len(AUTHORS)
    embeddings = client.embed(["one", "two"])
    assert embeddings[1].shape == embeddings.facet_embeddings.shape[1:] and len(list(embeddings)) == 2


def test_options_travel(client, world):
    options = PaperOptions(excluded_ids=["Ann"], candidates=("Ann", "Bob"), from_year=2000, facet_weight=0.0)
    found = client.recommend_authors([PAPERS[0]], options)
    assert [item.id for item in found.results[0]] == ["Bob"]
    sent = world.calls[-1][1].options
    assert (sent.from_year, sent.HasField("to_year")) == (2000, False)
    assert sent.HasField("facet_weight")
    assert client.recommend_authors([PAPERS[0]], PaperOptions(candidates=[])).results == ((),)  # none, not all
    client.recommend_authors([PAPERS[0]])
    sent = world.calls[-1][1].options
    assert not any(map(sent.HasField, ("candidates", "from_year", "to_year", "facet_weight")))


def test_papers_of_a_collection(client, world):
    client.upsert("news", [Document(f"d{i}", f"text {i}") for i in range(5)])
    found = client.rank_papers("authors", ["Ann", "Bob", "Cat"], collection="news", top_k=2, excluded_ids=["d0"])
    assert world.count("RankPapers") == 2  # two ids a request
    assert [len(ranking) for ranking in found.rankings] == [2, 2, 2]
    assert found.rankings[0][0].position is None
    assert (found.num_papers, found.index_revision) == (5, world.revision)
    where = filters.Equals("kind", "a")
    client.rank_papers("authors", ["Ann"], collection="news", where=where, to_year=1999, min_revision=1)
    sent = world.calls[-1][1]
    assert sent.to_year == 1999 and not sent.HasField("from_year")
    assert sent.where.field.field == "kind" and sent.min_revision == 1


def test_many_papers_of_the_callers_take_several_requests(client, world):
    (ranking,) = client.rank_papers("authors", ["Ann"], papers=PAPERS, top_k=3, excluded_ids=["p1"]).rankings
    left = [i for i in range(10) if i != 1]
    assert [item.position for item in ranking] == sorted(left, key=lambda i: -fake_score(PAPERS[i].title, "Ann"))[:3]
    assert world.count("RankPapers") == 3
    (ranking,) = client.rank_papers("authors", ["Ann"], papers=PAPERS).rankings
    assert len(ranking) == 10  # though a request has four
    with pytest.raises(InvalidArgumentError, match=r"papers\[5\]"):
        client.rank_papers("authors", ["Ann"], papers=[*PAPERS[:5], Paper("REFUSE")])


def test_an_error_names_the_place_in_the_whole(client):
    papers = [*PAPERS[:6], Paper("REFUSE this")]
    with pytest.raises(InvalidArgumentError, match=r"papers\[6\]\.title") as raised:
        client.recommend_authors(papers)
    assert raised.value.field_violations[0].field == "papers[6].title"
    with pytest.raises(NotFoundError, match="near: Ann"):
        client.rank_papers("authors", ["Ana"], papers=PAPERS[:1])


def test_additions(client, server):
    papers = [Paper("t", id=f"n{i}", authors=[Author("Zoe", "z-1")], cited_by_ids=["q"], year=2020) for i in range(6)]
    added = client.add_papers(papers[:4])
    assert (added.num_papers, added.num_authors, added.num_unknown_citations) == (4, 4, 4)
    assert server.papers.papers["n0"].authors[0].id == "z-1"
    assert server.papers.papers["n0"].year == 2020
    authors = [NewAuthor(Author(f"A{i}"), papers=PAPERS[:2]) for i in range(5)]
    assert client.add_authors(authors).num_authors == 5
    assert server.world.count("AddAuthors") == 3  # two papers each, at most four papers a request
