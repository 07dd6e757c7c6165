"""Two servers' engines on one PostgreSQL: writes through either, reads through both, one answer at one revision."""

import threading
import time
from pathlib import Path

import postgres_server
import psycopg
import pytest
from congruence.conftest import Open
from congruence.corpus import DIM, K, facets_of, make_corpus, said
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.doctor import examine

from facets.documents import CollectionEngine, Document, EngineConfig, Equals, SearchRequest
from facets.documents.dialects import KEPT_WRITES
from facets.errors import ConfigError, ConflictError, NotReadyError, StorageError, StoreAwayError, StoreGoneError

CORPUS = make_corpus()[:160]
DISCONNECT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'facets-server' "
    "AND datname = current_database()"
)


@pytest.fixture
def two(open_shared: Open) -> tuple[CollectionEngine, CollectionEngine]:
    first, second = open_shared("first"), open_shared("second")
    first.create_collection("docs", model="toy", model_revision="1", num_facets=K, dim=DIM)
    return first, second


def test_language_of_the_first_documents_reaches_other_servers(open_shared: Open) -> None:
    first, second = open_shared("first"), open_shared("second")
    first.create_collection("docs", model="toy", model_revision="1", num_facets=K, dim=DIM)
    text = "Die alten Häuser am Hafen wurden verkauft, und die neuen sind noch nicht fertig."
    second.upsert("docs", [Document(id="a", text=text, facet_embeddings=facets_of(1))])
    first.upsert("docs", [Document(id="b", text="The house", facet_embeddings=facets_of(2))])
    for one in (first, second):
        assert one.get_collection("docs").language == "de"
        found = one.search("docs", SearchRequest(texts=["Haus"], mode="lexical", min_revision=first.revision))
        assert [hit.id for hit in found.hits[0]] == ["a"]


def page(engine: CollectionEngine, *, min_revision: int = 0, **request: object) -> tuple[int, object]:
    asked = SearchRequest(
        facets=facets_of(99)[None], texts=["goat market"], top_k=15, min_revision=min_revision, **request
    )  # type: ignore[arg-type]
    found = engine.search("docs", asked)
    return found.index_revision, said(found)


def test_writes_through_either_are_read_through_both(two: tuple[CollectionEngine, CollectionEngine]) -> None:
    for step in range(16):
        writer, reader = two[step % 2], two[1 - step % 2]
        revision = writer.upsert("docs", CORPUS[5 * step : 5 * step + 20]).revision
        if step % 3 == 0:
            revision = writer.delete("docs", ids=[document.id for document in CORPUS[5 * step : 5 * step + 4]]).revision
        if step == 8:
            reader.maintain()
        assert page(reader, min_revision=revision, exact=True) == page(writer, min_revision=revision, exact=True)
        assert reader.count("docs").num_documents == writer.count("docs").num_documents
        assert reader.revision == writer.revision == revision


def test_a_read_of_what_nobody_wrote_is_not_ready(two: tuple[CollectionEngine, CollectionEngine]) -> None:
    with pytest.raises(NotReadyError, match="min_revision 99"):
        page(two[1], min_revision=99)


def test_one_revision_is_one_answer_while_both_write(two: tuple[CollectionEngine, CollectionEngine]) -> None:
    answers: dict[int, object] = {}
    failed: list[BaseException] = []
    torn: list[int] = []
    lock = threading.Lock()

    def work(engine: CollectionEngine, seed: int) -> None:
        try:
            for step in range(12):
                engine.upsert("docs", CORPUS[seed + step : seed + step + 3])
                for _ in range(2):
                    revision, answer = page(engine, exact=True, where=Equals("mixed", None) if step % 4 == 3 else None)
                    key = revision * 2 + (step % 4 == 3)
                    with lock:
                        if answers.setdefault(key, answer) != answer:
                            torn.append(key)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(engine, 40 * n)) for n, engine in enumerate([*two, *two])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed and not torn
    assert two[0].revision and len(answers) > 12


def test_collections_made_moved_and_deleted_are_seen_by_the_other(
    two: tuple[CollectionEngine, CollectionEngine],
) -> None:
    first, second = two
    second.create_collection("more", model="m", model_revision="1", num_facets=1, dim=DIM)
    first.upsert("more", [Document(id="a", text="A", facet_embeddings=facets_of(1, 1))])
    hits = second.search("more", SearchRequest(facets=facets_of(1, 1)[None], top_k=1, min_revision=first.revision)).hits
    assert hits[0][0].id == "a"
    first.delete_collection("more")
    assert [info.name for info in second.list_collections()] == ["docs"]
    first.create_collection("more", model="m", model_revision="1", num_facets=1, dim=DIM)
    found = second.search("more", SearchRequest(facets=facets_of(1, 1)[None], top_k=1, min_revision=first.revision))
    assert found.hits == ((),)


def test_who_is_far_behind_compares_all_rows(
    two: tuple[CollectionEngine, CollectionEngine], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    revision = first.upsert("docs", CORPUS[:30]).revision
    page(second, min_revision=revision)
    revision = first.delete("docs", ids=[CORPUS[0].id]).revision
    with psycopg.connect(url, autocommit=True) as connection:  # as if so many writes had come since
        connection.execute("DELETE FROM writes")
        connection.execute("UPDATE meta SET value = %s WHERE key = 'revision'", (str(revision + KEPT_WRITES),))
    later = first.upsert("docs", CORPUS[30:40]).revision
    assert page(second, min_revision=later, exact=True) == page(first, min_revision=later, exact=True)


def test_others_hear_of_a_write_by_themselves(
    two: tuple[CollectionEngine, CollectionEngine], open_shared: Open
) -> None:
    third = open_shared("third", background=True)
    revision = two[0].upsert("docs", CORPUS[:3]).revision
    ends = time.monotonic() + 20
    while third.revision < revision:
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert page(third)[0] == revision


def test_a_restart_and_another_directory_change_no_answer(
    open_shared: Open, two: tuple[CollectionEngine, CollectionEngine]
) -> None:
    revision = two[0].upsert("docs", CORPUS).revision
    two[0].maintain()
    expected = page(two[0], exact=True)
    two[0].close()
    two[1].delete("docs", ids=[CORPUS[9].id])
    two[1].upsert("docs", CORPUS[9:10])
    for name in ("first", "fourth"):
        assert page(open_shared(name), exact=True)[0] == revision + 2
    assert expected[0] == revision


def test_where_the_store_is_away_the_error_says_so_and_nothing_secret(tmp_path: Path) -> None:
    config = EngineConfig(store="postgres://me:s3cret@127.0.0.1:1/nowhere")
    with pytest.raises(StoreAwayError, match=r"127\.0\.0\.1:1/nowhere: it does not answer") as raised:
        CollectionEngine.open(tmp_path, config)
    assert "s3cret" not in str(raised.value) + repr(config)
    for wrong in ("mysql://me:s3cret@host/x", "postgres"):
        with pytest.raises(ConfigError, match="store must be") as refused:
            EngineConfig(store=wrong)
        assert "s3cret" not in str(refused.value)


def test_another_encoding_version_or_read_only_database_is_refused(url: str, tmp_path: Path, two: object) -> None:
    latin = postgres_server.server().new_database("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(StorageError, match="encoding LATIN1, expected UTF8"):
        CollectionEngine.open(tmp_path / "latin", EngineConfig(store=latin))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = '3' WHERE key = 'version'")
        with pytest.raises(StorageError, match="tables of version 3, expected 2: use the release"):
            CollectionEngine.open(tmp_path / "newer", EngineConfig(store=url))
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'version'")
    with pytest.raises(StorageError, match="read-only: expected the primary"):
        CollectionEngine.open(tmp_path / "r", EngineConfig(store=f"{url}?options=-cdefault_transaction_read_only%3Don"))


def test_doctor_and_health_say_which_dependency_and_why(
    url: str, tmp_path: Path, two: tuple[CollectionEngine, CollectionEngine]
) -> None:
    def look(store: str) -> tuple[bool, str]:
        said = list[str]()
        config = ServerConfig(engine=EngineConfig(store=store), data_dir=tmp_path / "first")
        return examine(config, said.append), "\n".join(said)

    server = postgres_server.server()
    assert look(url)[0] and "accepts writes" in look(url)[1] and "no synchronous standby" in look(url)[1]
    latin = server.new_database("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    for store, words in (
        ("postgres://me@127.0.0.1:1/x", "it does not answer"),
        (latin, "encoding LATIN1, expected UTF8"),
        (server.new_database(), "no tables yet: the first server creates them"),
        (f"{url}?options=-cdefault_transaction_read_only%3Don", "read-only: expected the primary"),
        (url.replace("facets@", "nobody_known@"), "it rejects the user"),
    ):
        is_fine, said = look(store)
        assert not is_fine and "problem  postgres: " in said and words in said and "ok       index: faiss" in said, said
    health = two[0].checks()["postgres"]
    health()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = '0' WHERE key = 'version'")
        assert "tables of version 0, expected 2" in look(url)[1]
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'version'")
        name = url.rpartition("/")[2]
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")  # type: ignore[arg-type]
        connection.execute(DISCONNECT)
    with pytest.raises(StorageError, match="read-only: expected the primary"):
        health()
    assert two[0].count("docs").num_documents == 0  # who only reads goes on
    with psycopg.connect(f"{url}?options=-cdefault_transaction_read_only%3Doff", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")  # type: ignore[arg-type]
        connection.execute(DISCONNECT)
    health()


def test_another_cluster_at_the_same_address_is_refused(open_shared: Open, url: str, tmp_path: Path) -> None:
    engine = open_shared("first")
    engine.close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = 'another' WHERE key = 'store_id'")
    with pytest.raises(StorageError, match="names store"):
        open_shared("first")
    (tmp_path / "first" / "documents.sqlite3").touch()
    with pytest.raises(ConflictError, match="expected one of the two"):
        open_shared("first")


def test_a_cluster_that_changes_under_a_running_server_is_noticed(open_shared: Open, url: str) -> None:
    engine = open_shared("first")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = 'another' WHERE key = 'store_id'")
        connection.execute(DISCONNECT)
    with pytest.raises(StoreGoneError, match="two clusters answer at one address"):
        engine.create_collection("x", model="m", model_revision="1", num_facets=1, dim=DIM)
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM collections").fetchone() == (0,)
