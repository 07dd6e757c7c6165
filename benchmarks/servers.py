"""Two servers on one PostgreSQL beside one: ``python -m benchmarks.servers``; JSON on standard output.

Processor seconds of a search (of both servers and of PostgreSQL, with what they do besides) where one server is asked
and where two take turns: on machines of their own two answer ``2 * one / two`` times as many. And how long after a
write was acknowledged by one server a search by the other has it. Models are toys, so a search costs little itself.
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import grpc
from facets_proto.v1 import documents_pb2, documents_pb2_grpc

from benchmarks.faults.callers import MODELS, WORDS
from benchmarks.faults.rpcs import environment, free_port, make_models, wait_until_serving
from benchmarks.forked_server import ForkedServer
from benchmarks.measuring import percentiles, print_report
from benchmarks.postgres import PostgresServer

_NAME = "read"
_BATCH = 200
_TICKS = os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=600)
    parser.add_argument("--writes", type=int, default=200)
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = PostgresServer(fsync=True)
        stack.callback(postgres.remove)
        servers = _Servers(folder, postgres.new_database(), stack)
        one = servers.start()
        _fill(one, options.documents)
        rounds: dict[str, list[float]] = {"one": [], "two": []}
        two = servers.start()
        for _ in range(3):  # in turn, so that whatever else the machine does befalls both; the second idles first
            for name, stubs in (("one", [one]), ("two", [one, two])):
                before = servers.processor_s(postgres)
                _search(stubs, options.queries // 3)
                rounds[name].append(1e3 * (servers.processor_s(postgres) - before) / (options.queries // 3))
        lag_ms = [_lag_ms(one, two, number) for number in range(options.writes)]
    cost = {name: min(spent) for name, spent in rounds.items()}
    print_report(
        {
            "processor_ms_a_search": rounds,
            "reads_of_two_by_those_of_one": round(2 * cost["one"] / cost["two"], 2),
            "lag": percentiles(lag_ms, (50, 90, 99), unit="_ms"),
            "parameters": vars(options),
        }
    )


class _Servers:
    """Servers on one database."""

    def __init__(self, folder: Path, url: str, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._settings = {**environment(0), "FACETS_SERVER_ENGINE_STORE": url}
        self._models = make_models(folder / "models")[: len(MODELS)]
        self._pids: list[int] = []

    def start(self) -> documents_pb2_grpc.DocumentServiceStub:
        """One more, once it serves."""
        data, port = self._folder / f"server{len(self._pids)}", free_port()
        arguments = ["--port", str(port), "--data-dir", str(data), "--log-level", "WARNING"]
        for model in self._models:
            arguments += ["--model", str(model)]
        server = ForkedServer(arguments, self._settings, data.with_suffix(".log"))
        self._stack.callback(server.kill)
        channel = self._stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{port}"))
        wait_until_serving(server, channel, data.with_suffix(".log"))
        self._pids.append(server.pid)
        if len(self._pids) == 1:
            request = documents_pb2.CreateCollectionRequest(name=_NAME, model=MODELS[0])
            documents_pb2_grpc.CollectionServiceStub(channel).CreateCollection(request)
        return documents_pb2_grpc.DocumentServiceStub(channel)

    def processor_s(self, postgres: PostgresServer) -> float:
        """What all of them and PostgreSQL have taken."""
        return sum(map(_processor_s, [*self._pids, *postgres.processes()]))


def _fill(stub: documents_pb2_grpc.DocumentServiceStub, count: int) -> None:
    rng = random.Random(1)
    for first in range(0, count, _BATCH):
        documents = [
            documents_pb2.Document(id=f"d{first + n}", text=" ".join(rng.choices(WORDS, k=20))) for n in range(_BATCH)
        ]
        stub.Upsert(documents_pb2.UpsertRequest(collection=_NAME, documents=documents))


def _search(stubs: Sequence[documents_pb2_grpc.DocumentServiceStub], count: int) -> None:
    rng = random.Random(2)
    for number in range(count):
        query = documents_pb2.SearchQuery(text=" ".join(rng.choices(WORDS, k=4)))
        request = documents_pb2.SearchRequest(collection=_NAME, queries=[query], top_k=10)
        stubs[number % len(stubs)].Search(request)


def _lag_ms(
    writer: documents_pb2_grpc.DocumentServiceStub, reader: documents_pb2_grpc.DocumentServiceStub, number: int
) -> float:
    document = documents_pb2.Document(id=f"late{number}", text=" ".join(WORDS[:8]))
    revision = writer.Upsert(documents_pb2.UpsertRequest(collection=_NAME, documents=[document])).index_revision
    acknowledged = time.perf_counter()
    query = documents_pb2.SearchQuery(text="cat")
    request = documents_pb2.SearchRequest(collection=_NAME, queries=[query], top_k=1, mode="SEARCH_MODE_LEXICAL")
    while reader.Search(request).index_revision < revision:
        pass
    return 1e3 * (time.perf_counter() - acknowledged)


def _processor_s(pid: int) -> float:
    """Of a process with those of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


if __name__ == "__main__":
    main()
