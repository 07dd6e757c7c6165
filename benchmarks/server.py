"""Texts per second through gRPC: ``python -m benchmarks.server [--model NAME|PATH]``; prints JSON.

Calls a real server process from other processes on the same machine: one text per call with 1 and with 64 callers, 16
texts per call, batches, and the ordered stream. The baseline is the model without a server on the same texts in
the same run.
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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from facets_proto.v1 import texts_pb2, texts_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.callers import Answers, Callers, call
from benchmarks.measuring import percentiles, print_report, spent
from facets.model.facet_model import FacetModel
from facets.model.loading import load

_START_S = 600.0
_TIMEOUT_S = 120.0
_TEXTS_PER_CALL = 16  # between a single text and a full batch
_NUM_PROCESSES = 2  # processes that run the callers
EMBED = "/facets.v1.EmbeddingService/Embed"
WORDS = "the river ran past an old stone house where a man played the piano and a dog listened to him".split()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="shipped model or checkpoint folder (default: the shipped one)")
    parser.add_argument("--num-texts", type=int, default=4096)
    parser.add_argument("--words", type=int, default=15, help="mean number of words of a drawn text")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--callers", type=int, default=64)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        model = load(options.model)
        texts = draw_texts(model, options.num_texts, options.words)
        figures = {"bare_model": measure_bare(model, texts, options.batch)}
        with serving(options.model, Path(directory) / "data") as server:
            figures |= measure_grpc(server, texts, options.batch, options.callers)
    bare = figures["bare_model"]
    report = {
        "benchmark": "server",
        "model": {"name": model.name, "revision": model.revision, "facets": model.num_facets, "dim": model.dim},
        "texts": len(texts),
        "words_per_text": round(statistics.mean(len(text.split()) for text in texts), 1),
        "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
        "figures": figures,
        "ratio_to_bare_model": {
            name: round(figure["texts_per_s"] / bare["texts_per_s"], 3) for name, figure in figures.items()
        },
        # Other load on the machine, including the callers, affects this ratio less.
        "bare_cpu_over_server_cpu": {
            name: round(bare["cpu_ms_per_text"] / figure["cpu_ms_per_text"], 3) for name, figure in figures.items()
        },
    }
    print_report(report)


def measure_bare(model: FacetModel, texts: Sequence[str], batch: int) -> dict[str, float]:
    """Measures the model without a server, in the same batches."""
    model.encode(texts[:batch])
    return per_text(len(texts), *spent(lambda: [model.encode(part) for part in cut(texts, batch)]))


def per_text(num_texts: int, seconds: float, cpu_seconds: float) -> dict[str, float]:
    """Texts per second, and processor time per text."""
    return {"texts_per_s": round(num_texts / seconds, 1), "cpu_ms_per_text": round(1000 * cpu_seconds / num_texts, 3)}


def measure_grpc(server: "Server", texts: Sequence[str], batch: int, callers: int) -> dict[str, dict[str, float]]:
    """Measures single texts, several texts per call, batches and the stream."""
    stub = texts_pb2_grpc.EmbeddingServiceStub(server.channel)  # type: ignore[no-untyped-call]
    for part in cut(texts, batch):  # so that the tokenizer has seen every word before the clock starts
        stub.Embed(texts_pb2.EmbedRequest(texts=part), timeout=_TIMEOUT_S)
    return {
        "grpc_single_1_caller": measure_calls(server, cut(texts[:500], 1), 1),
        f"grpc_single_{callers}_callers": measure_calls(server, cut(texts, 1), callers),
        f"grpc_{_TEXTS_PER_CALL}_texts_{callers}_callers": measure_calls(server, cut(texts, _TEXTS_PER_CALL), callers),
        "grpc_batch_1_caller": measure_calls(server, cut(texts, batch), 1),
        "grpc_batch_2_callers": measure_calls(server, cut(texts, batch), 2),
        "grpc_stream": measure_stream(server, stub, cut(texts, batch)),
    }


def cut(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """Groups texts into calls."""
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def measure_calls(server: "Server", calls: Sequence[Sequence[str]], callers: int) -> dict[str, float]:
    """Measures Embed from separate processes: texts per second, latencies, processor time of both sides."""
    requests = [texts_pb2.EmbedRequest(texts=texts).SerializeToString() for texts in calls]
    cpu = server.cpu_seconds()
    taken = call_all(server.target, EMBED, requests, callers)
    cpu = server.cpu_seconds() - cpu
    num_texts = sum(map(len, calls))
    return {
        **per_text(num_texts, taken.seconds, cpu),
        **percentiles(taken.latencies_ms, (50, 99), digits=2, unit="_ms"),
    }


def measure_stream(
    server: "Server", stub: texts_pb2_grpc.EmbeddingServiceStub, batches: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Measures one stream with all batches."""
    requests = (
        texts_pb2.EmbedStreamRequest(sequence=sequence, request=texts_pb2.EmbedRequest(texts=texts))
        for sequence, texts in enumerate(batches)
    )
    start, cpu = time.perf_counter(), server.cpu_seconds()
    num_replies = sum(1 for _ in stub.EmbedStream(requests, timeout=600))
    if num_replies != len(batches):
        raise RuntimeError(f"the stream gave {num_replies} replies for {len(batches)} requests")
    return per_text(sum(map(len, batches)), time.perf_counter() - start, server.cpu_seconds() - cpu)


def call_all(target: str, method: str, requests: Sequence[bytes], num_callers: int) -> Answers:
    """Sends every request once, from callers in a few processes; the seconds are those of the slowest process."""
    num = min(num_callers, _NUM_PROCESSES)
    sizes = [num_callers // num + (place < num_callers % num) for place in range(num)]
    parts = call(target, [[Callers(method, requests[place::num], size)] for place, size in enumerate(sizes)])
    failed = sum((part.failed for part in parts), Counter[str]())
    if failed:
        raise RuntimeError(f"{failed.total()} of {len(requests)} calls failed: {dict(failed)}")
    latencies_ms = [latency for part in parts for latency in part.latencies_ms]
    return Answers(latencies_ms, failed, max(part.seconds for part in parts))


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


def server_arguments(port: int, data_dir: Path, models: Iterable[str | Path]) -> list[str]:
    """Arguments of ``facets-server``."""
    named = [part for model in models for part in ("--model", str(model))]
    return ["--port", str(port), "--data-dir", str(data_dir), *named]


def free_port() -> int:
    """A free port of localhost."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(model: str | None, data_dir: Path, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Runs a server process on a free port; ``model`` None: the shipped models; ``settings``: environment variables."""
    port = free_port()
    command = [sys.executable, "-m", "facets_server", *server_arguments(port, data_dir, [model] if model else [])]
    environment = {**os.environ, "FACETS_SERVER_LOG_LEVEL": "WARNING", **(settings or {})}
    process = subprocess.Popen(command, env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        options = [("grpc.max_receive_message_length", -1)]
        with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            wait_until_serving(channel, process)
            yield Server(f"127.0.0.1:{port}", channel, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def wait_until_serving(channel: grpc.Channel, process: Any, *, log: Path | None = None) -> None:
    """Waits until health says SERVING; RuntimeError with the end of the log if the process ends or is too slow."""
    health = health_pb2_grpc.HealthStub(channel)
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(grpc.RpcError):
            reply = health.Check(health_pb2.HealthCheckRequest(), timeout=5)
            if reply.status == health_pb2.HealthCheckResponse.SERVING:
                return
        time.sleep(0.02)
    log_end = "" if log is None else log.read_text(errors="replace")[-2000:]
    raise RuntimeError(f"the server ended, or was not SERVING within {_START_S:.0f} s: {log_end}")


def embed_request(number: int) -> bytes:
    """Serialized request with a text of twelve words, different ones for each number."""
    text = " ".join(np.random.default_rng(number).choice(WORDS, 12))
    return texts_pb2.EmbedRequest(texts=[text]).SerializeToString()


def draw_texts(model: FacetModel, count: int, num_words: int) -> list[str]:
    """Words drawn by their frequency with a fixed seed."""
    random = np.random.default_rng(0)
    probabilities = model.words.vocabulary.probabilities
    lengths = random.integers(max(1, num_words // 2), num_words * 3 // 2 + 1, size=count)
    drawn = random.choice(model.words.vocabulary.words, size=int(lengths.sum()), p=probabilities / probabilities.sum())
    return [" ".join(words) for words in np.split(drawn, np.cumsum(lengths)[:-1])]


if __name__ == "__main__":
    main()
