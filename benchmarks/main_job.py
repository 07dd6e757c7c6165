"""The main job on real input: index a corpus through the CLI, crash server and client in the middle, search.

``python -m benchmarks.main_job --corpus 'corpus/*.txt.xz' --documents 100000 --work-dir runs/main-job``

Every paragraph of the corpus is a document. The server is killed (SIGKILL) after 30 % of the documents and
started again while the CLI waits; the CLI is killed after 60 % and run again; at the end every document must be
there once. JSON on standard output.
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from facets_client import FacetsClient, FacetsClientError
from facets_lab.training.corpus import expand_files, read_documents

from benchmarks.measuring import percentiles, print_report
from benchmarks.server import free_port, serving

_COLLECTION = "paragraphs"
# Shorter paragraphs are list items and captions.
_MIN_WORDS = 15


class RestartedServer:
    """A server process that is stopped, or killed, and started again on the same port and data directory."""

    def __init__(self, work_dir: Path, model: str | None) -> None:
        self._model, self._data_dir, self._port = model, work_dir / "data", free_port()
        self._held = ExitStack()
        self.peak_memory_mib = 0.0

    @property
    def target(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> float:
        """Starts it and waits until it serves; returns the seconds that took."""
        started = time.monotonic()
        self._server = self._held.enter_context(serving(self._model, self._data_dir, port=self._port))
        return time.monotonic() - started

    def stop(self, *, kill: bool = False) -> float:
        """Stops it and waits for the end; returns the seconds that took."""
        self.peak_memory_mib = max(self.peak_memory_mib, self._server.peak_mib())
        started = time.monotonic()
        if kill:
            os.kill(self._server.pid, signal.SIGKILL)
        self._held.close()
        return time.monotonic() - started


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the job and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", nargs="+", required=True, help="corpus files or patterns")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--work-dir", type=Path, required=True, help="empty or new folder")
    parser.add_argument("--model", default=None)
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args(arguments)
    options.work_dir.mkdir(parents=True, exist_ok=True)
    records = options.work_dir / "paragraphs.jsonl"
    ids = write_records(options.corpus, options.documents, records)
    server = RestartedServer(options.work_dir, options.model)
    report: dict[str, object] = {"benchmark": "main_job", "documents": len(ids), "input_mib": _mib(records)}
    report["first_start_s"] = round(server.start(), 1)
    report |= index_with_crashes(server, records, len(ids), options.work_dir)
    report["all_documents_stored_once"] = stored_ids(server.target) == sorted(ids)
    report["disk_mib"] = round(sum(_mib(file) for file in (options.work_dir / "data").rglob("*") if file.is_file()), 1)
    report["stop_s"] = round(server.stop(), 1)
    report["restart_after_stop_s"] = round(server.start(), 1)
    report["search"] = search(server.target, records, options.queries)
    server.stop(kill=True)
    report["restart_after_sigkill_s"] = round(server.start(), 1)
    server.stop()
    report["server_peak_memory_mib"] = round(server.peak_memory_mib)
    print_report(report)


def write_records(patterns: list[str], count: int, path: Path) -> list[str]:
    """Writes the first ``count`` paragraphs as JSONL; returns their ids."""
    ids = []
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(itertools.islice(_paragraphs(patterns), count)):
            ids.append(f"p{number:07d}")
            record = {"id": ids[-1], "text": text, "num_words": len(text.split()), "source": number % 10}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return ids


def _paragraphs(patterns: list[str]) -> Iterator[str]:
    for path in expand_files(patterns):
        for document in read_documents(path):
            yield from (text for text in document if len(text.split()) >= _MIN_WORDS)


def index_with_crashes(server: RestartedServer, records: Path, count: int, work_dir: Path) -> dict[str, object]:
    """Indexes through the CLI; kills the server once and the CLI once."""
    started = time.monotonic()
    command = [sys.executable, "-c", "from facets_client.cli import main; main()", "--target", server.target]
    command += ["index", str(records), "--collection", _COLLECTION, "--create", "--no-progress"]
    command += ["--state", str(work_dir / "state.json")]
    cli = subprocess.Popen(command)
    before_crash = _wait_for_count(server.target, 0.3 * count, cli)
    server.stop(kill=True)
    restart_s = server.start()
    with FacetsClient(server.target, timeout_s=60.0) as client:
        after_crash = client.count_documents(_COLLECTION)
    _wait_for_count(server.target, 0.6 * count, cli)
    cli.kill()
    cli.wait()
    code = subprocess.run(command, check=False).returncode
    seconds = time.monotonic() - started
    return {
        "index_exit_code": code,
        "index_s": round(seconds, 1),
        "documents_per_s": round(count / seconds, 1),
        "restart_after_crash_s": round(restart_s, 1),
        "stored_before_and_after_crash": [before_crash, after_crash],
    }


def _wait_for_count(target: str, count: float, cli: "subprocess.Popen[bytes]") -> int:
    with FacetsClient(target, timeout_s=60.0) as client:
        while cli.poll() is None:
            try:
                stored = client.count_documents(_COLLECTION)
            except FacetsClientError:
                stored = 0  # Not made yet.
            if stored >= count:
                return stored
            time.sleep(0.1)
    raise RuntimeError(f"the CLI ended early with exit code {cli.returncode}")


def stored_ids(target: str) -> list[str]:
    """Ids of all stored documents, sorted, duplicates kept."""
    with FacetsClient(target, timeout_s=60.0) as client:
        return sorted(document.id for document in client.list_documents(_COLLECTION))


def search(target: str, records: Path, num_queries: int) -> dict[str, object]:
    """Latency of single searches and agreement with the exact ones; queries are first halves of sentences."""
    lines = records.read_text(encoding="utf-8").splitlines()
    chosen = np.random.default_rng(0).choice(len(lines), num_queries, replace=False)
    queries = [" ".join(json.loads(lines[row])["text"].split()[:10]) for row in chosen]
    milliseconds: dict[bool, list[float]] = {False: [], True: []}
    found: dict[bool, list[set[str]]] = {False: [], True: []}
    with FacetsClient(target, timeout_s=60.0) as client:
        client.search(_COLLECTION, queries[:1], top_k=10)
        for exact, query in itertools.product((False, True), queries):
            started = time.perf_counter()
            (hits,) = client.search(_COLLECTION, [query], top_k=10, exact=exact)
            milliseconds[exact].append(1e3 * (time.perf_counter() - started))
            found[exact].append({hit.id for hit in hits})
    recall = np.mean([len(a & e) / max(len(e), 1) for a, e in zip(found[False], found[True], strict=True)])
    return {
        "queries": num_queries,
        **percentiles(milliseconds[False], (50, 99), unit="_ms"),
        "exact_p50_ms": percentiles(milliseconds[True])["p50"],
        "recall_at_10": round(float(recall), 4),
    }


def _mib(path: Path) -> float:
    return os.path.getsize(path) / 2**20


if __name__ == "__main__":
    main()
