"""A collection of a late-interaction encoder: more facets a query and a document than other models have."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from facets_proto.v1 import documents_pb2, documents_pb2_grpc
from server_fakes import served_passages

import facets
from facets.model import PassageModel

pytest.importorskip("sentence_transformers", reason="the backbone extra is not installed")
from tiny_encoders import tiny_late_interaction

LONG = " ".join(" ".join(words) + "." for words in permutations("quick brown fox jumps over".split()))
TEXTS = ["A man is lifting weights in a garage.", "Taxes are due in April, 2026.", LONG]
QUERIES = ["fox", "Who is lifting weights in the garage? When are taxes due?"]


def test_a_search_scores_documents_by_maxsim(make_server, tmp_path: Path) -> None:
    folder = tiny_late_interaction(tmp_path / "late", has_query_expansion=False, query_tokens=48)
    model = facets.load(f"sentence-transformers:{folder}", PassageModel)
    running = make_server(others=[served_passages(model)])
    collections = documents_pb2_grpc.CollectionServiceStub(running.channel)
    collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="news", model="late"), timeout=60)
    documents = documents_pb2_grpc.DocumentServiceStub(running.channel)
    batch = [documents_pb2.Document(id=str(i), text=text) for i, text in enumerate(TEXTS)]
    documents.Upsert(documents_pb2.UpsertRequest(collection="news", documents=batch), timeout=60)
    request = documents_pb2.SearchRequest(
        collection="news",
        queries=[documents_pb2.SearchQuery(text=text) for text in QUERIES],
        mode=documents_pb2.SEARCH_MODE_FACETS,
        evidence=True,
    )
    results = documents.Search(request, timeout=60).results
    passages, asked = model.encode_passages(TEXTS), model.encode_queries(QUERIES)
    for query, result in enumerate(results):
        scores = {hit.id: hit.score for hit in result.hits}
        for row in range(len(TEXTS)):
            cosines = asked.facets[query] @ passages.document(row)[0].T
            assert scores[str(row)] == pytest.approx(cosines.max(axis=1) @ asked.weights[query], abs=0.02)
        assert list(scores) == [key for key, _ in sorted(scores.items(), key=lambda item: -item[1])]
        hit = result.hits[0]
        assert hit.evidence and 0 <= hit.answer.start < hit.answer.end <= len(hit.text)
    assert len(passages.document(2)[0]) > model.num_facets
    np.testing.assert_allclose(asked.weights.sum(axis=1), 1.0, atol=1e-5)
