"""Kills of servers that share one PostgreSQL, and of the primary of it, whose standby is promoted."""

import random
import shutil
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import grpc
from facets_proto.v1 import documents_pb2, documents_pb2_grpc

from benchmarks.faults.callers import MODELS, Caller, RegisterCaller, all_callers, end_pending
from benchmarks.faults.linearizability import Access
from benchmarks.faults.rpcs import CHANNEL_OPTIONS, CallFaults, environment
from benchmarks.forked_server import ForkedServer
from benchmarks.measuring import percentiles
from benchmarks.postgres import PostgresPair
from benchmarks.server import free_port, server_arguments, wait_until_serving

_KILLS_A_DATABASE = 25
_LONGEST_S = 1.5  # from serving to the kill
_WITHIN_S = 10.0  # of a promotion, or of the death of another server, writes go on
_GIVEN_UP_S = 60.0
_KINDS = {"server": 9, "primary": 9, "both": 2}
_PROBED = "probed"
# What a caller may see while something is killed; everything else is a failure.
_EXPECTED = (grpc.StatusCode.UNAVAILABLE,)


class FailoverFaults(CallFaults):
    """Two servers on a primary with a synchronous standby: kills, and what came of them.

    Attributes:
        pauses_s: After each kill of a primary, from its promotion until every server took a write.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.pauses_s: list[float] = []

    def kills(self, count: int) -> None:
        """So many kills, with an empty database now and then."""
        with ExitStack() as stack:
            pair = PostgresPair()
            stack.callback(pair.remove)
            while count > 0:
                some = min(count, _KILLS_A_DATABASE)
                with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                    cluster = _Cluster(pair, Path(folder), self._models, self._rng)
                    try:
                        self._kill(cluster, some)
                    finally:
                        cluster.close()
                count -= some

    def _kill(self, cluster: "_Cluster", count: int) -> None:
        for _ in range(count):
            kind = self._rng.choices(list(_KINDS), list(_KINDS.values()))[0]
            problem = cluster.kill(kind, self.counts, self.pauses_s)
            self.counts[f"killed: {kind}"] += 1
            if problem:
                self._fail(f"{kind}: {problem}", cluster)
                return
        if problem := self.disordered(cluster.histories):
            self._fail(problem, cluster)

    def _fail(self, problem: str, cluster: "_Cluster") -> None:
        self.fail(problem)
        for log in cluster.folder.glob("*.log"):
            shutil.copy(log, self._folder.parent / f"failed-{len(self.failures)}-{log.name}")

    def report(self) -> dict[str, object]:
        """What was done, as plain values."""
        pauses = percentiles(self.pauses_s, (50, 99, 100), unit="_s") if self.pauses_s else None
        return {"writes_go_on_after_promotion": pauses, **super().report()}


class _Cluster:
    """Two servers on one database through many kills, and who calls them."""

    def __init__(self, pair: PostgresPair, folder: Path, models: list[Path], rng: random.Random) -> None:
        self._pair, self.folder, self._models, self._rng = pair, folder, models, rng
        self._url = pair.new_database()
        self.histories: list[list[Access]] = [[] for _ in range(RegisterCaller.NUM_REGISTERS)]
        self._callers = all_callers(rng, self.histories)
        self._servers = [self._started(number) for number in range(2)]
        self._wait_until_serving()
        for name in (RegisterCaller.name, _PROBED):
            request = documents_pb2.CreateCollectionRequest(name=name, model=MODELS[0])
            documents_pb2_grpc.CollectionServiceStub(self._servers[0][1]).CreateCollection(request, timeout=60)

    def close(self) -> None:
        """Ends the servers; the database stays."""
        for server, channel in self._servers:
            channel.close()
            server.kill()
            server.wait(30)

    def kill(self, kind: str, counts: Counter[str], pauses_s: list[float]) -> str:
        """Lets all call and kills something, then looks; what went wrong, empty: nothing."""
        is_killed, problems = threading.Event(), list[str]()
        threads = [
            threading.Thread(target=self._work, args=(caller, is_killed, problems, counts), daemon=True)
            for caller in self._callers
        ]
        for thread in threads:
            thread.start()
        time.sleep(self._rng.uniform(0, _LONGEST_S))
        victim = self._rng.randrange(2)
        is_killed.set()
        if kind != "primary":
            self._servers[victim][0].kill()
        promoted = self._pair.fail_over(pause_s=self._rng.uniform(0, 1)) if kind != "server" else time.monotonic()
        writing = [number for number in range(2) if kind == "primary" or number != victim]
        pauses = [self._writes_again(number, problems) - promoted for number in writing]
        if kind != "server":
            pauses_s.append(max(pauses))
            self._pair.restore_standby()
        if max(pauses) > _WITHIN_S:
            problems.append(f"writes went on after {pauses} s")
        for thread in threads:
            thread.join(_GIVEN_UP_S)
        counts["killed in a call"] += any(len(caller.may_hold) > 1 for caller in self._callers)
        if kind != "primary":
            self._servers[victim][0].wait(30)
            self._servers[victim][1].close()
            self._servers[victim] = self._started(victim)
        self._wait_until_serving()
        end_pending(self.histories, time.monotonic())  # the writes above waited for whatever was in a commit
        return "; ".join([*problems, *self._judged()])

    def _work(self, caller: Caller, is_killed: threading.Event, problems: list[str], counts: Counter[str]) -> None:
        rng = random.Random(caller.rng.random())
        while not is_killed.is_set():
            try:
                caller.step(rng.choice(self._servers)[1])
                counts[f"writes of {type(caller).__name__}"] += 1
            except grpc.RpcError as error:
                if error.code() not in _EXPECTED or not is_killed.wait(1.0):
                    problems.append(traceback.format_exc())
                return
            except (AssertionError, StopIteration):
                problems.append(traceback.format_exc())
                return

    def _writes_again(self, number: int, problems: list[str]) -> float:
        """When a server takes a write; until then it may only be away."""
        stub, ends = documents_pb2_grpc.DocumentServiceStub(self._servers[number][1]), time.monotonic() + _GIVEN_UP_S
        document = documents_pb2.Document(id=f"of {number}", text="a cat and a dog")
        request = documents_pb2.UpsertRequest(collection=_PROBED, documents=[document])
        while time.monotonic() < ends:
            try:
                stub.Upsert(request, timeout=_GIVEN_UP_S)
                return time.monotonic()
            except grpc.RpcError as error:
                if error.code() not in _EXPECTED:
                    problems.append(traceback.format_exc())
                time.sleep(0.05)
        return time.monotonic()

    def _judged(self) -> list[str]:
        """What is wrong with what either server says."""
        try:
            return [said for caller in self._callers for _, channel in self._servers if (said := caller.judge(channel))]
        except (AssertionError, grpc.RpcError):
            return [traceback.format_exc()]

    def _started(self, number: int) -> tuple[ForkedServer, grpc.Channel]:
        port, folder = free_port(), self.folder / f"server{number}"
        arguments = server_arguments(port, folder, self._models)
        settings = {**environment(0), "FACETS_SERVER_ENGINE_STORE": self._url}
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS)
        return ForkedServer(arguments, settings, folder.with_suffix(".log")), channel

    def _wait_until_serving(self) -> None:
        for number, (server, channel) in enumerate(self._servers):
            wait_until_serving(channel, server, log=(self.folder / f"server{number}").with_suffix(".log"))
