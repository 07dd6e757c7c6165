"""Chroma's collections with vectors of a real server."""

import pytest
from facets_client import FacetsClient

pytest.importorskip("chromadb")
import chromadb
from facets_client.adapters.chroma import FacetsEmbeddingFunction
from facets_client.errors import NotFoundError

QUESTION = "Which bird of prey is the national symbol of the United States?"
MODEL = "facets-passages-small-en"


def test_a_collection_of_chroma_is_searched_by_our_vectors(client: FacetsClient, documents, tmp_path) -> None:
    function = FacetsEmbeddingFunction(client.target, model=MODEL)
    made = chromadb.PersistentClient(str(tmp_path)).create_collection("wiki", embedding_function=function)
    made.add(ids=[one.id for one in documents], documents=[one.text for one in documents])
    found = made.query(query_texts=[QUESTION], n_results=1)
    assert found["ids"] == [["bald-eagle"]]
    (cosine,) = 1 - client.embed_vectors([documents[0].text], model=MODEL) @ client.embed_vectors([QUESTION]).T
    assert made.query(query_texts=[QUESTION], ids=[documents[0].id])["distances"][0] == pytest.approx(cosine, abs=1e-4)


def test_the_settings_are_kept_with_the_collection_and_the_key_is_not(client: FacetsClient, tmp_path, monkeypatch):
    monkeypatch.setenv("OUR_KEY", "secret")
    function = FacetsEmbeddingFunction(client.target, model=MODEL, api_key_variable="OUR_KEY")
    chromadb.PersistentClient(str(tmp_path)).create_collection("wiki", embedding_function=function)
    again = chromadb.PersistentClient(str(tmp_path)).get_collection("wiki")
    again.add(ids=["dog"], documents=["A dog barks."])
    assert again.query(query_texts=["a hound"], n_results=1)["ids"] == [["dog"]]
    assert "secret" not in str(function.get_config())


def test_errors_are_the_client_s(client: FacetsClient) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        FacetsEmbeddingFunction(client.target, model="nowhere")(["A dog."])
