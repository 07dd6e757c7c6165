"""Collections of texts with models of this process: what needs no server."""

from pathlib import Path

import pytest
from toys import toy_model, toy_passage_model

from facets.documents import Collections, Document, DocumentQuery, RerankQuery
from facets.errors import InvalidFieldsError, InvalidInputError, ModelMismatchError, NotFoundError
from facets.language.interruption import interrupted_by

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
    stored = ingest.store_good(ingest.reader.prepare(mixed))
    assert (stored.num_upserted, [one.id for one in stored.rejected_documents]) == (2, ["blank", "hidden"])
    with pytest.raises(InvalidInputError, match="at least one query"):
        collections.search("news", DocumentQuery(queries=[]))


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
    def check() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), interrupted_by(check):
        collections.search("news", DocumentQuery(queries=["guitar"]))
