"""What is added to models at run time is the same in a file and in PostgreSQL; there several servers add and read."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import postgres_server
import pytest
from relation_toys import make_toy_relation_checkpoint
from toy_papers import toy_paper_model
from waiting import wait_until

from facets.documents import CollectionEngine
from facets.documents.dialects import postgres_schema
from facets.documents.store import move_to_postgres
from facets.errors import ConflictError, StoreAwayError
from facets.model.loading import load
from facets.papers.engine import PaperEngine
from facets.papers.model import PaperModel
from facets.papers.records import Author, CandidateKind, Paper, PaperOptions
from facets.papers.store import SCHEMA as PAPERS
from facets.relations.additions import SCHEMA as RELATIONS
from facets.relations.engine import RelationEngine
from facets.relations.model import RelationModel
from facets.storage.postgres import PostgresDatabase
from facets.storage.records import Record, RecordStore, record_schema
from facets.storage.sql import SqlDatabase

VOICE = Paper("voice of a speaker", "microphone prosody and tone")


@pytest.fixture
def shared() -> Iterator[Callable[[], PostgresDatabase]]:
    """Opens one database as one server after the other does."""
    url = postgres_server.server().new_database()
    with ExitStack() as stack:

        def open_() -> PostgresDatabase:
            database = PostgresDatabase(url, postgres_schema())
            stack.callback(database.close)
            return database

        yield open_


@pytest.fixture(scope="module")
def relations(tmp_path_factory: pytest.TempPathFactory) -> RelationModel:
    return load(make_toy_relation_checkpoint(tmp_path_factory.mktemp("relations") / "toy", num_steps=2), RelationModel)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> PaperModel:
    folder = tmp_path_factory.mktemp("papers")
    toy_paper_model(folder)
    return load(folder / "run" / "model", PaperModel)


def test_what_one_server_adds_the_other_has(
    shared: Callable[[], PostgresDatabase], relations: RelationModel, papers: PaperModel
) -> None:
    first, second = (RelationEngine(relations, data_dir=shared()) for _ in range(2))
    mentor = first.add_relation("mentor", ["$ARG1 taught $ARG2"], threshold=0.3)
    assert mentor in first.relations()
    with pytest.raises(ConflictError, match="exists"):
        second.add_relation("mentor", ["$ARG1 met $ARG2"])
    wait_until(lambda: second.relations() == first.relations())
    assert second.remove_relation("mentor") == mentor
    wait_until(lambda: "mentor" not in [relation.name for relation in first.relations()])
    other = first.add_relation("other", ["$ARG1 taught $ARG2"])
    assert second.remove_relation("other") == other  # which the second one had not heard of

    one, two = (PaperEngine(papers, data_dir=shared()) for _ in range(2))
    failed = list[BaseException]()

    def add(engine: PaperEngine, server: int) -> None:
        try:
            for number in range(4):
                paper = Paper(
                    f"voice {number}", id=f"{server}-{number}", authors=(Author("Both"), Author(f"a{server}"))
                )
                engine.add_papers([paper])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=add, args=(engine, server)) for server, engine in enumerate((one, two))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    wait_until(lambda: one.size(CandidateKind.AUTHORS) == two.size(CandidateKind.AUTHORS))
    fresh = PaperEngine(papers, data_dir=shared())
    wait_until(lambda: hits(one) == hits(two) == hits(fresh))  # the author of both was fitted to the papers of both


def test_who_waits_for_another_server_may_give_up(shared: Callable[[], PostgresDatabase]) -> None:
    one, two = (RecordStore(shared(), "papers/one", record_schema("test", 1)) for _ in range(2))
    asked = list[int]()

    def check() -> None:
        asked.append(1)
        if len(asked) > 3:
            raise TimeoutError

    with one.alone(lambda: None), pytest.raises(TimeoutError), two.alone(check):
        raise AssertionError("both are alone")
    with two.alone(lambda: None):
        assert len(asked) == 4


def hits(engine: PaperEngine) -> dict[str, float]:
    [found] = engine.recommend(CandidateKind.AUTHORS, [VOICE], PaperOptions(top_k=100))
    return {hit.id: round(hit.score, 4) for hit in found}


def test_records_of_a_history_that_is_gone_are_read_anew(shared: Callable[[], PostgresDatabase]) -> None:
    schema = record_schema("test", 1)
    stores = [RecordStore(shared(), "papers/one", schema), RecordStore(shared(), "papers/other", schema)]
    for number in range(3):
        assert stores[0].write([Record("kind", f"{number}", b"\0")], after=number) == number + 1
    assert stores[1].news().records == []
    with pytest.raises(StoreAwayError, match="another server added"):
        stores[0].write([Record("kind", "late", b"")], after=2)
    assert [record.key for record in stores[0].news(2).records] == ["2"]
    database = shared()
    with database.write() as connection:
        for statement in postgres_schema().renewal:  # as a promotion does
            connection.execute(statement)
    news = stores[0].news(3)
    assert news.is_all and [record.key for record in news.records] == ["0", "1", "2"] and news.writes > 3


def test_additions_move_into_postgres_and_back(relations: RelationModel, papers: PaperModel, tmp_path: Path) -> None:
    url, said = postgres_server.server().new_database(), list[str]()
    kept = {"relations/*/relations.sqlite3": RELATIONS, "papers/*/recommendation.sqlite3": PAPERS}

    def engines(place_of: Callable[[str], Path | SqlDatabase]) -> tuple[RelationEngine, PaperEngine]:
        return (
            RelationEngine(relations, data_dir=place_of(f"relations/{relations.name}")),
            PaperEngine(papers, data_dir=place_of(f"papers/{papers.name}")),
        )

    def content(pair: tuple[RelationEngine, PaperEngine]) -> object:
        found = pair[0].relations(), hits(pair[1])
        for engine in pair:
            engine.close()
        return found

    CollectionEngine.open(tmp_path / "data").close()
    with_more = engines(lambda task: tmp_path / "data" / task)
    with_more[0].add_relation("mentor", ["$ARG1 taught $ARG2"])
    with_more[1].add_papers([Paper("voice", id="new", authors=(Author("New"),))])
    expected = content(with_more)
    move_to_postgres(tmp_path / "data", url, kept, say=said.append)
    assert any(line.endswith(f"{relations.name}: 1 records") for line in said)
    assert not list((tmp_path / "data").glob("*/*/*.sqlite3"))
    database = PostgresDatabase(url, postgres_schema())
    assert content(engines(lambda _: database)) == expected
    database.close()
