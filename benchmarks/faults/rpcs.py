"""Kills of a real server process in the middle of real calls, and of backups beside it."""

import os
import random
import shutil
import sys
import tempfile
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
from facets_server.runtime.upkeep import restore_directory, verify_directory

from benchmarks.faults.callers import MODELS, WORDS, Caller, RegisterCaller, all_callers, end_pending
from benchmarks.faults.linearizability import Access, is_linearizable
from benchmarks.forked_server import CLOCK, ForkedServer
from benchmarks.server import free_port, server_arguments, wait_until_serving
from facets.config import FacetModelConfig
from facets.errors import DamagedError, FacetsError
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.checkpoint import CheckpointConfig
from facets.model.facet_model import new_model
from facets.storage import check_backup

_KILLS_A_DIRECTORY = 25
_STARTING_SHARE = 0.08  # of the kills hit a server that starts
_LONGEST_S = 1.5  # from serving to the kill
_YEARS_S = 5 * 365 * 24 * 3600
_TOYS = Path(__file__).resolve().parents[2] / "tests"
_SETTINGS = {"FACETS_SERVER_ENGINE_EXACT_MAX_FACETS": "60", "FACETS_SERVER_ENGINE_SNAPSHOT_EVERY_WRITES": "20"}
_SETTINGS |= {"FACETS_SERVER_LOG_LEVEL": "WARNING"}
CHANNEL_OPTIONS = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]


class CallFaults:
    """Servers that are killed under calls, and what came of it.

    Args:
        folder: For data, models and backups.
        seed: Of all choices; when processes do what is not in it.

    Attributes:
        counts: Outcomes.
        failures: What went wrong.
        num_calls: Calls to registers whose order was checked.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._rng = random.Random(seed)
        self._models = make_models(folder / "models")
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.num_calls = 0

    def kills(self, count: int) -> None:
        """So many kills, with nothing stored now and then."""
        raise NotImplementedError

    def report(self) -> dict[str, object]:
        """What was done, as plain values."""
        return {"calls_whose_order_was_checked": self.num_calls, **dict(sorted(self.counts.items()))}

    def disordered(self, histories: Sequence[Sequence[Access]]) -> str:
        """Which registers are not linearizable; empty: all are."""
        self.num_calls += sum(map(len, histories))
        wrong = [number for number, history in enumerate(histories) if not is_linearizable(history)]
        return "; ".join(f"register {number} is not linearizable: {histories[number]}" for number in wrong)

    def fail(self, problem: str) -> None:
        """Counts and keeps what went wrong."""
        self.counts["FAILED"] += 1
        self.failures.append(problem[:6000])


class RpcFaults(CallFaults):
    """Kills servers and counts what came of it."""

    def kills(self, count: int) -> None:
        """So many kills, a new directory now and then."""
        left = count
        while left:
            directory = _Directory(self._folder / "data", self._models, self._rng)
            for _ in range(min(left, _KILLS_A_DIRECTORY)):
                left -= 1
                problem = directory.kill(self.counts)
                self.counts["killed"] += 1
                if problem:
                    self._fail(problem, directory)
                    break
            else:
                self._end(directory)

    def _end(self, directory: "_Directory") -> None:
        """The last look at a directory: the order of calls, its backups, and every checksum."""
        problem = "; ".join(filter(None, [directory.last_look(), self.disordered(directory.histories)]))
        if problem:
            self._fail(problem, directory)
        self.counts["backups that were whole"] += len(directory.backups.whole)
        directory.remove()

    def _fail(self, problem: str, directory: "_Directory") -> None:
        self.fail(problem)
        directory.keep(self._folder / f"failed-{len(self.failures)}")


class _Directory:
    """One data directory through many kills, and who calls its servers."""

    def __init__(self, path: Path, models: list[Path], rng: random.Random) -> None:
        self._path, self._models, self._rng = path, models, rng
        self.remove()
        self.histories: list[list[Access]] = [[] for _ in range(RegisterCaller.NUM_REGISTERS)]
        self._callers = all_callers(rng, self.histories)
        self.backups = _Backups(path, random.Random(rng.random()))

    def kill(self, counts: Counter[str]) -> str:
        """Starts a server, judges what it holds, lets all call it and kills it; what went wrong, empty: nothing."""
        shift_s = self._rng.choice([0, 0, 0, -_YEARS_S, _YEARS_S])
        if self._rng.random() < _STARTING_SHARE:
            server = self._started(shift_s)
            time.sleep(self._rng.uniform(0, 2))
            server.kill()
            server.wait(30)
            counts["killed while starting"] += 1
            return ""
        with self._serving(shift_s) as (server, channel):
            problem = self._judged(channel)
            if problem:
                return problem
            return self._called_and_killed(server, channel, counts)

    def _judged(self, channel: grpc.Channel) -> str:
        try:
            self._make_registers(channel)
            return "; ".join(filter(None, (caller.judge(channel) for caller in self._callers)))
        except (AssertionError, grpc.RpcError):
            return traceback.format_exc()

    def _make_registers(self, channel: grpc.Channel) -> None:
        request = documents_pb2.CreateCollectionRequest(name=RegisterCaller.name, model=MODELS[0])
        try:
            documents_pb2_grpc.CollectionServiceStub(channel).CreateCollection(request, timeout=60)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                raise

    def _called_and_killed(self, server: ForkedServer, channel: grpc.Channel, counts: Counter[str]) -> str:
        is_killed, problems = threading.Event(), list[str]()

        def work(caller: Caller) -> None:
            while not is_killed.is_set():
                try:
                    caller.step(channel)
                    counts[f"writes of {type(caller).__name__}"] += 1
                except (grpc.RpcError, AssertionError, StopIteration):
                    if not is_killed.wait(0.5):  # the error may be quicker than whoever kills
                        problems.append(traceback.format_exc())
                    return

        threads = [threading.Thread(target=work, args=(caller,), daemon=True) for caller in self._callers]
        threads.append(threading.Thread(target=self.backups.take, args=(is_killed,), daemon=True))
        for thread in threads:
            thread.start()
        time.sleep(self._rng.uniform(0, _LONGEST_S))
        if server.poll() is not None:
            problems.append(f"the server ended by itself with {server.poll()}")
        server.kill()
        is_killed.set()
        server.wait(30)
        killed = time.monotonic()
        for thread in threads:
            thread.join(60)
        counts["killed in a call"] += any(len(caller.may_hold) > 1 for caller in self._callers)
        end_pending(self.histories, killed)
        return "; ".join([*problems, *self.backups.problems()])

    def last_look(self) -> str:
        """Judges the directory once more, every checksum, and what its last backup brings back; empty: all is well."""
        with self._serving(0) as (server, channel):
            problem = self._judged(channel)
            server.kill()
            server.wait(30)
        said: list[str] = []
        if not verify_directory(self._path, said.append):
            problem += f"; verify says {said}"
        return "; ".join(filter(None, [problem, *self.backups.restored()]))

    def keep(self, folder: Path) -> None:
        """For whoever looks into a failure."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._path, folder)
        self.remove()

    def remove(self) -> None:
        """Takes it away with its backups."""
        for path in (self._path, _Backups.folder(self._path)):
            shutil.rmtree(path, ignore_errors=True)

    def _started(self, shift_s: int, port: int = 0) -> ForkedServer:
        arguments = server_arguments(port, self._path, self._models)
        return ForkedServer(arguments, environment(shift_s), self._path.with_name("server.log"))

    @contextmanager
    def _serving(self, shift_s: int) -> Iterator[tuple[ForkedServer, grpc.Channel]]:
        port = free_port()
        server = self._started(shift_s, port)
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS) as channel:
                wait_until_serving(channel, server, log=self._path.with_name("server.log"))
                yield server, channel
        finally:
            server.kill()
            server.wait(30)


class _Backups:
    """Backups of a directory in use, some of them killed."""

    def __init__(self, data: Path, rng: random.Random) -> None:
        self._data, self._rng = data, rng
        self.whole: list[Path] = []
        self._problems: list[str] = []
        self._number = 0

    @staticmethod
    def folder(data: Path) -> Path:
        return data.with_name("backups")

    def take(self, is_over: threading.Event) -> None:
        """One backup; half of them are killed. It goes on when its server is killed."""
        folder = self.folder(self._data)
        folder.mkdir(exist_ok=True)
        self._number += 1
        destination = folder / f"backup{self._number}"
        arguments = ["backup", str(destination), "--data-dir", str(self._data)]
        process = ForkedServer(arguments, environment(0), self._data.with_name("backup.log"))
        if self._rng.random() < 0.5:
            is_over.wait(self._rng.uniform(0, 1.0))
            process.kill()
        code = process.wait(60)
        if code == 0:
            self.whole.append(destination)
            if held := [str(path.relative_to(folder)) for path in folder.glob("*.part/**/*")]:
                self._problems.append(f"{held} left beside a whole backup")
        elif code > 0:
            self._problems.append(f"backup {destination} ended with {code}")

    def problems(self) -> list[str]:
        """What is wrong with the backups that there are."""
        found, self._problems = self._problems, []
        for path in sorted(self.folder(self._data).iterdir()):
            try:
                check_backup(path)
                verify_directory(path, lambda _: None)
            except DamagedError as error:
                if path.suffix != ".part":
                    found.append(str(error))
        return found + [f"backup {path} is gone" for path in self.whole if not path.exists()]

    def restored(self) -> list[str]:
        """Puts the last one back and looks at it."""
        if not self.whole:
            return []
        said: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            try:
                restore_directory(self.whole[-1], Path(folder) / "data", said.append)
                return [] if verify_directory(Path(folder) / "data", said.append) else said
            except FacetsError as error:
                return [str(error)]


def make_models(folder: Path) -> list[Path]:
    """Small models of sentences, papers and relations; what they say does not matter."""
    sys.path.insert(0, str(_TOYS))
    from relation_toys import make_toy_relation_checkpoint
    from toy_papers import toy_paper_model

    (folder / "papers").mkdir(parents=True)
    known = sorted(set(WORDS))
    vectors = np.random.default_rng(1).normal(size=(len(known), 32)).astype(np.float32)
    words = WordVectors(Vocabulary(known, np.arange(len(known), 0, -1) * 10), vectors)
    sizes = {"dim": 32, "hidden_dim": 32, "num_heads": 2, "feedforward_dim": 64, "max_tokens": 32}
    for number, name in enumerate(MODELS):
        config = FacetModelConfig(num_facets=4 - number, **sizes)
        new_model(CheckpointConfig(name=name, task="sentences", model=config), words, seed=number).save(folder / name)
    toy_paper_model(folder / "papers")
    make_toy_relation_checkpoint(folder / "relations", num_steps=2)
    return [*(folder / name for name in MODELS), folder / "papers" / "run" / "model", folder / "relations"]


def environment(shift_s: int) -> Mapping[str, str]:
    """Of a server whose clock is so many seconds wrong."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FACETS_")}
    return {**inherited, **_SETTINGS, "PYTHONPATH": os.pathsep.join(sys.path), CLOCK: str(shift_s)}
