"""The DSPy retriever inside a program of DSPy's, against a real server."""

import pytest
from facets_client import FacetsClient, NotFoundError
from facets_client.filters import Equals

pytest.importorskip("dspy")
import dspy
from facets_client.adapters.dspy import FacetsRetriever

QUESTION = "Which bird of prey is the national symbol of the United States?"


class Reader(dspy.Module):
    """A program that answers with the first passage, without a language model."""

    def __init__(self, retriever: FacetsRetriever) -> None:
        super().__init__()
        self.retrieve = retriever

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=self.retrieve(question).passages[0])


def test_passages_are_those_of_the_search(client: FacetsClient) -> None:
    found = FacetsRetriever(client, "wiki", k=3)(QUESTION)
    hits = client.search("wiki", [QUESTION], top_k=3)[0].hits
    assert (found.passages, found.ids) == ([hit.text for hit in hits], [hit.id for hit in hits])
    assert found.about[0]["confidence"] == pytest.approx(hits[0].confidence)
    assert Reader(FacetsRetriever(client, "wiki"))(question=QUESTION).answer == hits[0].text


def test_settings_reach_the_server(client: FacetsClient) -> None:
    assert FacetsRetriever(client, "wiki", where=Equals("title", "Cat"))(QUESTION).ids == ["cat"]
    assert len(FacetsRetriever(client, "wiki", k=5)(QUESTION, k=2).passages) == 2
    assert FacetsRetriever(client, "wiki", min_confidence=0.99)("the price of tea in a spaceship").passages == []


def test_errors_are_the_client_s(client: FacetsClient) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        FacetsRetriever(client, "nowhere")(QUESTION)
