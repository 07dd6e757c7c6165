import tracemalloc

import grpc
import pytest
from facets_proto.v1 import documents_pb2, filters_pb2, papers_pb2, papers_pb2_grpc
from facets_server.papers.service import CollectionPapers
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import LimitsConfig
from server_failures import failure
from server_fake_papers import served_papers
from server_fakes import limited

from facets.language.interruption import interrupted_by
from facets.papers.records import CandidateKind

pb = papers_pb2
AUTHORS, CITATIONS = pb.CANDIDATE_KIND_AUTHORS, pb.CANDIDATE_KIND_CITATIONS
BOAT = pb.Paper(id="b", title="boat boat", abstract="wine")
SONG = pb.Paper(title="song", abstract="king")
NOT_FOUND = grpc.StatusCode.NOT_FOUND


def started(make_server):
    """A server with a sentence model and a model of papers; ``.paper_engine`` is the engine, ``.stub`` calls it."""
    served, paper_engine = served_papers()
    running = make_server(others=[served], limits=limited(max_evidence_hits=20).replaced(max_texts_per_request=200))
    running.paper_engine = paper_engine
    running.stub = papers_pb2_grpc.RecommendationServiceStub(running.channel)
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="shelf"), timeout=60)
    put(running, "a", "boat river", title="boat river", abstract="sea", year=2001)
    put(running, "b", "music song\nand the piano", year=2005)
    put(running, "c", "king queen", title="king queen")
    paper_engine.batches.clear()
    return running


@pytest.fixture
def own(make_server):
    """A server for a test that changes it."""
    return started(make_server)


@pytest.fixture(scope="module")
def paper_server(make_module_server):
    return started(make_module_server)


@pytest.fixture(scope="module")
def stub(paper_server):
    return paper_server.stub


def options(**settings):
    return pb.PaperOptions(**settings)


def ids_of(result):
    return [item.id for item in result.candidates]


def refused(call, request, code=grpc.StatusCode.INVALID_ARGUMENT):
    return failure(call, request, code)


def test_authors_and_citing_papers_in_the_order_of_the_papers_with_the_model(stub):
    reply = stub.RecommendAuthors(pb.RecommendAuthorsRequest(papers=[BOAT, SONG]), timeout=60)
    assert [ids_of(result)[0] for result in reply.results] == ["Ann", "Cat"]
    assert {item.id: item.name for item in reply.results[0].candidates}["bob-1"] == "Bob"
    assert (reply.model.name, reply.model.revision) == ("papers", "p1")
    assert reply.timings.total_ms > 0
    assert not reply.results[0].candidates[0].HasField("evidence")
    citing = stub.RecommendCitations(pb.RecommendCitationsRequest(papers=[SONG]), timeout=60)
    assert sorted(ids_of(citing.results[0])) == ["c1", "c2"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["Ann", "bob-1", "Cat"]),
        ({"excluded_ids": ["Ann", "nobody"]}, ["bob-1", "Cat"]),
        ({"candidates": pb.CandidateList(ids=["Cat", "nobody"])}, ["Cat"]),
        ({"candidates": pb.CandidateList()}, []),
        ({"from_year": 2002, "to_year": 2006}, ["bob-1", "Cat"]),
    ],
)
def test_options_filter_and_move_candidates(stub, settings, expected):
    request = pb.RecommendAuthorsRequest(papers=[BOAT], options=options(**settings))
    assert ids_of(stub.RecommendAuthors(request, timeout=60).results[0]) == expected


def test_bulk_sends_each_id_once_and_agrees_with_the_single_call(stub, paper_server):
    papers = [BOAT, SONG, pb.Paper(title="queen", excluded_ids=["bob-1", "Ann", "Cat"])] * 50
    request = pb.RecommendBulkRequest(kind=AUTHORS, papers=papers, options=options(top_k=2))
    paper_server.paper_engine.batches.clear()
    reply = stub.RecommendBulk(request, timeout=60)
    assert len(set(reply.candidate_ids)) == len(reply.candidate_ids) == 3
    assert paper_server.paper_engine.batches == [128, 22]
    single = stub.RecommendAuthors(
        pb.RecommendAuthorsRequest(papers=papers[:3], options=options(top_k=2)), timeout=60
    ).results
    for i, result in enumerate(reply.results):
        assert [reply.candidate_ids[place] for place in result.candidates] == ids_of(single[i % 3])
        assert list(result.scores) == pytest.approx([item.score for item in single[i % 3].candidates])
    assert not reply.results[2].candidates


def put(running, document_id, text, **payload):
    document = documents_pb2.Document(id=document_id, text=text)
    document.payload.update(payload)
    return running.documents.Upsert(documents_pb2.UpsertRequest(collection="shelf", documents=[document]), timeout=60)


def test_papers_of_a_collection_for_an_author(stub):
    request = pb.RankPapersRequest(kind=AUTHORS, ids=["Cat", "Bob"], collection="shelf", evidence=True)
    reply = stub.RankPapers(request, timeout=60)
    cat, bob = reply.rankings
    assert [paper.id for paper in cat.papers] == ["b", "a", "c"]
    assert {paper.id for paper in bob.papers[:2]} == {"a", "c"}
    assert (cat.papers[0].title, reply.num_papers) == ("music song", 3)
    assert cat.papers[0].evidence.nearest_words
    assert reply.index_revision > 0


def test_a_collection_is_encoded_once_for_each_revision_of_a_document(own):
    request = pb.RankPapersRequest(kind=AUTHORS, ids=["Cat"], collection="shelf")
    own.stub.RankPapers(request, timeout=60)
    own.stub.RankPapers(request, timeout=60)
    assert own.paper_engine.batches == [3]
    revision = put(own, "a", "music song piano", title="music song piano").index_revision
    request.min_revision = revision
    reply = own.stub.RankPapers(request, timeout=60)
    assert own.paper_engine.batches == [3, 1]
    assert reply.rankings[0].papers[0].id == "a"
    assert reply.index_revision == revision


def test_papers_of_the_callers(stub):
    papers = pb.PaperList(papers=[BOAT, pb.Paper(title="song", id="s", year=2000), pb.Paper(title="piano")])
    request = pb.RankPapersRequest(kind=CITATIONS, ids=["c2"], papers=papers)
    reply = stub.RankPapers(request, timeout=60)
    assert [(paper.position, paper.title) for paper in reply.rankings[0].papers][:2] == [(1, "song"), (2, "piano")]
    assert reply.index_revision == 0
    request.from_year = 1999
    assert [paper.id for paper in stub.RankPapers(request, timeout=60).rankings[0].papers] == ["s"]


def test_what_is_unknown_is_reported_with_near_names(stub):
    unknown = pb.RankPapersRequest(kind=AUTHORS, ids=["Bobb"], collection="shelf")
    error = refused(stub.RankPapers, unknown, NOT_FOUND)
    assert "bob-1" in error.message
    no_shelf = pb.RankPapersRequest(kind=AUTHORS, ids=["Bob"], collection="nope")
    assert "nope" in refused(stub.RankPapers, no_shelf, NOT_FOUND).message
    unknown.excluded_ids.extend("abc")
    refused(stub.RankPapers, unknown, NOT_FOUND)


def test_long_texts_of_a_collection_are_read_one_at_a_time_and_once(own):
    for number in range(8):
        put(own, f"long {number}", f"boat river {number}\nwine" + " " * 2**20 + "sea")
    served, _ = served_papers()
    papers = CollectionPapers(own.engine, max_papers=100)
    request = pb.RankPapersRequest(ids=["Cat"], collection="shelf")
    peaks, checks = [], []
    tracemalloc.start()
    try:
        for _ in range(2):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with interrupted_by(lambda: checks.append(None)):
                named, facets, _ = papers.read(served, CandidateKind.AUTHORS, request, CallContext())
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
            assert ("long 3", "boat river 3") in named and ("a", "boat river") in named
            assert len(named) == len(facets) == 11
    finally:
        tracemalloc.stop()
        served.close()
    assert peaks[0] < 8 * 2**20 and peaks[1] < 2**20
    assert len(checks) >= 11


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_collection_that_goes_while_it_is_read_is_not_found(own, monkeypatch, is_made_again):
    get = own.engine.get

    def get_and_gone(name, ids):
        found = get(name, ids)
        monkeypatch.setattr(own.engine, "get", get)
        own.collections.DeleteCollection(documents_pb2.DeleteCollectionRequest(name=name), timeout=60)
        if is_made_again:
            own.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name=name), timeout=60)
        return found

    monkeypatch.setattr(own.engine, "get", get_and_gone)
    request = pb.RankPapersRequest(kind=AUTHORS, ids=["Ann"], collection="shelf")
    refused(own.stub.RankPapers, request, NOT_FOUND)


def test_a_collection_with_too_many_papers_is_refused(make_server):
    served, _ = served_papers()
    running = make_server(others=[served], limits=LimitsConfig(max_ranked_papers=1))
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="shelf"), timeout=60)
    put(running, "a", "boat")
    put(running, "b", "boat")
    stub = papers_pb2_grpc.RecommendationServiceStub(running.channel)
    request = pb.RankPapersRequest(kind=AUTHORS, ids=["Ann"], collection="shelf")
    assert refused(stub.RankPapers, request).fields == ["collection"]
    request.excluded_ids.append("a")
    refused(stub.RankPapers, request)


# Additions


def test_added_papers_bring_authors_and_citing_papers(own):
    paper = pb.Paper(id="new", title="bread cheese", authors=[pb.Author(name="Dee")], cited_by_ids=["c1", "p3", "zz"])
    reply = own.stub.AddPapers(pb.AddPapersRequest(papers=[paper]), timeout=60)
    assert (reply.num_papers, reply.num_authors, reply.num_citing_papers) == (1, 1, 3)
    assert set(reply.unknown_citations) >= {"zz"}
    found = own.stub.RecommendAuthors(pb.RecommendAuthorsRequest(papers=[pb.Paper(title="bread")]), timeout=60)
    assert ids_of(found.results[0])[0] == "Dee"


def test_thousands_of_diverse_authors_take_little_memory_and_short_turns(own):
    papers = [
        pb.Paper(id=f"new {number}", title="boat river", authors=[pb.Author(name=f"{number}/{i}") for i in range(25)])
        for number in range(200)
    ]
    own.stub.AddPapers(pb.AddPapersRequest(papers=papers), timeout=60)
    own.paper_engine.batches.clear()
    request = pb.RecommendAuthorsRequest(papers=[BOAT] * 4, options=options(top_k=1000, diversify=1))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        reply = own.stub.RecommendAuthors(request, timeout=60)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    # One author of each paper comes before the co-authors.
    assert len({name.partition("/")[0] for name in ids_of(reply.results[0])[:200]}) >= 198
    assert peak < 64 * 2**20
    assert own.paper_engine.batches == [2, 2]


def test_readers_do_not_wait_for_additions(own):
    engine = own.paper_engine
    engine.slow = "wine"
    engine.hold()
    paper = pb.Paper(id="n1", title="wine", authors=[pb.Author(name="New One")])
    adding = own.stub.AddPapers.future(pb.AddPapersRequest(papers=[paper]), timeout=60)
    assert engine.started.wait(30)
    reply = own.stub.RecommendAuthors(pb.RecommendAuthorsRequest(papers=[BOAT]), timeout=10)
    assert ids_of(reply.results[0]) == ["Ann", "bob-1", "Cat"]
    assert not adding.done()
    engine.gate.set()
    assert adding.result().num_papers == 1


def test_candidates_are_found_by_name(stub):
    request = pb.FindCandidatesRequest(kind=AUTHORS, texts=["Bob", "Ann"], top_k=2)
    reply = stub.FindCandidates(request, timeout=60)
    assert [result.candidates[0].id for result in reply.results] == ["bob-1", "Ann"]
    assert reply.num_candidates == 3


def authors(paper, **settings):
    return pb.RecommendAuthorsRequest(papers=[BOAT, pb.Paper(**paper)], options=options(**settings))


def rankings(**settings):
    return pb.RankPapersRequest(**{"kind": AUTHORS, "ids": ["Ann"], **settings})


def listed(*papers):
    return rankings(papers=pb.PaperList(papers=papers))


def added(*papers):
    return pb.AddPapersRequest(papers=papers)


def new_author(**fields):
    return pb.AddAuthorsRequest(authors=[pb.NewAuthor(**fields)])


X = pb.Paper(title="a", id="x")


@pytest.mark.parametrize(
    ("request_", "fields"),
    [
        (authors({}), ["papers[1].title"]),
        (authors({"title": "x" * 40_000}), ["papers[1].title"]),
        (authors({"title": "a", "abstract": "word " * 300_000}), ["papers[1].abstract"]),
        (authors({"title": "", "id": "x" * 600}), ["papers[1].title", "papers[1].id"]),
        (authors({"title": "a"}, top_k=0), ["options.top_k"]),
        (authors({"title": "a"}, top_k=11, evidence=True), ["options.top_k"]),
        (authors({"title": "a"}, facet_weight=float("nan")), ["options.facet_weight"]),
        (authors({"title": "a"}, from_year=2010, to_year=2009), ["options.from_year"]),
        (rankings(ids=[]), ["ids"]),
        (rankings(ids=[" "]), ["ids[0]"]),
        (rankings(kind=0), ["kind"]),
        (rankings(), ["source"]),
        (listed(), ["papers.papers"]),
        (listed(X, X), ["papers.papers[1].id"]),
        (listed(pb.Paper()), ["papers.papers[0].title"]),
        (rankings(collection="shelf", facet_weight=2.0), ["facet_weight"]),
        (rankings(papers=pb.PaperList(papers=[BOAT]), where=filters_pb2.Filter()), ["where"]),
        (added(), ["papers"]),
        (added(pb.Paper(title="a")), ["papers[0].id"]),
        (added(X, X), ["papers[1].id"]),
        (added(pb.Paper(title="a", id="x", authors=[pb.Author()])), ["papers[0].authors[0].name"]),
        (added(pb.Paper(title="a", id="x", cited_by_ids=[""])), ["papers[0].cited_by_ids[0]"]),
        (new_author(papers=[BOAT]), ["authors[0].author.name"]),
        (new_author(author=pb.Author(name="Eve")), ["authors[0].papers"]),
        (new_author(author=pb.Author(name="Eve"), papers=[pb.Paper()]), ["authors[0].papers[0].title"]),
    ],
)
def test_bad_requests_are_named_by_field_and_store_nothing(stub, paper_server, request_, fields):
    before = set(paper_server.paper_engine.state.bank.ids)
    call = getattr(stub, type(request_).__name__.removesuffix("Request"))
    assert refused(call, request_).fields == fields
    assert set(paper_server.paper_engine.state.bank.ids) == before


def test_added_authors_are_found(own):
    new = pb.NewAuthor(author=pb.Author(name="Eve", id="e-1"), papers=[pb.Paper(title="wine")])
    reply = own.stub.AddAuthors(pb.AddAuthorsRequest(authors=[new]), timeout=60)
    assert (reply.num_authors, reply.num_papers) == (1, 1)
    found = own.stub.RecommendAuthors(pb.RecommendAuthorsRequest(papers=[pb.Paper(title="wine")]), timeout=60)
    assert ids_of(found.results[0])[0] == "e-1"
