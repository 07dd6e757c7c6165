"""The language of a collection through a server and its client."""

import pytest
from facets_client import Document, FacetsClient, InvalidArgumentError
from server_fakes import served_passages


@pytest.fixture
def client(make_module_server):
    running = make_module_server(others=[served_passages()])
    with FacetsClient(f"127.0.0.1:{running.server.port}") as made:
        yield made


def test_language_is_given_or_detected_and_said(client):
    assert client.create_collection("finnish", language="fi").language == "fi"
    assert client.create_collection("any").language == ""
    text = "Le chat dort sur le canapé. Il aime la crème, mais il ne boit pas de lait."
    client.add([Document("a", text)], collection="any")
    assert {one.name: one.language for one in client.list_collections()} == {"any": "fr", "finnish": "fi"}
    (hits,) = client.search("any", ["chats"], mode="lexical")
    assert hits[0].matched_words == ("chats",)
    with pytest.raises(InvalidArgumentError, match=r"language must .* cs da de "):
        client.create_collection("unknown", language="xx")
    assert len(client.list_collections()) == 2
