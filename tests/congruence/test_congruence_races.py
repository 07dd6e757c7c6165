"""Two servers on one PostgreSQL, of which one does something between two steps of the other."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from congruence.conftest import Open
from congruence.corpus import DIM, K, facets_of, make_corpus

from facets.documents import CollectionEngine, CollectionRecord, EncodedText, SearchRequest, TargetModel
from facets.documents.index_manager import IndexManager
from facets.documents.store import DocumentStore
from facets.errors import FacetsError, NotFoundError, NotReadyError
from facets.storage.postgres import PostgresDatabase

CORPUS = make_corpus()[:40]
OTHER = TargetModel(
    model="other",
    model_revision="2",
    num_facets=K,
    dim=DIM,
    encode=lambda texts: [EncodedText(facets_of(number)) for number, _ in enumerate(texts)],
)
Engines = tuple[CollectionEngine, CollectionEngine]
Between = Callable[[type, str, Callable[[], object]], None]


@pytest.fixture
def two(open_shared: Open) -> Engines:
    first, second = open_shared("first"), open_shared("second")
    first.create_collection("docs", model="toy", model_revision="1", num_facets=K, dim=DIM)
    first.upsert("docs", CORPUS)
    return first, second


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Does something once, just before a method is called."""

    def set_(owner: type, method: str, act: Callable[[], object]) -> None:
        called, acts = getattr(owner, method), [act]

        def wrapped(*given: object, **named: object) -> object:
            if acts:
                acts.pop()()
            return called(*given, **named)

        monkeypatch.setattr(owner, method, wrapped)

    return set_


CALLS: dict[str, tuple[type, str, Callable[[CollectionEngine], object]]] = {
    "upsert": (DocumentStore, "upsert", lambda engine: engine.upsert("docs", CORPUS[:2])),
    "delete": (DocumentStore, "delete", lambda engine: engine.delete("docs", ids=[CORPUS[0].id])),
    "drop": (DocumentStore, "delete_collection", lambda engine: engine.delete_collection("docs")),
}
ACTS: dict[str, tuple[Callable[[CollectionEngine], object], type[FacetsError], str]] = {
    "moved": (
        lambda engine: engine.reindex("docs", OTHER),
        NotReadyError,
        "moved to revision 2 of model other during the call",
    ),
    "dropped": (lambda engine: engine.delete_collection("docs"), NotFoundError, "'docs' was deleted during the call"),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_says_what_another_server_did_to_its_collection(
    two: Engines, between: Between, call: str, act: str
) -> None:
    (owner, method, ask), (do, error, words) = CALLS[call], ACTS[act]
    between(owner, method, lambda: do(two[1]))
    with pytest.raises(error, match=words):
        ask(two[0])
    found = [(one.model, one.num_documents) for one in two[0].list_collections()]
    assert found == ([("other", len(CORPUS))] if act == "moved" else [])


def test_nothing_is_asked_of_another_model_than_the_one_that_read_the_questions(two: Engines) -> None:
    seen = two[0].record("docs")
    two[1].reindex("docs", OTHER)
    with pytest.raises(NotReadyError, match="moved to revision 2 of model other"):
        two[0].search("docs", SearchRequest(texts=["goat"], mode="lexical"), seen=seen)
    with pytest.raises(NotReadyError, match="moved to revision 2 of model other"), two[0].view("docs", seen):
        pass


@pytest.mark.parametrize("act", ACTS)
def test_a_server_starts_while_another_one_takes_a_collection_away(
    two: Engines, open_shared: Open, between: Between, act: str
) -> None:
    between(IndexManager, "open", lambda: ACTS[act][0](two[1]))
    assert len(open_shared("third").list_collections()) == (act == "moved")


def test_a_collection_that_another_server_deletes_at_once_was_made(two: Engines, between: Between) -> None:
    between(IndexManager, "live", lambda: two[1].delete_collection("more"))
    assert two[0].create_collection("more", model="m", model_revision="1", num_facets=1, dim=DIM).name == "more"
    assert [one.name for one in two[0].list_collections()] == ["docs"]


def test_a_write_is_checked_when_no_other_server_can_come_before_it(two: Engines) -> None:
    other = threading.Thread(target=lambda: two[1].delete("docs", ids=[CORPUS[0].id]))

    def check() -> None:
        other.start()
        other.join(0.3)
        assert other.is_alive() and two[1].count("docs").num_documents == len(CORPUS)
        raise NotFoundError("another connection goes on")

    with pytest.raises(NotFoundError, match="another connection"):
        two[0].upsert("docs", CORPUS[:1], check=check)
    other.join(60)
    assert two[0].count("docs").num_documents == len(CORPUS) - 1


def test_who_loads_the_words_holds_no_connection_that_a_writer_may_want(
    two: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading waits for writers; sixteen searches that did so with a connection each let every writer fail."""
    held, lexical, read = list[int](), IndexManager.lexical, PostgresDatabase.read
    num_open = 0

    @contextmanager
    def counted(database: PostgresDatabase) -> Iterator[object]:
        nonlocal num_open
        with read(database) as connection:
            num_open += 1
            yield connection
            num_open -= 1

    def loaded(indexes: IndexManager, record: CollectionRecord) -> object:
        held.append(num_open)
        return lexical(indexes, record)

    monkeypatch.setattr(PostgresDatabase, "read", counted)
    monkeypatch.setattr(IndexManager, "lexical", loaded)
    asked = SearchRequest(facets=facets_of(99)[None], texts=["goat market"], top_k=3)
    assert len(two[1].search("docs", asked).hits) == 1
    assert held == [0]


def test_searches_that_wait_for_the_reader_hold_no_connection(two: Engines) -> None:
    num_searches = 20  # more than a server has connections
    all_read = threading.Barrier(num_searches)

    class Reader:
        def read(self, question: str, texts: list[tuple[str, list[str]]]) -> list[np.ndarray]:
            all_read.wait(20)
            return [np.zeros(len(sentences), dtype=np.float32) for _, sentences in texts]

        def answer_confidence(self, log_odds: float) -> float:
            return 0.5

    request = SearchRequest(texts=["a text"], facets=facets_of(0)[None], top_k=2)
    found = []

    def search() -> None:
        found.append(two[0].search("docs", request, reader=Reader))  # type: ignore[arg-type]

    threads = [threading.Thread(target=search) for _ in range(num_searches)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == num_searches
