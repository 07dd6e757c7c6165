"""txtai with vectors of a real server: it takes any function, so there is no adapter."""

import pytest
from facets_client import FacetsClient

txtai = pytest.importorskip("txtai")
QUESTION = "Which bird of prey is the national symbol of the United States?"


def test_an_index_of_txtai_is_searched_by_our_vectors(client: FacetsClient, documents) -> None:
    def vectors(texts):
        return client.embed_vectors(list(texts), model="facets-passages-small-en")

    embeddings = txtai.Embeddings(method="external", transform=vectors, content=True)
    embeddings.index((one.id, one.text, None) for one in documents)
    (found,) = embeddings.search(QUESTION, 1)
    assert found["id"] == "bald-eagle"
    cosine = float((vectors([found["text"]]) @ vectors([QUESTION]).T)[0, 0])
    assert found["score"] == pytest.approx(cosine, abs=1e-3)
