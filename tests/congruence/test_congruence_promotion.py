"""The primary is killed and the standby promoted: what was acknowledged is there, and what is lost is told."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import postgres_server
import pytest
from congruence.corpus import DIM, K, facets_of, make_corpus, said
from postgres_server import PostgresPair
from waiting import wait_until

from facets.documents import CollectionEngine, EngineConfig, SearchRequest
from facets.errors import NotReadyError, StoreAwayError, WritesLostError

CORPUS = make_corpus()[:120]
WITHIN_S = 10.0  # of a promotion writes go on


def open_pair(
    pair: PostgresPair, folder: Path, stack: ExitStack
) -> tuple[EngineConfig, CollectionEngine, CollectionEngine]:
    config = EngineConfig(store=pair.new_database(), exact_max_facets=150)
    first, second = (stack.enter_context(CollectionEngine.open(folder / name, config)) for name in ("a", "b"))
    first.create_collection("docs", model="toy", model_revision="1", num_facets=K, dim=DIM)
    return config, first, second


@pytest.fixture
def pair() -> Iterator[PostgresPair]:
    made = postgres_server.new_pair()
    yield made
    made.remove()


def page(engine: CollectionEngine, min_revision: int | None = None) -> object:
    request = SearchRequest(facets=facets_of(99)[None], texts=["goat market"], top_k=15, min_revision=min_revision)
    return said(engine.search("docs", request))


def test_what_was_acknowledged_is_in_the_promoted_standby(pair: PostgresPair, tmp_path: Path) -> None:
    with ExitStack() as stack:
        _, *engines = open_pair(pair, tmp_path, stack)
        acknowledged, ended, odd = dict[int, float](), threading.Event(), list[BaseException]()

        def write(number: int) -> None:
            place, seen = number, 0
            while not ended.is_set():
                try:
                    done = engines[number].upsert("docs", [CORPUS[place]])
                    assert done.revision > seen
                    seen, acknowledged[place] = done.revision, time.monotonic()
                    place = (place + 2) % len(CORPUS)
                except StoreAwayError:
                    ended.wait(0.05)
                except BaseException as error:
                    odd.append(error)
                    return

        threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) > 20)
        promoted = pair.fail_over(pause_s=0.5)
        wait_until(lambda: all(max(list(acknowledged.values())[n::2], default=0) > promoted for n in range(2)))
        ended.set()
        for thread in threads:
            thread.join()
        assert not odd
        assert min(at for at in acknowledged.values() if at > promoted) - promoted < WITHIN_S
        there = {document.id for document in engines[1].list_documents("docs", page_size=500).documents}
        assert there.issuperset(CORPUS[place].id for place in acknowledged)
        revision = engines[0].upsert("docs", CORPUS[:1]).revision
        wait_until(lambda: engines[1].revision >= revision)  # it hears of writes again
        assert page(engines[0], revision) == page(engines[1], revision)


def test_what_a_promotion_lost_is_told_and_no_number_is_given_twice(tmp_path: Path) -> None:
    pair = postgres_server.new_pair(synchronous=False)
    with ExitStack() as stack:
        stack.callback(pair.remove)
        config, first, second = open_pair(pair, tmp_path, stack)
        kept = first.upsert("docs", CORPUS[:40]).revision
        assert pair.standby is not None
        pair.standby.catch_up_with(pair.primary)
        pair.standby.stop("fast")
        lost = first.upsert("docs", CORPUS[40:80]).revision
        page(second, lost)  # it has seen what will be lost
        pair.primary.kill()
        pair.standby.start()
        pair.standby.promote()

        def write() -> bool:
            try:
                return second.upsert("docs", CORPUS[80:]).revision > lost
            except (StoreAwayError, NotReadyError):
                return False

        wait_until(write)
        for engine in (first, second):
            wait_until(lambda engine=engine: engine.revision > lost)
            for read in (lambda one: page(one, lost), lambda one: one.count("docs", min_revision=lost)):
                with pytest.raises(WritesLostError, match=rf"has the writes up to {kept}: write again"):
                    read(engine)
            assert engine.count("docs", min_revision=kept).num_documents == len(CORPUS) - 40
        fresh = stack.enter_context(CollectionEngine.open(tmp_path / "fresh", config))
        assert page(first) == page(second) == page(fresh)
