"""Starts the service, indexes the samples, shows two searches, and keeps serving: what ``make serve`` runs.

It uses only the two user commands, ``facets-server`` and ``facets``. Ctrl-C or SIGTERM stops the server after its
running calls, and the script returns its exit code.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from facets_client import FacetsClient, FacetsClientError

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = "samples/wikipedia.jsonl"
COLLECTION = "samples"
QUERIES = ("capital city of France", "how do plants turn sunlight into food")
START_LIMIT_S = 120.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

TRY = """
The server is up at {target}, its page at {page}. In another terminal, in this folder:

  source {activate}{export}
  facets search "how vaccines protect against disease" --collection {collection} --top-k 3
  facets search "another name for ping pong" --collection {collection} --where topic=sport --explain
  facets search "renew a parking permit" --collection {collection}
  facets explain "The striker scored in extra time."
  facets similarity "A dog is barking." "A puppy makes noise."
  facets index YOUR-FILE.jsonl --collection mine --create
  facets --help

Documents are kept in {data_dir}. Ctrl-C stops the server.
"""


class _StopServingError(Exception):
    """A signal to stop arrived."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until told to stop; returns the server's exit code."""
    options = _parser().parse_args(argv)
    if problem := _port_problem(options.host, options.port):
        sys.stderr.write(f"serve: {problem}\n")
        return 2
    if _port_problem(options.host, options.http_port):
        options.http_port = _free_port(options.host)
    for number in STOP_SIGNALS:
        signal.signal(number, _stop)
    os.environ.setdefault(
        "FACETS_SERVER_BACKUP_DIR", f"{options.data_dir}-backups"
    )  # for the backup button of the page
    server = subprocess.Popen(_server_command(options))
    try:
        _show_samples(options, server)
        return _exit_code(server.wait())
    except _StopServingError:
        return _stop_server(server)
    except (FacetsClientError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"serve: the samples could not be shown: {error}\n")
        return _stop_server(server) or 1


def _server_command(options: argparse.Namespace) -> list[str]:
    command = [str(Path(sys.executable).with_name("facets-server"))]
    for name in ("host", "port", "http_port", "data_dir", "log_level"):
        command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    return command + (["--model", options.model] if options.model else [])


def _show_samples(options: argparse.Namespace, server: subprocess.Popen[bytes]) -> None:
    target = f"{options.host}:{options.port}"
    if not _wait_until_serving(target, server):
        return
    data_dir = options.data_dir.resolve()
    os.environ["XDG_STATE_HOME"] = str(data_dir / "state")  # so that a new data directory gets the samples again
    rejected = ["--rejected", str(data_dir / "samples.rejected.jsonl")]
    _facets(target, ["index", SAMPLES, "--collection", COLLECTION, "--create"], not_shown=rejected)
    for query in QUERIES:
        _facets(target, ["search", query, "--collection", COLLECTION, "--top-k", "3"])
    page = f"http://{options.host}:{options.http_port}/"
    export = "" if options.port == 50051 else f"\n  export FACETS_TARGET={target}"
    activate = Path(sys.executable).parent / "activate"
    names = {"target": target, "page": page, "activate": activate, "export": export, "collection": COLLECTION}
    print(TRY.format(**names, data_dir=options.data_dir), flush=True)


def _wait_until_serving(target: str, server: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + START_LIMIT_S
    with FacetsClient(target, timeout_s=1.0) as client:
        while server.poll() is None:
            try:
                if client.health()[""] == "SERVING":
                    return True
            except FacetsClientError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)
    return False


def _facets(target: str, words: Sequence[str], *, not_shown: Sequence[str] = ()) -> None:
    """Prints a ``facets`` command and runs it, with further options that it does not print."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in words)
    print(f"\n$ facets {shown}", flush=True)
    command = [str(Path(sys.executable).with_name("facets")), "--target", target, *words, *not_shown]
    subprocess.run(command, check=True, cwd=ROOT)


def _stop_server(server: subprocess.Popen[bytes]) -> int:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    server.terminate()
    return _exit_code(server.wait())


def _exit_code(code: int) -> int:
    """Exit code of the server; if it was killed, prints a message and returns the code that a shell would."""
    if code >= 0:
        return code
    sys.stderr.write(f"serve: the server was killed ({signal.Signals(-code).name})\n")
    return 128 - code


def _stop(number: int, frame: FrameType | None) -> None:
    raise _StopServingError


def _port_problem(host: str, port: int) -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return f"port {port} cannot be used ({error.strerror}): choose another one, make serve PORT={port + 1}"
    return ""


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Serves the bundled samples on this machine.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=50051, help="port to listen on")
    parser.add_argument("--http-port", type=int, default=8080, help="port of the page; any free port if it is in use")
    parser.add_argument("--data-dir", type=Path, default=Path("data/serve"), help="folder for the documents")
    parser.add_argument("--model", default="", help="shipped model or checkpoint folder; default: the shipped one")
    parser.add_argument("--log-level", default="WARNING", help="INFO shows every request")
    return parser


if __name__ == "__main__":
    sys.exit(main())
