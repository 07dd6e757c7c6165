"""Long documents on the wire: cut into parts by the server, found by part, given and read back with their places."""

import grpc
import numpy as np
import pytest
from facets_proto.v1 import common_pb2, documents_pb2, results_pb2
from facets_server.runtime.config import LimitsConfig
from server_fakes import served_passages

from facets.documents import ingest

MUSIC = "The dog plays the guitar. "
WEIGHTS = "A man lifting weights in the garage. "
BOOK = "# Music\n\n" + MUSIC * 150 + "\n\n# Weights\n\n" + WEIGHTS * 100


@pytest.fixture(scope="module")
def running(make_module_server):
    return make_module_server(others=[served_passages()], limits=LimitsConfig(max_document_bytes=200_000))


@pytest.fixture
def stub(running):
    made = running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    assert made.collection.num_parts == 0
    yield running.documents
    running.collections.DeleteCollection(documents_pb2.DeleteCollectionRequest(name="news"), timeout=60)


def upsert(stub, *documents):
    request = documents_pb2.UpsertRequest(collection="news", documents=documents)
    return stub.Upsert(request, timeout=60)


def search(stub, text, **fields):
    request = documents_pb2.SearchRequest(
        collection="news", queries=[documents_pb2.SearchQuery(text=text)], evidence=True, **fields
    )
    return stub.Search(request, timeout=60).results[0].hits


def read(stub, id, **fields):
    request = documents_pb2.GetDocumentsRequest(collection="news", ids=[id], **fields)
    return stub.GetDocuments(request, timeout=60).documents[0]


def test_a_long_text_is_cut_where_its_sections_begin_and_found_by_part(running, stub):
    upsert(stub, documents_pb2.Document(id="book", text=BOOK), documents_pb2.Document(id="short", text=MUSIC))
    hit = search(stub, "garage")[0]
    assert (hit.id, list(hit.part.headings), hit.num_parts) == ("book", ["Weights"], 4)
    assert hit.text == BOOK[hit.part.start : hit.part.end] and "garage" in hit.text and "guitar" not in hit.text
    assert hit.text[hit.answer.start : hit.answer.end].startswith(WEIGHTS.strip())
    assert all(match.second_span.end <= len(hit.text) for match in hit.evidence)
    assert [(other.id, other.num_parts, other.HasField("part")) for other in search(stub, "garage")[1:]] == [
        ("short", 1, False)
    ]
    parts = search(stub, "garage", group=False)
    assert sorted((hit.id, hit.part_number) for hit in parts) == [("book", n) for n in (1, 2, 3, 4)] + [("short", 0)]
    assert running.collections.GetCollection(documents_pb2.GetCollectionRequest(name="news")).collection.num_parts == 5


def test_parts_and_facets_come_back_and_may_be_given_again(stub):
    upsert(stub, documents_pb2.Document(id="book", text=BOOK))
    document = read(stub, "book", include_facets=True)
    assert "".join(document.text[part.start : part.end] for part in document.parts) == BOOK == document.text
    assert document.token_stats.num_tokens == document.token_stats.num_tokens_in_text > 1000
    copy = documents_pb2.Document()
    copy.CopyFrom(document)
    copy.id = "copy"
    upsert(stub, copy)
    again = read(stub, "copy", include_facets=True)
    assert list(again.parts) == list(document.parts)
    held, first = (
        {(span.start, span.end) for span in one.facet_spans if span.end > span.start} for one in (again, document)
    )
    assert held == first
    hits = search(stub, "garage")
    assert {hit.id for hit in hits} == {"book", "copy"} and hits[0].score == pytest.approx(hits[1].score, abs=1e-3)


def test_sections_against_the_rules_are_named_and_nothing_is_stored(stub):
    marks = [results_pb2.DocumentPart(start=9), results_pb2.DocumentPart(start=3)]
    with pytest.raises(grpc.RpcError) as caught:
        upsert(stub, documents_pb2.Document(id="book", text=BOOK, parts=marks))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == (
        f"documents[0].parts[1].start must be in order and within the {len(BOOK)} characters of the text, got 3 after 9"
    )
    with pytest.raises(grpc.RpcError, match="the limit is 200000"):
        upsert(stub, documents_pb2.Document(id="book", text=BOOK * 40))


def test_parts_without_words_and_more_parts_than_are_read_at_once(stub, monkeypatch):
    monkeypatch.setattr(ingest, "TEXTS_AT_A_TIME", 2)
    text = MUSIC * 130 + "\n\n" + "\u200b " * 2000 + "\n\n" + WEIGHTS * 100
    upsert(stub, documents_pb2.Document(id="book", text=text), documents_pb2.Document(id="short", text=MUSIC))
    document = read(stub, "book", include_facets=True)
    assert document.text == text and len(document.parts) > 5
    assert search(stub, "garage")[0].text in text
    facets = np.frombuffer(document.facet_embeddings.data, dtype=np.float32).reshape(document.facet_embeddings.shape)
    assert np.isfinite(facets).all() and len(document.facet_spans) == len(facets)
    assert document.facet_embeddings.dtype == common_pb2.DATA_TYPE_FLOAT32
