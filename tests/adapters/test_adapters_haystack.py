"""The Haystack components against Haystack itself and a real server."""

import pytest
from facets_client import FacetsClient

pytest.importorskip("haystack")
from facets_client.adapters.haystack import FacetsRetriever, from_haystack, from_haystack_filters
from haystack import Document as HaystackDocument
from haystack import Pipeline
from haystack.utils import Secret
from haystack.utils.filters import document_matches_filter

QUESTION = "Which bird of prey is the national symbol of the United States?"


def condition(field: str, operator: str, value: object) -> dict:
    return {"field": field, "operator": operator, "value": value}


def test_documents_are_those_of_the_search(client: FacetsClient) -> None:
    found = FacetsRetriever("wiki", target=client.target, top_k=3).run(QUESTION)["documents"]
    hits = client.search("wiki", [QUESTION], top_k=3)[0].hits
    assert [document.id for document in found] == [hit.id for hit in hits]
    assert found[0].content == hits[0].text and found[0].meta["title"] == "Bald eagle"
    assert found[0].score == pytest.approx(hits[0].score, abs=1e-6)


def test_a_pipeline_is_written_and_read(client: FacetsClient, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline()
    key = Secret.from_env_var("SOME_KEY", strict=False)
    retriever = FacetsRetriever("wiki", target=client.target, api_key=key, top_k=1, mode="lexical")
    pipeline.add_component("retriever", retriever)
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["facets_client.adapters.haystack"])
    assert again.dumps() == pipeline.dumps() and "SOME_KEY" in pipeline.dumps()
    found = again.run({"retriever": {"query": "national bird eagle"}})
    assert found["retriever"]["documents"][0].id == "bald-eagle"


@pytest.mark.parametrize(
    "filters",
    [
        condition("meta.year", ">", 1980),
        condition("meta.year", "!=", 1990),
        condition("meta.year", "==", None),
        condition("meta.kind", "not in", ["news", "mail"]),
        {"operator": "OR", "conditions": [condition("meta.kind", "==", "mail"), condition("meta.year", "<=", 1970)]},
        {"operator": "NOT", "conditions": [condition("meta.kind", "==", "news"), condition("meta.year", ">", 1980)]},
    ],
)
def test_filters_find_what_haystack_s_own_find(client: FacetsClient, filters: dict) -> None:
    given = [
        HaystackDocument(id="a", content="A dog barks.", meta={"year": 1990, "kind": "news"}),
        HaystackDocument(id="b", content="A dog sleeps.", meta={"year": 1970, "kind": "mail"}),
        HaystackDocument(id="c", content="A dog eats.", meta={"kind": "note"}),
    ]
    if "filters" not in [collection.name for collection in client.list_collections()]:
        client.create_collection("filters")
        client.add(list(from_haystack(given)), collection="filters")
    found = FacetsRetriever("filters", target=client.target, filters=filters).run("a dog")["documents"]
    assert {document.id for document in found} == {own.id for own in given if document_matches_filter(filters, own)}


@pytest.mark.parametrize("wrong", [{"operator": "XOR", "conditions": []}, condition("year", ">", [1])])
def test_filters_that_are_none_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"filter"):
        from_haystack_filters(wrong)
