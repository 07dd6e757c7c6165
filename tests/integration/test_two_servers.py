"""Two real servers on one PostgreSQL: writes through either, reads through both, and either of them killed."""

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import postgres_server
import pytest
from facets_client import Document, FacetsClient, FacetsClientError
from server_process import ServerProcess

WORDS = "the cat sat on a road by the river with bread and music of stars".split()


@pytest.fixture(scope="module")
def url() -> str:
    """Of a server that syncs to disk, as those do that people trust."""
    return postgres_server.new_server(fsync=True).new_database()


def start(folder: Path, model: Path, url: str, port: int | None = None) -> ServerProcess:
    return ServerProcess(folder, model, port=port, environment={"FACETS_SERVER_ENGINE_STORE": url})


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, toy_model: Path, url: str) -> Iterator[list[ServerProcess]]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("two")
        started = [start(folder / name, toy_model, url) for name in ("one", "two")]
        yield [stack.enter_context(server) for server in started]


def documents(numbers: range, tag: str = "") -> list[Document]:
    return [
        Document(f"{tag}{n:05}", " ".join(random.Random(n).choices(WORDS, k=8)), {"number": n, "tag": tag})
        for n in numbers
    ]


def test_a_stream_goes_on_at_the_other_server(servers: list[ServerProcess]) -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(FacetsClient(server.target, timeout_s=60)) for server in servers)
        first.create_collection("streamed")
        acks = list(first.upsert_stream("streamed", iter(documents(range(20))), batch_size=5))
        more = list(
            second.upsert_stream(
                "streamed", iter(documents(range(20, 30))), batch_size=5, resume_token=acks[-1].resume_token
            )
        )
        assert len(more) == 2 and second.count_documents("streamed") == 30


@dataclass
class Writer:
    """Writes batches until it is told to end, and remembers those that were acknowledged."""

    target: str
    tag: str
    acknowledged: list[list[str]] = field(default_factory=list)
    sent: list[list[str]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        number = 0
        while not self.ended.is_set():
            batch = documents(range(number, number + 4), f"{self.tag}-")
            number += 4
            self.sent.append([document.id for document in batch])
            try:
                with FacetsClient(self.target, timeout_s=5) as client:
                    client.upsert("killed", batch)
            except FacetsClientError:
                continue
            self.acknowledged.append(self.sent[-1])


def test_a_killed_server_loses_nothing_that_was_acknowledged(
    servers: list[ServerProcess], tmp_path: Path, toy_model: Path, url: str
) -> None:
    with FacetsClient(servers[0].target, timeout_s=60) as client:
        client.create_collection("killed")
        writers = [Writer(servers[0].target, "steady")]
        for kill in range(3):
            with start(tmp_path / "victim", toy_model, url) as victim:
                writers.append(Writer(victim.target, f"victim{kill}"))
                threads = [threading.Thread(target=writer.run) for writer in (writers[0], writers[-1])]
                writers[0].ended.clear()
                for thread in threads:
                    thread.start()
                while len(writers[-1].acknowledged) < 5 + kill:
                    assert threads[1].is_alive()
                    writers[-1].ended.wait(0.01)
                victim.kill()
                for writer in (writers[0], writers[-1]):
                    writer.ended.set()
                for thread in threads:
                    thread.join()
        there = {document.id for document in client.list_documents("killed", page_size=500)}
        for writer in writers:
            assert all(there.issuperset(batch) for batch in writer.acknowledged)
            assert all(len(there.intersection(batch)) in (0, len(batch)) for batch in writer.sent)
        assert len(there) == client.count_documents("killed")
        with start(tmp_path / "victim", toy_model, url) as again, FacetsClient(again.target, timeout_s=60) as second:
            pages = [
                [(hit.id, hit.score) for hit in one.search("killed", ["river music"], top_k=30, exact=True)[0].hits]
                for one in (client, second)
            ]
            assert pages[0] == pages[1] and pages[0]
