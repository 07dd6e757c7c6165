"""Texts per second through gRPC: ``python -m benchmarks.server [--model NAME|PATH]``; JSON on standard output.

A real server process, called from other processes on the same machine: one text a call with 1 and with 64 callers,
16 texts a call, batches, and the ordered stream. The baseline is the bare model on the same texts in the same run;
with ``--minilm`` also sentence-transformers' MiniLM. Without a model on disk, ``--untrained`` makes one of the default
size: the arithmetic is the same.
"""

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import grpc
import numpy as np
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from grpc_health.v1 import health_pb2

from benchmarks.callers import Load, call_all
from benchmarks.measuring import minilm, percentiles, print_report, spent
from facets.config import FacetModelConfig
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.checkpoint import CheckpointConfig
from facets.model.facet_model import FacetModel, new_model
from facets.model.loading import load

_START_S = 600.0
_VOCABULARY = 50_000
_SOME = 16  # texts of a call between one and a batch
_PROCESSES = 2  # of callers
_LETTERS = "etaoinshrdlucmfw"
EMBED = "/facets.v1.EmbeddingService/Embed"
WORDS = "the river ran past an old stone house where a man played the piano and nobody listened to him".split()


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="shipped model or checkpoint folder (default: the shipped one)")
    parser.add_argument("--untrained", action="store_true", help="an untrained model of the default size instead")
    parser.add_argument("--texts", type=Path, help="file with one text a line (default: made from the vocabulary)")
    parser.add_argument("--num-texts", type=int, default=4096)
    parser.add_argument("--words", type=int, default=15, help="mean words of a made text")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--minilm", action="store_true", help="compare with sentence-transformers' MiniLM too")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        folder = str(make_untrained(Path(directory) / "model")) if options.untrained else options.model
        model = load(folder)
        texts = read_texts(options.texts, model, options.num_texts, options.words)
        figures = {"bare_model": bare(model, texts, options.batch)}
        with serving(folder, Path(directory) / "data") as server:
            figures |= through_grpc(server, texts, options.batch, options.callers)
        if options.minilm:
            figures["minilm"] = _encoded(minilm(batch_size=options.batch), texts, options.batch)
    bare_figures = figures["bare_model"]
    report = {
        "benchmark": "server",
        "model": {"name": model.name, "revision": model.revision, "facets": model.num_facets, "dim": model.dim},
        "texts": len(texts),
        "words_per_text": round(statistics.mean(len(text.split()) for text in texts), 1),
        "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
        "figures": figures,
        "ratio_to_bare_model": {
            name: round(figure["texts_per_s"] / bare_figures["texts_per_s"], 3) for name, figure in figures.items()
        },
        # What other processes take of the machine, callers among them, changes this less.
        "bare_cpu_over_server_cpu": {
            name: round(bare_figures["cpu_ms_per_text"] / figure["cpu_ms_per_text"], 3)
            for name, figure in figures.items()
        },
    }
    print_report(report)


def bare(model: FacetModel, texts: Sequence[str], batch: int) -> dict[str, float]:
    """The model without a server, in the same batches; and one text at a time."""
    model.encode(texts[:batch])
    start, cpu = time.perf_counter(), time.process_time()
    for at in range(0, len(texts), batch):
        model.encode(texts[at : at + batch])
    figure = per_text(len(texts), time.perf_counter() - start, time.process_time() - cpu)
    singles = texts[: min(len(texts), 300)]
    start = time.perf_counter()
    for text in singles:
        model.encode([text])
    one = (time.perf_counter() - start) / len(singles)
    return {**figure, "single_ms": round(1000 * one, 3)}


def per_text(num_texts: int, seconds: float, cpu_seconds: float) -> dict[str, float]:
    """Texts a second, and the processor time of one text, which other load on the machine changes less."""
    return {
        "texts_per_s": round(num_texts / seconds, 1),
        "cpu_ms_per_text": round(1000 * cpu_seconds / num_texts, 3),
    }


def through_grpc(server: "Server", texts: Sequence[str], batch: int, callers: int) -> dict[str, dict[str, float]]:
    """One text a call by one and by many callers, some texts a call, batches, and the stream."""
    stub = texts_pb2_grpc.EmbeddingServiceStub(server.channel)  # type: ignore[no-untyped-call]
    for part in parts(texts, batch):  # words are read for the first time once
        stub.Embed(texts_pb2.EmbedRequest(texts=part), timeout=120)
    singles = texts[: min(len(texts), 500)]
    return {
        "grpc_single_1_caller": called(server, parts(singles, 1), 1),
        f"grpc_single_{callers}_callers": called(server, parts(texts, 1), callers),
        f"grpc_{_SOME}_texts_{callers}_callers": called(server, parts(texts, _SOME), callers),
        "grpc_batch_1_caller": called(server, parts(texts, batch), 1),
        "grpc_batch_2_callers": called(server, parts(texts, batch), 2),
        "grpc_stream": streamed(server, stub, parts(texts, batch)),
    }


def parts(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """The texts of each call."""
    return [texts[at : at + size] for at in range(0, len(texts), size)]


def called(server: "Server", calls: Sequence[Sequence[str]], callers: int) -> dict[str, float]:
    """Makes the calls from processes of their own; texts a second, latencies, what a text costs on either side."""
    load = Load(
        target=server.target,
        method=EMBED,
        requests=[texts_pb2.EmbedRequest(texts=part).SerializeToString() for part in calls],
        callers=callers,
        processes=min(callers, _PROCESSES),
    )
    taken, cpu = call_all(load, cpu_seconds=server.cpu_seconds)
    num_texts = sum(map(len, calls))
    client_ms = round(1000 * taken.client_cpu_s / num_texts, 3)
    latencies = percentiles(taken.latencies_ms, (50, 99), digits=2, unit="_ms")
    return {**per_text(num_texts, taken.seconds, cpu), "client_cpu_ms_per_text": client_ms, **latencies}


def streamed(
    server: "Server", stub: texts_pb2_grpc.EmbeddingServiceStub, batches: Sequence[Sequence[str]]
) -> dict[str, float]:
    """All batches down one stream."""
    requests = (
        texts_pb2.EmbedStreamRequest(sequence=i, request=texts_pb2.EmbedRequest(texts=part))
        for i, part in enumerate(batches)
    )
    start, cpu = time.perf_counter(), server.cpu_seconds()
    replies = sum(1 for _ in stub.EmbedStream(requests, timeout=600))
    seconds = time.perf_counter() - start
    if replies != len(batches):
        raise RuntimeError(f"the stream gave {replies} replies for {len(batches)} requests")
    return per_text(sum(map(len, batches)), seconds, server.cpu_seconds() - cpu)


def _encoded(encode: Callable[[Sequence[str]], object], texts: Sequence[str], batch: int) -> dict[str, float]:
    encode(texts[:batch])
    return per_text(len(texts), *spent(lambda: encode(texts)))


@dataclass(frozen=True, slots=True)
class Server:
    """A running server process and a channel to it."""

    target: str
    channel: grpc.Channel
    pid: int

    def cpu_seconds(self) -> float:
        """Processor time that the process has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """The most memory that the process has had."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def server_arguments(port: int, data_dir: Path, models: Iterable[str | Path]) -> list[str]:
    """Those of ``facets-server``."""
    named = [part for model in models for part in ("--model", str(model))]
    return ["--port", str(port), "--data-dir", str(data_dir), *named]


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(
    model: str | Sequence[str] | None,
    data_dir: Path,
    settings: Mapping[str, str] | None = None,
    *,
    port: int | None = None,
) -> Iterator[Server]:
    """A server process of our own, with settings as variables of the environment; on any free port.

    Args:
        model: Name or folder, or several; None or empty: the shipped ones.
        data_dir: Made when absent.
        settings: ``FACETS_SERVER_...``.
        port: Where it listens; None: any free one.
    """
    port = port or free_port()
    arguments = server_arguments(port, data_dir, [model] if isinstance(model, str) else model or ())
    command = [sys.executable, "-m", "facets_server", *arguments]
    paths = os.pathsep.join(sys.path)
    environment = {**os.environ, "FACETS_SERVER_LOG_LEVEL": "WARNING", **(settings or {}), "PYTHONPATH": paths}
    process = subprocess.Popen(command, env=environment)
    options = [("grpc.max_receive_message_length", -1)]
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            wait_until_serving(channel, process)
            yield Server(f"127.0.0.1:{port}", channel, process.pid)
    finally:
        process.terminate()
        process.wait(60)


class Process(Protocol):
    """What may end while it starts."""

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        ...


def wait_until_serving(channel: grpc.Channel, process: Process, *, log: Path | None = None) -> None:
    """Waits for the health of the server.

    Raises:
        RuntimeError: It ended, or does not say it in time; with the end of its log.
    """
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(grpc.RpcError):
            reply = check(health_pb2.HealthCheckRequest(), timeout=5)
            if reply.status == health_pb2.HealthCheckResponse.SERVING:
                return
        time.sleep(0.02)
    said = "" if log is None else log.read_text(errors="replace")[-2000:]
    raise RuntimeError(f"the server ended, or was not SERVING within {_START_S:.0f} s: {said}")


def embed_request(number: int, *, num_texts: int = 1) -> bytes:
    """Texts of some words, different ones for each of many numbers."""
    random = np.random.default_rng(number)
    texts = [" ".join(random.choice(WORDS, 12)) for _ in range(num_texts)]
    return texts_pb2.EmbedRequest(texts=texts).SerializeToString()


def read_texts(file: Path | None, model: FacetModel, count: int, num_words: int) -> list[str]:
    """The texts to encode: lines of a file, or words drawn by their frequency with a fixed seed."""
    if file is not None:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        return (lines * (count // max(1, len(lines)) + 1))[:count]
    random = np.random.default_rng(0)
    probabilities = model.words.vocabulary.probabilities
    lengths = random.integers(max(1, num_words // 2), num_words * 3 // 2 + 1, size=count)
    drawn = random.choice(model.words.vocabulary.words, size=int(lengths.sum()), p=probabilities / probabilities.sum())
    return [" ".join(words) for words in np.split(drawn, np.cumsum(lengths)[:-1])]


def make_untrained(folder: Path) -> Path:
    """A checkpoint of the default size with random weights and words."""
    random = np.random.default_rng(1)
    words = sorted({"".join(random.choice(list(_LETTERS), size=7)) for _ in range(_VOCABULARY)})
    config = FacetModelConfig()
    counts = np.maximum(1, 10_000_000 // np.arange(1, len(words) + 1))
    vectors = random.normal(size=(len(words), config.dim)).astype(np.float32)
    checkpoint = CheckpointConfig(name="untrained", task="sentences", model=config)
    new_model(checkpoint, WordVectors(Vocabulary(words, counts), vectors), seed=1).save(folder)
    return folder


if __name__ == "__main__":
    main()
