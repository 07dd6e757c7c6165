"""Reranked texts have the order, the scores and the confidence of a search of a collection that holds just these."""

import numpy as np
import pytest

from facets.documents import CollectionEngine, Document, EngineConfig, RelevanceCurve, SearchMode, SearchRequest, rerank
from facets.errors import InvalidInputError

TEXTS = (
    "The pump moves water through the engine.",
    "Tea is a drink made of leaves and hot water.",
    "Oaks are trees with acorns.",
    "Tea is a drink made of leaves and hot water.",
    "# Pumps\n\nThey move water. It is hot.",
)
DIM = 32


@pytest.fixture
def curve() -> RelevanceCurve:
    weights = {"intercept": -2.0, "cosine": 3.0, "coverage": 2.0}
    return RelevanceCurve(revision="1", weights=dict.fromkeys(("hybrid", "facets", "lexical"), weights))


def documents() -> list[Document]:
    facets = np.random.default_rng(3).standard_normal((len(TEXTS), 2, DIM)).astype(np.float32)
    facets[3] = facets[1]
    spans = np.array([[0, 8], [9, 20]], dtype=np.int32)
    return [
        Document(id=str(place), text=text, facet_embeddings=own, facet_spans=spans)
        for place, (text, own) in enumerate(zip(TEXTS, facets, strict=True))
    ]


def request(text: str, mode: SearchMode, *, top_k: int = 5) -> SearchRequest:
    facets = None if mode == "lexical" else documents()[1].facet_embeddings[None, :1] + np.float32(0.3)
    return SearchRequest(facets=facets, texts=[text], mode=mode, top_k=top_k)


@pytest.mark.parametrize("mode", ["hybrid", "facets", "lexical"])
@pytest.mark.parametrize("text", ["hot leaves in water", 'the "hot water" of tea', "acorns", "nothing of it"])
def test_reranked_texts_are_those_of_a_search(tmp_path, curve: RelevanceCurve, mode: SearchMode, text: str) -> None:
    with CollectionEngine.open(tmp_path / "data", EngineConfig(background=False)) as engine:
        engine.create_collection(
            "few", model="m", model_revision="1", num_facets=2, dim=DIM, space="s", search_fields={}
        )
        engine.upsert("few", documents())
        hits = engine.search("few", request(text, mode), curve=curve).hits[0]
    found = rerank(documents(), request(text, mode), space="s", curve=curve)
    assert [str(one.index) for one in found] == [hit.id for hit in hits]
    for one, hit in zip(found, hits, strict=True):
        assert one.score == pytest.approx(hit.score, abs=1e-6)
        assert one.facets_score == pytest.approx(hit.facets_score, abs=1e-6)
        assert one.lexical_score == pytest.approx(hit.lexical_score, abs=1e-6)
        assert one.confidence == pytest.approx(hit.confidence, abs=1e-6)
        assert one.answer == hit.answer


def test_equal_texts_keep_their_order_and_the_best_are_cut() -> None:
    found = rerank(documents(), request("hot leaves", "hybrid", top_k=2), space="s", curve=None)
    assert [one.index for one in found] == [1, 3]
    assert found[0].score == found[1].score and found[0].confidence is None


def test_texts_without_a_word_of_the_query_are_left_out_of_the_lexical_order() -> None:
    found = rerank(documents(), request("acorns", "lexical"), space="s", curve=None)
    assert [one.index for one in found] == [2] and found[0].facets_score == 0


def test_bad_facets_are_refused_by_name() -> None:
    bad = documents()
    bad[2].facet_embeddings[0, 0] = np.nan
    with pytest.raises(InvalidInputError, match="NaN") as error:
        rerank(bad, request("acorns", "hybrid"), space="s", curve=None)
    assert error.value.path == ("documents", 2, "facet_embeddings")
