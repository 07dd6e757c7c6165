"""A real ``facets-server`` process for the tests, on a free port of localhost."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import grpc
import numpy as np
from forked_server import ForkedServer
from grpc_health.v1 import health_pb2, health_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_MODEL = ROOT / "models" / "facets-en"
START_S = 300.0  # a busy machine loads torch slowly
TOY_WORDS = (
    "the a of and in to is was on for with as by at from it he she they cat dog kitten puppy animal car truck engine "
    "wheel road river sea water boat ship music song guitar piano bread cheese wine table chair house city king "
    "queen war peace sun moon star tree forest mountain book paper school teacher student science physics energy . , ?"
).split()


class ServerProcess:
    """One server process; ``with`` stops it.

    Attributes:
        port: Where it listens.
        target: ``localhost:port``.
        process: The process: forked from one that has imported everything, or started as users do.
    """

    def __init__(
        self,
        data_dir: Path,
        model: Path,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        port: int | None = None,
        forked: bool = True,
    ) -> None:
        self.port = port or free_port()
        self.target = f"127.0.0.1:{self.port}"
        self._log_path = data_dir.with_name(f"{data_dir.name}-{self.port}-{time.time_ns()}.log")
        everything = ["--port", str(self.port), "--data-dir", str(data_dir), "--model", str(model), *arguments]
        self.process = _started(everything, server_environment(environment), self._log_path, forked=forked)
        self.channel = grpc.insecure_channel(self.target, options=[("grpc.enable_retries", 0)])

    def wait_until_serving(self) -> "ServerProcess":
        wait_until_serving(self.channel, alive=lambda: self.process.poll() is None, log=self.log)
        return self

    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        self.process.send_signal(signal.SIGTERM)

    def __enter__(self) -> "ServerProcess":
        return self.wait_until_serving()

    def __exit__(self, *_: object) -> None:
        self.channel.close()
        if self.process.poll() is None:
            self.terminate()
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.kill()


def _started(
    arguments: Sequence[str], environment: Mapping[str, str], log: Path, *, forked: bool
) -> "ForkedServer | subprocess.Popen[bytes]":
    if forked:
        return ForkedServer(arguments, environment, log)
    with log.open("wb") as file:
        return subprocess.Popen(server_command(*arguments), stdout=file, stderr=file, env=dict(environment))


_PATHS = os.pathsep.join(str(ROOT / room) for room in ("", "proto", "clients", "server"))
NO_BACKGROUND = {"FACETS_TARGET": "127.0.0.1:1"}  # where no server listens
COMMAND = [sys.executable, "-c", "from facets_client.cli import main; main()"]  # `facets` without installing it


def client_environment(folder: Path, **more: str) -> dict[str, str]:
    """Environment of a program that finds all packages and keeps its state below ``folder``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FACETS_")}
    return {**kept, "PYTHONPATH": _PATHS, "XDG_DATA_HOME": str(folder), **NO_BACKGROUND, **more}


def server_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "facets_server", *arguments]


def server_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FACETS_")}
    return {
        **inherited,
        "PYTHONPATH": _PATHS,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        **(extra or {}),
    }


def run_server(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a server that is expected to end by itself."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        server = ForkedServer(arguments, server_environment(environment), output, errors)
        code = server.wait(START_S)
        return subprocess.CompletedProcess(server_command(*arguments), code, output.read_text(), errors.read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_serving(channel, alive=lambda: True, log=lambda: "") -> None:
    health = health_pb2_grpc.HealthStub(channel)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert alive(), f"the server ended while starting:\n{log()}"
        try:
            if (
                health.Check(health_pb2.HealthCheckRequest(), timeout=2).status
                == health_pb2.HealthCheckResponse.SERVING
            ):
                return
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        time.sleep(0.1)
    raise AssertionError(f"the server was not SERVING within {START_S} s:\n{log()}")


def make_toy_checkpoint(folder: Path, *, name: str = "toy", num_facets: int = 4, seed: int = 5) -> Path:
    from toys import untrained_model

    from facets.config import FacetModelConfig
    from facets.language.vectors import WordVectors
    from facets.language.vocabulary import Vocabulary
    from facets.model.checkpoint import CheckpointConfig

    random = np.random.default_rng(11)
    vectors = random.normal(size=(len(TOY_WORDS), 32)).astype(np.float32)
    words = WordVectors(Vocabulary(TOY_WORDS, np.arange(len(TOY_WORDS), 0, -1) * 10), vectors)
    config = CheckpointConfig(
        name=name,
        task="sentences",
        model=FacetModelConfig(
            num_facets=num_facets, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=64, max_tokens=32
        ),
    )
    model = untrained_model(config, words, seed=seed)
    component = vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0))
    model.common_components = {"plain": component, "attention": component}
    model.save(folder)
    assert json.loads((folder / "config.json").read_text())["name"] == name
    return folder
