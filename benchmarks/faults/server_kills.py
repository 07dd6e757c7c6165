"""Kills a real server process in the middle of real calls."""

import os
import random
import shutil
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
from facets_proto.v1 import documents_pb2, documents_pb2_grpc
from facets_server.runtime.upkeep import verify_directory
from forked_server import ForkedServer
from toys import untrained_model

from benchmarks.faults.linearizability import Access, is_linearizable
from benchmarks.faults.shadows import MODELS, WORDS, RegisterShadow, all_shadows, end_pending, start_callers
from benchmarks.server import free_port, server_arguments, wait_until_serving
from facets.config import FacetModelConfig
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.checkpoint import CheckpointConfig

_KILLS_PER_DIRECTORY = 25
_SHARE_WHILE_STARTING = 0.08  # share of kills during startup
_LONGEST_S = 1.5  # maximum time from serving to the kill
_SETTINGS = {
    "FACETS_SERVER_ENGINE_EXACT_MAX_FACETS": "60",
    "FACETS_SERVER_ENGINE_SNAPSHOT_EVERY_WRITES": "20",
    "FACETS_SERVER_LOG_LEVEL": "WARNING",
}
CHANNEL_OPTIONS = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]


class FaultRun:
    """Kills servers during calls and collects the outcomes; the seed does not control process timing."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._rng = random.Random(seed)
        self._models = make_models(folder / "models")
        self._num_checked_calls = 0
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def report(self) -> dict[str, object]:
        """Counts as plain values."""
        return {"linearizability_checked_calls": self._num_checked_calls, **dict(sorted(self.counts.items()))}

    def check_histories(self, histories: Sequence[Sequence[Access]]) -> str:
        """Names the registers whose history is not linearizable; empty if all are."""
        self._num_checked_calls += sum(map(len, histories))
        wrong = [number for number, history in enumerate(histories) if not is_linearizable(history)]
        return "; ".join(f"register {number} is not linearizable: {histories[number]}" for number in wrong)

    def fail(self, problem: str) -> None:
        """Records a failure."""
        self.counts["failed"] += 1
        self.failures.append(problem[:6000])


class ServerKills(FaultRun):
    """Kills one server on SQLite, with an empty directory from time to time."""

    def kill(self, count: int) -> None:
        """Kills the server ``count`` times."""
        while count:
            directory = _Directory(self._folder / "data", self._models, self._rng)
            problem = ""
            for _ in range(min(count, _KILLS_PER_DIRECTORY)):
                count -= 1
                self.counts["killed"] += 1
                problem = directory.kill(self.counts)
                if problem:
                    break
            else:
                problem = "; ".join(filter(None, [directory.verify(), self.check_histories(directory.histories)]))
            if problem:
                self.fail(problem)
                shutil.copytree(directory.path, self._folder / f"failed-{len(self.failures)}", dirs_exist_ok=True)
            shutil.rmtree(directory.path, ignore_errors=True)


class _Directory:
    """One data directory, kept through many kills, and the callers of its servers."""

    def __init__(self, path: Path, models: list[Path], rng: random.Random) -> None:
        self.path, self._models, self._rng = path, models, rng
        shutil.rmtree(path, ignore_errors=True)
        self.histories: list[list[Access]] = [[] for _ in range(RegisterShadow.NUM_REGISTERS)]
        self._shadows = all_shadows(rng, self.histories)

    def kill(self, counts: Counter[str]) -> str:
        """Starts a server, checks what it holds, calls it and kills it; returns what went wrong."""
        if self._rng.random() < _SHARE_WHILE_STARTING:
            server = self._start(free_port())
            time.sleep(self._rng.uniform(0, 2))
            server.kill()
            server.wait(30)
            counts["killed while starting"] += 1
            return ""
        with self._serving() as (server, channel):
            return self._check(channel) or self._call_and_kill(server, channel, counts)

    def verify(self) -> str:
        """Checks the directory one last time, including every checksum; returns what is wrong."""
        with self._serving() as (server, channel):
            problem = self._check(channel)
            server.kill()
            server.wait(30)
        messages: list[str] = []
        return problem if verify_directory(self.path, messages.append) else f"{problem}; verify says {messages}"

    def _check(self, channel: grpc.Channel) -> str:
        try:
            create_registers(channel)
            return "; ".join(filter(None, (shadow.check(channel) for shadow in self._shadows)))
        except (AssertionError, grpc.RpcError):
            return traceback.format_exc()

    def _call_and_kill(self, server: ForkedServer, channel: grpc.Channel, counts: Counter[str]) -> str:
        killed, problems = threading.Event(), list[str]()
        threads = start_callers(self._shadows, [channel], killed, problems, counts, expected=lambda _: True)
        time.sleep(self._rng.uniform(0, _LONGEST_S))
        if server.poll() is not None:
            problems.append(f"the server ended by itself with {server.poll()}")
        server.kill()
        killed.set()
        server.wait(30)
        killed_at = time.monotonic()
        for thread in threads:
            thread.join(60)
        counts["killed in a call"] += any(len(shadow.may_hold) > 1 for shadow in self._shadows)
        end_pending(self.histories, killed_at)
        return "; ".join(problems)

    def _start(self, port: int) -> ForkedServer:
        arguments = server_arguments(port, self.path, self._models)
        return ForkedServer(arguments, environment(), self.path.with_name("server.log"))

    @contextmanager
    def _serving(self) -> Iterator[tuple[ForkedServer, grpc.Channel]]:
        port = free_port()
        server = self._start(port)
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS) as channel:
                wait_until_serving(channel, server, log=self.path.with_name("server.log"))
                yield server, channel
        finally:
            server.kill()
            server.wait(30)


def create_registers(channel: grpc.Channel) -> None:
    """Creates the collection of the registers unless it exists."""
    request = documents_pb2.CreateCollectionRequest(name=RegisterShadow.name, model=MODELS[0])
    try:
        documents_pb2_grpc.CollectionServiceStub(channel).CreateCollection(request, timeout=60)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise


def make_models(folder: Path) -> list[Path]:
    """Writes small models for sentences, papers and relations; their answers do not matter."""
    from relation_toys import make_toy_relation_checkpoint
    from toy_papers import toy_paper_model

    (folder / "papers").mkdir(parents=True)
    known = sorted(set(WORDS))
    vectors = np.random.default_rng(1).normal(size=(len(known), 32)).astype(np.float32)
    words = WordVectors(Vocabulary(known, np.arange(len(known), 0, -1) * 10), vectors)
    for number, name in enumerate(MODELS):
        config = FacetModelConfig(
            num_facets=4 - number, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=64, max_tokens=32
        )
        model = CheckpointConfig(name=name, task="sentences", model=config)
        untrained_model(model, words, seed=number).save(folder / name)
    toy_paper_model(folder / "papers")
    make_toy_relation_checkpoint(folder / "relations", num_steps=2)
    return [*(folder / name for name in MODELS), folder / "papers" / "run" / "model", folder / "relations"]


def environment() -> Mapping[str, str]:
    """Environment variables of a server: small limits, so that it writes indexes and snapshots often."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FACETS_")}
    return {**inherited, **_SETTINGS, "PYTHONPATH": os.pathsep.join(sys.path)}
