"""Collections of a model of passages: spans, spaces, confidence, what is read of a text, and odd input."""

import functools
import threading
from contextlib import closing

import grpc
import numpy as np
import pytest
from facets_proto.v1 import common_pb2, documents_pb2, models_pb2
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.runtime.rooms import load_models
from prometheus_client import CollectorRegistry
from server_fakes import served_passages
from tiny_encoders import tiny_encoder
from toys import toy_passage_model

from facets.documents import RelevanceCurve
from facets.errors import ConfigError
from facets.model import PassageModel
from facets.model.shipped import find_model

LONG = " ".join(["The dog plays the guitar.", "A man lifting weights in the garage.", "Music."] * 9)
TEXTS = {"dog": "The dog plays music.", "man": "A man is lifting weights in a garage.", "long": LONG}
INVALID = grpc.StatusCode.INVALID_ARGUMENT


class WatchedModel(PassageModel):
    """Counts what it encodes; documents wait while the gate is closed."""

    def watch(self):
        self.queries, self.gate, self.started = [], threading.Event(), threading.Event()
        self.gate.set()
        return self

    def hold(self):
        self.started.clear()
        self.gate.clear()

    def encode_passages(self, texts):
        self.started.set()
        assert self.gate.wait(30)
        return super().encode_passages(texts)

    def encode_queries(self, texts):
        self.queries += texts
        return super().encode_queries(texts)


@functools.cache
def watched_model(**settings):
    model = toy_passage_model(**settings)
    model.__class__ = WatchedModel
    return model


def passages(relevance=None, **settings):
    model = watched_model(**settings)
    return served_passages(model.watch(), relevance=relevance)


@pytest.fixture(scope="module")
def served():
    return passages()


@pytest.fixture(scope="module")
def running(make_module_server, served):
    return make_module_server(others=[served, passages(name="toy-near"), passages(name="toy-far", space="elsewhere")])


@pytest.fixture
def documents(running):
    yield filled(running)
    running.collections.DeleteCollection(documents_pb2.DeleteCollectionRequest(name="news"), timeout=60)


def filled(running):
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news"), timeout=60)
    batch = [documents_pb2.Document(id=name, text=text) for name, text in TEXTS.items()]
    reply = running.documents.Upsert(documents_pb2.UpsertRequest(collection="news", documents=batch), timeout=60)
    assert reply.num_upserted == 3 and not reply.truncated_documents
    return running.documents


def search(documents, *texts, **settings):
    queries = [documents_pb2.SearchQuery(text=text) for text in texts]
    return documents.Search(documents_pb2.SearchRequest(collection="news", queries=queries, **settings), timeout=60)


def code_of(call, *args, **kwargs):
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **kwargs)
    return caught.value.code(), caught.value.details()


def test_collections_are_made_with_the_model_of_passages(running):
    request = documents_pb2.CreateCollectionRequest(name="x")
    made = running.collections.CreateCollection(request, timeout=60).collection
    assert (made.model, made.space, made.num_facets, made.dim) == ("toy-passages", "toy", 4, 32)
    assert running.models.GetModel(models_pb2.GetModelRequest()).model.name == "fake"
    named = documents_pb2.CreateCollectionRequest(name="words", model="fake")
    assert running.collections.CreateCollection(named, timeout=60).collection.space == running.model.space


def test_stored_documents_say_what_was_read_and_where_their_facets_stand(documents):
    request = documents_pb2.GetDocumentsRequest(collection="news", ids=list(TEXTS), include_facets=True)
    for stored in documents.GetDocuments(request, timeout=60).documents:
        facets = np.frombuffer(stored.facet_embeddings.data, "<f4").reshape(stored.facet_embeddings.shape)
        used = facets.any(axis=1)
        np.testing.assert_allclose(np.linalg.norm(facets[used], axis=1), 1, atol=1e-2)
        assert [span.end > span.start for span in stored.facet_spans] == used.tolist()
        assert all(span.end <= len(stored.text) for span in stored.facet_spans)
        stats = stored.token_stats
        assert stats.num_tokens == stats.num_tokens_in_text > 3 and not stats.truncated


def test_hits_point_at_the_part_of_the_text_that_answers(documents):
    hit = search(documents, "lifting weights", top_k=1, evidence=True).results[0].hits[0]
    assert hit.id in ("man", "long")
    assert 0 <= hit.answer.start < hit.answer.end <= len(hit.text)
    assert hit.evidence[0].second_span.end > hit.evidence[0].second_span.start
    assert not hit.HasField("confidence")
    by_words = search(documents, "lifting weights", mode=documents_pb2.SEARCH_MODE_LEXICAL).results[0].hits
    for hit in by_words:
        marked = [hit.text[span.start : span.end] for span in hit.matched_spans]
        assert {"lifting", "weights"} == set(marked) and "lifting" in hit.text[hit.answer.start : hit.answer.end]


def test_a_query_does_not_wait_for_a_document(running, documents, served):
    served.model.hold()
    slow = documents_pb2.UpsertRequest(collection="news", documents=[documents_pb2.Document(id="x", text=LONG)])
    stored = documents.Upsert.future(slow, timeout=60)
    assert served.model.started.wait(30)
    assert search(documents, "music", mode=documents_pb2.SEARCH_MODE_FACETS).results[0].hits
    assert not stored.done()
    served.model.gate.set()
    assert stored.result().num_upserted == 1


def test_any_model_of_the_space_searches_and_another_is_refused(documents):
    reply = search(documents, TEXTS["dog"], model="toy-near")
    assert reply.model.name == "toy-near"
    assert reply.results == search(documents, TEXTS["dog"]).results  # the two have the same weights
    code, details = code_of(search, documents, "dog", model="toy-far")
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert all(name in details for name in ("toy-passages", "space toy", "toy-far", "elsewhere"))
    assert code_of(search, documents, "dog", model="fake")[0] is grpc.StatusCode.FAILED_PRECONDITION
    assert code_of(search, documents, "dog", model="none")[0] is grpc.StatusCode.NOT_FOUND


def test_confidence_filters_hits_of_a_calibrated_model(make_server):
    curve = RelevanceCurve(
        revision="unsaved", weights={"hybrid": {"intercept": -3.0, "coverage": 6.0, "behind": -60.0}}
    )
    documents = filled(make_server(others=[passages(curve)]))
    hits = search(documents, "guitar").results[0].hits
    sure = {hit.id: round(hit.confidence, 2) for hit in hits}
    assert sure["long"] == 0.95 and sure["dog"] < 0.5
    assert [hit.id for hit in search(documents, "guitar", min_confidence=0.5).results[0].hits] == ["long"]
    assert not search(documents, "zebra", min_confidence=0.5).results[0].hits
    by_facets = {"min_confidence": 0.5, "mode": documents_pb2.SEARCH_MODE_FACETS}
    assert code_of(search, documents, "guitar", **by_facets)[0] is INVALID


def test_an_unknown_device_of_models_is_refused_at_the_start(tmp_path):
    with pytest.raises(ConfigError, match="device must be auto, cpu or cuda, got 'tpu'"):
        load_models(ServerConfig(device="tpu", data_dir=tmp_path), BatchMetrics(CollectorRegistry()))


def test_an_encoder_has_the_confidence_of_the_default_model_or_its_own(tmp_path):
    pytest.importorskip("sentence_transformers")
    config = ServerConfig(models=(f"sentence-transformers:{tiny_encoder(tmp_path / 'tiny')}",), data_dir=tmp_path)

    def relevance():
        [served] = load_models(config, BatchMetrics(CollectorRegistry()))
        with closing(served):
            assert served.relevance.scale == served.model.score_scale
            return served.relevance.weights, served.model.revision

    shipped, revision = relevance()
    assert shipped == RelevanceCurve.read(find_model("facets-passages-small-en"), None).weights
    (tmp_path / "passages" / "tiny").mkdir(parents=True)
    own = RelevanceCurve(revision=revision, weights={"facets": {"cosine": 1.0}})
    own.write(tmp_path / "passages" / "tiny")
    assert relevance() == (own.weights, revision)


@pytest.mark.parametrize(
    "query",
    ["\u5317\u4eac\u662f\u54ea\u91cc", "\u0433\u0434\u0435 \u0441\u043e\u0431\u0430\u043a\u0430?"],
    ids=["Chinese", "Russian"],
)
def test_a_query_in_a_foreign_script_is_asked_by_its_words_alone_and_says_so(documents, query):
    said = documents_pb2.Document(id="foreign", text=f"{query} {query}")
    documents.Upsert(documents_pb2.UpsertRequest(collection="news", documents=[said]), timeout=60)
    found = search(documents, query, evidence=True)
    assert [hit.id for hit in found.results[0].hits] == ["foreign"]
    assert found.index_kind == "lexical" and found.left_out.startswith("queries[0].text has hardly a word")
    assert not search(documents, "dog", query[:2] + " dog plays").left_out
    both = search(documents, "dog", query)
    assert both.results[0].hits[0].id != "foreign" and [hit.id for hit in both.results[1].hits] == ["foreign"]
    assert both.left_out.startswith("queries[1].text")
    code, details = code_of(search, documents, query, mode=documents_pb2.SEARCH_MODE_FACETS)
    assert code is INVALID and "queries[0].text has hardly a word" in details


@pytest.mark.parametrize("text", ["", " ", "\u200b", "dog " * 9_000_000], ids=["none", "blank", "unseen", "long"])
def test_documents_without_readable_words_are_refused_and_nothing_is_lost(documents, text):
    batch = [documents_pb2.Document(id="good", text="fine"), documents_pb2.Document(id="bad", text=text)]
    request = documents_pb2.UpsertRequest(collection="news", documents=batch)
    code, details = code_of(documents.Upsert, request, timeout=60)
    assert code is INVALID and "documents[1].text" in details
    counted = documents.CountDocuments(documents_pb2.CountDocumentsRequest(collection="news"), timeout=60)
    assert counted.num_documents == 3


def own(spans):
    facets = np.eye(4, 32, dtype="<f4")
    array = common_pb2.FacetArray(shape=(4, 32), dtype=common_pb2.DATA_TYPE_FLOAT32, data=facets.tobytes())
    sent = [common_pb2.Span(start=start, end=end) for start, end in spans]
    return documents_pb2.Document(id="own", text="own words", facet_embeddings=array, facet_spans=sent)


def test_facets_of_the_caller_may_bring_their_spans(documents):
    sent = [(0, 3), (4, 9), (0, 9), (0, 0)]
    documents.Upsert(documents_pb2.UpsertRequest(collection="news", documents=[own(sent)]), timeout=60)
    request = documents_pb2.GetDocumentsRequest(collection="news", ids=["own"], include_facets=True)
    stored = documents.GetDocuments(request, timeout=60).documents[0]
    assert [(span.start, span.end) for span in stored.facet_spans] == sent and not stored.HasField("token_stats")
