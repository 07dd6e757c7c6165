"""Kills servers that share a PostgreSQL database, and its primary, whose standby is then promoted."""

import random
import shutil
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import grpc
from facets_proto.v1 import documents_pb2, documents_pb2_grpc
from forked_server import ForkedServer
from postgres_server import PostgresPair

from benchmarks.faults.linearizability import Access
from benchmarks.faults.server_kills import CHANNEL_OPTIONS, FaultRun, create_registers, environment
from benchmarks.faults.shadows import MODELS, RegisterShadow, all_shadows, end_pending, is_unavailable, start_callers
from benchmarks.measuring import percentiles
from benchmarks.server import free_port, server_arguments, wait_until_serving

_KILLS_PER_DATABASE = 25
_LONGEST_S = 1.5  # maximum time from serving to the kill
_WRITES_CONTINUE_WITHIN_S = 10.0  # after a promotion, or after the other server was killed
_GIVEN_UP_S = 60.0
_KINDS = {"server": 9, "primary": 9, "both": 2}
_PROBED = "probed"


class Failovers(FaultRun):
    """Two servers on a primary with a synchronous standby."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.pauses_s: list[float] = []  # of each primary, from the promotion until every server accepted a write

    def kill(self, count: int) -> None:
        """Kills ``count`` times, with an empty database from time to time."""
        pair = PostgresPair()
        try:
            for start in range(0, count, _KILLS_PER_DATABASE):
                with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                    cluster = _Cluster(pair, Path(folder), self._models, self._rng)
                    try:
                        self._kill_cluster(cluster, min(count - start, _KILLS_PER_DATABASE))
                    finally:
                        cluster.close()
        finally:
            pair.remove()

    def _kill_cluster(self, cluster: "_Cluster", count: int) -> None:
        problem = ""
        for _ in range(count):
            kind = self._rng.choices(list(_KINDS), list(_KINDS.values()))[0]
            problem = cluster.kill(kind, self.counts, self.pauses_s)
            self.counts[f"killed: {kind}"] += 1
            if problem:
                break
        else:
            problem = self.check_histories(cluster.histories)
        if problem:
            self.fail(problem)
            for log in cluster.folder.glob("*.log"):
                shutil.copy(log, self._folder.parent / f"failed-{len(self.failures)}-{log.name}")

    def report(self) -> dict[str, object]:
        """Counts and pauses as plain values."""
        return {"writes_continue_after": percentiles(self.pauses_s, (50, 99, 100), unit="_s"), **super().report()}


class _Cluster:
    """Two servers on one database, kept through many kills, and their callers."""

    def __init__(self, pair: PostgresPair, folder: Path, models: list[Path], rng: random.Random) -> None:
        self._pair, self.folder, self._models, self._rng = pair, folder, models, rng
        self._url = pair.new_database()
        self.histories: list[list[Access]] = [[] for _ in range(RegisterShadow.NUM_REGISTERS)]
        self._shadows = all_shadows(rng, self.histories)
        self._servers = [self._start(number) for number in range(2)]
        self._wait_until_serving()
        channel = self._servers[0][1]
        create_registers(channel)
        request = documents_pb2.CreateCollectionRequest(name=_PROBED, model=MODELS[0])
        documents_pb2_grpc.CollectionServiceStub(channel).CreateCollection(request, timeout=60)

    def close(self) -> None:
        for server, channel in self._servers:
            channel.close()
            server.kill()
            server.wait(30)

    def kill(self, kind: str, counts: Counter[str], pauses_s: list[float]) -> str:
        """Lets all callers work, kills ``kind`` and checks; returns what went wrong."""
        killed, problems = threading.Event(), list[str]()
        channels = [channel for _, channel in self._servers]
        threads = start_callers(self._shadows, channels, killed, problems, counts, expected=is_unavailable)
        time.sleep(self._rng.uniform(0, _LONGEST_S))
        victim = self._rng.randrange(2)
        killed.set()
        if kind != "primary":
            self._servers[victim][0].kill()
        promoted = self._pair.fail_over(pause_s=self._rng.uniform(0, 1)) if kind != "server" else time.monotonic()
        writing = [number for number in range(2) if kind == "primary" or number != victim]
        pause_s = max(self._first_write(number, problems) for number in writing) - promoted
        if kind != "server":
            pauses_s.append(pause_s)
            self._pair.restore_standby()
        if pause_s > _WRITES_CONTINUE_WITHIN_S:
            problems.append(f"writes continued after {pause_s:.1f} s")
        for thread in threads:
            thread.join(_GIVEN_UP_S)
        counts["killed in a call"] += any(len(shadow.may_hold) > 1 for shadow in self._shadows)
        if kind != "primary":
            self._servers[victim][0].wait(30)
            self._servers[victim][1].close()
            self._servers[victim] = self._start(victim)
        self._wait_until_serving()
        end_pending(self.histories, time.monotonic())  # the writes above have waited for any commit in progress
        return "; ".join([*problems, *self._check()])

    def _first_write(self, number: int, problems: list[str]) -> float:
        """Time of the first accepted write (monotonic seconds); until then only UNAVAILABLE is allowed."""
        stub = documents_pb2_grpc.DocumentServiceStub(self._servers[number][1])
        deadline = time.monotonic() + _GIVEN_UP_S
        document = documents_pb2.Document(id=f"of {number}", text="a cat and a dog")
        request = documents_pb2.UpsertRequest(collection=_PROBED, documents=[document])
        while time.monotonic() < deadline:
            try:
                stub.Upsert(request, timeout=_GIVEN_UP_S)
                break
            except grpc.RpcError as error:
                if not is_unavailable(error):
                    problems.append(traceback.format_exc())
                time.sleep(0.05)
        return time.monotonic()

    def _check(self) -> list[str]:
        try:
            return [
                problem
                for shadow in self._shadows
                for _, channel in self._servers
                if (problem := shadow.check(channel))
            ]
        except (AssertionError, grpc.RpcError):
            return [traceback.format_exc()]

    def _start(self, number: int) -> tuple[ForkedServer, grpc.Channel]:
        port, folder = free_port(), self.folder / f"server{number}"
        arguments = server_arguments(port, folder, self._models)
        settings = {**environment(), "FACETS_SERVER_ENGINE_STORE": self._url}
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS)
        return ForkedServer(arguments, settings, folder.with_suffix(".log")), channel

    def _wait_until_serving(self) -> None:
        for number, (server, channel) in enumerate(self._servers):
            wait_until_serving(channel, server, log=(self.folder / f"server{number}").with_suffix(".log"))
