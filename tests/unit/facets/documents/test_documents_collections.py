"""Collections of texts with models of this process: what needs no server."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from leaving import looks_until_gone
from toys import toy_model, toy_passage_model

from facets.documents import (
    Collections,
    Document,
    DocumentPart,
    DocumentQuery,
    Equals,
    RelevanceCurve,
    RerankQuery,
    queries,
)
from facets.documents.encoders import ModelEncoder
from facets.errors import InvalidFieldsError, InvalidInputError, ModelMismatchError, NotFoundError

TEXTS = {"music": "The dog plays the guitar.", "weights": "A man lifting weights in the garage."}


@pytest.fixture
def collections(tmp_path: Path):
    with Collections.open(tmp_path, [toy_passage_model(), toy_model(hidden_dim=64)]) as opened:
        opened.create_collection("news")
        yield opened


def documents(**texts: str) -> list[Document]:
    return [Document(id=key, text=text) for key, text in texts.items()]


def first(collections: Collections, text: str, **options: object) -> str:
    [hits] = collections.search("news", DocumentQuery(queries=[text], **options)).hits
    return hits[0].id


def test_texts_are_found_reranked_and_laid_out(collections: Collections) -> None:
    assert collections.upsert("news", documents(**TEXTS)).num_upserted == 2
    for mode in ("facets", "lexical", "hybrid"):
        assert first(collections, "guitar", mode=mode) == "music"
    query = RerankQuery(query="lifting weights", documents=list(TEXTS.values()))
    assert collections.rerank(query).results[0].index == 1
    [hit, *_] = collections.search("news", DocumentQuery(queries=["guitar"], evidence=True)).hits[0]
    assert hit.answer.text == TEXTS["music"] and hit.evidence[0].second_words
    assert len(collections.map("news").ids) == collections.diagnose("news", ["guitar"]).num_documents == 2


def test_all_or_only_the_good_documents_are_stored(collections: Collections) -> None:
    mixed = documents(**TEXTS, blank=" ", hidden="\u200b")
    with pytest.raises(InvalidFieldsError) as caught:
        collections.upsert("news", mixed)
    assert [error.field for error in caught.value.errors] == ["documents[2].text", "documents[3].text"]
    assert collections.engine.count("news").num_documents == 0
    ingest = collections.ingest("news")
    stored = ingest.store_good(ingest.prepare(mixed))
    assert (stored.num_upserted, [one.id for one in stored.rejected_documents]) == (2, ["blank", "hidden"])
    with pytest.raises(InvalidInputError, match="at least one query"):
        collections.search("news", DocumentQuery(queries=[]))


def test_what_is_stored_already_is_neither_encoded_nor_written(collections: Collections) -> None:
    long = "# A\nThe dog plays. " + "It plays the guitar. " * 200
    held = Document(id="a", text=long, payload={"n": 1, "tags": ["x"], "title": "Dog"}, source="a.md")
    other = Document(id="b", text=TEXTS["weights"], source="b.md")
    first = collections.upsert("news", [held, other])
    assert (first.num_added, first.num_changed, first.num_unchanged) == (2, 0, 0)
    same = replace(held, payload={"title": "Dog", "tags": ["x"], "n": 1})
    again = collections.upsert("news", [same, other])
    assert (again.num_unchanged, again.index_revision) == (2, first.index_revision)
    for changed in (
        replace(held, text=f"{long[:-2]}!"),
        replace(held, payload={"n": True, "tags": ["x"], "title": "Dog"}),
        replace(held, source="c.md"),
        replace(held, parts=[DocumentPart(start=0, end=0, headings=("B",))]),
    ):
        stored = collections.upsert("news", [changed, other])
        assert (stored.num_changed, stored.num_unchanged) == (1, 1)
        collections.upsert("news", [held])
    read = collections.engine.get("news", ["a", "b"], include_facets=True).documents
    assert [one.source for one in read] == ["a.md", "b.md"]
    # A batch that waits while its documents are replaced or deleted is compared again.
    ingest = collections.ingest("news")
    waiting = ingest.prepare([held, other])
    collections.engine.delete("news", ids=["b"])
    collections.upsert("news", [replace(held, text="another text")])
    stored = ingest.store_all(waiting)
    assert (stored.num_added, stored.num_changed, stored.num_unchanged) == (1, 1, 0)
    assert collections.engine.get("news", ["a"]).documents[0].text == long


def test_documents_are_listed_and_deleted_by_source(collections: Collections) -> None:
    engine = collections.engine
    texts = [Document(id=f"{n}", text=TEXTS["music"], payload={"n": n}, source=f"f{n % 3}.txt") for n in range(7)]
    collections.upsert("news", [*texts, *documents(**TEXTS)])
    page = engine.list_sources("news", page_size=2)
    rest = engine.list_sources("news", page_size=2, page_token=page.next_page_token)
    numbers = {one.source: one.num_documents for one in (*page.sources, *rest.sources)}
    assert numbers == {"f0.txt": 3, "f1.txt": 2, "f2.txt": 2} and not rest.next_page_token
    page = engine.list_documents("news", source="f0.txt", page_size=2, include_document=False)
    rest = engine.list_documents("news", source="f0.txt", page_size=2, page_token=page.next_page_token)
    assert [one.id for one in (*page.documents, *rest.documents)] == ["0", "3", "6"]
    assert (page.documents[0].text, rest.documents[0].text) == ("", TEXTS["music"])
    assert collections.reindex("news", model="toy").done
    assert engine.delete("news", source="f0.txt", where=Equals("n", 3)).num_deleted == 1
    assert engine.delete("news", source="f1.txt").num_deleted == 2
    assert engine.count("news").num_documents == 6
    for wrong in ({"ids": ["0"], "source": "f0.txt"}, {}):
        with pytest.raises(InvalidInputError, match="or source must be given"):
            engine.delete("news", **wrong)
    with pytest.raises(InvalidInputError, match="1024"):
        collections.upsert("news", [Document(id="a", text="a", source="x" * 1025)])
    with pytest.raises(InvalidInputError, match="page_token"):
        engine.list_sources("news", page_token=page.next_page_token)


def test_a_search_has_a_bound_on_facets_and_on_the_bytes_of_its_hits(
    collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = np.ones((257, collections.engine.record("news").dim), dtype=np.float32)
    with pytest.raises(InvalidInputError, match="at most 256 facets"):
        collections.search("news", DocumentQuery(queries=[many]))
    collections.upsert("news", [Document(id=str(i), text="A dog.", payload={"n": "x" * 1000}) for i in range(8)])
    monkeypatch.setattr(queries, "MAX_READ_BYTES", 10_000)
    for texts, top_k in ((["dog"], 8), (["dog", "dog"], 4)):
        hits = collections.search("news", DocumentQuery(queries=texts, top_k=top_k)).hits
        assert [len(own) for own in hits] == [top_k] * len(texts)
    with pytest.raises(InvalidInputError, match="ask for fewer"):
        collections.search("news", DocumentQuery(queries=["dog", "dog"], top_k=5))


def test_a_query_that_is_a_book_is_read_at_its_beginning(collections: Collections) -> None:
    collections.upsert("news", documents(**TEXTS))
    start = TEXTS["music"] + " " * 20_000
    for mode in ("facets", "hybrid"):
        of_start, of_book = (
            collections.search("news", DocumentQuery(queries=[query], mode=mode)).hits[0]
            for query in (start, start + "a dog " * 100_000)
        )
        assert [hit.facets_score for hit in of_book] == pytest.approx([hit.facets_score for hit in of_start])


def test_a_collection_moves_to_another_model_and_needs_its_own(collections: Collections, tmp_path: Path) -> None:
    collections.upsert("news", documents(**TEXTS))
    sentences = toy_model()
    assert collections.reindex("news", model=sentences.name).done
    assert collections.engine.get_collection("news").model == sentences.name
    assert collections.diagnose("news", ["guitar", "a man"]).recall == 1.0
    assert first(collections, "guitar") == "music"
    collections.close()
    changed = toy_model()
    changed.revision = changed.space = "other"
    for models, error in (([toy_passage_model()], NotFoundError), ([changed], ModelMismatchError)):
        with Collections.open(tmp_path, models) as others, pytest.raises(error):
            others.upsert("news", documents(**TEXTS))


def test_work_ends_when_its_caller_has_gone(collections: Collections) -> None:
    assert looks_until_gone(0, lambda: collections.search("news", DocumentQuery(queries=["guitar"]))) == 1


def test_recall_is_measured_where_the_reader_does_not_choose_the_hits(collections: Collections) -> None:
    collections.upsert("news", documents(**TEXTS))
    curve = RelevanceCurve(revision="r", weights={"hybrid": {"intercept": 0.0}})
    encoder = ModelEncoder(toy_passage_model(), relevance=curve)
    offered: list[int] = []
    recorder = SimpleNamespace(offer=lambda *_, of: offered.append(of), recall={})
    with Collections(collections.engine, lambda name: encoder, recall=recorder) as sampled:
        for min_confidence in (0.0, 0.2):
            assert first(sampled, "guitar", min_confidence=min_confidence) == "music"
    assert len(offered) == 1
