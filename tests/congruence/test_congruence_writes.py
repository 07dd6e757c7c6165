"""Writes, listings and moves to another model leave every combination in the reference's state."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import postgres_server
import pytest
from congruence.conftest import NAME, Pair
from congruence.corpus import DIM, K, facets_of, said

from facets.documents import (
    CollectionEngine,
    Document,
    EncodedText,
    EngineConfig,
    Filter,
    Range,
    SearchRequest,
    TargetModel,
)
from facets.documents.store import move_to_postgres
from facets.errors import ConflictError

QUERIES = np.stack([facets_of(seed) for seed in range(6000, 6008)])


def pages(engine: CollectionEngine, *, page_size: int = 17, filter: Filter | None = None) -> list[list[str]]:
    found, token = [], ""
    while True:
        page = engine.list_documents(NAME, page_size=page_size, page_token=token, where=filter)
        found.append([f"{document.id} {document.revision}" for document in page.documents])
        token = page.next_page_token
        if not token:
            return found


def state(engine: CollectionEngine) -> list[object]:
    info = engine.get_collection(NAME)
    request = SearchRequest(facets=QUERIES, texts=["goat market"] * len(QUERIES), top_k=20, exact=True)
    listed = engine.list_documents(NAME, page_size=1000, include_facets=True)
    facets = [
        document.facet_embeddings.tobytes() for document in listed.documents if document.facet_embeddings is not None
    ]
    numbers = (info.num_documents, info.num_parts, info.num_facets, engine.revision, listed.index_revision)
    sources = engine.list_sources(NAME, page_size=3)
    more = engine.list_sources(NAME, page_token=sources.next_page_token) if sources.next_page_token else sources
    of_source = engine.list_documents(NAME, source="folder/\u00e91.txt", page_size=1000, include_document=False)
    given = {one.id: one for one in listed.documents if one.id > "d01"}
    given = {id: Document(id=id, text=one.text, payload=one.payload, parts=one.parts) for id, one in given.items()}
    with engine.view(NAME) as (view, record):
        equal = view.equal_rows(record, given)  # those that came from no file
    assert equal
    same = [sources.sources, more.sources, of_source.documents, sorted(equal)]
    return [numbers, facets, pages(engine), said(engine.search(NAME, request)), same]


def test_writes_and_deletes_leave_the_same_state(pair: Pair, corpus: list[Document]) -> None:
    rng = np.random.default_rng(3)
    for step in range(12):
        some = [corpus[place] for place in rng.choice(200, 9, replace=False)]
        pair.agree(lambda engine, some=some: engine.upsert(NAME, some))
        pair.agree(lambda engine, some=some: engine.delete(NAME, ids=[document.id for document in some[::3]]))
        if step % 4 == 3:
            pair.agree(lambda engine, step=step: engine.delete(NAME, where=Range("number", gte=step, lt=step + 6)))
            pair.agree(lambda engine: engine.delete(NAME, source="folder/\u00e91.txt", where=Range("number", lt=90)))
            pair.maintain()
        pair.agree(state)
    pair.agree(lambda engine: engine.delete(NAME, ids=["no such document"]))
    pair.agree(lambda engine: engine.upsert(NAME, []))


def test_a_listing_meets_every_lasting_document_once_under_writes(pair: Pair, corpus: list[Document]) -> None:
    lasting = {document.id for document in pair.found.list_documents(NAME, page_size=1000).documents}
    seen, token, step = [], "", 0
    while True:
        page = pair.found.list_documents(NAME, page_size=7, page_token=token)
        seen += [document.id for document in page.documents]
        some = corpus[120 + 5 * step : 125 + 5 * step]
        pair.found.upsert(NAME, [*corpus[20 + step : 22 + step], *some])
        pair.found.delete(NAME, ids=[document.id for document in some[:2]])
        token, step = page.next_page_token, step + 1
        if not token:
            break
    assert [id for id in seen if id in lasting] == sorted(lasting)
    assert len(seen) == len(set(seen))


def target(name: str, num_facets: int, *, write: object = None) -> TargetModel:
    """A model that reads the length of a text; it does something else once, between two of its batches."""
    acts = [write]

    def encode(texts: Sequence[str]) -> list[EncodedText]:
        if callable(act := acts.pop() if acts else None):
            act()
        return [EncodedText(facets_of(len(text) * 31 + ord(text[0]), num_facets)) for text in texts]

    return TargetModel(model=name, model_revision="1", num_facets=num_facets, dim=DIM, encode=encode)


def test_moving_to_another_model_with_writes_meanwhile(pair: Pair, corpus: list[Document]) -> None:
    def move(engine: CollectionEngine) -> object:
        def write() -> None:
            engine.upsert(NAME, corpus[40:44] + corpus[130:140])
            engine.delete(NAME, ids=[document.id for document in corpus[50:60]])

        step = engine.reindex(NAME, target("other", K - 1, write=write))
        engine.maintain()
        return step.done, step.num_encoded, step.record.model, step.record.num_facets

    pair.agree(move)
    pair.agree(state)
    pair.agree(lambda engine: engine.upsert(NAME, [_of(corpus[3], K - 1)]).num_removed)
    pair.agree(state)


def _of(document: Document, num_facets: int) -> Document:
    return Document(id=document.id, text=document.text, facet_embeddings=facets_of(1, num_facets))


def test_a_store_moves_into_postgres_whole_or_not_at_all(pair: Pair, corpus: list[Document], tmp_path: Path) -> None:
    """Whichever combination made the files: the reference's directory goes there as it was."""
    url, said = postgres_server.server().new_database(), list[str]()
    expected = state(pair.expected)
    pair.expected.close()

    def stop(line: str) -> None:
        if line.startswith("parts:"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move_to_postgres(tmp_path / "expected", url, {}, say=stop)
    move_to_postgres(tmp_path / "expected", url, {}, say=said.append)
    assert "verified" in said[-2]
    with CollectionEngine.open(tmp_path / "elsewhere", EngineConfig(store=url, background=False)) as engine:
        assert state(engine) == expected
        assert engine.upsert(NAME, corpus[3:5]).num_removed == 2
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "expected" / "documents.sqlite3.moved", tmp_path / "copy" / "documents.sqlite3")
    with pytest.raises(ConflictError, match="holds a store already"):
        move_to_postgres(tmp_path / "copy", url, {}, say=said.append)
