"""Kills servers and databases in the middle of calls, and checks that nothing acknowledged is lost.

``python -m benchmarks.faults --kills 100 --failovers 20 --seed 0``

``--kills``: a server on SQLite is killed under six concurrent callers. Each caller knows what the server must hold
(a shadow model): documents, streams and their tokens, collections created, moved and deleted, added papers, authors and
relations. ``--failovers``: two servers share a PostgreSQL primary with a synchronous standby; servers and primaries are
killed, and writes must continue within 10 seconds. In both, the calls of three callers on shared documents must be
linearizable.

Prints JSON; for failures, exits with code 1 and prints a line for each on standard error.
"""

import argparse
import atexit
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
from facets_proto.v1 import documents_pb2
from facets_server.runtime.upkeep import verify_directory
from forked_server import ForkedServer
from postgres_server import PostgresPair
from toys import toy_model, toy_word_vectors, untrained_model

from benchmarks.faults.linearizability import Access, is_linearizable
from benchmarks.faults.shadows import MODELS, RegisterShadow, Shadow, all_shadows, ask, end_pending, is_unavailable
from benchmarks.measuring import percentiles, print_report
from benchmarks.server import free_port, server_arguments, wait_until_serving
from facets.model.checkpoint import CheckpointConfig

_KILLS_PER_TARGET = 25
_LONGEST_S = 1.5  # maximum time from serving to the kill
_SHARE_WHILE_STARTING = 0.08  # share of kills of a server during its startup
_WRITES_CONTINUE_WITHIN_S = 10.0  # after a promotion, or after the other server was killed
_GIVEN_UP_S = 60.0
_KINDS = {"server": 9, "primary": 9, "both": 2}
_PROBED = "probed"
_SETTINGS = {  # of a server: small limits, so that it writes indexes and snapshots often
    "FACETS_SERVER_ENGINE_EXACT_MAX_FACETS": "60",
    "FACETS_SERVER_ENGINE_SNAPSHOT_EVERY_WRITES": "20",
    "FACETS_SERVER_LOG_LEVEL": "WARNING",
}
_CHANNEL_OPTIONS = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]


class Target(ABC):
    """Servers on one store, kept through many kills, and their callers."""

    def __init__(self, path: Path, models: list[Path], rng: random.Random) -> None:
        self.path, self._models, self._rng = path, models, rng
        shutil.rmtree(path, ignore_errors=True)
        self.histories: list[list[Access]] = [[] for _ in range(RegisterShadow.NUM_REGISTERS)]
        self._shadows = all_shadows(rng, self.histories)

    @abstractmethod
    def kill(self, run: "FaultRun") -> str:
        """Lets all callers work, kills something and checks; returns what went wrong."""

    def verify(self) -> str:
        """Checks the store one last time; returns what is wrong."""
        return ""

    def close(self) -> None:
        """Ends what still runs, and deletes the data."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _start(self, folder: Path, **settings: str) -> tuple[ForkedServer, grpc.Channel]:
        port = free_port()
        arguments, log = server_arguments(port, folder, self._models), folder.with_suffix(".log")
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=_CHANNEL_OPTIONS)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FACETS_")}
        environment = {**inherited, **_SETTINGS, "PYTHONPATH": os.pathsep.join(sys.path), **settings}
        return ForkedServer(arguments, environment, log), channel

    @contextmanager
    def _calls(
        self, channels: Sequence[grpc.Channel], counts: Counter[str], expected: Callable[[Exception], bool]
    ) -> Iterator[tuple[threading.Event, list[str]]]:
        """All callers, which work until the block sets the event, and a list of what goes wrong.

        Only ``expected`` errors may end a caller, and only when something is killed.
        """
        killed, problems = threading.Event(), list[str]()

        def work(shadow: Shadow) -> None:
            rng = random.Random(shadow.rng.random())
            while not killed.is_set():
                try:
                    shadow.step(rng.choice(channels))
                    counts[f"calls of {type(shadow).__name__}"] += 1
                except (grpc.RpcError, AssertionError, StopIteration) as error:
                    if not expected(error) or not killed.wait(1.0):  # the error may arrive before the event is set
                        problems.append(traceback.format_exc())
                    return

        threads = [threading.Thread(target=work, args=(shadow,), daemon=True) for shadow in self._shadows]
        for thread in threads:
            thread.start()
        time.sleep(self._rng.uniform(0, _LONGEST_S))
        yield killed, problems
        for thread in threads:
            thread.join(_GIVEN_UP_S)
        counts["killed in a call"] += any(len(shadow.may_hold) > 1 for shadow in self._shadows)

    def _check(self, channels: Sequence[grpc.Channel]) -> str:
        try:
            create_registers(channels[0])
            found = (shadow.check(channel) for shadow in self._shadows for channel in channels)
            return "; ".join(filter(None, found))
        except (AssertionError, grpc.RpcError):
            return traceback.format_exc()


class FaultRun:
    """Kills servers during calls and collects the outcomes; the seed does not control process timing."""

    def __init__(self, folder: Path, seed: int, kind: type[Target]) -> None:
        self._folder, self._kind = folder, kind
        self._rng = random.Random(seed)
        self._models = make_models(folder / "models")
        self._num_checked_calls = 0
        self.counts: Counter[str] = Counter()
        self.pauses_s: list[float] = []  # of each primary, from the promotion until every server accepted a write
        self.failures: list[str] = []

    def kill(self, count: int) -> None:
        """Kills ``count`` times, with an empty store from time to time."""
        while count:
            target, problem = self._kind(self._folder / "data", self._models, self._rng), ""
            try:
                for _ in range(min(count, _KILLS_PER_TARGET)):
                    count -= 1
                    problem = target.kill(self)
                    if problem:
                        break
                else:
                    problem = "; ".join(filter(None, [target.verify(), self._check_histories(target.histories)]))
                if problem:
                    self.counts["failed"] += 1
                    self.failures.append(problem[:6000])
                    shutil.copytree(target.path, self._folder / f"failed-{len(self.failures)}", dirs_exist_ok=True)
            finally:
                target.close()

    def report(self) -> dict[str, object]:
        """Counts and pauses as plain values."""
        pauses = {"writes_continue_after": percentiles(self.pauses_s, (50, 99, 100), unit="_s")}
        checked = {"linearizability_checked_calls": self._num_checked_calls}
        return {**(pauses if self.pauses_s else {}), **checked, **dict(sorted(self.counts.items()))}

    def _check_histories(self, histories: Sequence[Sequence[Access]]) -> str:
        """Names the registers whose history is not linearizable; empty if all are."""
        self._num_checked_calls += sum(map(len, histories))
        wrong = [number for number, history in enumerate(histories) if not is_linearizable(history)]
        return "; ".join(f"register {number} is not linearizable: {histories[number]}" for number in wrong)


class Directory(Target):
    """A server on one data directory."""

    def kill(self, run: FaultRun) -> str:
        """Starts a server, checks what it holds, calls it and kills it; returns what went wrong."""
        run.counts["killed"] += 1
        if self._rng.random() < _SHARE_WHILE_STARTING:
            server, channel = self._start(self.path)
            time.sleep(self._rng.uniform(0, 2))
            end(server, channel)
            run.counts["killed while starting"] += 1
            return ""
        with self._serving() as (server, channel):
            return self._check([channel]) or self._call_and_kill(server, channel, run.counts)

    def verify(self) -> str:
        """Checks the directory one last time, including every checksum; returns what is wrong."""
        with self._serving() as (_, channel):
            problem = self._check([channel])
        messages: list[str] = []
        return problem if verify_directory(self.path, messages.append) else f"{problem}; verify says {messages}"

    def _call_and_kill(self, server: ForkedServer, channel: grpc.Channel, counts: Counter[str]) -> str:
        with self._calls([channel], counts, lambda _: True) as (killed, problems):
            if server.poll() is not None:
                problems.append(f"the server ended by itself with {server.poll()}")
            server.kill()
            killed.set()
            server.wait(30)
            killed_at = time.monotonic()
        end_pending(self.histories, killed_at)
        return "; ".join(problems)

    @contextmanager
    def _serving(self) -> Iterator[tuple[ForkedServer, grpc.Channel]]:
        server, channel = self._start(self.path)
        try:
            wait_until_serving(channel, server, log=self.path.with_suffix(".log"))
            yield server, channel
        finally:
            end(server, channel)


class Cluster(Target):
    """Two servers on the database of a primary with a synchronous standby."""

    def __init__(self, path: Path, models: list[Path], rng: random.Random) -> None:
        super().__init__(path, models, rng)
        path.mkdir(parents=True)
        self._pair = PostgresPair()
        atexit.register(self._pair.remove)  # if it cannot be closed because what follows fails
        self._url = self._pair.new_database()
        self._servers = [self._start_one(number) for number in range(2)]
        self._wait_until_serving()
        channel = self._servers[0][1]
        create_registers(channel)
        ask(channel, documents_pb2.CreateCollectionRequest(name=_PROBED, model=MODELS[0]))

    def close(self) -> None:
        """See ``Target``."""
        for server, channel in self._servers:
            end(server, channel)
        self._pair.remove()
        super().close()

    def kill(self, run: FaultRun) -> str:
        """Kills a server, the primary or both while all callers work, and checks; returns what went wrong."""
        [kind] = self._rng.choices(list(_KINDS), list(_KINDS.values()))
        run.counts[f"killed: {kind}"] += 1
        victim = self._rng.randrange(2)
        channels = [channel for _, channel in self._servers]
        with self._calls(channels, run.counts, is_unavailable) as (killed, problems):
            killed.set()
            if kind != "primary":
                self._servers[victim][0].kill()
            promoted = self._pair.fail_over(pause_s=self._rng.uniform(0, 1)) if kind != "server" else time.monotonic()
            writing = [number for number in range(2) if kind == "primary" or number != victim]
            pause_s = max(self._first_write(number, problems) for number in writing) - promoted
            if kind != "server":
                run.pauses_s.append(pause_s)
                self._pair.restore_standby()
            if pause_s > _WRITES_CONTINUE_WITHIN_S:
                problems.append(f"writes continued after {pause_s:.1f} s")
        if kind != "primary":
            end(*self._servers[victim])
            self._servers[victim] = self._start_one(victim)
        self._wait_until_serving()
        end_pending(self.histories, time.monotonic())  # the writes above have waited for any commit in progress
        problems.append(self._check([channel for _, channel in self._servers]))
        return "; ".join(filter(None, problems))

    def _first_write(self, number: int, problems: list[str]) -> float:
        """Time of the first accepted write (monotonic seconds); until then only UNAVAILABLE is allowed."""
        deadline = time.monotonic() + _GIVEN_UP_S
        document = documents_pb2.Document(id=f"of {number}", text="a man and a dog")
        request = documents_pb2.UpsertRequest(collection=_PROBED, documents=[document])
        while time.monotonic() < deadline:
            try:
                ask(self._servers[number][1], request)
                break
            except grpc.RpcError as error:
                if not is_unavailable(error):
                    problems.append(traceback.format_exc())
                time.sleep(0.05)
        return time.monotonic()

    def _start_one(self, number: int) -> tuple[ForkedServer, grpc.Channel]:
        return self._start(self.path / f"server{number}", FACETS_SERVER_ENGINE_STORE=self._url)

    def _wait_until_serving(self) -> None:
        for number, (server, channel) in enumerate(self._servers):
            wait_until_serving(channel, server, log=(self.path / f"server{number}").with_suffix(".log"))


def end(server: ForkedServer, channel: grpc.Channel) -> None:
    """Kills a server, unless it has ended."""
    channel.close()
    server.kill()
    server.wait(30)


def create_registers(channel: grpc.Channel) -> None:
    """Creates the collection of the registers unless it exists."""
    try:
        ask(channel, documents_pb2.CreateCollectionRequest(name=RegisterShadow.name, model=MODELS[0]))
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise


def make_models(folder: Path) -> list[Path]:
    """Writes small models for sentences, papers and relations; their answers do not matter."""
    from relation_toys import make_toy_relation_checkpoint
    from toy_papers import toy_paper_model

    (folder / "papers").mkdir(parents=True)
    for number, name in enumerate(MODELS):
        shape = toy_model(num_facets=4 - number, max_tokens=32).config.model
        config = CheckpointConfig(name=name, task="sentences", model=shape)
        untrained_model(config, toy_word_vectors(), seed=number).save(folder / name)
    toy_paper_model(folder / "papers")
    make_toy_relation_checkpoint(folder / "relations", num_steps=2)
    return [*(folder / name for name in MODELS), folder / "papers" / "run" / "model", folder / "relations"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the faults; returns 1 if something was lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="kills of a server on SQLite (default 100)")
    parser.add_argument("--failovers", type=int, default=0, help="kills with two servers on PostgreSQL (default 0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work-dir", type=Path, help="folder that keeps data of failures (default: temporary)")
    options = parser.parse_args(argv)
    start = time.perf_counter()
    report: dict[str, object] = {"benchmark": "faults", "seed": options.seed}
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work_dir or Path(temporary)
        for name, kind, count in (("kills", Directory, options.kills), ("failovers", Cluster, options.failovers)):
            if count:
                run = FaultRun(folder / name, options.seed, kind)
                run.kill(count)
                report[name] = run.report()
                failures += run.failures
    report |= {"failures": len(failures), "load": [round(load, 1) for load in os.getloadavg()]}
    report["seconds"] = round(time.perf_counter() - start, 1)
    print_report(report)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
